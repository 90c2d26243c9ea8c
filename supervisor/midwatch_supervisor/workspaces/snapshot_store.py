"""Saves the work of attempts while they run, and restores it on another node of the fleet.

A snapshot holds the files that git sees: ignored ones, such as installed packages, stay behind.
"""

import asyncio
import logging
import math
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from midwatch_monitor.cancellation import finish_before_cancel, retrieve_exception
from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import MidwatchError, StaleIncarnationError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import now
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    AttemptTransition,
    Change,
    Draft,
    Edit,
    Fault,
    Intervention,
    Lifecycle,
    Record,
    Result,
    Snapshot,
    Step,
    Writer,
    name_of,
)
from midwatch_supervisor.present.assignment import branch_of, place_of
from midwatch_supervisor.present.numbers import list_names
from midwatch_supervisor.workspaces.changes import start_commit
from midwatch_supervisor.workspaces.snapshot import (
    SnapshotMark,
    TakenSnapshot,
    check_out,
    fetch_branch,
    fetch_snapshot,
    files_of,
    final_snapshot,
    held_snapshot,
    hold_snapshot,
    mark_of,
    newest_snapshot,
    owner_of,
    pack_snapshot,
    push_snapshot,
    take_snapshot,
    tip_of,
)
from midwatch_supervisor.workspaces.workspace import (
    Workspace,
    WorkspacePlan,
    clear,
    machine_at_fault,
    prepare,
    reopen_workspace,
)
from midwatch_tools.git import Worktree, git
from midwatch_tools.tree import digest_of

log = logging.getLogger(__name__)

_MAX_NAMES = 20
"""Number of files that the notice to a worker names."""
SNAPSHOT_AUTHOR = "snapshot store"
"""Author of notices about restored files; they answer no alert, so no decision learns from them."""


def outdated_files(steps: Iterable[Step], digest: Callable[[str], str]) -> tuple[str, ...]:
    """Return the files that differ from how the last of these steps left them.

    `digest` returns the digest of a file's content now; empty if there is no such file.
    """
    last: dict[str, Edit] = {}
    for step in steps:
        last |= {edit.path: edit for edit in step.edits if edit.writer is Writer.WORKER}
    return tuple(
        sorted(
            path
            for path, edit in last.items()
            if digest(path) != ("" if edit.deleted else edit.digest)
        )
    )


def outdated_notice(names: tuple[str, ...], *, saved: int, last: int) -> Intervention:
    """Return the notice to a worker whose files are as of step `saved` instead of step `last`."""
    since = f"steps {saved + 1} to {last}" if last > saved + 1 else f"step {last}"
    state = f"as of step {saved}" if saved else "as they were at the beginning"
    return Intervention(
        action=Action.NUDGE,
        by=Actor.POLICY,
        author=SNAPSHOT_AUTHOR,
        message=(
            f"This attempt continues on another machine. Its files are {state}; {since} changed: "
            f"{list_names(names, _MAX_NAMES)}; look before you rely on them."
        ),
    )


_MB = 1_000_000
_IN_USE = timedelta(hours=1)


async def _snapshot_mark(attempt: Attempt, workspace: Workspace) -> SnapshotMark:
    begun = await start_commit(workspace.worktree) if workspace.worktree else ""
    of = f"{place_of(workspace.folder)} of {attempt.started_at.isoformat()}"
    return SnapshotMark(of=of, begun=begun or workspace.base)


