"""PostgreSQL as the journal's database: making connections, and cutting them.

Imported only for such a journal, since it needs psycopg, which comes with an extra.
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

_LOCK_SECONDS = 30
"""How long the server lets a statement wait for another transaction."""
_IDLE_SECONDS = 10
"""After this long between two statements, the server rolls a transaction back: a process that lost
its connection must not hold the writers' lock forever.
"""
_CONNECTING = {
    "application_name": "midwatch",
    # Overrides PGCLIENTENCODING and the database's own encoding.
    "client_encoding": "utf8",
    "connect_timeout": 5,
    # A silently lost peer is noticed within half a minute, on both sides.
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
# The writers' lock has its own time limit: a role's statement limit would end work that is only
# waiting in line.
_WRITING = {"statement_timeout": 0}
# A function reads a snapshot of one moment, as in SQLite.
_READING = {
    "default_transaction_isolation": "repeatable\\ read",
    "default_transaction_read_only": "on",
}

# Long bodies are compressed when inserted, and the server's default takes several times as long as
# lz4: a third of a commit of a hundred steps. Servers before 14 have no such setting, some are
# built without lz4, and an explicit setting may be deliberate.
_COMPRESSING = """
SELECT set_config(name, 'lz4', false) FROM pg_settings
WHERE name = 'default_toast_compression' AND source = 'default' AND 'lz4' = ANY(enumvals)
"""


def plain(url: URL) -> URL:
    """Return a PostgreSQL URL with the driver that Midwatch uses.

    Raises JournalAccessError for an invalid host name.
    """
    try:
        (url.host or "").encode("idna")
    except UnicodeError:
        raise JournalAccessError(
            f"the journal's host {url.host} is not a valid host name"
        ) from None
    return url.set(drivername="postgresql+psycopg")


class ServerConnections:
    """Creates the connections to the server, and cuts them if it does not answer."""

    def __init__(self, url: URL) -> None:
        self._url = url
        self._lock = Lock()
        self._open: WeakSet[psycopg.Connection] = WeakSet()
        self._closed = Event()

    def reading_engine(self, connections: int) -> Engine:
        """Return an engine for reading."""
        return self._engine(connections, {**_SESSION, **_READING})

    def writing_engine(self) -> Engine:
        """Return an engine for writing, with one connection."""
        engine = self._engine(1, {**_SESSION, **_WRITING})
        event.listen(engine, "connect", _compress)
        return engine

    def cut(self) -> None:
        """Cut all connections: their users fail as if the connection had been lost.

        A proxy or a stopped server may keep a connection open that will never be answered.
        """
        with self._lock:
            for connection in self._open:
                # It may have been closed in the meantime.
                with suppress(OSError, psycopg.Error):
                    _shut_down(connection.fileno())

    def watch(self, stuck: Callable[[], float], limit: float) -> None:
        """Cut all connections whenever the database has not answered for `limit` seconds."""

        def look() -> None:
            while not self._closed.wait(1):
                if stuck() > limit:
                    self.cut()

        Thread(target=look, name="journal-lines", daemon=True).start()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def _engine(self, connections: int, session: Mapping[str, object]) -> Engine:
        ours = [f"-c {name}={value}" for name, value in session.items()]
        # The last option wins: one in the URL may be deliberate.
        options = " ".join([*ours, *_url_values(self._url, "options")])
        known = {key: value for key, value in _CONNECTING.items() if key not in self._url.query}
        engine = create_engine(
            self._url.difference_update_query(["options"]),
            pool_size=connections,
            max_overflow=0,
            connect_args={**known, "options": options},
        )
        event.listen(engine, "connect", self._add_open_connection)
        return engine

    def _add_open_connection(
        self, connection: psycopg.Connection, _entry: ConnectionPoolEntry
    ) -> None:
        with self._lock:
            self._open.add(connection)


def _compress(connection: psycopg.Connection, _entry: ConnectionPoolEntry) -> None:
    connection.execute(_COMPRESSING)
    connection.commit()


def _url_values(url: URL, key: str) -> tuple[str, ...]:
    value = url.query.get(key, ())
    return (value,) if isinstance(value, str) else value


def _shut_down(descriptor: int) -> None:
    """Shut down both directions of a socket; its owner closes it."""
    with socket.socket(fileno=os.dup(descriptor)) as line:
        line.shutdown(socket.SHUT_RDWR)


_KEPT = timedelta(days=1)
"""How long the receipt of a killed process is kept; a live process returns within its patience."""


def _oldest_revision() -> Label[str]:
    """Return the oldest permitted revision, read while the writers' lock is held.

    The statement began before the lock was taken and sees an earlier snapshot, but locking a row
    returns its current state. An upgrade holds the same lock, so none can come in between.
    """
    row = select(tables.compatibility.c.oldest).with_for_update(read=True, key_share=True)
    return row.scalar_subquery().label("oldest")


class Receipts:
    """The receipts of one writer, numbered from 1, one for each transaction."""

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
        ).returning(func.pg_advisory_xact_lock(literal(LOCK)), _oldest_revision())

    def sign(self, connection: Connection, number: int) -> bool:
        """Begin the transaction with that number; return whether it is still to be done.

        Waits for an earlier try that the server is still working on, then for other writers, so
        that ids are committed in order. Raises JournalTooNewError, before anything is written, if
        the tables have been upgraded beyond this program.
        """
        signed = connection.execute(self._sign, {"number": number}).first()
        if signed is None:
            return False
        if signed.oldest is not None and signed.oldest > REVISION:
            raise JournalTooNewError(
                f"{self._name} was upgraded by a newer Midwatch, and this one ({REVISION}) can no "
                f"longer use it: update Midwatch to a version that knows {signed.oldest}"
            )
        return True

    def clear(self, connection: Connection) -> None:
        """Remove this writer's receipt, and those of long-gone processes."""
        table = tables.receipt
        gone = table.c.at < func.now() - _KEPT
        connection.execute(delete(table).where((table.c.writer == self._writer) | gone))
