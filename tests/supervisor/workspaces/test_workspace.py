"""How workspaces are made, and what becomes of what stands where one is to be made."""

import asyncio
import logging
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from midwatch_agents.left_processes import process_mark
from midwatch_agents.sandbox import MARK
from midwatch_monitor.errors import MachineError, WorkspaceError
from midwatch_supervisor.workspaces.merge import plan_merge, try_merge
from midwatch_supervisor.workspaces.placement import (
    MovedAside,
    WorkspacePlan,
    make_workspace,
    move_aside,
)
from midwatch_supervisor.workspaces.workspace import (
    Workspace,
    commit_work,
    fetch_into,
    free_label,
    git,
    prepare,
)
from midwatch_tests.repository import commit_all, new_repository
from midwatch_tools.git import is_repository


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository with one file, in a folder that shells find hard."""
    return new_repository(tmp_path / "a repository's folder", {"a.txt": "one\n"})


async def prepare_workspace(
    source: Path | None, name: str, *merges: str, base: str = ""
) -> Workspace:
    """The workspace of an attempt that begins."""
    place = (source or Path("/nowhere")).parent / "made" / name
    return await prepare(place, source, branch=f"midwatch/{name}", merges=merges, base=base)


async def finished_workspace(source: Path, name: str, file: str, text: str) -> Workspace:
    """A finished attempt on a branch of its own."""
    workspace = await prepare_workspace(source, name)
    (workspace.folder / file).write_text(text)
    await commit_work(workspace, f"Write {file}")
    return workspace


async def test_a_plain_folder_is_copied_without_what_is_made_from_it_even_into_itself(
    tmp_path: Path,
) -> None:
    source = tmp_path / "source"
    for name in ("sub", ".midwatch", "node_modules", ".venv"):
        (source / name).mkdir(parents=True)
        (source / name / "x.txt").write_text("x")
    (source / "link").symlink_to("sub")
    place = source / ".midwatch" / "work" / "a-1"
    workspace = await prepare(place, source, branch="b", merges=())
    assert workspace == Workspace(folder=place)
    assert names(place) == ["link", "sub"]
    assert (place / "link").is_symlink()
    await commit_work(workspace, "Without git there is nothing to commit")
    assert not is_repository(place)


async def test_without_a_source_the_folder_is_empty_and_one_that_is_there_is_never_used(
    tmp_path: Path,
) -> None:
    workspace = await prepare(tmp_path / "deep" / "er", None, branch="b", merges=())
    assert workspace == Workspace(folder=tmp_path / "deep" / "er")
    assert names(workspace.folder) == []
    with pytest.raises(WorkspaceError, match="already exists"):
        await prepare(workspace.folder, None, branch="b", merges=())


async def test_a_repository_gives_a_worktree_with_a_branch_into_which_others_are_merged(
    source: Path,
) -> None:
    workspace = await finished_workspace(source, "b", "b.txt", "two\n")
    assert is_repository(workspace.folder)
    assert (await git(workspace.folder, "branch", "--show-current")).strip() == "midwatch/b"
    assert (workspace.folder / "a.txt").read_text() == "one\n"
    assert not (source / "b.txt").exists()
    assert await git(source, "show", "midwatch/b:b.txt") == "two\n"
    await finished_workspace(source, "c", "c.txt", "three\n")
    both = await prepare_workspace(source, "d", "midwatch/b", "midwatch/c")
    assert names(both.folder) == [".git", "a.txt", "b.txt", "c.txt"]
    with pytest.raises(WorkspaceError, match="midwatch/b"):
        await prepare(source.parent / "new", source, branch="midwatch/b", merges=())


async def test_a_worktree_may_start_from_an_older_commit(source: Path) -> None:
    base = (await git(source, "rev-parse", "HEAD")).strip()
    (source / "a.txt").write_text("two\n")
    await commit_all(source, "Second")
    workspace = await prepare_workspace(source, "b", base=base)
    assert (workspace.branch, workspace.base) == ("midwatch/b", base)
    assert (workspace.folder / "a.txt").read_text() == "one\n"


async def test_many_worktrees_may_begin_at_the_same_time(source: Path) -> None:
    wanted = [f"many-{number}" for number in range(16)]
    workspaces = await asyncio.gather(*(prepare_workspace(source, name) for name in wanted))
    assert [workspace.branch for workspace in workspaces] == [f"midwatch/{name}" for name in wanted]


async def test_branches_that_conflict_are_told_with_the_file(source: Path) -> None:
    await finished_workspace(source, "b", "a.txt", "two\n")
    await finished_workspace(source, "c", "a.txt", "three\n")
    with pytest.raises(WorkspaceError, match=r"midwatch/c does not merge: .*a\.txt") as told:
        await prepare_workspace(source, "d", "midwatch/b", "midwatch/c")
    assert not isinstance(told.value, MachineError)  # another node would fail as well


async def test_a_source_that_is_missing_or_without_a_commit_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="gone is not a folder"):
        await prepare(tmp_path / "new", tmp_path / "gone", branch="b", merges=())
    await git(tmp_path, "init", "--quiet", "bare")
    with pytest.raises(WorkspaceError, match="git worktree: "):
        await prepare(tmp_path / "new", tmp_path / "bare", branch="b", merges=())


async def test_keeping_twice_is_no_error(source: Path) -> None:
    workspace = await finished_workspace(source, "b", "b.txt", "two\n")
    await commit_work(workspace, "Again")
    log = await git(workspace.folder, "log", "--format=%s by %an", "-1")
    assert log == "Write b.txt by Midwatch\n"


async def test_a_label_that_folders_or_branches_have_is_not_given_again(
    source: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    assert await free_label(1, home, [source, None]) == "r1"
    (home / "work" / "r1").mkdir(parents=True)
    assert await free_label(1, home, [source]) == "r1.2"
    await git(source, "branch", "midwatch/r1.2/fix-1")
    assert await free_label(1, home, [source]) == "r1.3"


async def test_a_worktree_that_was_left_half_made_does_not_stop_a_fetch(
    source: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    await git(tmp_path, "clone", "--quiet", str(source), str(clone))
    await git(clone, "worktree", "add", "--quiet", "-b", "half", str(tmp_path / "half"))
    left = clone / ".git" / "worktrees" / "half"
    (left / "HEAD").write_text("0" * 40 + "\n")  # as a killed `git worktree add` leaves it
    (source / "new.txt").write_text("new\n")
    await commit_all(source, "New")
    await fetch_into(clone, "--quiet", "origin")
    assert (await git(clone, "show", "origin/main:new.txt")).strip() == "new"
    assert not left.exists()


def open_to_write(pipe: Path) -> int | None:
    """The end of a pipe to write to; `None` while nobody reads from it."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


