"""The journal as the console hears it: in batches, never faster than it can draw."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from midwatch_monitor.bus import Bus
from midwatch_monitor.journal import Journal
from midwatch_monitor.words import Attempt, Entry, Task

_BATCH = 500
"""Entries of one batch; a long history arrives in many, so that keys are heard between."""

_FEW = 4
"""More unknown tasks than this are asked for all at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is new, with the tasks and attempts that are met in it for the first time."""

    entries: tuple[Entry, ...]
    tasks: tuple[Task, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    more: bool = False
    """Whether another batch follows at once: what is drawn now would soon be old."""


class Feed:
    """Follows a journal. A bus makes it sooner; without one, the journal is asked by itself."""

    def __init__(
        self,
        journal: Journal,
        *,
        run: int | None,
        bus: Bus,
        poll_seconds: float,
        hertz: float,
    ) -> None:
        """Follow one run, or every run if `run` is `None`, at most `hertz` batches a second."""
        self._journal = journal
        self._run = run
        self._bus = bus
        self._poll_seconds = poll_seconds
        self._pause = 1 / hertz
        self._after = 0
        self._tasks: set[int] = set()
        self._attempts: set[int] = set()
        self.dropped = 0
        """Hints that the bus dropped: what they told of is read all the same, but later."""

    @property
    def journal(self) -> Journal:
        """The journal that is followed."""
        return self._journal

    async def batches(self) -> AsyncGenerator[Batch]:
        """What the journal says, from its beginning, and then whatever is added.

        Nothing is read ahead: who takes the next batch has dealt with the last one.
        """
        async with self._bus.subscribe() as hints:
            while True:
                page = await self._journal.entries(self._after, run=self._run, limit=_BATCH)
                if page:
                    self._after = page[-1].id
                    yield await self._met(page)
                if len(page) == _BATCH:
                    continue
                if page:
                    await asyncio.sleep(self._pause)
                    await hints.wait(0)  # the next look at the journal answers them
                else:
                    await hints.wait(self._poll_seconds)
                self.dropped = hints.dropped

    async def _met(self, page: list[Entry]) -> Batch:
        tasks = dict.fromkeys(entry.task for entry in page if entry.task not in self._tasks)
        attempts = dict.fromkeys(
            entry.attempt
            for entry in page
            if entry.attempt is not None and entry.attempt not in self._attempts
        )
        self._tasks.update(tasks)
        self._attempts.update(attempts)
        return Batch(
            entries=tuple(page),
            tasks=await self._learned(set(tasks)),
            attempts=tuple([await self._journal.attempt(id) for id in attempts]),
            more=len(page) == _BATCH,
        )

    async def _learned(self, tasks: set[int]) -> tuple[Task, ...]:
        if self._run is not None and len(tasks) > _FEW:
            found = await self._journal.tasks(self._run)
            return tuple(task for task in found if task.id in tasks)
        return tuple([await self._journal.task(id) for id in sorted(tasks)])
