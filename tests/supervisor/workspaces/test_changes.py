"""What an attempt changed in its workspace, and what its files lack."""

import os
import shutil
from pathlib import Path

import pytest

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import Edit, Writer
from midwatch_supervisor.present.file_changes import FileChange
from midwatch_supervisor.workspaces.changes import (
    MAX_CHARS,
    begin_commit,
    changed_tests,
    changes,
    diff_from,
    file_changes,
    is_test,
)
from midwatch_supervisor.workspaces.snapshot_store import outdated_files, outdated_notice
from midwatch_supervisor.workspaces.workspace import Workspace, commit_work, git, prepare
from midwatch_tests.factories import edit, step
from midwatch_tests.repository import new_repository


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "source", {"a.txt": "one\n"})


@pytest.fixture
async def workspace(source: Path, tmp_path: Path) -> Workspace:
    return await prepare(tmp_path / "work" / "fix-1", source, branch="midwatch/fix-1", merges=())


async def test_edits_and_new_files_are_changes_committed_or_not(workspace: Workspace) -> None:
    assert await changes(workspace) == ""
    (workspace.folder / "a.txt").write_text("two\n")
    await commit_work(workspace, "done")
    (workspace.folder / "b.txt").write_text("new\n")
    text = await changes(workspace) or ""
    assert "-one\n+two\n" in text
    assert text.endswith("--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n")


async def test_what_the_attempt_builds_on_is_none_of_its_changes(
    source: Path, workspace: Workspace, tmp_path: Path
) -> None:
    (workspace.folder / "b.txt").write_text("of the first task\n")
    await commit_work(workspace, "done")
    other = await prepare(
        tmp_path / "work" / "next-1", source, branch="midwatch/next-1", merges=[workspace.branch]
    )
    (other.folder / "c.txt").write_text("mine\n")
    text = await changes(other) or ""
    assert ("c.txt" in text, "b.txt" in text) == (True, False)


async def test_reading_leaves_the_index_alone_even_while_it_is_locked(workspace: Workspace) -> None:
    (workspace.folder / "b.txt").write_text("new\n")
    where = (await git(workspace.folder, "rev-parse", "--absolute-git-dir")).strip()
    before = (Path(where) / "index").read_bytes()
    (Path(where) / "index.lock").touch()
    assert "+new" in (await changes(workspace) or "")
    assert (Path(where) / "index").read_bytes() == before


async def test_a_workspace_that_is_gone_or_without_git_has_no_diff(
    workspace: Workspace, tmp_path: Path
) -> None:
    assert await changes(Workspace(folder=tmp_path)) is None
    shutil.rmtree(workspace.folder)
    with pytest.raises(WorkspaceError, match="no longer the workspace that was made"):
        await changes(workspace)


async def test_binary_files_are_named_only_and_links_are_not_followed(workspace: Workspace) -> None:
    (workspace.folder / "b.bin").write_bytes(b"\0\1")
    (workspace.folder / "link").symlink_to("/etc/hostname")
    text = await changes(workspace) or ""
    assert "Binary files /dev/null and b/b.bin differ\n" in text
    assert "+++ b/link\n@@ -0,0 +1 @@\n+/etc/hostname\n" in text


async def test_a_new_file_that_git_cannot_compare_is_named_and_hides_no_other(
    workspace: Workspace,
) -> None:
    (workspace.folder / "a.txt").unlink()
    for name in ("sub/.GIT", "a.txt"):
        (workspace.folder / name).mkdir(parents=True)
    (workspace.folder / "sub" / ".GIT" / "x").touch()
    (workspace.folder / "a.txt" / "b.txt").write_text("new\n")
    with (workspace.folder / "large.txt").open("wb") as file:
        file.truncate(8_000_001)
    text = await changes(workspace) or ""
    assert "deleted file mode 100644\n" in text
    assert "+++ b/a.txt/b.txt\n" in text
    assert text.endswith("… and not shown: large.txt, sub/.GIT/x\n")
    assert await file_changes(workspace, None) == (
        FileChange(name="a.txt", removed=1),
        FileChange(name="a.txt/b.txt", added=1),
        FileChange(name="large.txt", binary=True),
        FileChange(name="sub/.GIT/x", binary=True),
    )


async def test_an_edit_of_the_same_size_and_moment_is_a_change_beside_a_new_file(
    source: Path, workspace: Workspace
) -> None:
    file, index = workspace.folder / "a.txt", workspace.at.git_dir / "index"
    await git(source, "config", "core.trustctime", "false")  # no test can set that time
    os.utime(file, (1_000_000_000, 1_000_000_000))
    await git(workspace.at, "update-index", "--refresh")
    file.write_text("two\n")
    for each in (file, index):
        os.utime(each, (1_000_000_000, 1_000_000_000))
    (workspace.folder / "b.txt").write_text("new\n")
    assert "-one\n+two\n" in (await changes(workspace) or "")


async def test_an_endless_new_file_is_cut(workspace: Workspace) -> None:
    (workspace.folder / "big.txt").write_text("x\n" * MAX_CHARS)
    assert len(await changes(workspace) or "") < 2 * MAX_CHARS


def test_an_attempt_begins_after_what_was_merged_into_its_branch() -> None:
    newest_first = [
        "e commit: later",
        "d merge other: not at the beginning",
        "c commit: its own",
        "b merge midwatch/r1/one-1: Fast-forward",
        "a reset: moving to HEAD",
        "a ",
    ]
    assert begin_commit(newest_first) == "b"
    assert begin_commit([]) == ""