async def test_a_commit_that_is_cancelled_is_made_all_the_same(source: Path) -> None:
    workspace = await prepare_workspace(source, "a")
    (workspace.folder / "b.txt").write_text("two\n")
    pipe = workspace.folder / ".gitignore"  # git waits for who writes to it
    os.mkfifo(pipe)
    keeping = asyncio.create_task(commit_work(workspace, "Second"))
    async with asyncio.timeout(120):
        while (writer := await asyncio.to_thread(open_to_write, pipe)) is None:
            pass
        pipe.unlink()
        keeping.cancel()
        await asyncio.wait({keeping}, timeout=0)
        os.close(writer)
        await asyncio.wait({keeping})
    assert keeping.cancelled()
    assert await git(workspace.folder, "log", "-1", "--format=%s") == "Second\n"
    assert await git(workspace.folder, "status", "--porcelain") == ""


async def test_a_rehearsed_merge_waits_for_whoever_adds_a_worktree(
    source: Path, tmp_path: Path
) -> None:
    plan = await plan_merge(await finished_workspace(source, "a", "b.txt", "two\n"), source)
    half = source / ".git" / "worktrees" / "half"
    half.mkdir()
    (half / "HEAD").write_text(f"{'0' * 40}\n")
    (half / "commondir").write_text("../..\n")
    (half / "gitdir").write_text(f"{tmp_path / 'half' / '.git'}\n")
    await try_merge(plan)
    assert (await git(source, "worktree", "list")).count("\n") == 2


