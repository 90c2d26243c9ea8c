"""Follows the journal for the console, in batches, never faster than it can draw."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from midwatch_monitor.bus import Bus
from midwatch_monitor.errors import JournalCorruptError, JournalError, JournalTooNewError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.journal.fleet.run_lock import interrupted_runs
from midwatch_monitor.records import Attempt, Entry, NodeStatus, Run, Task

T = TypeVar("T")

_BATCH = 500
"""Entries in one batch; a long history takes many, so that keys are handled in between."""

_AGAIN = 1.0
"""Seconds between two attempts to read an unreadable journal."""
_NODES = 1.0
"""Seconds between two checks of the nodes, which beat once a second."""
_MONITORS = 3.0
"""Seconds between two checks of the monitors, whose leases last longer."""

_RUNS = 1.0
"""Seconds between two checks for newer runs, and for runs whose process is gone."""

NodesNow = Callable[[], Awaitable[Sequence[NodeStatus]]]
"""The nodes' states in the journal."""
MonitorsNow = Callable[[], Awaitable[Sequence[MonitorStatus]]]
"""The monitors' leases in the journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedBatch:
    """New entries, with runs, tasks and attempts that occur in them for the first time."""

    entries: tuple[Entry, ...] = ()
    runs: tuple[Run, ...] = ()
    tasks: tuple[Task, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    nodes: tuple[NodeStatus, ...] | None = None
    """All nodes, if one of them changed or they were read for the first time."""
    monitors: tuple[MonitorStatus, ...] | None = None
    """All monitors, likewise."""
    interrupted: tuple[int, ...] | None = None
    """All runs whose process is gone, likewise."""
    more: bool = False
    """Whether another batch follows at once, so that drawing now would be wasted."""
    again: bool = False
    """Whether the journal was unreadable before it: others may have missed something."""
    ends: bool = False
    """Whether it is the first to reach the journal's end."""

    @property
    def says(self) -> bool:
        """Whether it contains anything new."""
        asked = self.nodes, self.monitors, self.interrupted
        told = any(each is not None for each in asked)
        return bool(self.entries) or self.again or self.ends or told


