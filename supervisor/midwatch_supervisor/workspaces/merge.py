"""Brings a finished attempt's branch into the branch that its owner works on."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from midwatch_monitor.errors import UsageError, WorkspaceError
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Attempt
from midwatch_monitor.shielding import sheltered
from midwatch_supervisor.present.assignment import BRANCHES
from midwatch_supervisor.workspaces.changes import base_commit
from midwatch_supervisor.workspaces.snapshot import (
    SAVED,
    commit_at,
    fetch_snapshot,
    final_snapshot,
    mark_of,
    tip_of,
)
from midwatch_supervisor.workspaces.workspace import Workspace, lock_worktrees
from midwatch_tools.git import Worktree, git

log = logging.getLogger(__name__)

TRACES = "refs/midwatch/merged/"
"""Where a merge leaves what a later look at it needs, also when the branch is gone by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A branch, and where it is to go."""

    home: Path
    """The worktree that takes the branch."""
    branch: str
    into: str
    """The branch that is checked out there."""
    commits: int
    """How many `into` lacks; 0 where everything is merged already."""
    begun: str = ""
    """The commit that the branch began with; empty where nobody knows."""
    lent: tuple[str, ...] = ()
    """What was put into the repository only to be looked at."""


async def plan_merge(workspace: Workspace, source: Path | None) -> Merge:
    """The merge of the branch of a worktree into what is checked out where it came from.

    That is `source`, else the repository's main worktree. Changes nothing. Raises UsageError
    where either side has uncommitted changes or no branch.
    """
    try:
        listed = await git(workspace.at, "worktree", "list", "--porcelain")
    except WorkspaceError as error:
        raise UsageError(f"{workspace.branch} cannot be merged: {error}") from error
    there = source is not None and await asyncio.to_thread(source.is_dir)
    home = source if source and there else Path(listed.splitlines()[0].removeprefix("worktree "))
    into = await _branch(home)
    for each in (workspace.at, home):
        await _require_clean(each)
    begun = (await base_commit(workspace.at)).removeprefix("HEAD")
    commits = await _lacks(home, f"refs/heads/{workspace.branch}")
    return Merge(home=home, branch=workspace.branch, into=into, commits=commits, begun=begun)


async def plan_fetched(bundles: Bundles, attempt: Attempt, branch: str, home: Path) -> Merge:
    """The merge of a branch that another node finished, fetched into the repository at `home`.

    Raises UsageError where it cannot be had, or where `home` has uncommitted changes or another
    branch with that name.
    """
    into = await _branch(home)
    await _require_clean(home)
    place, ref = branch.removeprefix(BRANCHES), f"refs/heads/{branch}"
    lent = [each for each in (ref, SAVED + place) if not await commit_at(home, each)]
    try:
        wanted = await final_snapshot(bundles, attempt)
        snapshot = await fetch_snapshot(bundles, home, attempt, wanted, place=place)
        begun = (await mark_of(home, snapshot.commit)).begun
        tip = await tip_of(home, snapshot.commit)
    except WorkspaceError as error:
        raise UsageError(f"{branch} cannot be fetched into {home}: {error}") from error
    await _give(home, ref, tip, instead_of=snapshot.commit)
    return Merge(
        home=home,
        branch=branch,
        into=into,
        commits=await _lacks(home, ref),
        begun=begun,
        lent=tuple(lent),
    )


async def plan_cloned(workspace: Workspace, home: Path) -> Merge:
    """The merge of the branch of a worktree of our own clone, fetched into another one at `home`.

    Raises UsageError as `plan_fetched` does.
    """
    worktree, branch, into = workspace.at, workspace.branch, await _branch(home)
    for each in (worktree, home):
        await _require_clean(each)
    ref = f"refs/heads/{branch}"
    lent = () if await commit_at(home, ref) else (ref,)
    tip = await commit_at(worktree, "HEAD")
    try:
        await git(home, "fetch", "--quiet", "--no-tags", str(worktree.common_dir), tip)
    except WorkspaceError as error:
        raise UsageError(f"{branch} cannot be fetched into {home}: {error}") from error
    await _give(home, ref, tip, instead_of=tip)
    begun = (await base_commit(worktree)).removeprefix("HEAD")
    commits = await _lacks(home, ref)
    return Merge(home=home, branch=branch, into=into, commits=commits, begun=begun, lent=lent)


async def give_back(merge: Merge) -> None:
    """Remove what was put into the repository only to be looked at."""
    for ref in merge.lent:
        await git(merge.home, "update-ref", "-d", ref)


async def _give(home: Path, ref: str, tip: str, *, instead_of: str) -> None:
    """Let a branch lead to a commit, unless it leads to somebody else's work."""
    there = await commit_at(home, ref)
    if there and there not in {tip, instead_of}:
        name = ref.removeprefix("refs/heads/")
        raise UsageError(f"{home} has another branch {name}; rename or delete it first")
    await git(home, "update-ref", ref, tip)


