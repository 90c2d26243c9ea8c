"""PostgreSQL as the journal's database: how it is connected to, and cut off from.

Imported only for a journal there: it needs psycopg, which comes with an extra.
"""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from threading import Event, Lock, Thread
from uuid import uuid4
from weakref import WeakSet

import psycopg
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Label,
    create_engine,
    delete,
    event,
    func,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.pool import ConnectionPoolEntry

from midwatch_monitor.errors import JournalAccessError, JournalTooNewError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.engine import LOCK
from midwatch_monitor.journal.core.tables import REVISION

NAME = "postgresql"
_DRIVER = "postgresql+psycopg"
_LOCK_SECONDS = 30
"""How long the server lets a statement wait for another transaction."""
_IDLE_SECONDS = 10
"""After this long between two statements a transaction is rolled back by the server: whoever was
cut off must not hold the writers' lock for ever."""
_CONNECTING = {
    "application_name": "midwatch",
    # Whatever PGCLIENTENCODING and the database's own encoding are.
    "client_encoding": "utf8",
    "connect_timeout": 5,
    # A peer that is gone without a word is noticed within half a minute, on both sides.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
_SESSION = {
    "idle_in_transaction_session_timeout": _IDLE_SECONDS * 1000,
    "lock_timeout": _LOCK_SECONDS * 1000,
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 5,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# The writers' lock is waited for by its own limit: one that a role has would end the work of who
# only stands in the line.
_WRITING = {"statement_timeout": 0}
# What a function reads is of one moment, as it is in SQLite.
_READING = {
    "default_transaction_isolation": "repeatable\\ read",
    "default_transaction_read_only": "on",
}

# Long bodies are compressed while they are inserted, and the server's own way takes several times
# as long as lz4, which is a third of a commit of a hundred steps. Servers before 14 have no choice,
# some are built without it, and whoever has chosen may know better.
_COMPRESSING = """
SELECT set_config(name, 'lz4', false) FROM pg_settings
WHERE name = 'default_toast_compression' AND source = 'default' AND 'lz4' = ANY(enumvals)
"""


def plain(url: URL) -> URL:
    """A URL of PostgreSQL with the one driver that we have.

    Raises JournalAccessError for another.
    """
    if url.drivername not in {"postgres", NAME, _DRIVER}:
        raise JournalAccessError(
            f"a journal is a SQLite file or a PostgreSQL database, not {url.drivername}: write "
            "postgresql://ROLE@HOST/DATABASE"
        )
    try:
        (url.host or "").encode("idna")
    except UnicodeError:
        raise JournalAccessError(f"no host can be called {url.host}, as the journal's is") from None
    return url.set(drivername=_DRIVER)


class Lines:
    """The connections to the server: made here, and cut here where nothing comes over them."""

    def __init__(self, url: URL) -> None:
        self._url = url
        self._lock = Lock()
        self._open: WeakSet[psycopg.Connection] = WeakSet()
        self._closed = Event()

    def reading_engine(self, connections: int) -> Engine:
        """Connections that only read."""
        return self._engine(connections, {**_SESSION, **_READING})

    def writing_engine(self) -> Engine:
        """The one connection that writes."""
        engine = self._engine(1, {**_SESSION, **_WRITING})
        event.listen(engine, "connect", _compress)
        return engine

    def cut(self) -> None:
        """End every connection, whoever waits at it: what they do fails as a lost connection does.

        A proxy or a stopped server may keep a connection open over which no answer will come.
        """
        with self._lock:
            for connection in self._open:
                # It may have been closed meanwhile.
                with suppress(OSError, psycopg.Error):
                    _shut_down(connection.fileno())

    def watch(self, stuck: Callable[[], float], limit: float) -> None:
        """Cut by itself where no answer has come for so many seconds, until this is closed."""

        def look() -> None:
            while not self._closed.wait(1):
                if stuck() > limit:
                    self.cut()

        Thread(target=look, name="journal-lines", daemon=True).start()

    def close(self) -> None:
        """Watch no longer."""
        self._closed.set()

    def _engine(self, connections: int, session: Mapping[str, object]) -> Engine:
        ours = [f"-c {name}={value}" for name, value in session.items()]
        # The later option holds: whoever wrote the URL may know better.
        options = " ".join([*ours, *_url_values(self._url, "options")])
        known = {key: value for key, value in _CONNECTING.items() if key not in self._url.query}
        engine = create_engine(
            self._url.difference_update_query(["options"]),
            pool_size=connections,
            max_overflow=0,
            connect_args={**known, "options": options},
        )
        event.listen(engine, "connect", self._remember)
        return engine

    def _remember(self, connection: psycopg.Connection, _entry: ConnectionPoolEntry) -> None:
        with self._lock:
            self._open.add(connection)


def _compress(connection: psycopg.Connection, _entry: ConnectionPoolEntry) -> None:
    connection.execute(_COMPRESSING)
    connection.commit()


def _url_values(url: URL, key: str) -> tuple[str, ...]:
    value = url.query.get(key, ())
    return (value,) if isinstance(value, str) else value


def _shut_down(descriptor: int) -> None:
    """Let both directions of a socket end; it stays its owner's to close."""
    with socket.socket(fileno=os.dup(descriptor)) as line:
        line.shutdown(socket.SHUT_RDWR)


_KEPT = timedelta(days=1)
"""Of a process that was killed; one that lives asks within its patience."""


def _oldest() -> Label[str]:
    """Which revision the tables ask for, once the writers' lock is held.

    The statement was begun before that, and sees what was there then; but who locks a row gets it
    as it is by then. An upgrade holds the same lock, so that none can be between.
    """
    row = select(tables.compatibility.c.oldest).with_for_update(read=True, key_share=True)
    return row.scalar_subquery().label("oldest")


class Receipts:
    """The receipts of one writer. Numbers rise from 1, one for each transaction to be done."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._writer = uuid4().hex
        table = tables.receipt
        row = insert(table).values(writer=self._writer, at=func.now())
        new = row.excluded
        self._sign = row.on_conflict_do_update(
            index_elements=[table.c.writer],
            set_={"number": new.number, "at": new.at},
            where=table.c.number != new.number,
        ).returning(func.pg_advisory_xact_lock(literal(LOCK)), _oldest())

    def sign(self, connection: Connection, number: int) -> bool:
        """Begin the transaction with that number; whether it is still to be done.

        Waits for an earlier try that the server still works at, and then for other writers: ids
        are to be committed in their order. Raises JournalTooNewError where the tables have gone
        beyond this program by then; nothing is written.
        """
        signed = connection.execute(self._sign, {"number": number}).first()
        if signed is None:
            return False
        if signed.oldest is not None and signed.oldest > REVISION:
            raise JournalTooNewError(
                f"{self._name} was brought up to date by a newer Midwatch, which this one "
                f"({REVISION}) cannot work beside: update Midwatch to one that knows "
                f"{signed.oldest}"
            )
        return True

    def clear(self, connection: Connection) -> None:
        """Take away one's own receipt, and those of processes that are long gone."""
        table = tables.receipt
        gone = table.c.at < func.now() - _KEPT
        connection.execute(delete(table).where((table.c.writer == self._writer) | gone))