BRANCH = "midwatch/r1/fix-1"
ASIDE = "midwatch/r1/fix-1.aside-1"


async def leave_worktree(folder: Path, source: Path) -> None:
    """The worktree of an attempt that has committed one file and not another."""
    workspace = await prepare(folder, source, branch=BRANCH, merges=())
    (folder / "b.txt").write_text("two\n")
    await commit_work(workspace, "Write b.txt")
    (folder / "c.txt").write_text("three\n")


async def move_work_aside(folder: Path, source: Path | None) -> MovedAside | None:
    return await move_aside(folder, source, branch=BRANCH, below=("HEAD",) if source else ())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "work" / "r1" / "fix-1"


def empty(folder: Path) -> None:
    folder.mkdir(parents=True)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def aside_folder(folder: Path, number: int = 1) -> Path:
    return folder.with_name(f"{folder.name}.aside-{number}")


async def test_a_worktree_in_the_way_is_kept_with_its_branch_and_the_log_says_where(
    folder: Path, source: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await leave_worktree(folder, source)
    with caplog.at_level(logging.WARNING):
        workspace = await make_workspace(WorkspacePlan(source=source), folder)
    assert workspace == Workspace(folder=folder, branch=BRANCH)
    assert names(folder) == [".git", "a.txt"]
    aside = aside_folder(folder)
    assert (aside / "c.txt").read_text() == "three\n"
    assert await git(aside, "status", "--porcelain", "--branch") == f"## {ASIDE}\n?? c.txt\n"
    assert await git(source, "show", f"{ASIDE}:b.txt") == "two\n"
    assert [each.getMessage() for each in caplog.records] == [
        f"{folder} existed before its attempt began: it was kept as {aside} and the branch {ASIDE}"
    ]


async def test_whatever_is_in_the_way_again_gets_the_next_number_committed_or_not(
    folder: Path, source: Path
) -> None:
    for number in (1, 2):
        await leave_worktree(folder, source)

        branch = f"midwatch/r1/fix-1.aside-{number}"
        assert await move_work_aside(folder, source) == MovedAside(
            folder=aside_folder(folder, number), branch=branch
        )


@pytest.mark.parametrize("without_git", [True, False])
async def test_a_folder_that_is_no_worktree_is_moved_aside(
    without_git: bool, folder: Path, source: Path
) -> None:
    empty(folder)
    (folder / "notes").write_text("mine")
    found = await move_work_aside(folder, None if without_git else source)
    assert found == MovedAside(folder=aside_folder(folder))
    assert (aside_folder(folder) / "notes").read_text() == "mine"


@pytest.mark.parametrize("locked", [True, False])
async def test_a_workspace_that_holds_nothing_of_its_own_goes(
    locked: bool, folder: Path, source: Path
) -> None:
    await prepare(folder, source, branch=BRANCH, merges=())
    if locked:  # as git leaves it where it was killed
        await git(source, "worktree", "lock", str(folder))
    assert await move_work_aside(folder, source) is None
    assert names(folder.parent) == []
    assert await git(source, "branch", "--list", "midwatch/*") == ""


async def test_a_worktree_that_is_gone_and_locked_is_in_nobody_s_way(
    folder: Path, source: Path
) -> None:
    await leave_worktree(folder, source)
    await git(source, "worktree", "lock", str(folder))
    shutil.rmtree(folder)
    assert await move_work_aside(folder, source) == MovedAside(folder=None, branch=ASIDE)
    assert (await make_workspace(WorkspacePlan(source=source), folder)).branch == BRANCH


async def test_what_still_runs_in_the_way_is_ended(folder: Path) -> None:
    empty(folder)
    mark = process_mark(str(folder), 3)
    argv = (sys.executable, "-c", "input()")
    process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, env={MARK: mark})
    await move_work_aside(folder, None)
    assert await asyncio.wait_for(process.wait(), 300) == -9
