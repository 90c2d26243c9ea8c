"""Saves a workspace's files as one git commit, and restores them, unseen by the worker.

The first parent of a snapshot is what was checked out, a second one what was staged; its own files
are those in the folder. It does not contain ignored files, empty folders, the history of a
repository inside the folder, or a merge in progress.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Attempt, Snapshot
from midwatch_supervisor.present.assignment import BRANCHES, branch_of, place_of, whole_of
from midwatch_supervisor.workspaces.clone import fetch, has_commit
from midwatch_supervisor.workspaces.staging import add_all, copied_index
from midwatch_supervisor.workspaces.workspace import (
    Workspace,
    ask_network,
    fetch_into,
    machine_at_fault,
)
from midwatch_tools.git import Worktree, git
from midwatch_tools.tree import IGNORED

SAVED = "refs/midwatch/saved/"
"""Refs under which a repository keeps the snapshots of attempts, by label and attempt."""
_BEGUN = "Begun: "
_OF = "Attempt: "
_NO_TIME = {"GIT_AUTHOR_DATE": "@0 +0000", "GIT_COMMITTER_DATE": "@0 +0000"}
"""Fixed times, so that the same files always make the same snapshot."""


async def files_of(workspace: Workspace, private: Path) -> Worktree:
    """Return the files of a workspace; without git, make `private` their repository if needed.

    That repository is our own, so the files then belong to no branch.
    """
    if workspace.worktree is not None:
        return workspace.worktree
    exclude = private / "info" / "exclude"
    if not await asyncio.to_thread(exclude.exists):
        await asyncio.to_thread(private.mkdir, parents=True, exist_ok=True)
        await git(private, "init", "--quiet", "--bare", "--template=")
        await asyncio.to_thread(_leave_out, exclude)
    return Worktree(folder=workspace.folder, git_dir=private)


def _leave_out(exclude: Path) -> None:
    exclude.parent.mkdir(exist_ok=True)
    lines = "".join(f"{name}/\n" for name in sorted(IGNORED - {".git"}))
    exclude.write_text(lines, encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotMark:
    """The content of a snapshot's message."""

    of: str
    """Names the attempt; unique across journals."""
    begun: str = ""
    """Commit that the attempt began with; empty without git."""

    def __str__(self) -> str:
        lines = ["Saved by Midwatch.", "", f"{_OF}{self.of}"]
        return "\n".join([*lines, f"{_BEGUN}{self.begun}"] if self.begun else lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenSnapshot:
    """A commit of a workspace's files."""

    commit: str
    fault: str = ""
    """Why all or some of the work cannot move to another node; empty if it can."""
    whole: bool = True
    """Whether the work can move, perhaps without some files."""


async def take_snapshot(files: Worktree, mark: SnapshotMark) -> TakenSnapshot:
    """Commit the files as they are now; no ref leads to the commit yet."""
    # A worker may be on a branch that has no commit yet.
    head = await commit_at(files, "HEAD") if files.branch else ""
    async with _without_touching_index(files) as apart:
        staged = await _commit_staged(apart, head)
        fault = await _add_files(apart)
        tree = (await git(apart, "write-tree")).strip()
    parents = [*([head] if head else []), *([staged] if staged else [])]
    return TakenSnapshot(commit=await _commit_tree(files, tree, parents, str(mark)), fault=fault)


async def commit_at(repository: Path | Worktree, name: str) -> str:
    """Return the commit that a name leads to, or an empty string."""
    try:
        return (
            await git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        ).strip()
    except WorkspaceError:
        return ""


@asynccontextmanager
async def _without_touching_index(files: Worktree) -> AsyncGenerator[Worktree]:
    """Yield the files with a copy of the worker's index; with the index itself if it is ours."""
    if not files.branch:
        yield files
        return
    async with copied_index(files) as apart:
        yield apart


async def _commit_staged(apart: Worktree, head: str) -> str:
    """Commit what the worker has staged; return an empty string if that is nothing."""
    if not head:
        return ""
    try:
        tree = (await git(apart, "write-tree")).strip()
    except WorkspaceError:
        return ""  # a conflict has no tree
    if tree == (await git(apart, "rev-parse", f"{head}^{{tree}}")).strip():
        return ""
    return await _commit_tree(apart, tree, [head], "Staged.")


async def _add_files(apart: Worktree) -> str:
    """Add every file to the index; return what git said about those that failed."""
    try:
        await add_all(apart, "--ignore-errors")
    except WorkspaceError as error:
        return str(error)
    return ""


async def _commit_tree(files: Worktree, tree: str, parents: list[str], message: str) -> str:
    above = [word for parent in parents for word in ("-p", parent)]
    undated = replace(files, environ=_NO_TIME)
    return (await git(undated, "commit-tree", tree, *above, "-m", message)).strip()


async def hold_snapshot(files: Worktree, place: str, commit: str) -> None:
    """Set the snapshot ref of a workspace, so that git keeps the commit."""
    await git(files, "update-ref", SAVED + place, commit)


async def held_snapshot(files: Worktree, place: str) -> str:
    """Return the last snapshot that these files were saved as or made from; empty if none."""
    return await commit_at(files, SAVED + place)


async def pack_snapshot(
    files: Worktree, place: str, *, base: str, max_bytes: float
) -> bytes | None:
    """Return a snapshot as a bundle without what `base` leads to; `None` if it is too large."""
    with TemporaryDirectory(prefix="midwatch-") as scratch:
        file = Path(scratch) / "bundle"
        without = [f"^{base}"] if base else []
        await git(files, "bundle", "create", "--quiet", str(file), SAVED + place, *without)
        if file.stat().st_size > max_bytes:
            return None
        return await asyncio.to_thread(file.read_bytes)


async def unpack_snapshot(repository: Path, place: str, body: bytes) -> None:
    """Add a bundled snapshot to a repository, under its ref."""
    with TemporaryDirectory(prefix="midwatch-") as scratch:
        file = Path(scratch) / "bundle"
        await asyncio.to_thread(file.write_bytes, body)
        with machine_at_fault():
            await fetch_saved(repository, str(file), SAVED + place, place)


async def fetch_saved(repository: Path, source: str, ref: str, place: str) -> None:
    """Fetch a snapshot into a repository from another one, or from a bundle."""
    quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
    refs = f"+{ref}:{SAVED}{place}"
    await fetch_into(repository, *quiet, source, refs)


async def tip_of(repository: Path, commit: str) -> str:
    """Return the commit that was checked out when a snapshot was taken; empty if none was."""
    return await commit_at(repository, f"{commit}^1")


async def mark_of(repository: Path | Worktree, commit: str) -> SnapshotMark:
    """Read the mark in the message of a snapshot."""
    said = await git(repository, "show", "--no-patch", "--format=%B", commit)
    found = {
        key: line.removeprefix(key)
        for line in said.splitlines()
        for key in (_OF, _BEGUN)
        if line.startswith(key)
    }
    return SnapshotMark(of=found.get(_OF, ""), begun=found.get(_BEGUN, ""))


async def check_out(files: Worktree, commit: str) -> None:
    """Make the folder hold a snapshot's files, and nothing else that git would see."""
    await git(files, "read-tree", "--reset", "-u", commit)
    if files.branch:
        staged = await commit_at(files, f"{commit}^2")
        await git(files, "read-tree", "--reset", staged or "HEAD")


log = logging.getLogger(__name__)

SEEN = "refs/midwatch/seen/"
"""Refs under which a repository keeps what it saw of pushed branches, by label and attempt."""
_PUSH = ("push", "--quiet", "--no-verify")
_PUSH_SECONDS = 120.0
"""Longest time that a worker's tool result waits for a push."""


async def newest_snapshot(bundles: Bundles, attempt: Attempt) -> Snapshot | None:
    """Return the newest saved work of an attempt that can be fetched; `None` if there is none."""
    known = await bundles.commit_of(attempt.id)
    for each in reversed(await bundles.snapshots(attempt.id)):
        if each.branch or each.commit == known:
            return each
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchOwner:
    """The attempt that a branch belongs to."""

    attempt: Attempt
    own: bool = True
    """Whether it is the attempt's own branch, or else the whole of the task that it split."""


def owner_of(branch: str, attempts: Sequence[Attempt]) -> BranchOwner:
    """Return the owner of a branch among the attempts of a run. Raise WorkspaceError if none."""
    for attempt in reversed(attempts):
        folder = Path(attempt.workspace)
        if branch_of(folder) == branch:
            return BranchOwner(attempt=attempt)
        if branch_of(whole_of(folder)) == branch:
            return BranchOwner(attempt=attempt, own=False)
    raise WorkspaceError(f"no attempt of this run has the branch {branch}")


async def final_snapshot(bundles: Bundles, attempt: Attempt) -> Snapshot:
    """Return an attempt's work at its end. Raise WorkspaceError if that was not saved."""
    known = await bundles.snapshots(attempt.id)
    found = await newest_snapshot(bundles, attempt)
    if found is None or found != known[-1]:
        name = place_of(Path(attempt.workspace))
        raise WorkspaceError(f"the work of {name} was not saved: it exists only on {attempt.node}")
    return found


async def fetch_snapshot(
    bundles: Bundles, repository: Path, attempt: Attempt, snapshot: Snapshot, *, place: str
) -> Snapshot:
    """Fetch saved work into a repository under the name `place`; return the snapshot fetched.

    It is newer than `snapshot` if the attempt was saved meanwhile: its node may continue until
    another one takes it over. Raises WorkspaceError.
    """
    while not await _fetch_unless_replaced(bundles, repository, attempt, snapshot, place):
        newer = await newest_snapshot(bundles, attempt)
        if newer is None or newer == snapshot:
            raise WorkspaceError(f"the saved work of {place} is gone")
        snapshot = newer
    commit = snapshot.commit
    if not (await mark_of(repository, commit)).of.startswith(f"{place} of "):
        raise WorkspaceError(f"the work of {place} was not saved: it exists only on {attempt.node}")
    with machine_at_fault():
        await git(repository, "update-ref", SAVED + place, commit)
    return snapshot


async def _fetch_unless_replaced(
    bundles: Bundles, repository: Path, attempt: Attempt, snapshot: Snapshot, place: str
) -> bool:
    """Fetch a snapshot into a repository; return False if a newer one has replaced it."""
    if await has_commit(repository, snapshot.commit):
        return True
    if snapshot.base:
        await fetch(repository, snapshot.base)
    if snapshot.branch:
        with suppress(WorkspaceError):
            await fetch_saved(repository, "origin", f"refs/heads/{snapshot.branch}", place)
        await fetch(repository, snapshot.commit)  # in case the branch is gone or has moved
        return True
    bundle = await bundles.get(attempt.id)
    if bundle is None or bundle.commit != snapshot.commit:
        return False
    await unpack_snapshot(repository, place, bundle.body)
    return True


async def write_saved(bundles: Bundles, attempt: Attempt, folder: Path, *, place: str) -> None:
    """Write the last saved files of an attempt without git into an empty folder.

    Raises WorkspaceError.
    """
    with TemporaryDirectory(prefix="midwatch-") as scratch:
        repository = Path(scratch) / "saved.git"
        files = await files_of(Workspace(folder=folder), repository)
        wanted = await final_snapshot(bundles, attempt)
        found = await fetch_snapshot(bundles, repository, attempt, wanted, place=place)
        await check_out(files, found.commit)


async def fetch_branch(
    bundles: Bundles, repository: Path, attempt: Attempt, branch: str
) -> Snapshot:
    """Fetch a finished branch into a repository, from wherever it was saved; return its snapshot.

    Raises WorkspaceError if its end was not saved.
    """
    snapshot = await final_snapshot(bundles, attempt)
    place = branch.removeprefix(BRANCHES)
    snapshot = await fetch_snapshot(bundles, repository, attempt, snapshot, place=place)
    tip = await tip_of(repository, snapshot.commit)
    with machine_at_fault():
        await git(repository, "update-ref", f"refs/heads/{branch}", tip)
    return snapshot


async def push_snapshot(
    workspace: Workspace,
    commit: str,
    attempt: Attempt,
    *,
    mark: SnapshotMark,
    last: Snapshot | None,
) -> str:
    """Push a snapshot to the origin in place of the attempt's `last` one; return its branch.

    The branch has the name of the workspace's branch. If the origin has another branch of that
    name, of somebody else or of an attempt that a journal restored from a backup does not know, the
    attempt's start time is added: `fix-1.begun-20261121T200000`. Raises WorkspaceError.
    """
    names = (workspace.branch, f"{workspace.branch}.begun-{attempt.started_at:%Y%m%dT%H%M%S}")
    if last is not None and last.branch in names:
        names = names[names.index(last.branch) :]
    for name in names:
        before = last.commit if last is not None and last.branch == name else ""
        if await _push_as(workspace.at, commit, name, mark=mark, before=before):
            if name != names[0]:
                log.warning("the origin has another branch %s: pushed as %s", names[0], name)
            return name
    raise WorkspaceError(f"the origin has other branches {' and '.join(names)}")


async def _push_as(
    worktree: Worktree, commit: str, branch: str, *, mark: SnapshotMark, before: str
) -> bool:
    """Push a snapshot as this branch; return False if the branch is somebody else's."""
    ref, seen = f"refs/heads/{branch}", SEEN + mark.of.partition(" ")[0]
    try:
        await _push_commit(worktree, commit, ref, instead_of=before)
    except WorkspaceError as error:
        try:
            wanted = ("--quiet", "--no-tags", "origin", f"+{ref}:{seen}")
            await ask_network(worktree, "fetch", *wanted, seconds=_PUSH_SECONDS)
        except WorkspaceError:
            raise error from None  # no such branch: the push failed for another reason
        # The origin may have a snapshot of this attempt that never got into the journal.
        if (await mark_of(worktree, seen)).of != mark.of:
            return False
        there = (await git(worktree, "rev-parse", "--verify", seen)).strip()
        await _push_commit(worktree, commit, ref, instead_of=there)
    return True


async def _push_commit(worktree: Worktree, commit: str, ref: str, *, instead_of: str) -> None:
    """Set a branch of the origin to a commit, if it is where it is expected."""
    lease = f"--force-with-lease={ref}:{instead_of}"
    command = (*_PUSH, lease, "origin", f"{commit}:{ref}")
    await ask_network(worktree, *command, seconds=_PUSH_SECONDS)
