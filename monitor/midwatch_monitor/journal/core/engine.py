"""How a journal's database is opened, and what its errors mean."""

import os
import re
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import (
    URL,
    Connection,
    Engine,
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
from midwatch_monitor.private import keep_private, private_file, private_folder

if TYPE_CHECKING:
    from midwatch_monitor.journal.postgres.postgres import Lines


READERS = 4
"""Connections that read at the same time."""
BUSY_SECONDS = 10
"""How long a transaction waits for another process."""
FOLDER = ".midwatch"
"""The folder that Midwatch makes for itself, and keeps out of git."""
_SLASHES = re.compile(r"(postgres\w*|sqlite|mysql)(\+\w+)?:/?[^/]")
"""A URL that lacks slashes; it would be taken for the path of a file."""
LOCK = 0x6D696477
"""PostgreSQL's advisory lock of the journal's writers."""


class Access(StrEnum):
    """What a journal is opened for."""

    CREATE = "create"
    """To write; made if there is none."""
    WRITE = "write"
    """To write what exists."""
    READ = "read"
    """Only to read what exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An open database."""

    name: str
    """What people call it: the file, or the URL without its password."""
    writing: Engine | None
    """`None` where it is only read."""
    reading: Engine | None
    """`None` in memory: there is one connection, and the writer reads too."""
    lines: "Lines | None" = None
    """The connections to a server; `None` in SQLite."""
    mask_key: bytes = b""
    """The journal's key of the marks in the place of secrets, where it has one."""

    @property
    def reader(self) -> Engine:
        """What is read by: the writer's in memory."""
        engine = self.reading or self.writing
        assert engine is not None  # no store has neither
        return engine

    def flush(self) -> None:
        """Let SQLite write its log into the file, and empty it: old pages stand there too."""
        engine = self.writing
        if engine is None or self.reading is None or engine.dialect.name != "sqlite":
            return
        # Not through SQLAlchemy: it would begin a transaction, in which SQLite refuses this.
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise JournalError(f"{self.name}: {error}") from error
        finally:
            connection.close()

    def keep_private(self) -> None:
        """A journal of an older Midwatch, and what SQLite keeps beside it, could be read by others.

        Only of what is known to be a journal: the rights to other files are not ours to change.
        """
        if self.lines is not None or self.reading is None:
            return
        path = Path(self.name)
        folder = [path.parent] if path.parent.name == FOLDER else []
        beside = [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm", "-journal")]
        keep_private([*folder, *beside])

    def cut(self) -> None:
        """End the connections to a server that does not answer; those who wait there fail."""
        if self.lines is not None:
            self.lines.cut()

    def close(self) -> None:
        """Close every connection."""
        if self.lines is not None:
            self.lines.close()
        for engine in (self.writing, self.reading):
            if engine is not None:
                engine.dispose()


def connect(location: str | Path, access: Access, synchronous: Synchronous) -> Store:
    """Connect to a journal at a path, `:memory:` or a SQLAlchemy URL; touches no table."""
    url = url_of(location)
    if not url.drivername.startswith("sqlite"):
        return _elsewhere(url, access)
    if not url.database or url.database == ":memory:":
        engine = create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
        _prepare(engine, "BEGIN IMMEDIATE", ["PRAGMA foreign_keys=ON"])
        return Store(name=":memory:", writing=engine, reading=None)
    if not url.query.get("uri"):
        _require(Path(url.database), access)
    return _sqlite(url, access, synchronous)


def require_location(location: str | Path) -> Path | None:
    """The file of a journal that is there already; nothing is made, and no server is asked.

    Raises JournalError where none can be: the folder of a new one must be one that can be made.
    """
    url = url_of(location)
    if not url.drivername.startswith("sqlite"):
        _elsewhere(url, Access.READ).close()
        return None
    if not url.database or url.database == ":memory:" or url.query.get("uri"):
        return None
    path = Path(url.database)
    if path.exists():
        _require(path, Access.WRITE)
        return path
    above = next(each for each in path.absolute().parents if each.exists())
    if not above.is_dir():
        raise JournalReadOnlyError(f"the folder {path.parent} cannot be made: {above} is a file")
    if not os.access(above, os.W_OK | os.X_OK):
        raise JournalReadOnlyError(f"{above} may not be written by this user: see its permissions")
    return None


def is_url(location: str) -> bool:
    """Whether it was meant to be a URL, not the path of a file."""
    return "://" in location or _SLASHES.match(location) is not None


def url_name(url: URL) -> str:
    """What people call a database: the URL without password and options."""
    return url.set(query={}).render_as_string(hide_password=True)


def url_of(location: str | Path) -> URL:
    """The URL of a journal at a path or a URL. Raises JournalAccessError for one that is none."""
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
        # Their text may have a part of a password in it.
        raise unreadable from None
    # After the first @ comes the host: where another follows, a part of a password stands there.
    host = location.partition("@")[2]
    doubtful = "@" in host.partition("?")[0] or "@" in host.partition("=")[0]
    if doubtful and not url.drivername.startswith("sqlite"):
        raise unreadable
    return url


def _elsewhere(url: URL, access: Access) -> Store:
    if not url.drivername.startswith("postgres"):
        raise JournalAccessError(
            f"a journal is a SQLite file or a PostgreSQL database, not {url.drivername}: write "
            "its path, or postgresql://ROLE@HOST/DATABASE"
        )
    try:
        from midwatch_monitor.journal.postgres import postgres
    except ImportError as error:  # also of a psycopg that finds no library of PostgreSQL
        raise MissingExtraError("a journal in PostgreSQL", "postgres") from error
    url = postgres.plain(url)
    lines = postgres.Lines(url)
    return Store(
        name=url_name(url),
        writing=None if access is Access.READ else lines.writing_engine(),
        reading=lines.reading_engine(READERS),
        lines=lines,
    )


def _require(path: Path, access: Access) -> None:
    """See to it that a SQLite file can stand at `path`, or say why it cannot."""
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
        raise JournalReadOnlyError(f"the folder {folder} cannot be made: {error}") from error
    with suppress(OSError):  # SQLite says better what is wrong there
        private_file(path)


def _require_rights(path: Path, access: Access) -> None:
    """Raise JournalAccessError where this user may not do with a file what it is opened for."""
    if not os.access(path, os.R_OK):
        raise JournalAccessError(f"{path} may not be read by this user: see its permissions")
    if access is not Access.READ and not os.access(path, os.W_OK):
        raise JournalReadOnlyError(f"{path} may only be read by this user: see its permissions")


def _sqlite(url: URL, access: Access, synchronous: Synchronous) -> Store:
    name = url.database or ""
    if access is Access.READ and not url.query.get("uri"):
        path = Path(name).absolute().as_uri()
        url = url.set(database=path, query={"mode": "ro", "uri": "true"})
    pragmas = [f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}", "PRAGMA foreign_keys=ON"]
    reading = create_engine(url, pool_size=READERS)
    _prepare(reading, "BEGIN", pragmas)
    if access is Access.READ:
        return Store(name=name, writing=None, reading=reading)
    writing = create_engine(url, pool_size=1)
    # What is deleted is overwritten: only erasure deletes, and the merging of the words' index.
    pragmas += [f"PRAGMA synchronous={synchronous.value}", "PRAGMA secure_delete=ON"]
    _prepare(writing, "BEGIN IMMEDIATE", pragmas)
    event.listen(writing, "connect", _to_wal)
    return Store(name=name, writing=writing, reading=reading)


def _prepare(engine: Engine, begin: str, pragmas: list[str]) -> None:
    """Let SQLAlchemy, not the driver, begin transactions: the driver's own begin too late."""

    def on_connect(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        # Half a character must not stop whoever reads the row: `midwatch db check` names it.
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
    """Let readers go on while one writes; the file keeps this.

    SQLite does not wait here while others open the same new file: it must be asked again.
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
    """One write transaction. Others wait for it, so that ids are committed in their order."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        yield connection


def parts(ids: Iterable[int], most: int = 5_000) -> Iterator[list[int]]:
    """Ids in their order, without doubles, some at a time: a statement takes so many values."""
    wanted = sorted(set(ids))
    for first in range(0, len(wanted), most):
        yield wanted[first : first + most]


def database_time(connection: Connection) -> datetime:
    """The present moment, by the clock that all who share the database go by.

    SQLite has none of its own: who shares such a file is on one machine.
    """
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    return connection.execute(select(func.clock_timestamp())).scalar_one().astimezone(UTC)


@contextmanager
def explain_errors(name: str, waited: float = 0) -> Generator[None]:
    """Raise what the database raises as what it means for the journal called `name`."""
    try:
        yield
    except SQLAlchemyError as error:
        raise journal_error(error, name, waited) from error


def journal_error(error: SQLAlchemyError, name: str, waited: float = 0) -> JournalError:
    """What an error of the database means for the journal called `name`.

    `waited` says for how many seconds it has been tried, where that may help.
    """
    match _code(error):
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return JournalCorruptError(
                f"{name} is not a journal, or it is damaged: restore it from a backup, "
                "or move it away to start a new one"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | "25006":
            return JournalReadOnlyError(f"{name} cannot be written: it is read-only here")
        case sqlite3.SQLITE_CANTOPEN:
            return JournalReadOnlyError(
                f"{name} cannot be opened: its folder does not exist or may not be written"
            )
        case sqlite3.SQLITE_FULL | "53100":
            return JournalFullError(f"there is no space left for {name}")
        case sqlite3.SQLITE_BUSY:
            return JournalError(f"another process has held {name} for {BUSY_SECONDS} s")
        case "55P03":
            return JournalError(f"another process holds {name}{_for(waited)}")
        case _:
            return _explain_served(error, name, waited)


def _explain_served(error: SQLAlchemyError, name: str, waited: float) -> JournalError:
    """What an error means that no other program or disk is the cause of."""
    reason = _reason(error)
    if _code(error) == "42501":
        return JournalAccessError(f"{name}: {reason}; {advice_on(reason)}")
    if _code(error) == "57014" and "statement timeout" in reason:
        return JournalError(
            f"{name}: {reason}; `ALTER ROLE … SET statement_timeout = 0` gives this role more time"
        )
    if refusal := refusal_in(error):
        return JournalAccessError(f"{name} cannot be opened: {refusal}")
    if is_passing(error):
        return JournalError(f"{name} could not be reached{_for(waited)}: {reason}")
    return JournalError(f"{name}: {reason}")


def _reason(error: SQLAlchemyError) -> str:
    """What the database said, in one line and without the statement."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return " ".join(str(cause).split())


def _for(seconds: float) -> str:
    return f" for {seconds:g} s" if seconds else ""


def is_hopeless(error: Exception) -> bool:
    """Whether a failed transaction is to be given up as a whole, not tried again in parts.

    A lock has been waited for already.
    """
    return isinstance(error, DBAPIError) and _code(error) == sqlite3.SQLITE_BUSY


def is_duplicate(error: DBAPIError) -> bool:
    """Whether a row was refused because its key is taken."""
    extended = getattr(error.orig, "sqlite_errorcode", None)
    taken = (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
    return extended in taken or _code(error) == "23505"


def _code(error: SQLAlchemyError) -> int | str | None:
    """SQLite's primary result code, or the SQLSTATE of another database."""
    if not isinstance(error, DBAPIError):
        return None
    extended = getattr(error.orig, "sqlite_errorcode", None)
    if isinstance(extended, int):
        return extended & 0xFF
    return sqlstate(error)


def execute_in_sqlite(
    connection: Connection, statement: str, values: Sequence[object] = ()
) -> sqlite3.Cursor:
    """Have SQLite do one statement of every commit, in a transaction that SQLAlchemy has begun.

    SQLAlchemy takes several times as long as SQLite itself. Errors are raised as it raises them.
    """
    own = connection.connection.dbapi_connection
    if not isinstance(own, sqlite3.Connection):
        raise TypeError("the connection does not lead to SQLite")
    try:
        return own.execute(statement, values)
    except sqlite3.Error as error:
        raise DBAPIError.instance(
            statement, None, error, sqlite3.Error, dialect=connection.dialect
        ) from error
