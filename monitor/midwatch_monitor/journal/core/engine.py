"""Opens a journal's database, and explains its errors."""

import os
import re
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    NullPool,
    StaticPool,
    create_engine,
    event,
    func,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.errors import (
    JournalAccessError,
    JournalCorruptError,
    JournalError,
    JournalFullError,
    JournalReadOnlyError,
    MissingExtraError,
)
from midwatch_monitor.journal.core.outage import is_passing, refusal_in, sqlstate
from midwatch_monitor.journal.postgres.rights import advice_on
from midwatch_monitor.private_files import keep_private, private_file, private_folder

if TYPE_CHECKING:
    from midwatch_monitor.journal.postgres.postgres import ServerConnections


READERS = 4
"""Number of concurrent reading connections."""
BUSY_SECONDS = 10
"""How long a transaction waits for another process."""
FOLDER = ".midwatch"
"""The folder that Midwatch creates for itself, and excludes from git."""
_SLASHES = re.compile(r"(postgres\w*|sqlite|mysql)(\+\w+)?:/?[^/]")
"""A URL with too few slashes, which would otherwise be taken for a file path."""
K = TypeVar("K", int, str)

LOCK = 0x6D696477
"""PostgreSQL's advisory lock for writers of a journal."""


class Access(StrEnum):
    """What a journal is opened for."""

    CREATE = "create"
    """Write, and create it if it does not exist."""
    WRITE = "write"
    """Write to an existing journal."""
    READ = "read"
    """Read an existing journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An open database."""

    name: str
    """The file, or the URL without its password."""
    writing: Engine | None
    """`None` if only reading."""
    reading: Engine | None
    """`None` in memory: there is a single connection, and the writer reads too."""
    connections: "ServerConnections | None" = None
    """The connections to a server; `None` for SQLite."""
    mask_key: bytes = b""
    """The journal's key for marks of masked secrets, if it has one."""

    @property
    def reader(self) -> Engine:
        """The engine for reading; in memory, the writer's."""
        engine = self.reading or self.writing
        assert engine is not None  # no store has neither
        return engine

    def flush(self) -> None:
        """Copy SQLite's log into the file and empty the log: it may still contain erased rows."""
        engine = self.writing
        if engine is None or self.reading is None or engine.dialect.name != "sqlite":
            return
        # Not through SQLAlchemy: it would begin a transaction, and SQLite refuses this in one.
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise JournalError(f"{self.name}: {error}") from error
        finally:
            connection.close()

    def keep_private(self) -> None:
        """Restrict a journal, and SQLite's files beside it, to their owner; older versions did not.

        Call this only for a confirmed journal: other files' permissions are not ours to change.
        """
        if self.connections is not None or self.reading is None:
            return
        path = Path(self.name)
        folder = [path.parent] if path.parent.name == FOLDER else []
        beside = [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm", "-journal")]
        keep_private([*folder, *beside])

    def cut(self) -> None:
        """Cut connections to a server that does not answer; calls waiting for it fail."""
        if self.connections is not None:
            self.connections.cut()

    def close(self) -> None:
        """Close every connection."""
        if self.connections is not None:
            self.connections.close()
        for engine in (self.writing, self.reading):
            if engine is not None:
                engine.dispose()


def connect(location: str | Path, access: Access, synchronous: Synchronous) -> Store:
    """Connect to a journal at a path, `:memory:` or a SQLAlchemy URL, without touching tables."""
    url = url_of(location)
    if not url.drivername.startswith("sqlite"):
        return _server_store(url, access)
    if not url.database or url.database == ":memory:":
        engine = create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
        _set_up_engine(engine, "BEGIN IMMEDIATE", ["PRAGMA foreign_keys=ON"])
        return Store(name=":memory:", writing=engine, reading=None)
    if not url.query.get("uri"):
        _require_file(Path(url.database), access)
    return _sqlite_store(url, access, synchronous)


def require_location(location: str | Path) -> Path | None:
    """Return the file of an existing journal; nothing is created, and no server is contacted.

    Raises JournalError if there can be no journal, for example if its folder cannot be created.
    """
    url = url_of(location)
    if not url.drivername.startswith("sqlite"):
        _server_store(url, Access.READ).close()
        return None
    if not url.database or url.database == ":memory:" or url.query.get("uri"):
        return None
    path = Path(url.database)
    if path.exists():
        _require_file(path, Access.WRITE)
        return path
    above = next(each for each in path.absolute().parents if each.exists())
    if not above.is_dir():
        raise JournalReadOnlyError(f"the folder {path.parent} cannot be created: {above} is a file")
    if not os.access(above, os.W_OK | os.X_OK):
        raise JournalReadOnlyError(f"{above} may not be written by this user: see its permissions")
    return None


def is_url(location: str) -> bool:
    """Whether a location is meant as a URL rather than a file path."""
    return "://" in location or _SLASHES.match(location) is not None


def url_name(url: URL) -> str:
    """Return a database's URL without password and options."""
    return url.set(drivername=url.get_backend_name(), query={}).render_as_string(hide_password=True)


def url_of(location: str | Path) -> URL:
    """Return the URL of a journal at a path or URL. Raises JournalAccessError if it is invalid."""
    if not isinstance(location, str) or not is_url(location):
        return URL.create("sqlite", database=str(location))
    if "://" not in location:
        raise JournalAccessError("the URL of the journal lacks a slash: write postgresql://…")
    unreadable = JournalAccessError(
        "the URL of the journal cannot be read: is its port a number, and is a special "
        "character of its password escaped (%40 for @, %2F for /)?"
    )
    try:
        url = make_url(location)
    except (ArgumentError, ValueError):
        # Their text may contain part of a password.
        raise unreadable from None
    # The host follows the first @; if there is another @, part of a password is in between.
    host = location.partition("@")[2]
    doubtful = "@" in host.partition("?")[0] or "@" in host.partition("=")[0]
    if doubtful and not url.drivername.startswith("sqlite"):
        raise unreadable
    return url


def _server_store(url: URL, access: Access) -> Store:
    if url.drivername not in {"postgres", "postgresql", "postgresql+psycopg"}:
        raise JournalAccessError(
            f"a journal is a SQLite file or a PostgreSQL database, not {url.drivername}: write "
            "its path, or postgresql://ROLE@HOST/DATABASE"
        )
    try:
        from midwatch_monitor.journal.postgres import postgres
    except ImportError as error:  # also raised by a psycopg that does not find libpq
        raise MissingExtraError("a journal in PostgreSQL", "postgres") from error
    url = postgres.plain(url)
    connections = postgres.ServerConnections(url)
    return Store(
        name=url_name(url),
        writing=None if access is Access.READ else connections.writing_engine(),
        reading=connections.reading_engine(READERS),
        connections=connections,
    )


def _require_file(path: Path, access: Access) -> None:
    """Ensure that a SQLite file can be at `path`, or raise the reason."""
    if path.is_dir():
        raise JournalAccessError(
            f"{path} is a folder, not a journal: name a file in it, such as {path / 'journal.db'}"
        )
    if path.exists():
        _require_rights(path, access)
        return
    if access is not Access.CREATE:
        raise JournalAccessError(f"there is no journal at {path}: nothing has run there yet")
    folder = path.parent
    try:
        if folder.name == FOLDER:
            private_folder(folder)
            if not (folder / ".gitignore").exists():
                (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        else:
            folder.mkdir(parents=True, exist_ok=True)  # another process may make it too
    except OSError as error:
        raise JournalReadOnlyError(f"the folder {folder} cannot be created: {error}") from error
    with suppress(OSError):  # SQLite's own error is clearer
        private_file(path)


def _require_rights(path: Path, access: Access) -> None:
    """Raise JournalAccessError if this user lacks the rights for the access."""
    if not os.access(path, os.R_OK):
        raise JournalAccessError(f"{path} may not be read by this user: see its permissions")
    if access is not Access.READ and not os.access(path, os.W_OK):
        raise JournalReadOnlyError(f"{path} may only be read by this user: see its permissions")


def _sqlite_store(url: URL, access: Access, synchronous: Synchronous) -> Store:
    name = url.database or ""
    if access is Access.READ and not url.query.get("uri"):
        path = Path(name).absolute().as_uri()
        url = url.set(database=path, query={"mode": "ro", "uri": "true"})
    pragmas = [f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}", "PRAGMA foreign_keys=ON"]
    reading = create_engine(url, pool_size=READERS)
    if access is Access.READ and not os.access(Path(name).absolute().parent, os.W_OK):
        reading = create_engine(
            url, poolclass=NullPool, creator=partial(_connect_read_only, Path(name))
        )
    _set_up_engine(reading, "BEGIN", pragmas)
    if access is Access.READ:
        return Store(name=name, writing=None, reading=reading)
    writing = create_engine(url, pool_size=1)
    # Overwrite deleted rows: only erasure and merging the text index delete any.
    pragmas += [f"PRAGMA synchronous={synchronous.value}", "PRAGMA secure_delete=ON"]
    _set_up_engine(writing, "BEGIN IMMEDIATE", pragmas)
    event.listen(writing, "connect", _to_wal)
    return Store(name=name, writing=writing, reading=reading)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Connect to a file for reading, in a folder that may not be written.

    SQLite writes beside the file even to read it, unless it is told that nobody changes it. A
    process that does so keeps a log beside it.
    """
    path = path.absolute()
    query = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    return sqlite3.connect(f"{path.as_uri()}?{query}", uri=True, check_same_thread=False)


def _set_up_engine(engine: Engine, begin: str, pragmas: list[str]) -> None:
    """Make SQLAlchemy begin transactions: the driver begins them too late."""

    def on_connect(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        # Rows with invalid UTF-8 must still be readable: `midwatch db check` reports them.
        connection.text_factory = _text
        for pragma in pragmas:
            connection.execute(pragma)

    def on_begin(connection: Connection) -> None:
        execute_in_sqlite(connection, begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)


def _text(stored: bytes) -> str:
    return stored.decode(errors="replace")


def _to_wal(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    """Switch the file to WAL, permanently, so that readers are not blocked by a writer.

    SQLite does not wait here while others open the same new file, so this retries.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


@contextmanager
def transaction(engine: Engine) -> Generator[Connection]:
    """Run one write transaction. Others wait, so that ids are committed in order."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        yield connection


def parts(ids: Iterable[K], most: int = 5_000) -> Iterator[list[K]]:
    """Yield sorted distinct ids or names in batches: a statement accepts only so many values."""
    wanted = sorted(set(ids))
    for first in range(0, len(wanted), most):
        yield wanted[first : first + most]


def database_time(connection: Connection) -> datetime:
    """Return the time of the clock that all users of the database share.

    SQLite has none, but all users of its file are on one machine.
    """
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    return connection.execute(select(func.clock_timestamp())).scalar_one().astimezone(UTC)


@contextmanager
def explain_errors(name: str, waited: float = 0) -> Generator[None]:
    """Raise database errors as errors of the journal called `name`."""
    try:
        yield
    except SQLAlchemyError as error:
        raise journal_error(error, name, waited) from error


def journal_error(error: SQLAlchemyError, name: str, waited: float = 0) -> JournalError:
    """Return the journal error for a database error.

    `waited` is the number of seconds it was retried for, if retrying could help.
    """
    match _error_code(error):
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return JournalCorruptError(
                f"{name} is not a journal, or it is damaged: restore it from a backup, "
                "or move it away to start a new one"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | "25006":
            return JournalReadOnlyError(f"{name} cannot be written: it is read-only here")
        case sqlite3.SQLITE_CANTOPEN:
            return JournalReadOnlyError(
                f"{name} cannot be opened: its folder does not exist or may not be written here"
            )
        case sqlite3.SQLITE_FULL | "53100":
            return JournalFullError(f"there is no space left for {name}")
        case sqlite3.SQLITE_BUSY:
            return JournalError(f"another process has held {name} for {BUSY_SECONDS} s")
        case "55P03":
            return JournalError(f"another process holds {name}{_duration_phrase(waited)}")
        case _:
            return _explain_served(error, name, waited)


def _explain_served(error: SQLAlchemyError, name: str, waited: float) -> JournalError:
    """Explain an error that is not caused by another program or by the disk."""
    reason = _reason(error)
    if _error_code(error) == "42501":
        return JournalAccessError(f"{name}: {reason}; {advice_on(reason)}")
    if _error_code(error) == "57014" and "statement timeout" in reason:
        return JournalError(
            f"{name}: {reason}; `ALTER ROLE … SET statement_timeout = 0` gives this role more time"
        )
    if refusal := refusal_in(error):
        return JournalAccessError(f"{name} cannot be opened: {refusal}")
    if is_passing(error):
        return JournalError(f"{name} could not be reached{_duration_phrase(waited)}: {reason}")
    return JournalError(f"{name}: {reason}")


def _reason(error: SQLAlchemyError) -> str:
    """Return the database's message in one line, without the statement."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return " ".join(str(cause).split())


def _duration_phrase(seconds: float) -> str:
    return f" for {seconds:g} s" if seconds else ""


def is_hopeless(error: Exception) -> bool:
    """Whether a failed transaction should be given up as a whole instead of being split.

    True if SQLite's lock was not obtained, since the transaction has already waited for it.
    """
    return isinstance(error, DBAPIError) and _error_code(error) == sqlite3.SQLITE_BUSY


def is_duplicate(error: DBAPIError) -> bool:
    """Whether a row was refused because its key already exists."""
    extended = getattr(error.orig, "sqlite_errorcode", None)
    taken = (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
    return extended in taken or _error_code(error) == "23505"


def _error_code(error: SQLAlchemyError) -> int | str | None:
    """Return SQLite's primary result code, or another database's SQLSTATE."""
    if not isinstance(error, DBAPIError):
        return None
    extended = getattr(error.orig, "sqlite_errorcode", None)
    if isinstance(extended, int):
        return extended & 0xFF
    return sqlstate(error)


def execute_in_sqlite(
    connection: Connection, statement: str, values: Sequence[object] = ()
) -> sqlite3.Cursor:
    """Execute a frequent statement directly in SQLite, in a transaction begun by SQLAlchemy.

    SQLAlchemy takes several times as long as SQLite itself. Errors are those of SQLAlchemy.
    """
    own = connection.connection.dbapi_connection
    assert isinstance(own, sqlite3.Connection)
    try:
        return own.execute(statement, values)
    except sqlite3.Error as error:
        raise DBAPIError.instance(
            statement, None, error, sqlite3.Error, dialect=connection.dialect
        ) from error