async def test_tests_that_were_there_and_were_changed_or_deleted_are_told_from_new_ones(
    tmp_path: Path,
) -> None:
    home = new_repository(tmp_path / "project", {"test_a.py": "1", "b_test.go": "1"})
    workspace = await prepare(tmp_path / "work", home, branch="midwatch/fix-1", merges=())
    (workspace.folder / "test_a.py").write_text("2")
    (workspace.folder / "b_test.go").unlink()
    changed = ("test_a.py", "b_test.go", "test_new.py", "src/a.py")
    assert await changed_tests(workspace, changed) == ("b_test.go", "test_a.py")


def test_a_test_is_known_by_its_name() -> None:
    tests = ["tests/data/golden.txt", "src/__tests__/app.tsx", "conftest.py", "pkg/test_sum.py"]
    tests += ["pkg/sum_test.go", "web/app.spec.ts", "src/SumTest.java"]
    others = ["src/latest.py", "contest.py", "src/testing/attest.py", "docs/test.md"]
    assert [name for name in (*tests, *others) if is_test(name)] == tests


def litter(folder: Path) -> None:
    """Leave behind what tools leave."""
    for name in ("__pycache__/a.pyc", ".venv/pyvenv.cfg", "node_modules/x.js", "lib/b.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")


async def test_build_rubbish_is_neither_committed_nor_a_change(workspace: Workspace) -> None:
    before = await git(workspace.at, "rev-parse", "HEAD")
    litter(workspace.folder)
    await commit_work(workspace, "done")
    assert await git(workspace.at, "rev-parse", "HEAD") == before, "alone it is nothing to commit"
    (workspace.folder / "b.txt").write_text("new\n")
    wanted = (FileChange(name="b.txt", added=1),)
    assert await file_changes(workspace, None) == wanted
    await commit_work(workspace, "done")
    assert await git(workspace.at, "show", "--name-only", "--format=") == "b.txt\n"
    assert await file_changes(workspace, None) == wanted


async def test_rubbish_that_a_worker_has_committed_is_no_change(workspace: Workspace) -> None:
    litter(workspace.folder)
    (workspace.folder / "a.txt").write_text("two\n")
    await git(workspace.at, "add", "--all", "--force")
    await git(workspace.at, "commit", "--quiet", "--message", "everything")
    assert await file_changes(workspace, None) == (FileChange(name="a.txt", added=1, removed=1),)
    assert "node_modules" not in (await changes(workspace) or "")


async def test_in_a_copy_changes_are_those_against_its_source_if_it_has_one(tmp_path: Path) -> None:
    source = tmp_path / "plain"
    source.mkdir()
    for name, text in (("a.txt", "one\ntwo\n"), ("gone.txt", "x\n"), ("same.txt", "y\n")):
        (source / name).write_text(text)
    (source / "logo.bin").write_bytes(b"\0\1")
    copy = await prepare(tmp_path / "work" / "fix-1", source, branch="b", merges=())
    (copy.folder / "a.txt").write_text("one\nthree\n")
    (copy.folder / "gone.txt").unlink()
    (copy.folder / "logo.bin").write_bytes(b"\0\2")
    litter(copy.folder)
    assert await file_changes(copy, source) == (
        FileChange(name="a.txt", added=1, removed=1),
        FileChange(name="gone.txt", removed=1),
        FileChange(name="logo.bin", binary=True),
    )
    assert "-two\n+three\n" in (await diff_from(copy, source)).text
    found = await file_changes(copy, None)
    assert [(each.name, each.added) for each in found if not each.binary] == [
        ("a.txt", 2),
        ("same.txt", 1),
    ]


THERE, NEW = edit("a", "there"), edit("a", "new")


@pytest.mark.parametrize(
    ("edits", "lacks"),
    [
        ([], ()),
        ([[THERE]], ()),
        ([[edit("b", "new"), NEW]], ("a", "b")),
        ([[NEW], [THERE]], ()),
        ([[edit("a", deleted=True)]], ("a",)),
        ([[edit("gone", deleted=True)]], ()),
        ([[edit("a", "new", writer=Writer.PERSON)]], ()),
    ],
)
def test_only_the_last_state_of_a_file_counts(
    edits: list[list[Edit]], lacks: tuple[str, ...]
) -> None:
    steps = [step(number, edits=tuple(each)) for number, each in enumerate(edits, start=1)]
    assert outdated_files(steps, look) == lacks


def look(path: str) -> str:
    return {"a": "there"}.get(path, "")


@pytest.mark.parametrize(
    ("saved", "last", "state"),
    [
        (12, 17, "as of step 12; steps 13 to 17 changed: a.py, b.py"),
        (12, 13, "as of step 12; step 13 changed: a.py, b.py"),
        (0, 2, "as they were at the beginning; steps 1 to 2 changed: a.py, b.py"),
    ],
)
def test_a_worker_is_told_since_when_its_files_are_behind(
    saved: int, last: int, state: str
) -> None:
    assert outdated_notice(("a.py", "b.py"), saved=saved, last=last).message == (
        f"This attempt continues on another machine. Its files are {state}; "
        "look before you rely on them."
    )
    many = tuple(f"{n:02}.py" for n in range(30))
    assert "19.py and 10 more; look" in outdated_notice(many, saved=saved, last=last).message
