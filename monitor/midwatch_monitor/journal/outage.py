"""An outage of PostgreSQL is ridden out: what failed for its sake is done again for a while."""

import time
from collections.abc import Callable
from threading import Event
from typing import TypeVar

from sqlalchemy.exc import DBAPIError

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
"""How long an outage is waited for, unless `journal.patience_seconds` says otherwise."""
OPENING_SECONDS = 5.0
"""At most how long it is waited for where a journal is opened: its URL may be wrong."""
STALL_SECONDS = 45.0
"""At least how long a server may take for one answer; it lets nobody wait longer for a lock."""
_LONGEST = 2.0
"""Seconds between two tries."""
_PASSING = (
    "08",  # the connection failed
    "40001",  # not serializable
    "40P01",  # deadlock
    "53300",  # too many connections
    "55P03",  # a lock was not got in time
    "57P01",  # shut down
    "57P02",  # crashed
    "57P03",  # starts up
    "25P03",  # idle in a transaction for too long
)
_UNNAMED = {"OperationalError", "ConnectionTimeout"}
"""What the driver raises without a code where there is no connection."""
_STARTS = ("starting up", "shutting down", "recovery", "not yet accepting", "connection slots")
"""In what a server says that will soon let one in."""


def is_passing(error: BaseException | None) -> bool:
    """Whether what the database could not do may be done again, and then be possible.

    The connection was lost or could not be made, or another transaction was in the way. Never of
    SQLite, which waits by itself.
    """
    # What SQLite raises has no such thing.
    if not isinstance(error, DBAPIError) or not hasattr(error.orig, "sqlstate"):
        return False
    state = sqlstate(error)
    if state is None:
        return error.connection_invalidated or type(error.orig).__name__ in _UNNAMED
    return error.connection_invalidated or state.startswith(_PASSING)


def is_refusal(error: BaseException | None) -> bool:
    """Whether a server has answered that it will not let us in: the URL is wrong."""
    text = str(error.orig) if isinstance(error, DBAPIError) else ""
    return "FATAL:" in text and not any(each in text for each in _STARTS)


def sqlstate(error: DBAPIError) -> str | None:
    """PostgreSQL's code of an error, where it has one."""
    return getattr(error.orig, "sqlstate", None)


class Patience:
    """How long an outage is waited for, in seconds; over at once when the journal is closed."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ended = Event()

    def end(self) -> None:
        """Wait no longer."""
        self._ended.set()

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def hold(self, work: Callable[[], T], given_up: Callable[[BaseException], bool]) -> T:
        """Do it, and if it fails as it may in an outage, again, until this is over."""
        try:
            return work()
        except DBAPIError as error:
            if not is_passing(error) or not self.seconds:
                raise
        deadline = time.monotonic() + self.seconds
        return self.again(work, lambda error: time.monotonic() > deadline or given_up(error))

    def again(self, work: Callable[[], T], given_up: Callable[[BaseException], bool]) -> T:
        """Do what has failed until it works, or `given_up` says so of what it raised last.

        What no waiting helps against is raised at once.
        """
        import tenacity

        def over(state: tenacity.RetryCallState) -> bool:
            error = state.outcome and state.outcome.exception()
            return error is None or given_up(error) or self.ended

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_passing),
            wait=tenacity.wait_random_exponential(multiplier=0.05, max=_LONGEST),
            stop=over,
            sleep=self._sleep,
            reraise=True,
        )
        return retrying(work)

    def _sleep(self, seconds: float) -> None:
        self._ended.wait(seconds)