class SnapshotStore:
    """Saves the work of attempts, and restores it on this node."""

    def __init__(
        self,
        *,
        journal: Journal,
        home: Path,
        node: str,
        settings: FleetSettings,
        clock: Callable[[], datetime] = now,
    ) -> None:
        """Save into `journal`, and restore below `home`, as the node with that name."""
        self.settings = settings
        self._journal = journal
        self._bundles = Bundles(journal)
        self._home = home
        self._node = node
        self._clock = clock
        self._used: dict[str, datetime] = {}

    def folder(self, made_at: str | Path) -> Path:
        """Return the folder of a workspace on this node, wherever it was made.

        What is there may be removed, so a path that is not a workspace raises WorkspaceError.
        """
        path = Path(made_at)
        label, name = path.parent.name, path.name
        if not label or {label, name} & {"", ".."}:
            raise WorkspaceError(f"{made_at!s} is not the workspace of an attempt")
        return self._home / "work" / label / name

    def _private_repository(self, folder: Path) -> Path:
        return self._home / "saved" / f"{place_of(folder)}.git"

    # -- saving ----------------------------------------------------------------------------

    async def save(
        self, attempt: Attempt, workspace: Workspace, *, step: int, incarnation: int | None
    ) -> TakenSnapshot:
        """Save the workspace's files as they are after `step`; nothing new is not an error.

        Raises StaleIncarnationError if another process has taken over the attempt, and
        WorkspaceError or OSError if the files cannot be read.
        """
        self._note_use(workspace.folder)
        files = await files_of(workspace, self._private_repository(workspace.folder))
        mark = await _snapshot_mark(attempt, workspace)
        taken = await take_snapshot(files, mark)
        last = next(reversed(await self._bundles.snapshots(attempt.id)), None)
        if last and taken.commit == last.commit:
            return taken
        await hold_snapshot(files, place_of(workspace.folder), taken.commit)
        snapshot = Snapshot(commit=taken.commit, base=workspace.base, messages=0, step=step)
        if self.settings.push and workspace.branch:
            await self._require_hold(attempt, incarnation)
            branch = await push_snapshot(workspace, taken.commit, attempt, mark=mark, last=last)
            snapshot, body = replace(snapshot, branch=branch), b""
        else:
            snapshot, body = await self._pack_bundle(workspace, files, snapshot)
        draft = Draft(record=snapshot, at=self._clock(), task=attempt.task, attempt=attempt.id)
        await self._bundles.put(draft, body, incarnation=incarnation)
        if not snapshot.kept:
            large = f"the work is larger than {self.settings.max_bundle_mb:g} MB, so it cannot move"
            return replace(taken, fault=large, whole=False)
        return taken

    def _note_use(self, folder: Path) -> None:
        self._used[place_of(folder)] = self._clock()

    def in_use(self, place: str) -> bool:
        """Whether a workspace was asked for within the last hour, so that it may still be used."""
        recent = self._clock() - _IN_USE
        self._used = {each: at for each, at in self._used.items() if at > recent}
        return place in self._used

    async def _require_hold(self, attempt: Attempt, incarnation: int | None) -> None:
        """Raise StaleIncarnationError if another process has taken over the attempt."""
        lease = await self._bundles.lease_of(attempt.id)
        if incarnation is not None and (lease is None or lease.incarnation != incarnation):
            raise StaleIncarnationError(f"attempt {attempt.id} was taken over by another node")

    async def _pack_bundle(
        self, workspace: Workspace, files: Worktree, snapshot: Snapshot
    ) -> tuple[Snapshot, bytes]:
        """Return the snapshot with its bundle, which is empty if it would be too large."""
        body = await pack_snapshot(
            files,
            place_of(workspace.folder),
            base=workspace.base,
            max_bytes=self.settings.max_bundle_mb * _MB,
        )
        return (snapshot, b"") if body is None else (replace(snapshot, size=len(body)), body)

    # -- restoring -------------------------------------------------------------------------

    async def is_here(self, attempt: Attempt) -> bool:
        """Whether this node had the attempt last, and still has its files."""
        lease = await self._bundles.lease_of(attempt.id)
        if lease is None or name_of(lease.holder) != self._node:
            return False
        return await asyncio.to_thread(self.folder(attempt.workspace).is_dir)

    async def workspace(self, attempt: Attempt, plan: WorkspacePlan) -> Workspace | None:
        """Return the workspace of an attempt that has begun, restored from its snapshot if needed.

        `None` if nothing was saved. Raises WorkspaceError if what was saved cannot be fetched.
        """
        folder = self.folder(attempt.workspace)
        self._note_use(folder)
        if await self.is_here(attempt):
            branch = branch_of(folder) if plan.versioned else ""
            workspace = await reopen_workspace(folder, plan.source, branch=branch)
            await self._warn_of_newer(attempt, workspace)
            return replace(workspace, base=plan.base)
        snapshot = await newest_snapshot(self._bundles, attempt)
        if snapshot is None:
            return None
        if not plan.versioned or plan.source is None:
            return await self._without_git(folder, attempt, snapshot)
        return await self._make_worktree(folder, attempt, snapshot, plan.source, plan.base)

    async def _make_worktree(
        self, folder: Path, attempt: Attempt, snapshot: Snapshot, clone: Path, base: str
    ) -> Workspace:
        """Make a worktree with a snapshot's files, in place of whatever is in `folder`."""
        branch, place = branch_of(folder), place_of(folder)
        commit = (await fetch_snapshot(self._bundles, clone, attempt, snapshot, place=place)).commit
        begun = (await mark_of(clone, commit)).begun or base
        tip = await tip_of(clone, commit)
        forward = ("update-ref", "-m", "midwatch: it goes on here", "HEAD", tip)
        with machine_at_fault():
            await clear(folder, clone, branch=branch)
            workspace = await prepare(folder, clone, branch=branch, merges=(), base=begun)
            if tip not in {"", begun}:
                await git(workspace.at, *forward)
            await check_out(workspace.at, commit)
        return replace(workspace, base=base)

    async def _without_git(self, folder: Path, attempt: Attempt, snapshot: Snapshot) -> Workspace:
        """Make a plain folder with a snapshot's files, in place of whatever is in `folder`."""
        private = self._private_repository(folder)
        for each in (folder, private):
            await asyncio.to_thread(shutil.rmtree, each, ignore_errors=True)
        await asyncio.to_thread(folder.mkdir, parents=True)
        workspace = Workspace(folder=folder)
        with machine_at_fault():
            files = await files_of(workspace, private)
        place = place_of(folder)
        snapshot = await fetch_snapshot(self._bundles, private, attempt, snapshot, place=place)
        with machine_at_fault():
            await check_out(files, snapshot.commit)
        return workspace

    async def tell(
        self, attempt: Attempt, workspace: Workspace, *, incarnation: int | None
    ) -> None:
        """Notify the worker of changes in its history that its restored files do not have.

        It is notified once, however often this is called, and not at all if this node had the
        attempt last. Call it after the attempt is claimed, when nobody else writes steps. Raises
        StaleIncarnationError if another process has taken over the attempt since.
        """
        steps, node = await self._read_steps(attempt)
        if not steps or node == self._node:
            return
        saved = await self._made_of(attempt, workspace)
        steps = [step for step in steps if step.number > saved]
        folder = workspace.folder

        def digest(name: str) -> str:
            return digest_of(folder / name)

        names = await asyncio.to_thread(outdated_files, steps, digest)
        if names:
            record = outdated_notice(names, saved=saved, last=steps[-1].number)
            draft = Draft(record=record, at=self._clock(), task=attempt.task, attempt=attempt.id)
            await self._bundles.issue_once(draft, incarnation=incarnation)

    async def _warn_of_newer(self, attempt: Attempt, workspace: Workspace) -> None:
        """Warn if files are newer than the journal, as after a backup was restored."""
        held = await self._held_commit(workspace)
        if held and all(each.commit != held for each in await self._bundles.snapshots(attempt.id)):
            log.warning(
                "%s continues with files that are newer than the journal, as after a backup was "
                "restored",
                workspace.folder,
            )

    async def _held_commit(self, workspace: Workspace) -> str:
        """Return the last snapshot that the files here were saved as or made from, or ""."""
        private = self._private_repository(workspace.folder)
        if not workspace.branch and not await asyncio.to_thread(private.is_dir):
            return ""
        return await held_snapshot(await files_of(workspace, private), place_of(workspace.folder))

    async def _made_of(self, attempt: Attempt, workspace: Workspace) -> int:
        """Return the last step before the snapshot that the files were made from; 0 without one.

        There may be a newer snapshot: the previous node may have saved until the attempt was taken
        over.
        """
        commit = await self._held_commit(workspace)
        known = await self._bundles.snapshots(attempt.id)
        moved = (each for each in known if each.kept)
        return max((each.step for each in moved if each.commit == commit), default=0)

    async def _read_steps(self, attempt: Attempt) -> tuple[list[Step], str]:
        """Return an attempt's steps, and the node that has it according to the journal."""
        node, steps = "", list[Step]()
        async for each in self._journal.all_entries(attempt=attempt.id, kinds=(Step, Change)):
            match each.record:
                case Change(node=str(name)):
                    node = name
                case Step() as step:
                    steps.append(step)
                case _:
                    pass
        return steps, node

    # -- work of other attempts ------------------------------------------------------------

    async def bring_branches(self, repository: Path, names: Collection[str], *, run: int) -> None:
        """Make sure that a repository has the finished branches of other attempts of a run.

        Raises WorkspaceError for a branch that was not saved, or not as it was at its end.
        """
        attempts = await self._bundles.attempts(run) if names else []
        for name in names:
            self._note_use(Path(name))
            await self._bring_branch(repository, name, attempts)

    async def _bring_branch(self, repository: Path, name: str, attempts: Sequence[Attempt]) -> None:
        owner = owner_of(name, attempts)
        if owner.own and await self.is_here(owner.attempt):
            return
        await fetch_branch(self._bundles, repository, owner.attempt, name)

    async def bring_folder(self, made_at: Path, *, run: int) -> Path:
        """Return the folder on this node of an attempt without git; restore it if needed."""
        owner = owner_of(branch_of(made_at), await self._bundles.attempts(run))
        folder = self.folder(made_at)
        self._note_use(folder)
        if not (owner.own and await self.is_here(owner.attempt)):
            snapshot = await final_snapshot(self._bundles, owner.attempt)
            await self._without_git(folder, owner.attempt, snapshot)
        return folder