async def _require_clean(at: Path | Worktree) -> None:
    # Files that git does not know are in nobody's way; where they are, the merge says so.
    if await git(at, "status", "--porcelain", "--untracked-files=no"):
        folder = at if isinstance(at, Path) else at.folder
        raise UsageError(f"{folder} has uncommitted changes; commit or stash them first")


async def _lacks(home: Path, ref: str) -> int:
    return int(await git(home, "rev-list", "--count", f"HEAD..{ref}"))


async def merge_branch(merge: Merge) -> None:
    """Do it. Raises UsageError, with nothing changed, for what stands in its way."""
    await _merge(merge.home, merge)
    try:
        await _leave_trace(merge)
    except WorkspaceError as error:
        log.warning("what becomes of %s is not followed: %s", merge.branch, error)


async def _leave_trace(merge: Merge) -> None:
    """Remember where the branch began and ended, when it was merged, and into what.

    A commit of its own, which no branch has: the beginning and the end are its parents.
    """
    if not merge.begun or not merge.branch.startswith(BRANCHES):
        return
    tip = (await git(merge.home, "rev-parse", f"refs/heads/{merge.branch}")).strip()
    made = await git(
        *(merge.home, "commit-tree", f"{tip}^{{tree}}", "-p", merge.begun, "-p", tip),
        *("-m", f"{merge.branch} into {merge.into}"),
    )
    trace = TRACES + merge.branch.removeprefix(BRANCHES)
    await git(merge.home, "update-ref", trace, made.strip())


async def rehearse(merge: Merge) -> None:
    """Do it in a worktree that is thrown away. Raises UsageError for a conflict."""
    with TemporaryDirectory(prefix="midwatch-") as folder:
        trial = Path(folder) / "trial"
        add = ("worktree", "add", "--quiet", "--detach", str(trial), "HEAD")
        try:
            async with lock_worktrees(merge.home):
                await sheltered(git(merge.home, *add))
            await _merge(trial, merge)
        finally:
            with suppress(WorkspaceError):  # it could not be added
                await sheltered(git(merge.home, "worktree", "remove", "--force", str(trial)))


async def _merge(folder: Path, merge: Merge) -> None:
    try:
        await git(folder, "merge", "--quiet", "--no-edit", f"refs/heads/{merge.branch}")
    except WorkspaceError as error:
        names = await git(folder, "diff", "--name-only", "--diff-filter=U", "-z")
        if not names:
            raise UsageError(f"{merge.branch} does not merge into {merge.into}: {error}") from error
        await git(folder, "merge", "--abort")
        files = ", ".join(name for name in names.split("\0") if name)
        raise UsageError(
            f"{merge.branch} conflicts with {merge.into} in {files}; nothing was merged"
        ) from error


async def _branch(folder: Path) -> str:
    try:
        return (await git(folder, "symbolic-ref", "--short", "HEAD")).strip()
    except WorkspaceError as error:
        raise UsageError(f"no branch is checked out in {folder}: {error}") from error
