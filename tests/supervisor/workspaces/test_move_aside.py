"""What stands where an attempt is to work, and that no journal knows: kept, and out of the way."""

import asyncio
import logging
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from midwatch_agents.left_processes import process_mark
from midwatch_agents.sandbox import MARK
from midwatch_stage.repository import commit_all, new_repository
from midwatch_supervisor.workspaces.placement import (
    MovedAside,
    WorkspacePlan,
    make_workspace,
    move_aside,
)
from midwatch_supervisor.workspaces.workspace import Workspace, commit_work, git, prepare

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