PART = "saving"
"""Part named in a fault of saving."""


class SnapshotWriter:
    """Saves the files of one attempt, as often as the configuration says.

    Files are saved before a tool's result is recorded. So after a crash they may be newer than the
    history, and older only by the changes since the last save. When the attempt parks or ends,
    they are always saved. A failure is reported once and stops nothing.
    """

    def __init__(
        self,
        snapshot_store: SnapshotStore | None,
        workspace: Workspace,
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Save `workspace`; without a store nothing is saved."""
        self._snapshot_store = snapshot_store
        self._workspace = workspace
        self._seconds = seconds
        self._at = seconds()
        self._step = 0
        self._large = False
        self._told: set[str] = set()
        self._lock = asyncio.Lock()
        self._under_way: set[asyncio.Future[None]] = set()
        self._recorder: Recorder | None = None

    def follow(self, recorder: Recorder) -> None:
        """Save before each commit of this recorder of the attempt."""
        if self._snapshot_store is None:
            return
        if self._recorder is None:
            self._step = recorder.last_step
        self._recorder = recorder
        recorder.before = self._save_before

    async def _save_before(self, records: Sequence[Record], results: Sequence[Result]) -> None:
        if any(map(_ends_work, records)) or (results and self._save_is_due):
            await self.save()

    @property
    def _save_is_due(self) -> bool:
        every = self._snapshot_store.settings.save_seconds if self._snapshot_store else math.inf
        return not self._large and self._seconds() - self._at >= every

    def wake(self) -> "asyncio.Future[None] | None":
        """Start a save if something was done since the last one, and that was long enough ago.

        The future need not be awaited, and its errors may be ignored: the recorder finds out itself
        if the attempt was taken over.
        """
        recorder = self._recorder
        if recorder is None or self._lock.locked():
            return None
        return self._start_save() if recorder.last_step > self._step and self._save_is_due else None

    async def leave(self) -> None:
        """Save for the process that continues the attempt; a failure is logged."""
        try:
            # Saved even if this is canceled again: nobody will do it later.
            await finish_before_cancel(self.save())
        except MidwatchError as error:
            log.warning("the work in %s was not saved: %s", self._workspace.folder, error)

    async def save(self) -> None:
        """Save now. Raises StaleIncarnationError and JournalError as the recorder does."""
        # A save is never interrupted: git would be left half done.
        await asyncio.shield(self._start_save())

    def _start_save(self) -> "asyncio.Future[None]":
        saving = asyncio.ensure_future(self._save_locked())
        self._under_way.add(saving)
        saving.add_done_callback(self._under_way.discard)
        saving.add_done_callback(retrieve_exception)
        return saving

    async def _save_locked(self) -> None:
        async with self._lock:
            recorder = self._recorder
            if recorder is None or self._snapshot_store is None:
                return
            step = recorder.last_step
            try:
                saved = await self._snapshot_store.save(
                    recorder.attempt, self._workspace, step=step, incarnation=recorder.incarnation
                )
                fault, self._large = saved.fault, not saved.whole
            except (WorkspaceError, OSError) as error:
                fault = str(error)
            self._at, self._step = self._seconds(), step
            if fault and fault not in self._told:
                await recorder.record(Fault(part=PART, error=fault))
                self._told.add(fault)


def _ends_work(record: Record) -> bool:
    """Whether a record parks or ends the attempt."""
    if not isinstance(record, AttemptTransition):
        return False
    return record.lifecycle.over or record.lifecycle is Lifecycle.INPUT_REQUIRED
