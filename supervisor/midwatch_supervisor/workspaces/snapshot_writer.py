"""Saves one attempt's files before the steps that changed them are recorded."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence

from midwatch_monitor.cancellation import finish_before_cancel, retrieve_exception
from midwatch_monitor.errors import MidwatchError, WorkspaceError
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import AttemptTransition, Fault, Lifecycle, Record, Result
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import Workspace

log = logging.getLogger(__name__)

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
