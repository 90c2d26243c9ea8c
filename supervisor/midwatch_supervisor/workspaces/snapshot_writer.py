"""Saves one attempt's files before the journal says what was done to them."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence

from midwatch_monitor.errors import MidwatchError, WorkspaceError
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import AttemptTransition, Fault, Lifecycle, Record, Result
from midwatch_monitor.shielding import finish_before_cancel
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import Workspace

log = logging.getLogger(__name__)

PART = "saving"
"""What failed, in a fault."""


class SnapshotWriter:
    """Saves the files of one attempt, as often as the configuration says.

    They are saved before a tool's result is recorded: after a crash they may be ahead of the
    history, and behind it only by what was done since the last time. Whenever the attempt parks
    or ends, they are saved whatever the time. What cannot be saved is told once, and breaks
    nothing.
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
        """Save before what this voice of the attempt records."""
        if self._snapshot_store is None:
            return
        if self._recorder is None:
            self._step = recorder.last_step
        self._recorder = recorder
        recorder.before = self._before

    async def _before(self, records: Sequence[Record], results: Sequence[Result]) -> None:
        if any(map(_leaves, records)) or (results and self._due):
            await self.save()
        if any(map(_ends, records)):
            self._let_go()

    @property
    def _due(self) -> bool:
        every = self._snapshot_store.settings.save_seconds if self._snapshot_store else math.inf
        return not self._large and self._seconds() - self._at >= every

    def wake(self) -> "asyncio.Future[None] | None":
        """Begin to save if anything was done since the last time, and that was long enough ago.

        Nobody has to wait for what is under way then; whose attempt this is, others say.
        """
        recorder = self._recorder
        if recorder is None or self._lock.locked():
            return None
        return self._begin() if recorder.last_step > self._step and self._due else None

    async def leave(self) -> None:
        """Save for whoever goes on with an attempt that is left as it is; a failure is logged."""
        try:
            # Who is told again to leave saves all the same: nobody does it later.
            await finish_before_cancel(self.save())
        except MidwatchError as error:
            log.warning("the work in %s was not saved: %s", self._workspace.folder, error)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._snapshot_store is not None and self._recorder is not None:
            self._snapshot_store.let_go(self._recorder.attempt, self._workspace)

    async def save(self) -> None:
        """Save now. Raises StaleIncarnationError and JournalError as the recorder does."""
        # A save that has begun is brought to its end: git would be left in the middle of it.
        await asyncio.shield(self._begin())

    def _begin(self) -> "asyncio.Future[None]":
        saving = asyncio.ensure_future(self._save())
        self._under_way.add(saving)
        saving.add_done_callback(self._check_ended)
        return saving

    def _check_ended(self, saving: "asyncio.Future[None]") -> None:
        """Look at a save's error, so that one that nobody waits for any more is no noise."""
        self._under_way.discard(saving)
        if not saving.cancelled():
            saving.exception()

    async def _save(self) -> None:
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


def _leaves(record: Record) -> bool:
    """Whether nobody works on the attempt for a while, or ever."""
    if not isinstance(record, AttemptTransition):
        return False
    return record.lifecycle.over or record.lifecycle is Lifecycle.INPUT_REQUIRED


def _ends(record: Record) -> bool:
    return isinstance(record, AttemptTransition) and record.lifecycle.over
