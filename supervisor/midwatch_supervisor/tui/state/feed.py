"""The journal as the console hears it: in batches, never faster than it can draw."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from midwatch_monitor.bus import Bus
from midwatch_monitor.errors import JournalCorruptError, JournalError, JournalTooNewError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import Attempt, Entry, NodeStatus, Run, Task

T = TypeVar("T")

_BATCH = 500
"""Entries of one batch; a long history arrives in many, so that keys are heard between."""

_AGAIN = 1.0
"""Seconds between two tries while the journal cannot be read."""
_NODES = 1.0
"""Seconds between two looks at the nodes: they beat once a second."""
_MONITORS = 3.0
"""Seconds between two looks at the monitors: what they hold they hold for longer."""

_RUNS = 1.0
"""Seconds between two looks for runs that began meanwhile."""

NodesNow = Callable[[], Awaitable[Sequence[NodeStatus]]]
"""How the nodes stand in the journal."""
MonitorsNow = Callable[[], Awaitable[Sequence[MonitorStatus]]]
"""What monitors hold in the journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedBatch:
    """What is new, with the runs, tasks and attempts that are met in it for the first time."""

    entries: tuple[Entry, ...] = ()
    runs: tuple[Run, ...] = ()
    tasks: tuple[Task, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    nodes: tuple[NodeStatus, ...] | None = None
    """All nodes, where one of them has changed, and when they were read for the first time."""
    monitors: tuple[MonitorStatus, ...] | None = None
    """All monitors, as the nodes."""
    more: bool = False
    """Whether another batch follows at once: what is drawn now would soon be old."""
    again: bool = False
    """Whether the journal could not be read before it: others may have missed something."""
    ends: bool = False
    """Whether the journal's end is reached with it for the first time."""

    @property
    def says(self) -> bool:
        """Whether it holds any news."""
        told = self.nodes is not None or self.monitors is not None
        return bool(self.entries) or self.again or self.ends or told


class Feed:
    """Follows a journal. A bus makes it sooner; without one, the journal is asked by itself.

    A journal that cannot be read is asked again until it can.
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

        `nodes` and `monitors` are asked where there may be a fleet; `connected` says whether the
        bus has its broker. With `others`, it is also seen which runs begin meanwhile.
        """
        self.journal = journal
        self._run = run
        self._bus = bus
        self._poll_seconds = poll_seconds
        self._pause = 1 / hertz
        self._nodes = None if nodes is None else _Seen(nodes, every=_NODES)
        self._monitors = None if monitors is None else _Seen(monitors, every=_MONITORS)
        self._runs_now = _Seen(self._begun_meanwhile, every=_RUNS) if others else None
        self._newest: int | None = None
        """The newest run when it began to look."""
        self._connected = connected
        self._after = 0
        self._runs: set[int] = set()
        self._tasks: set[int] = set()
        self._attempts: set[int] = set()
        self._asked_at: float | None = None
        self._failed = False
        self._at_end = False
        """Whether the journal was read to its end once."""
        self.dropped = 0
        """Hints that the bus dropped: what they told of is read all the same, but later."""
        self.problem = ""
        """Why the journal could not be read the last time; empty if it could."""
        self.later: tuple[Run, ...] = ()
        """Other runs that began meanwhile, oldest first."""

    @property
    def connected(self) -> bool:
        """Whether hints of other machines can come."""
        return self._connected()

    @property
    def of_a_fleet(self) -> bool:
        return self._nodes is not None

    @property
    def unanswered(self) -> float:
        """For how many seconds the journal has owed an answer; 0 while it owes none."""
        return 0.0 if self._asked_at is None else monotonic() - self._asked_at

    async def batches(self) -> AsyncGenerator[FeedBatch]:
        """What the journal says, from its beginning, and then whatever is added.

        Nothing is read ahead: who takes the next batch has dealt with the last one. Raises
        JournalTooNewError or JournalCorruptError; no second try helps there.
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
                    await hints.wait(0)  # the next look at the journal answers them
                else:
                    await hints.wait(self._poll_seconds)
                self.dropped = hints.dropped

    async def _read_new(self) -> FeedBatch | None:
        """What is new now; `None` if the journal cannot be read."""
        self._asked_at = monotonic() if self._asked_at is None else self._asked_at
        try:
            batch = await self._read()
        except (JournalTooNewError, JournalCorruptError):
            self._asked_at = None
            raise
        except JournalError as error:
            self._failed, self.problem = True, str(error)
            return None
        self._asked_at, self._failed, self.problem = None, False, ""
        return batch

    async def _read(self) -> FeedBatch:
        page = await self.journal.entries(self._after, run=self._run, limit=_BATCH)
        unmet = {entry.task for entry in page} - self._tasks
        tasks = await self.journal.tasks_with(unmet) if unmet else []
        wanted = {entry.attempt for entry in page if entry.attempt is not None} - self._attempts
        attempts = await self.journal.attempts_with(wanted) if wanted else []
        runs = [await self.journal.run(id) for id in {task.run for task in tasks} - self._runs]
        nodes = None if self._nodes is None else await self._nodes.take_change()
        monitors = None if self._monitors is None else await self._monitors.take_change()
        later = None if self._runs_now is None else await self._runs_now.take_change()
        more = len(page) == _BATCH
        ends = not more and not self._at_end
        # Only what was read to its end counts as read.
        self._at_end = self._at_end or ends
        if page:
            self._after = page[-1].id
        self.later = self.later if later is None else later
        for seen in (self._nodes, self._monitors, self._runs_now):
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
            more=more,
            again=self._failed,
            ends=ends,
        )

    async def _begun_meanwhile(self) -> list[Run]:
        if self._newest is None:
            self._newest = max((each.id for each in await self.journal.runs()), default=0)
        return await self.journal.runs(after=self._newest)


class _Seen(Generic[T]):
    """Something beside the entries that is asked for now and then."""

    def __init__(self, ask: Callable[[], Awaitable[Sequence[T]]], *, every: float) -> None:
        self._ask = ask
        self._every = every
        self._at: float | None = None
        self._found: tuple[T, ...] | None = None
        self._kept: tuple[T, ...] | None = None

    async def take_change(self) -> tuple[T, ...] | None:
        """What it is now; `None` if it is as before, or was asked for just now."""
        if self._at is None or monotonic() - self._at >= self._every:
            self._at = monotonic()
            self._found = tuple(await self._ask())
        return None if self._found == self._kept else self._found

    def keep(self) -> None:
        """What was found last is told of: from now on it is as before."""
        self._kept = self._found
