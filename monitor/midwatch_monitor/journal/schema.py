"""The version of a journal's tables: looked up at every start, brought up to date when old.

A file is brought up to date by whoever opens it. A database in PostgreSQL has several machines on
it: `midwatch db upgrade` does it once, and processes of the version before go on as long as the
tables say that they can (`compatibility`). Alembic takes half a second to import, so it is
imported only where there is something to do.
"""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, String, column, inspect, select, table

from midwatch_monitor.config.settings import Synchronous
from midwatch_monitor.errors import JournalCorruptError, JournalError, JournalTooNewError
from midwatch_monitor.journal.engine import Access, Store, connect, explaining, transaction
from midwatch_monitor.journal.outage import OPENING_SECONDS, Patience, is_refusal
from midwatch_monitor.journal.tables import REVISION, compatibility, metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a database says of its tables."""

    revision: str | None
    """`None` where there are none."""
    oldest: str | None
    """The oldest revision whose Midwatch can work with them; `None` where nothing says so."""

    @property
    def current(self) -> bool:
        """Whether this program can work with them as they are."""
        if self.revision is None or self.revision == REVISION:
            return self.revision is not None
        return self.newer and self.oldest is not None and self.oldest <= REVISION

    @property
    def newer(self) -> bool:
        """Whether a newer program has made them."""
        return self.revision is not None and self.revision > REVISION


def opened(
    location: str | Path,
    access: Access,
    synchronous: Synchronous = Synchronous.NORMAL,
    patience_seconds: float = 0,
) -> Store:
    """A journal's database, connected and with tables that this program can work with."""
    store = connect(location, access, synchronous)
    try:
        prepare(store, access, min(patience_seconds, OPENING_SECONDS))
    except BaseException:
        store.close()
        raise
    return store


def prepare(store: Store, access: Access = Access.CREATE, patience_seconds: float = 0) -> None:
    """Make the tables of `store` those of this version, or say why that cannot be."""
    with explaining(store.name, patience_seconds):
        Patience(patience_seconds).hold(lambda: _prepare(store, access), is_refusal)


def version_of(store: Store) -> Version:
    """What a reader sees, who need not wait for a writer."""
    engine = store.reading or store.writing
    if engine is None:
        return Version(revision=None, oldest=None)
    with engine.connect() as connection:
        return read_version(connection)


def read_version(connection: Connection) -> Version:
    """The version of the tables."""
    look = inspect(connection)
    if not look.has_table("alembic_version"):
        return Version(revision=None, oldest=None)
    query = select(column("version_num", String)).select_from(table("alembic_version"))
    oldest = None
    revision = connection.execute(query).scalar()
    if revision is not None and look.has_table(compatibility.name):
        oldest = connection.execute(select(compatibility.c.oldest)).scalar()
    return Version(revision=revision, oldest=oldest)


def _prepare(store: Store, access: Access) -> None:
    found = version_of(store)
    if found.current:
        return
    if found.newer:
        raise _too_new(store.name, found)
    refusal = _refusal(store, found, access)
    if refusal is not None or store.writing is None:
        raise refusal or JournalCorruptError(f"{store.name} is not a journal")
    with transaction(store.writing) as connection:
        # Asked again inside the transaction: another process may have been first.
        found = read_version(connection)
        if not found.current:
            _bring_up(connection, store.name, found)


def _refusal(store: Store, found: Version, access: Access) -> JournalError | None:
    """Why tables that are missing or old are left as they are; `None` where they need not be."""
    served = store.lines is not None
    if found.revision is None:
        if access is Access.WRITE and served:
            return JournalError(f"there is no journal at {store.name}: nothing has run there yet")
        return None
    if served:
        return JournalError(
            f"{store.name} was written by an older Midwatch (its tables are at {found.revision}, "
            f"this one needs {REVISION}): run `midwatch db upgrade`"
        )
    if access is Access.READ:
        return JournalError(
            f"{store.name} was written by an older Midwatch: `midwatch run` brings it up to date"
        )
    return None


def _bring_up(connection: Connection, name: str, found: Version) -> None:
    # Only where there is something to do: Alembic.
    from midwatch_monitor.journal.upgrading import migrate

    if found.newer:
        raise _too_new(name, found)
    if found.revision is None:
        refuse_strangers(connection, name)
    migrate(connection, name)


def refuse_strangers(connection: Connection, name: str) -> None:
    """Raise JournalCorruptError where another program has tables with the names of ours."""
    taken = sorted(set(inspect(connection).get_table_names()) & set(metadata.tables))
    if taken:
        raise JournalCorruptError(
            f"{name} is the database of another program (it has a table `{taken[0]}`)"
        )


def _too_new(name: str, found: Version) -> JournalTooNewError:
    return JournalTooNewError(
        f"{name} was written by a newer Midwatch (its tables are at {found.revision}, this one "
        f"knows {REVISION}): update Midwatch, or name another journal"
    )
