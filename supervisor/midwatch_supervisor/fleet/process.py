"""One process of a fleet: its name, which start it is, and whether it reaches the journal."""

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
    """Another one at every start."""

    @property
    def holder(self) -> str:
        """What stands in leases, and as whom turns are taken."""
        return holder_of(self.name, self.boot)


def identity(name: str | None) -> Identity:
    """A new start under a name, or under the machine's. Raises UsageError for a bad name."""
    if name is None:
        name = _OTHER.sub("-", platform.node()).strip("-._")[:80] or "node"
    if not is_topic_name(name):
        raise UsageError(
            f"a name may have letters, digits, dots, underscores and dashes, not {name!r}"
        )
    return Identity(name=name, boot=secrets.token_hex(4))


T = TypeVar("T")

SLOW_SECONDS = 5.0
"""How long a journal may take for an answer before that is told as an outage."""


class JournalOutageLog:
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
