"""The result of a task that did not work in git, taken on the machine that made it or another."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Lifecycle
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import Workspace, prepare
from midwatch_tests import factories as make
from midwatch_tests.command import Cli, assignment, midwatch, new_attempt, new_task, write
from midwatch_tools.git import git

pytestmark = pytest.mark.usefixtures("named_by_the_environment")
FILES = ["+1 -0  report.txt", "+1 -0  sub/link (a link to run.sh)", "+1 -0  sub/run.sh"]


async def completed_attempt(journal: Journal, folder: Path, **fields: Any) -> Attempt:
    """The attempt of a completed task `fix`, which worked in a folder of the node `east`."""
    task = await new_task(journal, spec=assignment("fix", **fields).model_dump_json())
    made = await new_attempt(journal, task, node="east", workspace=str(folder))
    await write(journal, made, make.AT, make.ended(), make.task_transition(Lifecycle.COMPLETED))
    return made


@pytest.fixture
async def result_folder(journal: Journal, tmp_path: Path) -> Path:
    """The folder of a completed task on the node `east`, whose work is saved in the journal."""
    home = tmp_path / "nodes" / "east"
    folder = home / "work" / "r1" / "fix-1"
    (folder / "sub").mkdir(parents=True)
    (folder / "report.txt").write_text("new\n")
    (folder / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "sub" / "run.sh").chmod(0o755)
    (folder / "sub" / "link").symlink_to("run.sh")
    store = SnapshotStore(journal=journal, home=home, node="east", settings=FleetSettings())
    attempt = await completed_attempt(journal, folder)
    await store.save(attempt, Workspace(folder=folder), step=1, incarnation=None)
    return folder


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_its_diff_is_printed_and_its_files_are_written_into_a_new_folder(
    result_folder: Path, tmp_path: Path, cli: Cli, *, elsewhere: bool
) -> None:
    if elsewhere:
        shutil.rmtree(result_folder.parents[2])
    out = await cli.said("diff", "fix")
    assert "+++ b/report.txt\n@@ -0,0 +1 @@\n+new\n" in out
    assert "b/sub/link" in out
    assert '"name": "report.txt", "added": 1' in await cli.said("diff", "fix", "--json")
    assert await cli.refused("merge", "fix") == (
        "fix has no branch: it did not work in git; "
        "`midwatch merge fix --into FOLDER` writes its files into a new folder\n"
    )
    into = tmp_path / "result"
    words = ("merge", "fix", "--into", str(into))
    ends = f"3 files into {into}; fix changed 3 files, +3 -0"
    assert await cli.read(*words, "--dry-run") == [*FILES, f"would write {ends}"]
    assert not into.exists()
    assert await cli.read(*words) == [*FILES, f"wrote {ends}"]
    assert (into / "report.txt").read_text() == "new\n"
    assert (into / "sub" / "link").readlink() == Path("run.sh")
    assert (into / "sub" / "run.sh").stat().st_mode & 0o111


@pytest.mark.usefixtures("result_folder")
async def test_that_of_an_older_run_is_taken_with_its_run(journal: Journal, cli: Cli) -> None:
    await new_task(journal, "fix")
    said = await cli.refused("merge", "fix", "--run", "1")
    assert "`midwatch merge fix --run 1 --into FOLDER`" in said


@pytest.mark.parametrize("kept", [True, False])
async def test_all_files_are_written_and_those_that_the_task_changed_are_listed(
    journal: Journal, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, kept: bool
) -> None:
    (source := tmp_path / "source").mkdir()
    for name in ("a.txt", "b.txt", "gone.txt", "same.txt"):
        (source / name).write_text("one\n")
    folder = tmp_path / "home" / "work" / "r1" / "fix-1"
    await prepare(folder, source, branch="b", merges=())
    (folder / "b.txt").write_text("two\n")
    (folder / "new.txt").write_text("new\n")
    (folder / "gone.txt").unlink()
    await completed_attempt(journal, folder, workspace=source)
    if not kept:
        shutil.rmtree(source)
    lost = f"{source} is not on this machine, so every file of fix is shown as new\n"
    assert await midwatch("diff", "fix") == 0
    assert capsys.readouterr().err == lost * (not kept)
    into = tmp_path / "result"
    assert await midwatch("merge", "fix", "--into", str(into)) == 0
    changed = "+1 -1  b.txt\n+0 -1  gone.txt\n+1 -0  new.txt\n"
    new = "+1 -0  a.txt\n+1 -0  b.txt\n+1 -0  new.txt\n+1 -0  same.txt\n"
    total = "3 files, +2 -2" if kept else "4 files, +4 -0"
    said = (changed if kept else new) + f"wrote 4 files into {into}; fix changed {total}\n"
    assert capsys.readouterr() == (said, lost * (not kept))
    names = sorted(each.name for each in into.iterdir())
    assert names == ["a.txt", "b.txt", "new.txt", "same.txt"]


@pytest.mark.usefixtures("result_folder")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "{} is not empty: name a new folder"),
        ("file/result", "{} cannot be written: "),
        ("missing/result", "{} cannot be written: "),
    ],
)
async def test_a_folder_that_cannot_be_made_or_has_files_is_left_as_it_is(
    name: str, said: str, tmp_path: Path, cli: Cli
) -> None:
    into = tmp_path / "own" / name
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "file").write_text("mine\n")
    assert said.format(into) in await cli.refused("merge", "fix", "--into", str(into))
    assert (tmp_path / "own" / "file").read_text() == "mine\n"
    assert [each.name for each in (tmp_path / "own").iterdir()] == ["file"]


async def test_a_branch_is_not_written_into_a_folder(
    journal: Journal, tmp_path: Path, cli: Cli
) -> None:
    (repository := tmp_path / "shop").mkdir()
    await git(repository, "init", "--quiet")
    await completed_attempt(journal, tmp_path / "gone", workspace=repository, base="0" * 40)
    assert await cli.refused("merge", "fix", "--into", str(tmp_path / "result")) == (
        "fix worked in git: `midwatch merge fix` merges its branch\n"
    )
