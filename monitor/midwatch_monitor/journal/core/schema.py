"""The version of a journal's tables: checked at every start, and upgraded if old.

A file is upgraded by whoever opens it. A PostgreSQL database is shared by several machines:
`midwatch db upgrade` upgrades it once, and processes of the previous version continue as long as
the tables permit (`compatibility`). Alembic takes half a second to import, so it is imported only
for old tables: new ones are created all at once.

A migration states in `OLDEST` which revision's Midwatch can still work with the tables after it; if
it states nothing, that does not change. So a change in two halves (first what old and new versions
can both use, later what only new ones can) lets nodes be upgraded one by one.
"""

import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, String, column, insert, inspect, select, table, text, update

from midwatch_monitor.command_hint import command
from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.errors import (
    JournalAccessError,
    JournalCorruptError,
    JournalEmptyError,
    JournalError,
    JournalReadOnlyError,
    JournalTooNewError,
)
from midwatch_monitor.journal.core.engine import (
    Access,
    Store,
    connect,
    database_time,
    explain_errors,
    require_location,
    transaction,
)
from midwatch_monitor.journal.core.outage import OPENING_SECONDS, OutageWait, refusal_in
from midwatch_monitor.journal.core.tables import (
    OLDEST,
    READABLE,
    REVISION,
    compatibility,
    metadata,
    node,
)
from midwatch_monitor.journal.postgres.rights import (
    require_making,
    require_reading,
    require_writing,
)
from midwatch_monitor.records import NodeState

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import Script

