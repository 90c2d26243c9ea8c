"""One time for a whole fleet: that of the journal's database."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.nodes import Nodes
from midwatch_monitor.recorder import Clock

log = logging.getLogger(__name__)

TUNE_SECONDS = 60.0
"""How often the difference is measured again: the clocks of machines drift, and are set."""
_NOTEWORTHY = timedelta(seconds=5)


class FleetClock:
    """Tells the database's time by this machine's clock and their difference.

    Silence is judged by a monitor of steps that a node has stamped: by two clocks, a healthy
    attempt would look hung.
    """

    def __init__(self, nodes: Nodes, own: Clock) -> None:
        self._nodes = nodes
        self._own = own
        self.ahead = timedelta()
        """How much the database's clock is ahead of ours."""

    def __call__(self) -> datetime:
        return self._own() + self.ahead

    async def tune(self) -> None:
        """Measure the difference. Raises JournalError."""
        asked = self._own()
        theirs = await self._nodes.now()
        answered = self._own()
        # The answer is as old as half of its way here and back.
        self.ahead = theirs - (asked + (answered - asked) / 2)

    async def keep(self) -> None:
        """Measure it again and again, until cancelled."""
        while True:
            await asyncio.sleep(TUNE_SECONDS)
            try:
                await self.tune()
            except JournalError as error:  # the last difference is still the best guess
                log.debug("the clock is not set: %s", error)


@asynccontextmanager
async def fleet_clock(nodes: Nodes, own: Clock) -> AsyncGenerator[FleetClock]:
    """A clock that is kept right. Raises JournalError where it cannot be set at all."""
    clock = FleetClock(nodes, own)
    await clock.tune()
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
