"""Whether a process of a fleet reaches its journal: an outage is told once, and so is its end."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from midwatch_monitor.errors import JournalError

log = logging.getLogger(__name__)

T = TypeVar("T")

SLOW_SECONDS = 5.0
"""How long a journal may take for an answer before that is told as an outage."""


class Reach:
    """Told of every question, it tells when answers stay away. Belongs to one event loop."""

    def __init__(self, who: str, journal: str, *, slow_seconds: float = SLOW_SECONDS) -> None:
        """`who` asks `journal`, as people call both."""
        self._who = who
        self._journal = journal
        self._slow_seconds = slow_seconds
        self._since = 0.0
        self.away = False
        """Whether an outage was told, and not its end."""

    async def of(self, answer: Awaitable[T]) -> T:
        """Wait for an answer. Raises what it does."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        slow = f"no answer of {self._journal} for {self._slow_seconds:g} s"
        told = loop.call_later(self._slow_seconds, self._tell, asked, slow)
        try:
            answered = await answer
        except JournalError as error:
            self._tell(asked, str(error))
            raise
        finally:
            told.cancel()
        if self.away:
            self.away = False
            lasted = loop.time() - self._since
            log.info("%s reaches the journal again after %.0f s", self._who, lasted)
        return answered

    def _tell(self, since: float, why: str) -> None:
        if self.away:
            return
        self.away, self._since = True, since
        log.warning("%s does not reach the journal and tries again: %s", self._who, why)
