"""Outages of a database: which errors pass by themselves, how long they are waited for, and what a
person can do about one that does not.
"""

import logging
import re
import time
from collections.abc import Callable
from threading import Event
from typing import TypeVar

from sqlalchemy.exc import DBAPIError

_STARTS = (
    "starting up",
    "shutting down",
    "recovery",
    "not yet accepting",
    "not currently accepting",
    "too many",
    "connection slots",
)
"""In what a server says that will soon let one in."""
_PASSWORD = (
    "it is taken from the URL (its special characters written as in %40 for @), from PGPASSWORD "
    "or from ~/.pgpass"
)
_ANSWERS = (
    ("password authentication failed", f"is the password right? {_PASSWORD}"),
    ("no password supplied", f"give one: {_PASSWORD}"),
    ("not permitted to log in", "name another role in the URL, or `ALTER ROLE … LOGIN`"),
    ("permission denied for database", "its owner can `GRANT CONNECT ON DATABASE … TO …`"),
    ("no encryption", "is it TLS that is missing (`?sslmode=require`)? Else see its pg_hba.conf"),
    ("pg_hba.conf", "a line of the server's pg_hba.conf must let this role in from here"),
    ('role "', "name another role in the URL, or make this one: `createuser --pwprompt`"),
    ('database "', "name another database in the URL, or make this one: `createdb`"),
    ("authentication failed for user", "see the lines for this role in the server's pg_hba.conf"),
    ("does not support SSL", "switch `ssl` on there, or leave `sslmode` out of the URL"),
    ("certificate verify failed", "`sslrootcert` must name the authority that signed for it"),
    ("root certificate file", "`sslrootcert` must name the authority that signed for the server"),
    ("server certificate for", "name the server in the URL as its certificate does"),
    ("unrecognized configuration parameter", "see the `options` in the URL"),
    ("invalid value for parameter", "see the `options` in the URL"),
    ("unsupported startup parameter", "a pooler is between: name the server itself in the URL"),
    ("invalid response to SSL", "is that PostgreSQL's port? Something else answers there"),
    ("expected authentication request", "is that PostgreSQL's port? Something else answers there"),
    ("invalid connection option", "see what stands behind the ? of the URL"),
    ("bad value for connect_timeout", "it is a number of seconds"),
    ("invalid port number", "ports are from 1 to 65535"),
    ("invalid sslmode value", "disable, prefer, require, verify-ca and verify-full are known"),
)
"""In what is said, and what to do then; the first that fits."""
_AROUND = re.compile(
    r"connection (?:failed|is bad): |connection to server (?:at|on) .*? failed: |FATAL: +|\n"
)


def advice_on(said: str) -> str:
    """What to do about an answer that no waiting changes; empty for everything else."""
    if any(each in said for each in _STARTS):
        return ""
    return next((advice for part, advice in _ANSWERS if part in said), "")


def reason_in(said: str) -> str:
    """What a server answered, without what the driver puts around it, and once.

    The driver asks twice, with TLS and without, and each of the addresses of a host.
    """
    parts = (" ".join(part.split()) for part in _AROUND.split(said))
    return "; ".join(dict.fromkeys(part for part in parts if part))


log = logging.getLogger(__name__)

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
    """Whether a server has answered that it lets nobody in so: a URL or a right is wrong."""
    return bool(refusal_in(error))


def refusal_in(error: BaseException | None) -> str:
    """Why a connection was refused and what to do about it; empty where it was not."""
    if not isinstance(error, DBAPIError) or sqlstate(error) is not None:
        return ""
    advice = advice_on(str(error.orig))
    return f"{reason_in(str(error.orig))}; {advice}" if advice else ""


def sqlstate(error: DBAPIError) -> str | None:
    """PostgreSQL's code of an error, where it has one."""
    return getattr(error.orig, "sqlstate", None)


class Patience:
    """How long an outage is waited for, in seconds; over at once when the journal is closed.

    That a server refuses us is waited for as well, though it is said at once: with the same URL
    it let us in before, and what somebody changed there, such as a password in two steps, rights
    that are loaded anew or a database that is being restored, may be right again soon. Work that
    is under way is dear, and failing sooner would help nobody. Where a journal is opened nothing
    of that holds: there `given_up` says so.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ended = Event()
        self._told = False

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
            if not is_passing(error) or not self.seconds or given_up(error):
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
            if error is None or given_up(error) or self.ended:
                return True
            self._tell(error)
            return False

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_passing),
            wait=tenacity.wait_random_exponential(multiplier=0.05, max=_LONGEST),
            stop=over,
            sleep=self._sleep,
            reraise=True,
        )
        done = retrying(work)
        self._told = False
        return done

    def _tell(self, error: BaseException) -> None:
        """Say once in an outage that somebody must change something."""
        why = "" if self._told else refusal_in(error)
        if why:
            self._told = True
            log.warning("the journal's database lets us in no more, trying again: %s", why)

    def _sleep(self, seconds: float) -> None:
        self._ended.wait(seconds)
