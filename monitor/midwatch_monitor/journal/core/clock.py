"""One time for all who share a journal: that of its database, whatever their machines say.

Silence is judged by one process of steps that another has stamped: by two clocks, a healthy
attempt would look hung, and a hung one healthy. SQLite has no clock of its own: who shares such a
file is on one machine.
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
"""How often the difference is measured again: the clocks of machines drift."""
_NOTEWORTHY = timedelta(seconds=5)


def now() -> datetime:
    """The present moment of this machine, in UTC."""
    return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Seconds since some moment; they go on while the machine sleeps, where it can tell."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class JournalClock:
    """Tells the database's time by what passes here since it was asked. It never goes back."""

    def __init__(
        self,
        journal: Journal,
        own: Callable[[], datetime],
        *,
        seconds: Callable[[], float] = monotonic_seconds,
    ) -> None:
        """Set up the clock; it is not right before it is tuned.

        Args:
            journal: Whose database is asked.
            own: This machine's clock, which is read but once: later it may be set.
            seconds: What passes, by a clock that nobody sets.
        """
        self._journal = journal
        self._began = own()
        self._mark = seconds()
        self._seconds = seconds
        self._tuned = False
        self._told = datetime.min.replace(tzinfo=UTC)
        self.ahead = timedelta()
        """How much the database's clock is ahead of ours, as ours was at the beginning."""

    def __call__(self) -> datetime:
        self._told = max(self._told, self._here() + self.ahead)
        return self._told

    def _here(self) -> datetime:
        return self._began + timedelta(seconds=self._seconds() - self._mark)

    async def tune(self) -> bool:
        """Measure the difference; whether the database has a clock. Raises JournalError."""
        asked = self._here()
        theirs = await self._journal.read(_shared_time)
        answered = self._here()
        if theirs is None:
            return False
        # The database looked at its clock somewhere between the question and the answer. A slow
        # answer says little: what was known before stands where it does not contradict that.
        least, most = theirs - answered, theirs - asked
        before = self.ahead if self._tuned else least + (most - least) / 2
        self.ahead = min(max(before, least), most)
        self._tuned = True
        return True

    async def keep(self) -> None:
        """Measure it again and again, until cancelled."""
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
    """The clock that all who share a journal go by, kept right; `own` where that has none.

    Raises JournalError where it cannot be set at all.
    """
    clock = JournalClock(journal, own)
    if not await clock.tune():
        yield own
        return
    if abs(clock.ahead) > _NOTEWORTHY:
        log.warning(
            "this machine's clock is %+.0f s off the database's, which all go by: set it by NTP",
            -clock.ahead.total_seconds(),
        )
    keeping = asyncio.create_task(clock.keep())
    try:
        yield clock
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})


def _shared_time(connection: Connection) -> datetime | None:
    """The database's own time; `None` where it has none."""
    return None if connection.dialect.name == "sqlite" else database_time(connection)
