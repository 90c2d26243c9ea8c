"""How saved work gets from one node to another: pushed, or in a bundle of the journal."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal.bundles import Bundles
from midwatch_monitor.words import Attempt, Snapshot
from midwatch_supervisor.assignment import BRANCHES, branch_of, place_of, whole_of
from midwatch_supervisor.fleet.clone import fetch, has
from midwatch_supervisor.fleet.snapshot import SAVED, Mark, fetch_saved, mark_of, tip_of, unpack
from midwatch_supervisor.workspace import Ground, ask_git, git

SEEN = "refs/midwatch/seen/"
"""Where a repository keeps what it saw of pushed branches, by label and attempt."""
_PUSH = ("push", "--quiet", "--no-verify")
_PUSH_SECONDS = 120.0
"""A worker's tool result waits for so long at most."""


async def find(bundles: Bundles, attempt: Attempt) -> Snapshot | None:
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
        workspace = Path(attempt.workspace)
        if branch_of(workspace) == branch:
            return Owner(attempt=attempt)
        if branch_of(whole_of(workspace)) == branch:
            return Owner(attempt=attempt, own=False)
    raise WorkspaceError(f"nobody knows whose work {branch} is")


async def finished(bundles: Bundles, attempt: Attempt) -> Snapshot:
    """An attempt's work at its end. Raises WorkspaceError where that was not saved."""
    known = await bundles.snapshots(attempt.id)
    found = await find(bundles, attempt)
    if found is None or found != known[-1]:
        name = place_of(Path(attempt.workspace))
        raise WorkspaceError(f"the work of {name} was not saved: it is on {attempt.node} only")
    return found


async def fetched(
    bundles: Bundles, repository: Path, attempt: Attempt, snapshot: Snapshot, *, place: str
) -> Snapshot:
    """Bring saved work into a repository, where it is called `place`; what was brought.

    That is newer than `snapshot` where somebody saved meanwhile: the node that had the attempt may
    be at it until that is taken over. Raises WorkspaceError.
    """
    while not await _brought(bundles, repository, attempt, snapshot, place):
        newer = await find(bundles, attempt)
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
    await unpack(repository, place, bundle.body)
    return True


async def branch_brought(
    bundles: Bundles, repository: Path, attempt: Attempt, branch: str
) -> Snapshot:
    """Bring a finished branch into a repository, from wherever it was saved; its snapshot.

    Raises WorkspaceError where it was not saved as it was at its end.
    """
    snapshot = await finished(bundles, attempt)
    place = branch.removeprefix(BRANCHES)
    snapshot = await fetched(bundles, repository, attempt, snapshot, place=place)
    tip = await tip_of(repository, snapshot.commit)
    await git(repository, "update-ref", f"refs/heads/{branch}", tip)
    return snapshot


async def _pulled(repository: Path, snapshot: Snapshot, place: str) -> None:
    with suppress(WorkspaceError):
        await fetch_saved(repository, "origin", f"refs/heads/{snapshot.branch}", place)
    await fetch(repository, snapshot.commit)  # the branch may be gone, or lead elsewhere


async def pushed(ground: Ground, commit: str, *, mark: Mark, before: str) -> None:
    """Push a snapshot to the origin as the attempt's branch, in place of the one before.

    A branch that is called the same and is nobody's of ours is left alone: WorkspaceError.
    """
    ref = f"refs/heads/{ground.branch}"
    try:
        lease = f"--force-with-lease={ref}:{before}"
        await _ask(ground.folder, *_PUSH, lease, "origin", f"{commit}:{ref}")
    except WorkspaceError:
        # What stands there may be a snapshot of this attempt that never got into the journal.
        seen = SEEN + mark.of.partition(" ")[0]
        await _ask(ground.folder, "fetch", "--quiet", "--no-tags", "origin", f"+{ref}:{seen}")
        if (await mark_of(ground.folder, seen)).of != mark.of:
            raise
        await _ask(ground.folder, *_PUSH, "origin", f"+{commit}:{ref}")


async def _ask(folder: Path, *command: str) -> None:
    try:
        await ask_git(folder, *command, seconds=_PUSH_SECONDS)
    except TimeoutError as error:
        raise WorkspaceError(str(error)) from error
