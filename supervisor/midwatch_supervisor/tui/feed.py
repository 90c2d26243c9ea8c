"""The journal as the console hears it: in batches, never faster than it can draw."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from midwatch_monitor.bus import Bus
from midwatch_monitor.journal import Journal
from midwatch_monitor.words import Attempt, Entry, Task

_BATCH = 5_000
"""Entries of one batch; a long history arrives in several, so that keys are heard between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is new, with the tasks and attempts that are met in it for the first time."""

    entries: tuple[Entry, ...]
    tasks: tuple[Task, ...] = ()
    attempts: tuple[Attempt, ...] = ()


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

    async def batches(self) -> AsyncIterator[Batch]:
        """What the journal says, from its beginning, and then whatever is added."""
        async with self._bus.subscribe() as hints:
            while True:
                page = await self._journal.entries(self._after, run=self._run, limit=_BATCH)
                if page:
                    self._after = page[-1].id
                    yield await self._met(page)
                    await asyncio.sleep(self._pause)
                else:
                    await hints.wait(self._poll_seconds)

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
            tasks=tuple([await self._journal.task(id) for id in tasks]),
            attempts=tuple([await self._journal.attempt(id) for id in attempts]),
        )
