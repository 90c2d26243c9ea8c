"""Moves aside whatever is where a new workspace goes, so that work is never overwritten."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from midwatch_agents.left_processes import end_all_leftovers
from midwatch_monitor.cancellation import finish_before_cancel
from midwatch_monitor.errors import WorkspaceError
from midwatch_supervisor.workspaces.workspace import clear, lock_worktrees
from midwatch_tools.git import git, is_repository, worktree_of

_HEADS = "refs/heads/"
_ASIDE = ".aside-"


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedAside:
    """Where the folder and the branch are now."""

    folder: Path | None
    """`None` if there was only a branch."""
    branch: str = ""
    """Empty without git, or if the branch was gone."""

    def __str__(self) -> str:
        branch = self.branch and f"the branch {self.branch}"
        return " and ".join(each for each in (str(self.folder or ""), branch) if each)


async def move_aside(
    folder: Path, source: Path | None, *, branch: str, below: Sequence[str] = ()
) -> MovedAside | None:
    """Move aside what is in `folder`, and the branch of that name; return where they are now.

    `None` if there is nothing, or only a workspace without work of its own, such as a killed
    process leaves; that is removed. Commits that `below` leads to are not work of its own.
    Processes that attempts left there are ended. Raises WorkspaceError.
    """
    there = await asyncio.to_thread(os.path.lexists, folder)
    repository = source if source is not None and is_repository(source) else None
    named = repository is not None and bool(await _list_heads(repository, branch))
    if not there and not named:
        return None
    await end_all_leftovers(str(folder))
    branches = (branch,) if named else ()
    if await _holds_nothing(folder if there else None, repository, branches, below, branch):
        await clear(folder, repository, branch=branch)
        return None
    aside = await _first_free(folder, repository, branch)
    moved = MovedAside(folder=aside.folder if there else None, branch=aside.branch if named else "")
    if repository is None:
        await asyncio.to_thread(_rename_folder, folder, moved)
    else:
        async with lock_worktrees(repository):
            await finish_before_cancel(_move_both(folder, repository, branch, moved))
    return moved


async def _list_heads(repository: Path, pattern: str) -> list[str]:
    # `git branch` fails while another process adds a worktree.
    return (await git(repository, "for-each-ref", "--format=%(refname)", _HEADS + pattern)).split()


async def _holds_nothing(
    folder: Path | None,
    repository: Path | None,
    branches: Sequence[str],
    below: Sequence[str],
    branch: str,
) -> bool:
    """Whether everything there exists elsewhere too; `False` if it cannot be read."""
    if folder is not None and not await asyncio.to_thread(_unchanged_kind, folder):
        return False
    if repository is None:
        return True
    tips = [_HEADS + each for each in branches]
    try:
        if folder is not None and is_repository(folder):
            made = await asyncio.to_thread(worktree_of, repository, folder, branch)
            if made is None or await git(made, "status", "--porcelain", "--ignored"):
                return False
            tips.append((await git(made, "rev-parse", "HEAD")).strip())
        return not tips or not await git(repository, "rev-list", "-1", *tips, "--not", *below)
    except WorkspaceError:
        return False


def _unchanged_kind(folder: Path) -> bool:
    """Whether it is an empty folder, or one that git knows the contents of."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return is_repository(folder) or not any(folder.iterdir())


async def _first_free(folder: Path, repository: Path | None, branch: str) -> MovedAside:
    """Return the first free pair of a folder and a branch beside them."""
    taken = set(await _list_heads(repository, f"{branch}{_ASIDE}*")) if repository else set[str]()
    for number in count(1):
        suffix = f"{_ASIDE}{number}"
        beside = folder.with_name(folder.name + suffix)
        free = not await asyncio.to_thread(os.path.lexists, beside)
        if free and f"{_HEADS}{branch}{suffix}" not in taken:
            return MovedAside(folder=beside, branch=branch + suffix)
    raise AssertionError("count() ended")


async def _move_both(folder: Path, repository: Path, branch: str, aside: MovedAside) -> None:
    """Move them, and tell git where the worktree is now."""
    await asyncio.to_thread(_rename_folder, folder, aside)
    if aside.folder is not None:
        with suppress(WorkspaceError):  # it may not be a worktree of this repository
            await git(repository, "worktree", "repair", str(aside.folder))
    if aside.branch:
        await git(repository, "branch", "--move", branch, aside.branch)


def _rename_folder(folder: Path, aside: MovedAside) -> None:
    if aside.folder is not None:
        folder.rename(aside.folder)
