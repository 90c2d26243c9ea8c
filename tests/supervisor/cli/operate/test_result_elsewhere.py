"""The result of a task that did not work in git, taken on the machine that made it or another."""

import shutil
from pathlib import Path

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Commit, Lifecycle
from midwatch_stage import factories as make
from midwatch_stage.command import (
    assignment,
    midwatch,
    new_attempt,
    new_task,
    printed,
    refused,
    write,
)
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import Workspace, prepare
from midwatch_tools.git import git

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("named_by_the_environment")
NEEDS_FOLDER = (
    "fix has no branch: it did not work in git; "
    "`midwatch merge fix --into FOLDER` writes its files into a new folder\n"
)


@pytest.fixture
async def here(journal: Journal, tmp_path: Path) -> Path:
    """The folder of a completed task on the node `east`, whose work is saved in the journal."""
    home = tmp_path / "nodes" / "east"
    folder = home / "work" / "r1" / "fix-1"
    (folder / "sub").mkdir(parents=True)
    (folder / "report.txt").write_text("new\n")
    (folder / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "sub" / "run.sh").chmod(0o755)
    (folder / "sub" / "link").symlink_to("run.sh")
    task = await new_task(journal, spec=assignment("fix").model_dump_json())
    attempt = await new_attempt(journal, task, node="east", workspace=str(folder))
    store = SnapshotStore(journal=journal, home=home, node="east", settings=FleetSettings())
    await store.save(attempt, Workspace(folder=folder), step=1, incarnation=None)
    await write(journal, attempt, make.AT, make.ended())
    done = make.draft(make.task_transition(Lifecycle.COMPLETED), attempt=None)
    await journal.commit(Commit(drafts=(done,)))
    return folder


@pytest.fixture(params=["here", "elsewhere"])
def folder(here: Path, request: pytest.FixtureRequest) -> Path:
    """The same, on this machine and on another one."""
    if request.param == "elsewhere":
        shutil.rmtree(here.parents[2])
    return here


@pytest.mark.usefixtures("here")
async def test_that_of_an_older_run_is_taken_with_its_run(
    journal: Journal, capsys: Capture
) -> None:
    await new_task(journal, "fix")
    assert await midwatch("merge", "fix", "--run", "1") == 2
    assert "`midwatch merge fix --run 1 --into FOLDER`" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
async def test_its_diff_is_printed(capsys: Capture) -> None:
    out = await printed(capsys, "diff", "fix")
    assert "+++ b/report.txt\n@@ -0,0 +1 @@\n+new\n" in out
    assert "b/sub/link" in out
    assert await midwatch("diff", "fix", "--json") == 0
    assert '"name": "report.txt", "added": 1' in capsys.readouterr().out


@pytest.mark.parametrize("kept", [True, False])
async def test_a_diff_without_its_source_folder_says_so(
    journal: Journal, tmp_path: Path, capsys: Capture, kept: bool
) -> None:
    (source := tmp_path / "source").mkdir()
    (folder := tmp_path / "home" / "work" / "r1" / "fix-1").mkdir(parents=True)
    for place in (source, folder):
        (place / "a.txt").write_text("a\n")
    task = await new_task(journal, spec=assignment("fix", workspace=source).model_dump_json())
    await new_attempt(journal, task, workspace=str(folder))
    if not kept:
        shutil.rmtree(source)
    assert await midwatch("diff", "fix") == 0
    said = f"{source} is not on this machine, so every file of fix is shown as new\n"
    assert capsys.readouterr().err == said * (not kept)


@pytest.mark.usefixtures("folder")
async def test_its_files_are_written_into_a_new_folder(tmp_path: Path, capsys: Capture) -> None:
    into = tmp_path / "result"
    files = "+1 -0  report.txt\n+1 -0  sub/link (a link to run.sh)\n+1 -0  sub/run.sh\n"
    assert await midwatch("merge", "fix", "--into", str(into), "--dry-run") == 0
    assert not into.exists()
    assert await midwatch("merge", "fix", "--into", str(into)) == 0
    assert (into / "report.txt").read_text() == "new\n"
    assert (into / "sub" / "link").readlink() == Path("run.sh")
    assert (into / "sub" / "run.sh").stat().st_mode & 0o111
    assert capsys.readouterr().out == (
        f"{files}would write 3 files into {into}; fix changed 3 files, +3 -0\n"
        f"{files}wrote 3 files into {into}; fix changed 3 files, +3 -0\n"
    )