class Feed:
    """Follows a journal. A bus makes that faster; without one, the journal is polled.

    An unreadable journal is retried until it can be read.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        run: int | None,
        bus: Bus,
        poll_seconds: float,
        hertz: float,
        nodes: NodesNow | None = None,
        monitors: MonitorsNow | None = None,
        connected: Callable[[], bool] = lambda: True,
        others: bool = False,
    ) -> None:
        """Follow one run, or every run if `run` is `None`, at most `hertz` batches a second.

        `nodes` and `monitors` are polled if there may be a fleet; `connected` tells whether the bus
        has its broker. With `others`, it also notices newer runs.
        """
        self.journal = journal
        self._run = run
        self._bus = bus
        self._poll_seconds = poll_seconds
        self._pause = 1 / hertz
        self._nodes = None if nodes is None else _Seen(nodes, every=_NODES)
        self._monitors = None if monitors is None else _Seen(monitors, every=_MONITORS)
        self._runs_now = _Seen(self._begun_meanwhile, every=_RUNS) if others else None
        self._interrupted = _Seen(self._left_alone, every=_RUNS)
        self._newest: int | None = None
        """The newest run when it began to look."""
        self._connected = connected
        self._after = 0
        self._runs: set[int] = set()
        self._met_runs: set[int] = set()
        """These, and those of the batch that is being read."""
        self._tasks: set[int] = set()
        self._attempts: set[int] = set()
        self._asked_at: float | None = None
        self._failed = False
        self._at_end = False
        """Whether the journal's end was reached once."""
        self.dropped = 0
        """Hints dropped by the bus: their entries are still read, but later."""
        self.problem = ""
        """Why the last read of the journal failed; empty if it succeeded."""
        self.later: tuple[Run, ...] = ()
        """Other runs that began since, oldest first."""

    @property
    def connected(self) -> bool:
        """Whether hints from other machines can arrive."""
        return self._connected()

    @property
    def of_a_fleet(self) -> bool:
        return self._nodes is not None

    @property
    def unanswered(self) -> float:
        """Seconds for which the journal has not answered; 0 while it is not asked."""
        return 0.0 if self._asked_at is None else monotonic() - self._asked_at

    async def batches(self) -> AsyncGenerator[FeedBatch]:
        """Yield the journal's entries from its beginning, and then new ones.

        Nothing is read before the previous batch has been processed. Raises JournalTooNewError or
        JournalCorruptError, for which retrying is useless.
        """
        async with self._bus.subscribe() as hints:
            while True:
                batch = await self._read_new()
                if batch is None:
                    await asyncio.sleep(_AGAIN)
                    continue
                if batch.says:
                    yield batch
                if batch.more:
                    continue
                if batch.entries:
                    await asyncio.sleep(self._pause)
                    await hints.wait(0)  # the next read of the journal covers them
                else:
                    await hints.wait(self._poll_seconds)
                self.dropped = hints.dropped

    async def _read_new(self) -> FeedBatch | None:
        """Return what is new; `None` if the journal cannot be read."""
        self._asked_at = monotonic() if self._asked_at is None else self._asked_at
        try:
            batch = await self._read_batch()
        except (JournalTooNewError, JournalCorruptError):
            self._asked_at = None
            raise
        except JournalError as error:
            self._failed, self.problem = True, str(error)
            return None
        self._asked_at, self._failed, self.problem = None, False, ""
        return batch

    async def _read_batch(self) -> FeedBatch:
        page = await self.journal.entries(self._after, run=self._run, limit=_BATCH)
        unmet = {entry.task for entry in page} - self._tasks
        tasks = await self.journal.tasks_with(unmet) if unmet else []
        wanted = {entry.attempt for entry in page if entry.attempt is not None} - self._attempts
        attempts = await self.journal.attempts_with(wanted) if wanted else []
        runs = [await self.journal.run(id) for id in {task.run for task in tasks} - self._runs]
        self._met_runs = self._runs | {run.id for run in runs}
        nodes = None if self._nodes is None else await self._nodes.take_change()
        monitors = None if self._monitors is None else await self._monitors.take_change()
        interrupted = await self._interrupted.take_change()
        later = None if self._runs_now is None else await self._runs_now.take_change()
        more = len(page) == _BATCH
        ends = not more and not self._at_end
        # Only a complete reading counts.
        self._at_end = self._at_end or ends
        if page:
            self._after = page[-1].id
        self.later = self.later if later is None else later
        for seen in (self._nodes, self._monitors, self._interrupted, self._runs_now):
            if seen is not None:
                seen.keep()
        self._runs.update(run.id for run in runs)
        self._tasks.update(task.id for task in tasks)
        self._attempts.update(attempt.id for attempt in attempts)
        return FeedBatch(
            entries=tuple(page),
            runs=tuple(runs),
            tasks=tuple(tasks),
            attempts=tuple(attempts),
            nodes=nodes,
            monitors=monitors,
            interrupted=interrupted,
            more=more,
            again=self._failed,
            ends=ends,
        )

    async def _left_alone(self) -> list[int]:
        return sorted(await interrupted_runs(self.journal, self._met_runs))

    async def _begun_meanwhile(self) -> list[Run]:
        if self._newest is None:
            self._newest = max((each.id for each in await self.journal.runs()), default=0)
        return await self.journal.runs(after=self._newest)


class _Seen(Generic[T]):
    """Something besides entries that is polled at intervals."""

    def __init__(self, ask: Callable[[], Awaitable[Sequence[T]]], *, every: float) -> None:
        self._ask = ask
        self._every = every
        self._at: float | None = None
        self._found: tuple[T, ...] | None = None
        self._kept: tuple[T, ...] | None = None

    async def take_change(self) -> tuple[T, ...] | None:
        """Return its current value; `None` if it is the reported one."""
        if self._at is None or monotonic() - self._at >= self._every:
            self._at = monotonic()
            self._found = tuple(await self._ask())
        return None if self._found == self._kept else self._found

    def keep(self) -> None:
        """Note that the last value has been reported."""
        self._kept = self._found
