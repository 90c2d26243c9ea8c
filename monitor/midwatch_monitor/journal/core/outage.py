"""Database outages: which errors are temporary, how long to wait, and what a person can do."""

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
"""Parts of messages from a server that will soon accept connections."""
_PASSWORD = (
    "it is taken from the URL (with special characters escaped, such as %40 for @), from "
    "PGPASSWORD or from ~/.pgpass"
)
_ANSWERS = (
    ("password authentication failed", f"is the password right? {_PASSWORD}"),
    ("no password supplied", f"supply one: {_PASSWORD}"),
    ("not permitted to log in", "name another role in the URL, or `ALTER ROLE … LOGIN`"),
    ("permission denied for database", "its owner can `GRANT CONNECT ON DATABASE … TO …`"),
    ("no encryption", "is TLS missing (`?sslmode=require`)? Otherwise see its pg_hba.conf"),
    ("pg_hba.conf", "a line of the server's pg_hba.conf must allow this role from this host"),
    ('role "', "name another role in the URL, or create this one: `createuser --pwprompt`"),
    ('database "', "name another database in the URL, or create this one: `createdb`"),
    ("authentication failed for user", "see the lines for this role in the server's pg_hba.conf"),
    ("does not support SSL", "turn on `ssl` there, or leave `sslmode` out of the URL"),
    ("certificate verify failed", "`sslrootcert` must name the authority that signed it"),
    ("root certificate file", "`sslrootcert` must name the server's certificate authority"),
    ("server certificate for", "name the server in the URL as its certificate does"),
    ("unrecognized configuration parameter", "see the `options` in the URL"),
    ("invalid value for parameter", "see the `options` in the URL"),
    ("unsupported startup parameter", "that is a pooler: name the server itself in the URL"),
    ("invalid response to SSL", "is that PostgreSQL's port? Something else answers there"),
    ("expected authentication request", "is that PostgreSQL's port? Something else answers there"),
    ("invalid connection option", "see what follows the ? in the URL"),
    ("bad value for connect_timeout", "it is a number of seconds"),
    ("invalid port number", "ports are from 1 to 65535"),
    ("invalid sslmode value", "use disable, prefer, require, verify-ca or verify-full"),
)
"""Parts of messages, with advice; the first match counts."""
_AROUND = re.compile(
    r"connection (?:failed|is bad): |connection to server (?:at|on) .*? failed: |FATAL: +|\n"
)


def advice_on(said: str) -> str:
    """Return advice on a refusal that waiting does not change; empty for anything else."""
    if any(each in said for each in _STARTS):
        return ""
    return next((advice for part, advice in _ANSWERS if part in said), "")


def reason_in(said: str) -> str:
    """Return a server's answer without the driver's additions and repetitions.

    The driver asks twice, with TLS and without, and at each address of a host.
    """
    parts = (" ".join(part.split()) for part in _AROUND.split(said))
    return "; ".join(dict.fromkeys(part for part in parts if part))


log = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
"""Default for how long to wait for an outage to end; see `journal.patience_seconds`."""
OPENING_SECONDS = 5.0
"""Longest wait while a journal is being opened: its URL may be wrong."""
STALL_SECONDS = 45.0
"""Shortest time limit for one answer from a server; no wait for a lock takes that long."""
_LONGEST = 2.0
"""Longest pause between two tries, in seconds."""
_PASSING = (
    "08",  # the connection failed
    "40001",  # not serializable
    "40P01",  # deadlock
    "53300",  # too many connections
    "55P03",  # a lock was not obtained in time
    "57P01",  # shutting down
    "57P02",  # crashed
    "57P03",  # starting up
    "25P03",  # idle in a transaction for too long
)
_UNNAMED = {"OperationalError", "ConnectionTimeout"}
"""Driver errors without a code, raised if there is no connection."""


def is_passing(error: BaseException | None) -> bool:
    """Whether a failed operation may succeed if it is repeated.

    True if the connection was lost or could not be made, or another transaction was in the way.
    Never true for SQLite, which waits by itself.
    """
    # SQLite's errors have no `sqlstate`.
    if not isinstance(error, DBAPIError) or not hasattr(error.orig, "sqlstate"):
        return False
    state = sqlstate(error)
    if state is None:
        return error.connection_invalidated or type(error.orig).__name__ in _UNNAMED
    return error.connection_invalidated or state.startswith(_PASSING)


def refusal_in(error: BaseException | None) -> str:
    """Return why a connection was refused and what to do about it; empty if it was not."""
    if not isinstance(error, DBAPIError) or sqlstate(error) is not None:
        return ""
    advice = advice_on(str(error.orig))
    return f"{reason_in(str(error.orig))}; {advice}" if advice else ""


def sqlstate(error: DBAPIError) -> str | None:
    """Return PostgreSQL's code of an error, if it has one."""
    return getattr(error.orig, "sqlstate", None)


class OutageWait:
    """Waits for an outage to end, for some seconds; stops at once when the journal is closed.

    It also waits when connections are refused: the same URL was accepted before, and the cause (a
    password changed in two steps, reloaded permissions, a database being restored) may soon be
    fixed. Work under way is valuable, and failing early would help nobody. This does not apply
    while a journal is being opened: there, `given_up` ends the wait.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ended = Event()
        self._told = False

    def end(self) -> None:
        """End all waiting."""
        self._ended.set()

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def hold(self, work: Callable[[], T], given_up: Callable[[BaseException], bool]) -> T:
        """Run a function; if it fails because of an outage, repeat it until the time is up."""
        try:
            return work()
        except DBAPIError as error:
            if not is_passing(error) or not self.seconds or given_up(error):
                raise
        deadline = time.monotonic() + self.seconds
        return self.again(work, lambda error: time.monotonic() > deadline or given_up(error))

    def again(self, work: Callable[[], T], given_up: Callable[[BaseException], bool]) -> T:
        """Repeat a failed function until it works, or until `given_up` is true for its last error.

        Errors that waiting cannot fix are raised at once.
        """
        import tenacity

        def over(state: tenacity.RetryCallState) -> bool:
            error = state.outcome and state.outcome.exception()
            if error is None or given_up(error) or self.ended:
                return True
            self._log_refusal(error)
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

    def _log_refusal(self, error: BaseException) -> None:
        """Log, once in an outage, that a person must fix something."""
        why = "" if self._told else refusal_in(error)
        if why:
            self._told = True
            log.warning("the journal's database refuses the connection, trying again: %s", why)

    def _sleep(self, seconds: float) -> None:
        self._ended.wait(seconds)