@pytest.mark.parametrize("kept", [True, False])
async def test_all_files_are_written_and_those_that_the_task_changed_are_listed(
    journal: Journal, tmp_path: Path, capsys: Capture, *, kept: bool
) -> None:
    (source := tmp_path / "source").mkdir()
    for name in ("a.txt", "b.txt", "gone.txt", "same.txt"):
        (source / name).write_text("one\n")
    folder = tmp_path / "home" / "work" / "r1" / "fix-1"
    await prepare(folder, source, branch="b", merges=())
    (folder / "b.txt").write_text("two\n")
    (folder / "new.txt").write_text("new\n")
    (folder / "gone.txt").unlink()
    spec = assignment("fix", workspace=source).model_dump_json()
    attempt = await new_attempt(journal, await new_task(journal, spec=spec), workspace=str(folder))
    await write(journal, attempt, make.AT, make.ended())
    done = make.draft(make.task_transition(Lifecycle.COMPLETED), attempt=None)
    await journal.commit(Commit(drafts=(done,)))
    if not kept:
        shutil.rmtree(source)
    into = tmp_path / "result"
    assert await midwatch("merge", "fix", "--into", str(into)) == 0
    lost = f"{source} is not on this machine, so every file of fix is shown as new\n"
    changed = "+1 -1  b.txt\n+0 -1  gone.txt\n+1 -0  new.txt\n"
    new = "+1 -0  a.txt\n+1 -0  b.txt\n+1 -0  new.txt\n+1 -0  same.txt\n"
    total = "3 files, +2 -2" if kept else "4 files, +4 -0"
    said = (changed if kept else new) + f"wrote 4 files into {into}; fix changed {total}\n"
    assert capsys.readouterr() == (said, "" if kept else lost)
    assert sorted(each.name for each in into.iterdir()) == [
        *("a.txt", "b.txt", "new.txt", "same.txt")
    ]


@pytest.mark.usefixtures("folder")
async def test_without_a_folder_merge_says_that_it_needs_one(capsys: Capture) -> None:
    assert await refused(capsys, "merge", "fix") == NEEDS_FOLDER


@pytest.mark.usefixtures("here")
async def test_a_folder_with_files_in_it_is_left_as_it_is(tmp_path: Path, capsys: Capture) -> None:
    (into := tmp_path / "result").mkdir()
    (into / "report.txt").write_text("mine\n")
    assert await midwatch("merge", "fix", "--into", str(into)) == 2
    assert capsys.readouterr().err == f"{into} is not empty: name a new folder\n"
    assert (into / "report.txt").read_text() == "mine\n"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["file/result", "missing/result"])
async def test_a_folder_that_cannot_be_made_is_no_traceback(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "file").touch()
    assert await midwatch("merge", "fix", "--into", str(tmp_path / name)) == 2
    assert f"{tmp_path / name} cannot be written: " in capsys.readouterr().err


async def test_a_branch_is_not_written_into_a_folder(
    journal: Journal, tmp_path: Path, capsys: Capture
) -> None:
    (repository := tmp_path / "shop").mkdir()
    await git(repository, "init", "--quiet")
    spec = assignment("fix", workspace=repository, base="0" * 40).model_dump_json()
    task = await new_task(journal, spec=spec)
    attempt = await new_attempt(journal, task, node="east", workspace=str(tmp_path / "gone"))
    await write(journal, attempt, make.AT, make.ended())
    done = make.draft(make.task_transition(Lifecycle.COMPLETED), attempt=None)
    await journal.commit(Commit(drafts=(done,)))
    assert await refused(capsys, "merge", "fix", "--into", str(tmp_path / "result")) == (
        "fix worked in git: `midwatch merge fix` merges its branch\n"
    )
