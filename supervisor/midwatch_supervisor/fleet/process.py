"""One process of a fleet: its name, its start, and whether it reaches the journal."""

import asyncio
import logging
import platform
import re
import secrets
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from midwatch_monitor.bus.payload import is_topic_name
from midwatch_monitor.errors import JournalError, UsageError
from midwatch_monitor.records import holder_of

log = logging.getLogger(__name__)

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One start of a process of a fleet."""

    name: str
    boot: str
    """Differs at every start."""

    @property
    def holder(self) -> str:
        """Name under which it holds leases and takes turns."""
        return holder_of(self.name, self.boot)


def identity(name: str | None) -> Identity:
    """Return a new start under this name, or the machine's. Raise UsageError for a bad name."""
    if name is None:
        name = _OTHER.sub("-", platform.node()).strip("-._")[:80] or "node"
    if not is_topic_name(name):
        raise UsageError(f"a name may have letters (a-z, A-Z), digits and . _ -, not {name!r}")
    return Identity(name=name, boot=secrets.token_hex(4))


T = TypeVar("T")

SLOW_SECONDS = 5.0
"""Seconds without an answer from the journal that count as an outage."""


class JournalOutageLog:
    """Logs outages of the journal. Belongs to one event loop."""

    def __init__(self, who: str, journal: str, *, slow_seconds: float = SLOW_SECONDS) -> None:
        """Log that `who` cannot reach `journal`."""
        self._who = who
        self._journal = journal
        self._slow_seconds = slow_seconds
        self._since = 0.0
        self.away = False
        """Whether an outage was logged, and its end was not."""

    async def of(self, answer: Awaitable[T]) -> T:
        """Return an answer when it comes. Raises what it raises."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        slow = f"no answer from {self._journal} for {self._slow_seconds:g} s"
        told = loop.call_later(self._slow_seconds, self._log_outage, asked, slow)
        try:
            answered = await answer
        except JournalError as error:
            self._log_outage(asked, str(error))
            raise
        finally:
            told.cancel()
        if self.away:
            self.away = False
            lasted = loop.time() - self._since
            log.info("%s reached the journal again after %.0f s", self._who, lasted)
        return answered

    def _log_outage(self, since: float, why: str) -> None:
        if self.away:
            return
        self.away, self._since = True, since
        log.warning("%s cannot reach the journal and will try again: %s", self._who, why)
