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
from midwatch_stage.repository import commit_all, new_repository
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
from midwatch_tools.git import is_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one file, in a folder that shells find hard."""
    return new_repository(tmp_path / "a repository's folder", {"a.txt": "one\n"})


async def branch(repository: Path, name: str, file: str, text: str) -> Workspace:
    """A finished attempt on a branch of its own."""
    workspace = await prepare(
        repository.parent / "work" / name, repository, branch=f"midwatch/{name}", merges=()
    )
    (workspace.folder / file).write_text(text)
    await commit_work(workspace, f"Write {file}")
    return workspace


async def test_without_a_source_the_folder_is_empty(tmp_path: Path) -> None:
    workspace = await prepare(tmp_path / "deep" / "er", None, branch="b", merges=())
    assert workspace == Workspace(folder=tmp_path / "deep" / "er")
    assert list(workspace.folder.iterdir()) == []


async def test_a_plain_folder_is_copied_without_what_is_made_from_it(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("sub", ".midwatch", "node_modules", ".venv"):
        (source / name).mkdir(parents=True)
        (source / name / "x.txt").write_text("x")
    (source / "link").symlink_to("sub")
    workspace = await prepare(tmp_path / "copy", source, branch="b", merges=())
    assert workspace.branch == ""
    assert sorted(path.name for path in workspace.folder.iterdir()) == ["link", "sub"]
    assert (workspace.folder / "link").is_symlink()


async def test_a_copy_may_lie_below_what_it_copies(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    workspace = await prepare(
        tmp_path / ".midwatch" / "work" / "a-1", tmp_path, branch="b", merges=()
    )
    assert [path.name for path in workspace.folder.iterdir()] == ["a.txt"]


async def test_a_repository_gives_a_worktree_with_a_branch(repository: Path) -> None:
    workspace = await branch(repository, "b", "b.txt", "two\n")
    assert is_repository(workspace.folder)
    assert (await git(workspace.folder, "branch", "--show-current")).strip() == "midwatch/b"
    assert (workspace.folder / "a.txt").read_text() == "one\n"
    assert not (repository / "b.txt").exists()
    assert await git(repository, "show", "midwatch/b:b.txt") == "two\n"


async def test_a_worktree_may_start_from_an_older_commit(repository: Path) -> None:
    base = (await git(repository, "rev-parse", "HEAD")).strip()
    (repository / "a.txt").write_text("two\n")
    await commit_all(repository, "Second")
    folder = repository.parent / "old"
    workspace = await prepare(folder, repository, branch="midwatch/b", merges=(), base=base)
    assert workspace == Workspace(folder=folder, branch="midwatch/b", base=base)
    assert (folder / "a.txt").read_text() == "one\n"


async def test_many_worktrees_may_begin_at_the_same_time(repository: Path) -> None:
    names = [f"many-{number}" for number in range(16)]
    workspaces = await asyncio.gather(
        *(
            prepare(repository.parent / name, repository, branch=f"midwatch/{name}", merges=())
            for name in names
        )
    )
    assert [workspace.branch for workspace in workspaces] == [f"midwatch/{name}" for name in names]


async def test_finished_branches_are_merged_in(repository: Path) -> None:
    await branch(repository, "b", "b.txt", "two\n")
    await branch(repository, "c", "c.txt", "three\n")
    workspace = await prepare(
        repository.parent / "d",
        repository,
        branch="midwatch/d",
        merges=("midwatch/b", "midwatch/c"),
    )
    names = sorted(path.name for path in workspace.folder.glob("*.txt"))
    assert names == ["a.txt", "b.txt", "c.txt"]


async def test_branches_that_conflict_are_told_with_the_file(repository: Path) -> None:
    await branch(repository, "b", "a.txt", "two\n")
    await branch(repository, "c", "a.txt", "three\n")
    merges = ("midwatch/b", "midwatch/c")
    with pytest.raises(WorkspaceError, match=r"midwatch/c does not merge: .*a\.txt") as told:
        await prepare(repository.parent / "d", repository, branch="midwatch/d", merges=merges)
    assert not isinstance(told.value, MachineError)  # another node would fail as well


async def test_a_folder_that_is_there_already_is_never_used(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="already exists"):
        await prepare(tmp_path, None, branch="b", merges=())


async def test_a_source_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="gone is not a folder"):
        await prepare(tmp_path / "new", tmp_path / "gone", branch="b", merges=())


async def test_a_branch_that_is_there_already_is_told(repository: Path) -> None:
    await branch(repository, "b", "b.txt", "two\n")
    with pytest.raises(WorkspaceError, match="midwatch/b"):
        await prepare(repository.parent / "new", repository, branch="midwatch/b", merges=())


async def test_a_repository_without_a_commit_is_told(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    await git(source, "init", "--quiet")
    with pytest.raises(WorkspaceError, match="git worktree: "):
        await prepare(tmp_path / "new", source, branch="b", merges=())


@pytest.mark.parametrize("number", [1, 2])
async def test_keeping_twice_is_no_error(number: int, repository: Path) -> None:
    workspace = await branch(repository, "b", "b.txt", "two\n")
    for _ in range(number):
        await commit_work(workspace, "Again")
    log = await git(workspace.folder, "log", "--format=%s by %an", "-1")
    assert log == "Write b.txt by Midwatch\n"


async def test_without_git_there_is_nothing_to_keep(tmp_path: Path) -> None:
    workspace = await prepare(tmp_path / "new", None, branch="b", merges=())
    (workspace.folder / "a.txt").write_text("one")
    await commit_work(workspace, "First")
    assert not is_repository(workspace.folder)


async def test_a_label_that_folders_or_branches_have_is_not_given_again(
    repository: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    assert await free_label(1, home, [repository, None]) == "r1"
    (home / "work" / "r1").mkdir(parents=True)
    assert await free_label(1, home, [repository]) == "r1.2"
    await git(repository, "branch", "midwatch/r1.2/fix-1")
    assert await free_label(1, home, [repository]) == "r1.3"


async def test_a_worktree_that_was_left_half_made_does_not_stop_a_fetch(
    repository: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    await git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    await git(clone, "worktree", "add", "--quiet", "-b", "half", str(tmp_path / "half"))
    left = clone / ".git" / "worktrees" / "half"
    (left / "HEAD").write_text("0" * 40 + "\n")  # as a killed `git worktree add` leaves it
    (repository / "new.txt").write_text("new\n")
    await commit_all(repository, "New")
    await fetch_into(clone, "--quiet", "origin")
    assert (await git(clone, "show", "origin/main:new.txt")).strip() == "new"
    assert not left.exists()


def opened(pipe: Path) -> int | None:
    """The end of a pipe to write to; `None` while nobody reads from it."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


