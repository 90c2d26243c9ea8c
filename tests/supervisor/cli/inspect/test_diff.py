"""`midwatch diff` of what a task has changed."""

import os
import shutil
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Commit, Lifecycle, Record
from midwatch_supervisor.workspaces.workspace import prepare
from midwatch_tests import factories as make
from midwatch_tests.command import (
    ask,
    assignment,
    midwatch,
    new_attempt,
    new_task,
    printed,
    read,
    refused,
    write,
)
from midwatch_tests.repository import worktree_with
from midwatch_tools.git import git

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
async def workspace(journal: Journal, tmp_path: Path) -> Path:
    """The worktree of an attempt, which began with `a.py`."""
    folder, spec = await worktree_with(tmp_path, "a.py", "a = 1\n")
    task = await new_task(journal, spec=spec)
    await over(journal, await new_attempt(journal, task, workspace=str(folder)))
    return folder


async def over(journal: Journal, attempt: Attempt, *records: Record) -> None:
    await write(journal, attempt, make.AT, *records, make.ended())
    done = make.draft(make.task_transition(Lifecycle.COMPLETED), attempt=None)
    await journal.commit(Commit(drafts=(done,)))


@pytest.fixture
async def moved_workspace(journal: Journal, tmp_path: Path) -> Path:
    """The folder of an attempt outside git on `west`, which took it over from `east`."""
    east, west = (tmp_path / "nodes" / node / "work" / "r1" / "fix-1" for node in ("east", "west"))
    for folder, text in ((east, "old"), (west, "new")):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text(f"{text}\n")
    task = await new_task(journal, spec=assignment("fix").model_dump_json())
    attempt = await new_attempt(journal, task, node="east", workspace=str(east))
    await over(journal, attempt, make.change(node="west"))
    return west


async def test_of_an_attempt_that_moved_the_work_of_its_last_node_is_printed_or_that_named(
    moved_workspace: Path, capsys: Capture
) -> None:
    out = await printed(capsys, "diff", "fix")
    assert ("+new" in out, "old" in out) == (True, False)
    shutil.rmtree(moved_workspace)
    said = "the workspace of fix is not on this machine: west had it last\n"
    for command in ("diff", "merge"):
        assert await refused(capsys, command, "fix") == said


async def test_edits_and_new_files_are_printed_without_colours_or_escapes(
    workspace: Path, capsys: Capture
) -> None:
    assert await read(capsys, "diff", "fix") == ["fix has changed nothing"]
    (workspace / "a.py").write_text("a = '\x1b[2J'\nb = 3\n")
    (workspace / "b.py").write_text("b = 1\n")
    out = await printed(capsys, "diff", "fix#1")
    assert "-a = 1\n+a = '\\x1b[2J'\n" in out
    assert out.endswith("--- /dev/null\n+++ b/b.py\n@@ -0,0 +1 @@\n+b = 1\n")
    assert "\x1b" not in out
    (line, _) = await ask(capsys, "diff", "1")
    counts = {"added": 2, "removed": 1, "binary": False}
    assert line == {"type": "file", "task": "fix", "name": "a.py", **counts}


def change(folder: Path) -> None:
    """Change, delete and add files, some of which a patch has its own words for."""
    (folder / "a.py").unlink()
    (folder / "Makefile").write_bytes(b"all:\n\tcc a.c\xc2\xa0b\r\n")
    (folder / "empty").touch()
    (folder / 'unended "\u00e9"').write_text("no newline")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "link").symlink_to("run")
    (folder / "sub").mkdir()
    for number in range(150):
        (folder / "sub" / str(number)).write_text(f"{number}\n\n")


def content(folder: Path) -> dict[str, tuple[int, str]]:
    """The modes and contents of all files but git's own."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            str(path.readlink()) if path.is_symlink() else repr(path.read_bytes()),
        )
        for path in folder.rglob("*")
        if ".git" not in path.relative_to(folder).parts and (path.is_symlink() or path.is_file())
    }


async def test_git_apply_makes_the_same_files_of_what_is_printed(
    workspace: Path, tmp_path: Path, capsys: Capture
) -> None:
    change(workspace)
    clone, patch = tmp_path / "clone", tmp_path / "patch"
    await git(tmp_path, "clone", "--quiet", str(tmp_path / "source"), str(clone))
    assert await midwatch("diff", "fix") == 0
    out, err = capsys.readouterr()
    patch.write_bytes(out.encode())
    await git(clone, "apply", str(patch))
    assert content(clone) == content(workspace)
    assert err == ""


@pytest.fixture
async def copied_workspace(journal: Journal, tmp_path: Path) -> Path:
    """The workspace of an attempt outside git, which began with files of a folder `source`."""
    (source := tmp_path / "source").mkdir()
    (source / "a.py").write_text("a = 1\n")
    (source / "form.txt").write_text("one\ftwo\nthree")
    (source / "tool").write_text("#!/bin/sh\n")
    (source / "was a link").symlink_to("a.py")
    folder = tmp_path / "home" / "work" / "r1" / "fix-1"
    await prepare(folder, source, branch="b", merges=())
    task = await new_task(journal, spec=assignment(workspace=source).model_dump_json())
    await new_attempt(journal, task, workspace=str(folder))
    return folder


async def test_outside_git_git_apply_makes_the_same_files_of_what_is_printed(
    copied_workspace: Path, tmp_path: Path, capsys: Capture
) -> None:
    change(copied_workspace)
    (copied_workspace / os.fsdecode(b"caf\xe9")).write_text("coffee\n")
    (copied_workspace / "b.bin").write_bytes(b"\0\1")
    (copied_workspace / "form.txt").write_text("one\ftwo\nfour")
    (copied_workspace / "tool").chmod(0o755)
    (copied_workspace / "was a link").unlink()
    (copied_workspace / "was a link").write_text("a file\n")
    assert await midwatch("diff", "fix") == 0
    out, err = capsys.readouterr()
    assert "\nonly named (binary or too large): b.bin; " in err
    (copied_workspace / "b.bin").unlink()
    (patch := tmp_path / "patch").write_bytes(out.replace("\\x0c", "\f").encode())
    await git(tmp_path / "source", "apply", "--exclude=b.bin", str(patch))
    assert content(tmp_path / "source") == content(copied_workspace)


async def test_what_git_apply_would_not_take_as_it_is_is_said(
    workspace: Path, tmp_path: Path, capsys: Capture
) -> None:
    (workspace / "b.bin").write_bytes(b"\0\1")
    (workspace / "good.txt").write_text("good\n")
    (workspace / "odd.txt").write_bytes(b"\x1b[2J\xff\n")
    with (workspace / "large.txt").open("wb") as file:
        file.truncate(8_000_001)
    assert await midwatch("diff", "fix") == 0
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "secrets, control characters and what is not UTF-8 are not printed as they are in the "
        "files: `git apply` would write such lines as shown here",
        "left out (too large, too many or unreadable): large.txt",
        "only named (binary or too large): b.bin; `git apply` needs an --exclude for each of them",
    ]
    (patch := tmp_path / "patch").write_text(out)
    await git(tmp_path / "source", "apply", "--exclude=b.bin", str(patch))
    assert (tmp_path / "source" / "good.txt").read_text() == "good\n"


async def test_merged_work_can_still_be_looked_at(workspace: Path, capsys: Capture) -> None:
    (workspace / "a.py").write_text("a = 2\n")
    await git(workspace, "commit", "--all", "--quiet", "--message", "Mend")
    assert await midwatch("merge", "fix") == 0
    assert "-a = 1\n+a = 2\n" in await printed(capsys, "diff", "fix")