_OURS = re.compile(r"\d{4}")
"""The form of our revisions; Alembic's default is twelve random digits."""
_ALEMBIC_VERSION = (
    "CREATE TABLE alembic_version "
    "(version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
"""As Alembic creates it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a database records about its tables."""

    revision: str | None
    """`None` if there are no tables."""
    oldest: str | None
    """The oldest revision whose Midwatch can work with them; `None` if not stated."""
    mask_key: str = ""
    """The key for marks of masked secrets; empty if the tables are older than that."""

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
        """Whether a newer program made them."""
        return self.revision is not None and self.revision > REVISION and not self.strange

    @property
    def strange(self) -> bool:
        """Whether another program that uses the same library made them."""
        return self.revision is not None and not _OURS.fullmatch(self.revision)


def open_store(
    location: str | Path,
    access: Access,
    synchronous: Synchronous = Synchronous.NORMAL,
    patience_seconds: float = 0,
) -> Store:
    """Connect to a journal's database, and check, create or upgrade its tables."""
    store = connect(location, access, synchronous)
    try:
        found = prepare(store, access, min(patience_seconds, OPENING_SECONDS))
        store.keep_private()
        return replace(store, mask_key=_mask_key(store, found))
    except BaseException:
        store.close()
        raise


def _mask_key(store: Store, found: Version) -> bytes:
    """Return the key for marks as stored in the database."""
    try:
        return bytes.fromhex(found.mask_key)
    except (TypeError, ValueError):
        raise JournalCorruptError(
            f"{store.name} is damaged: its key for marks is invalid"
        ) from None


def prepare(store: Store, access: Access = Access.CREATE, patience_seconds: float = 0) -> Version:
    """Create or upgrade the tables of `store`; raise JournalError if that is not possible."""
    with explain_errors(store.name, patience_seconds):
        return OutageWait(patience_seconds).hold(
            lambda: _prepare_store(store, access), lambda error: bool(refusal_in(error))
        )


def require_usable(location: str) -> None:
    """Raise JournalError if no run could use this journal; nothing is created or changed."""
    file = require_location(location)
    if file is None:
        return
    store = connect(file, Access.READ, Synchronous.NORMAL)
    with closing(store), explain_errors(store.name):
        found = version_of(store)
        refuse_foreign_tables(found, store.name)
        if found.newer and not found.current:
            raise _too_new(store.name, found.revision)
        if found.revision is None:
            _refuse_others(store)


def version_of(store: Store) -> Version:
    """Return the version as a reader sees it, without waiting for a writer."""
    with store.reader.connect() as connection:
        if store.connections is not None:
            require_reading(connection, store.name)
        return read_version(connection)


def read_version(connection: Connection) -> Version:
    """Return the version of the tables."""
    look = inspect(connection)
    if not look.has_table("alembic_version"):
        return Version(revision=None, oldest=None)
    query = select(column("version_num", String)).select_from(table("alembic_version"))
    revision = _as_text(connection.execute(query).scalar())
    if revision is None or not look.has_table(compatibility.name):
        return Version(revision=revision, oldest=None)
    # All columns that exist: older tables have fewer.
    query = select(text("*")).select_from(compatibility)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return Version(revision=revision, oldest=None)
    return Version(
        revision=revision, oldest=_as_text(row["oldest"]), mask_key=row.get("mask_key", "")
    )


def _as_text(value: object) -> str | None:
    """Return a value as text: SQLite stores any type in any column."""
    return None if value is None else str(value)


def _prepare_store(store: Store, access: Access) -> Version:
    found = version_of(store)
    if found.current or (access is Access.READ and found.readable):
        _require_rights(store)
        return found
    refuse_foreign_tables(found, store.name)
    if found.newer:
        raise _too_new(store.name, found.revision)
    refusal = _refusal(store, found, access)
    if refusal is not None or store.writing is None:
        raise refusal or _empty_error(store)
    if found.revision is None and store.connections is None:
        _refuse_others(store)
    with transaction(store.writing) as connection:
        # Checked again inside the transaction: another process may have been faster.
        found = read_version(connection)
        if not found.current:
            _bring_up(connection, store.name, found)
            found = read_version(connection)
    return found


def _require_rights(store: Store) -> None:
    """Check permissions that each transaction needs; a file is checked when it is opened."""
    if store.connections is not None and store.writing is not None:
        with store.writing.connect() as connection:
            require_writing(connection, store.name)


def _refusal(store: Store, found: Version, access: Access) -> JournalError | None:
    """Return the error if this access may not create missing tables or upgrade old ones, else
    `None`.
    """
    served = store.connections is not None
    if found.revision is None:
        if access is Access.WRITE and served:
            return _empty_error(store)
        return None
    if served:
        return JournalAccessError(
            f"{store.name} was written by an older Midwatch (its tables are at {found.revision}, "
            f"this one needs {REVISION}): run `{command('db upgrade')}`"
        )
    if access is Access.READ:
        return JournalAccessError(
            f"{store.name} was written by an older Midwatch: `{command('db upgrade')}` upgrades it"
        )
    return None


def _bring_up(connection: Connection, name: str, found: Version) -> None:
    if found.newer:
        raise _too_new(name, found.revision)
    if found.revision is None:
        require_place(connection, name)
        make(connection)
        return
    migrate(connection, name)


def make(connection: Connection) -> None:
    """Create all tables in an empty database, with the revision that the migrations lead to."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(compatibility), {"oldest": OLDEST, "mask_key": secrets.token_hex(32)})
    connection.execute(text(_ALEMBIC_VERSION))
    connection.execute(
        text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": REVISION}
    )


def require_place(connection: Connection, name: str) -> None:
    """Raise JournalError if tables cannot be created beside the existing ones.

    It is JournalCorruptError if another program has tables with our names.
    """
    if taken := _foreign_table(connection):
        raise _foreign_error(name, taken)
    if connection.dialect.name == "postgresql":
        require_making(connection, name)


def refuse_foreign_tables(found: Version, name: str) -> None:
    """Raise JournalCorruptError if the tables are another program's."""
    if found.strange:
        raise _foreign_error(name, "alembic_version")


def _refuse_others(store: Store) -> None:
    """Raise JournalCorruptError for another program's file, before it is changed.

    The first writing connection would change its journal mode.
    """
    with store.reader.connect() as connection:
        # Another process may have created all the tables in the meantime.
        taken = _foreign_table(connection) if read_version(connection).revision is None else ""
    if taken:
        raise _foreign_error(store.name, taken)


def _foreign_table(connection: Connection) -> str:
    """Return a table that is in our way, or an empty string. A file must be ours alone."""
    found = inspect(connection).get_table_names()
    in_the_way = [
        each for each in found if each in metadata.tables or connection.dialect.name == "sqlite"
    ]
    return min(in_the_way, default="")


def _empty_error(store: Store) -> JournalError:
    """Return the error for a database without a journal, where none may be created."""
    with store.reader.connect() as connection:
        taken = _foreign_table(connection)
    if taken:
        return _foreign_error(store.name, taken)
    made = f"`{command('run FILE')}` creates a journal in it"
    if store.connections is not None:
        first = command("node")
        made = f"`{command('db upgrade')}` creates a journal in it, as does the first `{first}`"
    return JournalEmptyError(f"{store.name} is empty: {made}")


def _foreign_error(name: str, taken: str) -> JournalCorruptError:
    return JournalCorruptError(
        f"{name} is not a journal: it is the database of another program (it has a table "
        f"`{taken}`); name another one"
    )


def _too_new(name: str, revision: str | None, known: str = REVISION) -> JournalTooNewError:
    return JournalTooNewError(
        f"{name} was written by a newer Midwatch (its tables are at {revision}, this one "
        f"knows {known}): update Midwatch, or name another journal"
    )


_ALIVE = timedelta(minutes=1)
"""A node that was heard from within this time may still be running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """What an upgrade did to the tables of a journal, or would do."""

    before: str | None
    """The revision before; `None` if there were no tables."""
    after: str
    oldest: str
    """The oldest revision whose Midwatch can work with the tables afterwards."""


def alembic_config(more: Path | None = None) -> "Config":
    """Return Alembic's configuration, which has no file: the migrations are in the package.

    `more` is a folder with further migrations.
    """
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "midwatch_monitor.journal:migrations")
    config.set_main_option("path_separator", "newline")
    if more is not None:
        ours = "midwatch_monitor.journal:migrations/versions"
        config.set_main_option("version_locations", f"{ours}\n{more}")
    return config


def upgrade(store: Store, *, dry_run: bool = False, config: "Config | None" = None) -> Upgrade:
    """Upgrade the tables, or return what that would do.

    Raises JournalError while nodes are running whose Midwatch could not use the new tables, and
    JournalTooNewError for tables newer than this program. Monitors, `midwatch run` and agents with
    their own watch are not registered as nodes, so this does not wait for those that are too old:
    their next write is refused with JournalTooNewError.
    """
    config = config or alembic_config()
    if store.writing is None:
        raise JournalReadOnlyError(f"{store.name} is open for reading only")
    with explain_errors(store.name), transaction(store.writing) as connection:
        if store.connections is not None:
            require_reading(connection, store.name)
        plan = _plan_upgrade(connection, store.name, config)
        if not dry_run and plan.before != plan.after:
            migrate(connection, store.name, config)
    return plan


def migrate(connection: Connection, name: str, config: "Config | None" = None) -> None:
    """Run missing migrations in the connection's transaction."""
    from alembic import command

    config = config or alembic_config()
    found = read_version(connection)
    _require_known(name, found.revision, config)
    if found.revision is None:
        make(connection)
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.execute(update(compatibility), {"oldest": _oldest_revision(config)})


def _plan_upgrade(connection: Connection, name: str, config: "Config") -> Upgrade:
    found = read_version(connection)
    if found.revision is None:
        require_place(connection, name)
    refuse_foreign_tables(found, name)
    _require_known(name, found.revision, config)
    plan = Upgrade(
        before=found.revision,
        after=max(script.revision for script in _migration_scripts(config)),
        oldest=_oldest_revision(config),
    )
    left = _left_behind(connection, plan.oldest) if plan.before != plan.after else []
    if left:
        raise JournalError(
            f"{name} cannot be upgraded yet: {', '.join(left)} could not use the new tables; "
            f"upgrade or stop them first, and wait a minute"
        )
    return plan


def _require_known(name: str, revision: str | None, config: "Config") -> None:
    known = {script.revision for script in _migration_scripts(config)}
    if revision is not None and revision not in known:
        raise _too_new(name, revision, max(known))


def _migration_scripts(config: "Config") -> "Iterator[Script]":
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(config).walk_revisions()


def _oldest_revision(config: "Config") -> str:
    """Return the highest `OLDEST` that a migration states."""
    said = [getattr(each.module, "OLDEST", "") for each in _migration_scripts(config)]
    return max(said)


def _left_behind(connection: Connection, oldest: str) -> list[str]:
    """Return the nodes heard from recently that are too old for the new tables."""
    if not inspect(connection).has_table(node.name):
        return []
    at_work = [each.value for each in NodeState if not each.gone]
    query = select(node.c.name, node.c.revision).where(
        node.c.state.in_(at_work),
        node.c.beat_at > database_time(connection) - _ALIVE,
        node.c.revision < oldest,
    )
    rows = connection.execute(query.order_by(node.c.name, node.c.boot))
    return [f"node {row.name} (made for {row.revision})" for row in rows]
