"""The clock that all users of a journal share: its database's.

One process judges silence from times that another process has recorded: with two clocks, a healthy
attempt could look hung, and a hung one healthy. SQLite has no clock, but all users of its file are
on one machine.
"""

import asyncio
import logging
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.core.engine import database_time
from midwatch_monitor.journal.core.journal import Journal

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]

TUNE_SECONDS = 60.0
"""How often the difference is measured again, since clocks drift."""
_NOTEWORTHY = timedelta(seconds=5)


def now() -> datetime:
    """Return the current time of this machine, in UTC."""
    return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Return seconds from an arbitrary start, including the machine's sleep if possible."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class JournalClock:
    """Derives the database's time from the time elapsed since reading it. Never goes back."""

    def __init__(
        self,
        journal: Journal,
        own: Callable[[], datetime],
        *,
        seconds: Callable[[], float] = monotonic_seconds,
    ) -> None:
        """Set up the clock; it must be tuned before use.

        Args:
            journal: The journal whose database is asked.
            own: This machine's clock. It is read only once, since it may be set later.
            seconds: A monotonic clock.
        """
        self._journal = journal
        self._began = own()
        self._mark = seconds()
        self._seconds = seconds
        self._tuned = False
        self._told = datetime.min.replace(tzinfo=UTC)
        self.ahead = timedelta()
        """How far the database's clock is ahead of ours, as ours was set at the start."""

    def __call__(self) -> datetime:
        self._told = max(self._told, self._local_time() + self.ahead)
        return self._told

    def _local_time(self) -> datetime:
        return self._began + timedelta(seconds=self._seconds() - self._mark)

    async def tune(self) -> bool:
        """Measure the difference; return whether the database has a clock. Raises JournalError."""
        asked = self._local_time()
        theirs = await self._journal.read(_shared_time)
        answered = self._local_time()
        if theirs is None:
            return False
        # The database read its clock between the question and the answer. A slow answer is
        # imprecise: the earlier value is kept if it is consistent with it.
        least, most = theirs - answered, theirs - asked
        before = self.ahead if self._tuned else least + (most - least) / 2
        self.ahead = min(max(before, least), most)
        self._tuned = True
        return True

    async def keep(self) -> None:
        """Measure the difference repeatedly, until canceled."""
        while True:
            await asyncio.sleep(TUNE_SECONDS)
            try:
                await self.tune()
            except JournalError as error:  # the last difference is still the best guess
                log.debug("the clock is not set: %s", error)


@asynccontextmanager
async def journal_clock(
    journal: Journal, own: Callable[[], datetime]
) -> AsyncGenerator[Callable[[], datetime]]:
    """Provide the clock that all users of a journal share, kept tuned; `own` if it has none.

    Raises JournalError if the clock cannot be tuned at all.
    """
    clock = JournalClock(journal, own)
    if not await clock.tune():
        yield own
        return
    if abs(clock.ahead) > _NOTEWORTHY:
        log.warning(
            "this machine's clock is %+.0f s off the database's, which every machine uses: sync it "
            "with NTP",
            -clock.ahead.total_seconds(),
        )
    keeping = asyncio.create_task(clock.keep())
    try:
        yield clock
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})


def _shared_time(connection: Connection) -> datetime | None:
    """Return the database's own time; `None` if it has none."""
    return None if connection.dialect.name == "sqlite" else database_time(connection)
