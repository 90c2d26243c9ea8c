"""The version of a journal's tables: looked up at every start, brought up to date when old.

A file is brought up to date by whoever opens it. A database in PostgreSQL has several machines on
it: `midwatch db upgrade` does it once, and processes of the version before go on as long as the
tables say that they can (`compatibility`). Alembic takes half a second to import, so it is
imported only for tables that are old: new ones are made all at once.
"""

import re
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection, String, column, insert, inspect, select, table, text

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.errors import (
    JournalAccessError,
    JournalCorruptError,
    JournalError,
    JournalTooNewError,
)
from midwatch_monitor.journal.core.engine import Access, Store, connect, explaining, transaction
from midwatch_monitor.journal.core.outage import OPENING_SECONDS, Patience, is_refusal
from midwatch_monitor.journal.core.tables import (
    OLDEST,
    READABLE,
    REVISION,
    compatibility,
    metadata,
)
from midwatch_monitor.journal.postgres.rights import (
    require_making,
    require_reading,
    require_writing,
)

_OURS = re.compile(r"\d{4}")
"""How our revisions are called; Alembic calls those of others by twelve random digits."""
_ALEMBIC_VERSION = (
    "CREATE TABLE alembic_version "
    "(version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
"""As Alembic makes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a database says of its tables."""

    revision: str | None
    """`None` where there are none."""
    oldest: str | None
    """The oldest revision whose Midwatch can work with them; `None` where nothing says so."""
    mask_key: str = ""
    """The key of the marks in the place of secrets; empty where they are older than that."""

    @property
    def current(self) -> bool:
        """Whether this program can work with them as they are."""
        if self.revision is None or self.revision == REVISION:
            return self.revision is not None
        return self.newer and self.oldest is not None and self.oldest <= REVISION

    @property
    def readable(self) -> bool:
        """Whether this program can read them as they are."""
        return self.current or READABLE <= (self.revision or "") < REVISION

    @property
    def newer(self) -> bool:
        """Whether a newer program has made them."""
        return self.revision is not None and self.revision > REVISION and not self.strange

    @property
    def strange(self) -> bool:
        """Whether another program has made them, with the same library."""
        return self.revision is not None and not _OURS.fullmatch(self.revision)


def open_store(
    location: str | Path,
    access: Access,
    synchronous: Synchronous = Synchronous.NORMAL,
    patience_seconds: float = 0,
) -> Store:
    """A journal's database, connected and with tables that this program can work with."""
    store = connect(location, access, synchronous)
    try:
        found = prepare(store, access, min(patience_seconds, OPENING_SECONDS))
        return replace(store, mask_key=_key(store, found))
    except BaseException:
        store.close()
        raise


def _key(store: Store, found: Version) -> bytes:
    """The key of the marks, as the database holds it."""
    try:
        return bytes.fromhex(found.mask_key)
    except (TypeError, ValueError):
        raise JournalCorruptError(f"{store.name} is damaged: its key of marks is none") from None


def prepare(store: Store, access: Access = Access.CREATE, patience_seconds: float = 0) -> Version:
    """Make the tables of `store` those of this version, or say why that cannot be."""
    with explaining(store.name, patience_seconds):
        return Patience(patience_seconds).hold(lambda: _prepare(store, access), is_refusal)


def version_of(store: Store) -> Version:
    """What a reader sees, who need not wait for a writer."""
    engine = store.reading or store.writing
    if engine is None:
        return Version(revision=None, oldest=None)
    with engine.connect() as connection:
        if store.lines is not None:
            require_reading(connection, store.name)
        return read_version(connection)


def read_version(connection: Connection) -> Version:
    """The version of the tables."""
    look = inspect(connection)
    if not look.has_table("alembic_version"):
        return Version(revision=None, oldest=None)
    query = select(column("version_num", String)).select_from(table("alembic_version"))
    revision = _said(connection.execute(query).scalar())
    if revision is None or not look.has_table(compatibility.name):
        return Version(revision=revision, oldest=None)
    # Whichever columns there are.
    query = select(text("*")).select_from(compatibility)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return Version(revision=revision, oldest=None)
    return Version(revision=revision, oldest=_said(row["oldest"]), mask_key=row.get("mask_key", ""))


def _said(value: object) -> str | None:
    """A value as text: SQLite holds any type in any column."""
    return None if value is None else str(value)


def _prepare(store: Store, access: Access) -> Version:
    found = version_of(store)
    if found.current or (access is Access.READ and found.readable):
        _require_rights(store)
        return found
    refuse_stranger(found, store.name)
    if found.newer:
        raise _too_new(store.name, found)
    refusal = _refusal(store, found, access)
    if refusal is not None or store.writing is None:
        raise refusal or _empty(store)
    with transaction(store.writing) as connection:
        # Asked again inside the transaction: another process may have been first.
        found = read_version(connection)
        if not found.current:
            _bring_up(connection, store.name, found)
            found = read_version(connection)
    return found


def _require_rights(store: Store) -> None:
    """Ask now for what each transaction would miss; a file says that where it is opened."""
    if store.lines is not None and store.writing is not None:
        with store.writing.connect() as connection:
            require_writing(connection, store.name)


def _refusal(store: Store, found: Version, access: Access) -> JournalError | None:
    """Why tables that are missing or old are left as they are; `None` where they need not be."""
    served = store.lines is not None
    if found.revision is None:
        if access is Access.WRITE and served:
            return _empty(store)
        return None
    if served:
        return JournalAccessError(
            f"{store.name} was written by an older Midwatch (its tables are at {found.revision}, "
            f"this one needs {REVISION}): run `midwatch db upgrade`"
        )
    if access is Access.READ:
        return JournalAccessError(
            f"{store.name} was written by an older Midwatch: `midwatch run` brings it up to date"
        )
    return None


def _bring_up(connection: Connection, name: str, found: Version) -> None:
    if found.newer:
        raise _too_new(name, found)
    if found.revision is None:
        require_place(connection, name)
        make(connection)
        return
    # Only where there is something to do: Alembic.
    from midwatch_monitor.journal.core.upgrade import migrate

    migrate(connection, name)


def make(connection: Connection) -> None:
    """Make all tables in an empty database, stamped with their revision, as the migrations do."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(compatibility), {"oldest": OLDEST, "mask_key": secrets.token_hex(32)})
    connection.execute(text(_ALEMBIC_VERSION))
    connection.execute(
        text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": REVISION}
    )


def require_place(connection: Connection, name: str) -> None:
    """Raise JournalError where tables cannot be made among what is there.

    That is JournalCorruptError where another program has tables with the names of ours.
    """
    if taken := _taken(connection):
        raise _strange(name, taken)
    if connection.dialect.name == "postgresql":
        require_making(connection, name)


def refuse_stranger(found: Version, name: str) -> None:
    """Raise JournalCorruptError where the tables are another program's."""
    if found.strange:
        raise _strange(name, "alembic_version")


def _taken(connection: Connection) -> str:
    """A table that is in the way of ours; empty for none. A file is ours alone."""
    found = inspect(connection).get_table_names()
    in_the_way = [
        each for each in found if each in metadata.tables or connection.dialect.name == "sqlite"
    ]
    return min(in_the_way, default="")


def _empty(store: Store) -> JournalError:
    """What is said of a database without a journal, where none is to be made."""
    engine = store.reading or store.writing
    assert engine is not None  # it was just read
    with engine.connect() as connection:
        taken = _taken(connection)
    if taken:
        return _strange(store.name, taken)
    made = "`midwatch run FILE` makes a journal of it"
    if store.lines is not None:
        made = "`midwatch db upgrade` makes a journal in it, and so does the first `midwatch node`"
    return JournalAccessError(f"{store.name} is empty: {made}")


def _strange(name: str, taken: str) -> JournalCorruptError:
    return JournalCorruptError(
        f"{name} is not a journal: it is the database of another program (it has a table "
        f"`{taken}`); name another"
    )


def _too_new(name: str, found: Version) -> JournalTooNewError:
    return JournalTooNewError(
        f"{name} was written by a newer Midwatch (its tables are at {found.revision}, this one "
        f"knows {REVISION}): update Midwatch, or name another journal"
    )
