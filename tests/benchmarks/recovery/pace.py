"""The pace of simulated workers: a model thinks for seconds, in which the watch has come to a word.

A script answers at once. How far a monitor and a supervisor in the same process have got by then
would be luck, and with it the step at which a word arrives. So an answer waits until they are done
with all that was said so far.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property
from typing import Concatenate, ParamSpec, TypeVar

import anyio
from sqlalchemy import Connection

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Commit, Entry
from midwatch_monitor.state.run import OPEN_QUESTION_KINDS, RunState

P = ParamSpec("P")
T = TypeVar("T")

_TURNS = 20
"""Turns of the event loop in which nobody asks the journal: then nobody in the process will."""
_AGAIN_SECONDS = 0.01
_MOST_SECONDS = 60.0
"""How long a supervisor is waited for; a real model may take its time."""


class PacedJournal(Journal):
    """A journal that knows whether it is asked anything just now."""

    _asked = 0
    _after = 0

    @cached_property
    def _agenda(self) -> RunState:
        return RunState()

    async def write(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Write, and be busy meanwhile."""
        with self._busy():
            return await super().write(work, *args, **kwargs)

    async def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Read, and be busy meanwhile."""
        with self._busy():
            return await super().read(work, *args, **kwargs)

    async def commit(self, commit: Commit) -> tuple[Entry, ...]:
        """Commit, and be busy meanwhile."""
        with self._busy():
            return await super().commit(commit)

    @contextmanager
    def _busy(self) -> Generator[None]:
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1

    async def quiet(self) -> None:
        """Wait until nobody in this process reads or writes."""
        calm = 0
        while calm < _TURNS:
            await asyncio.sleep(_AGAIN_SECONDS if self._asked else 0)
            calm = 0 if self._asked else calm + 1

    async def answered(self) -> None:
        """Wait until everybody is quiet, and no question to a supervisor is open."""
        with anyio.move_on_after(_MOST_SECONDS):
            # Nothing tells of an answer that has not come yet.
            while (  # noqa: ASYNC110
                await self._new() or self._agenda.escalations or self._agenda.requests
            ):
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _new(self) -> bool:
        """Whether anything was said since the last look that may be a question or an answer."""
        await self.quiet()
        page = await self.entries(self._after, kinds=OPEN_QUESTION_KINDS)
        for entry in page:
            if entry.id > self._after:  # else another worker has read it meanwhile
                self._agenda.fold(entry)
                self._after = entry.id
        return bool(page)
