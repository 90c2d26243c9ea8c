"""None"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Attempt, Snapshot
from midwatch_supervisor.present.assignment import BRANCHES, branch_of, place_of, whole_of
from midwatch_supervisor.workspaces.clone import fetch, has
from midwatch_supervisor.workspaces.snapshot import (
    SAVED,
    Mark,
    fetch_saved,
    mark_of,
    tip_of,
    unpack_snapshot,
)
from midwatch_supervisor.workspaces.workspace import Workspace
from midwatch_tools.git import Worktree, ask_git, git

log = logging.getLogger(__name__)

SEEN = "refs/midwatch/seen/"
"""Where a repository keeps what it saw of pushed branches, by label and attempt."""
_PUSH = ("push", "--quiet", "--no-verify")
_PUSH_SECONDS = 120.0
"""A worker's tool result waits for so long at most."""


async def newest_snapshot(bundles: Bundles, attempt: Attempt) -> Snapshot | None:
    """The newest saved work of an attempt that can be had; `None` if there is none."""
    known = await bundles.commit_of(attempt.id)
    for each in reversed(await bundles.snapshots(attempt.id)):
        if each.branch or each.commit == known:
            return each
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose work it is that is called like a branch."""

    attempt: Attempt
    own: bool = True
    """Whether it is the attempt's own, and not the whole of the task that it split."""


def owner_of(branch: str, attempts: Sequence[Attempt]) -> Owner:
    """Whose work is called like a branch, among the attempts of a run. Raises WorkspaceError."""
    for attempt in reversed(attempts):
        folder = Path(attempt.workspace)
        if branch_of(folder) == branch:
            return Owner(attempt=attempt)
        if branch_of(whole_of(folder)) == branch:
            return Owner(attempt=attempt, own=False)
    raise WorkspaceError(f"nobody knows whose work {branch} is")


async def final_snapshot(bundles: Bundles, attempt: Attempt) -> Snapshot:
    """An attempt's work at its end. Raises WorkspaceError where that was not saved."""
    known = await bundles.snapshots(attempt.id)
    found = await newest_snapshot(bundles, attempt)
    if found is None or found != known[-1]:
        name = place_of(Path(attempt.workspace))
        raise WorkspaceError(f"the work of {name} was not saved: it is on {attempt.node} only")
    return found


async def fetch_snapshot(
    bundles: Bundles, repository: Path, attempt: Attempt, snapshot: Snapshot, *, place: str
) -> Snapshot:
    """Bring saved work into a repository, where it is called `place`; what was brought.

    That is newer than `snapshot` where somebody saved meanwhile: the node that had the attempt may
    be at it until that is taken over. Raises WorkspaceError.
    """
    while not await _brought(bundles, repository, attempt, snapshot, place):
        newer = await newest_snapshot(bundles, attempt)
        if newer is None or newer == snapshot:
            raise WorkspaceError(f"the saved work of {place} is gone")
        snapshot = newer
    commit = snapshot.commit
    if not (await mark_of(repository, commit)).of.startswith(f"{place} of "):
        raise WorkspaceError(f"the work of {place} was not saved: it is on {attempt.node} only")
    await git(repository, "update-ref", SAVED + place, commit)
    return snapshot


async def _brought(
    bundles: Bundles, repository: Path, attempt: Attempt, snapshot: Snapshot, place: str
) -> bool:
    """Bring a snapshot into a repository; not if other work stands in its place by now."""
    if await has(repository, snapshot.commit):
        return True
    if snapshot.base:
        await fetch(repository, snapshot.base)
    if snapshot.branch:
        await _pulled(repository, snapshot, place)
        return True
    bundle = await bundles.get(attempt.id)
    if bundle is None or bundle.commit != snapshot.commit:
        return False
    await unpack_snapshot(repository, place, bundle.body)
    return True


async def fetch_branch(
    bundles: Bundles, repository: Path, attempt: Attempt, branch: str
) -> Snapshot:
    """Bring a finished branch into a repository, from wherever it was saved; its snapshot.

    Raises WorkspaceError where it was not saved as it was at its end.
    """
    snapshot = await final_snapshot(bundles, attempt)
    place = branch.removeprefix(BRANCHES)
    snapshot = await fetch_snapshot(bundles, repository, attempt, snapshot, place=place)
    tip = await tip_of(repository, snapshot.commit)
    await git(repository, "update-ref", f"refs/heads/{branch}", tip)
    return snapshot


async def _pulled(repository: Path, snapshot: Snapshot, place: str) -> None:
    with suppress(WorkspaceError):
        await fetch_saved(repository, "origin", f"refs/heads/{snapshot.branch}", place)
    await fetch(repository, snapshot.commit)  # the branch may be gone, or lead elsewhere


async def push_snapshot(
    workspace: Workspace, commit: str, attempt: Attempt, *, mark: Mark, last: Snapshot | None
) -> str:
    """Push a snapshot to the origin in place of the attempt's `last` one; the name of its branch.

    It is called like the workspace's branch. A branch of that name that is not this attempt's is
    left alone: it is somebody else's, or of an attempt that a journal restored from a backup does
    not know. Then it is called after its beginning: `fix-1.begun-20261121T200000`. Raises
    WorkspaceError.
    """
    names = (workspace.branch, f"{workspace.branch}.begun-{attempt.started_at:%Y%m%dT%H%M%S}")
    if last is not None and last.branch in names:
        names = names[names.index(last.branch) :]
    for name in names:
        before = last.commit if last is not None and last.branch == name else ""
        if await _placed(workspace.at, commit, name, mark=mark, before=before):
            if name != names[0]:
                log.warning("the origin has another branch %s: pushed as %s", names[0], name)
            return name
    raise WorkspaceError(f"the origin has other branches {' and '.join(names)}")


async def _placed(worktree: Worktree, commit: str, branch: str, *, mark: Mark, before: str) -> bool:
    """Push a snapshot as this branch, in place of the one before; not if it is somebody else's."""
    ref, seen = f"refs/heads/{branch}", SEEN + mark.of.partition(" ")[0]
    try:
        await _push(worktree, commit, ref, instead_of=before)
    except WorkspaceError as error:
        try:
            await _ask(worktree, "fetch", "--quiet", "--no-tags", "origin", f"+{ref}:{seen}")
        except WorkspaceError:
            raise error from None  # there is no such branch: it was refused for another reason
        # What stands there may be a snapshot of this attempt that never got into the journal.
        if (await mark_of(worktree, seen)).of != mark.of:
            return False
        there = (await git(worktree, "rev-parse", "--verify", seen)).strip()
        await _push(worktree, commit, ref, instead_of=there)
    return True


async def _push(worktree: Worktree, commit: str, ref: str, *, instead_of: str) -> None:
    """Let a branch of the origin lead to a commit, if it leads where it is thought to."""
    lease = f"--force-with-lease={ref}:{instead_of}"
    await _ask(worktree, *_PUSH, lease, "origin", f"{commit}:{ref}")


async def _ask(worktree: Worktree, *command: str) -> None:
    try:
        await ask_git(worktree, *command, seconds=_PUSH_SECONDS, network=True)
    except TimeoutError as error:
        raise WorkspaceError(str(error)) from error