async def test_a_commit_that_is_cancelled_is_made_all_the_same(
    repository: Path, tmp_path: Path
) -> None:
    workspace = await prepare(tmp_path / "work", repository, branch="midwatch/a", merges=())
    (workspace.folder / "b.txt").write_text("two\n")
    pipe = workspace.folder / ".gitignore"  # git waits for who writes to it
    os.mkfifo(pipe)
    keeping = asyncio.create_task(commit_work(workspace, "Second"))
    async with asyncio.timeout(120):
        while (writer := await asyncio.to_thread(opened, pipe)) is None:
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
    repository: Path, tmp_path: Path
) -> None:
    work = await branch(repository, "a", "b.txt", "two\n")
    plan = await plan_merge(work, repository)
    half = repository / ".git" / "worktrees" / "half"
    half.mkdir()
    (half / "HEAD").write_text(f"{'0' * 40}\n")
    (half / "commondir").write_text("../..\n")
    (half / "gitdir").write_text(f"{tmp_path / 'half' / '.git'}\n")
    await try_merge(plan)
    assert (await git(repository, "worktree", "list")).count("\n") == 2


BRANCH = "midwatch/r1/fix-1"
ASIDE = "midwatch/r1/fix-1.aside-1"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "shop", {"a.txt": "one\n"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "work" / "r1" / "fix-1"


async def left(folder: Path, source: Path) -> None:
    """The worktree of an attempt that has committed one file and not another."""
    workspace = await prepare(folder, source, branch=BRANCH, merges=())
    (folder / "b.txt").write_text("two\n")
    await commit_work(workspace, "Write b.txt")
    (folder / "c.txt").write_text("three\n")


async def way(folder: Path, source: Path | None) -> MovedAside | None:
    return await move_aside(folder, source, branch=BRANCH, below=("HEAD",) if source else ())


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def empty(folder: Path) -> None:
    folder.mkdir(parents=True)


def beside(folder: Path, number: int = 1) -> Path:
    return folder.with_name(f"{folder.name}.aside-{number}")


async def test_a_worktree_in_the_way_is_kept_with_its_branch_and_the_log_says_where(
    folder: Path, source: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await left(folder, source)
    with caplog.at_level(logging.WARNING):
        workspace = await make_workspace(WorkspacePlan(source=source), folder)
    assert workspace == Workspace(folder=folder, branch=BRANCH)
    assert names(folder) == [".git", "a.txt"]
    aside = beside(folder)
    assert (aside / "c.txt").read_text() == "three\n"
    assert await git(aside, "status", "--porcelain", "--branch") == f"## {ASIDE}\n?? c.txt\n"
    assert await git(source, "show", f"{ASIDE}:b.txt") == "two\n"
    assert [each.getMessage() for each in caplog.records] == [
        f"{folder} existed before its attempt began: it was kept as {aside} and the branch {ASIDE}"
    ]


async def test_whatever_is_in_the_way_again_gets_the_next_number(
    folder: Path, source: Path
) -> None:
    for number in (1, 2):
        await left(folder, source)
        branch = f"midwatch/r1/fix-1.aside-{number}"
        assert await way(folder, source) == MovedAside(folder=beside(folder, number), branch=branch)


async def test_committed_work_is_kept(folder: Path, source: Path) -> None:
    await left(folder, source)
    await commit_all(folder, "Write c.txt")
    assert await way(folder, source) == MovedAside(folder=beside(folder), branch=ASIDE)


async def test_a_branch_alone_is_moved_aside(folder: Path, source: Path) -> None:
    await left(folder, source)
    await git(source, "worktree", "remove", "--force", str(folder))
    assert await way(folder, source) == MovedAside(folder=None, branch=ASIDE)
    assert (await make_workspace(WorkspacePlan(source=source), folder)).branch == BRANCH


@pytest.mark.parametrize("without_git", [True, False])
async def test_a_folder_that_is_no_worktree_is_moved_aside(
    without_git: bool, folder: Path, source: Path
) -> None:
    empty(folder)
    (folder / "notes").write_text("mine")
    found = await way(folder, None if without_git else source)
    assert found == MovedAside(folder=beside(folder))
    assert (beside(folder) / "notes").read_text() == "mine"


@pytest.mark.parametrize("locked", [True, False])
async def test_a_workspace_that_holds_nothing_of_its_own_goes(
    locked: bool, folder: Path, source: Path
) -> None:
    await prepare(folder, source, branch=BRANCH, merges=())
    if locked:  # as git leaves it where it was killed
        await git(source, "worktree", "lock", str(folder))
    assert await way(folder, source) is None
    assert names(folder.parent) == []
    assert await git(source, "branch", "--list", "midwatch/*") == ""


async def test_a_worktree_that_is_gone_and_locked_is_in_nobody_s_way(
    folder: Path, source: Path
) -> None:
    await left(folder, source)
    await git(source, "worktree", "lock", str(folder))
    shutil.rmtree(folder)
    assert await way(folder, source) == MovedAside(folder=None, branch=ASIDE)
    assert (await make_workspace(WorkspacePlan(source=source), folder)).branch == BRANCH


async def test_what_still_runs_in_the_way_is_ended(folder: Path) -> None:
    empty(folder)
    mark = process_mark(str(folder), 3)
    argv = (sys.executable, "-c", "input()")
    process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, env={MARK: mark})
    await way(folder, None)
    assert await asyncio.wait_for(process.wait(), 300) == -9
