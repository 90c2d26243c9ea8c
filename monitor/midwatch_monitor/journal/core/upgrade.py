"""How tables are brought up to date: the migrations, and whom they would leave behind.

A migration says in `OLDEST` which revision's Midwatch can still work with the tables after it;
one that says nothing changes nothing about that. So a change in two halves (first what old and
new both can use, later what only the new can) lets nodes be upgraded one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, func, inspect, select, text, update

from midwatch_monitor.errors import JournalError, JournalReadOnlyError, JournalTooNewError
from midwatch_monitor.journal.core.engine import Store, explaining, transaction
from midwatch_monitor.journal.core.schema import (
    make,
    read_version,
    refuse_stranger,
    require_place,
)
from midwatch_monitor.journal.core.tables import compatibility, node
from midwatch_monitor.journal.postgres.rights import require_reading
from midwatch_monitor.records import NodeState

_ALIVE = timedelta(minutes=1)
"""A node that was heard within this time may still be at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """What was done to the tables of a journal, or would be."""

    before: str | None
    """The revision that was found; `None` where there were no tables."""
    after: str
    oldest: str
    """The oldest revision whose Midwatch can work with them afterwards."""


def alembic_config(more: Path | None = None) -> Config:
    """Where Alembic finds the migrations: inside the package, without a file of its own.

    `more` is a folder with others that go on from these.
    """
    config = Config()
    config.set_main_option("script_location", "midwatch_monitor.journal:migrations")
    config.set_main_option("path_separator", "newline")
    if more is not None:
        ours = "midwatch_monitor.journal:migrations/versions"
        config.set_main_option("version_locations", f"{ours}\n{more}")
    return config


def upgrade(store: Store, *, dry_run: bool = False, config: Config | None = None) -> Upgrade:
    """Bring the tables up to date, or say what that would be.

    Raises JournalError while nodes are at work whose Midwatch could not go on with them, and
    JournalTooNewError where they are newer than what this program knows. Monitors, `midwatch run`
    and agents with a watch of their own have no row that could be counted: those that are too old
    are not waited for, and refused with JournalTooNewError at their next write.
    """
    config = config or alembic_config()
    if store.writing is None:
        raise JournalReadOnlyError(f"{store.name} was opened to be read only")
    with explaining(store.name), transaction(store.writing) as connection:
        if store.lines is not None:
            require_reading(connection, store.name)
        plan = _planned(connection, store.name, config)
        if not dry_run and plan.before != plan.after:
            migrate(connection, store.name, config)
    return plan


def migrate(connection: Connection, name: str, config: Config | None = None) -> None:
    """Run the migrations that are missing, in the transaction of the connection."""
    config = config or alembic_config()
    found = read_version(connection)
    _require_known(name, found.revision, config)
    if found.revision is None:
        make(connection)
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.execute(update(compatibility), {"oldest": _oldest(config)})


def _planned(connection: Connection, name: str, config: Config) -> Upgrade:
    found = read_version(connection)
    if found.revision is None:
        require_place(connection, name)
    refuse_stranger(found, name)
    _require_known(name, found.revision, config)
    head = ScriptDirectory.from_config(config).get_current_head()
    plan = Upgrade(before=found.revision, after=head or "", oldest=_oldest(config))
    left = _left_behind(connection, plan.oldest) if plan.before != plan.after else []
    if left:
        raise JournalError(
            f"{name} cannot be upgraded yet: {', '.join(left)} could not go on with its tables "
            f"then; upgrade or stop them first, and wait a minute"
        )
    return plan


def _require_known(name: str, revision: str | None, config: Config) -> None:
    known = {script.revision for script in _scripts(config)}
    if revision is not None and revision not in known:
        raise JournalTooNewError(
            f"{name} was written by a newer Midwatch (its tables are at {revision}, this one "
            f"knows {max(known)}): update Midwatch, or name another journal"
        )


def _scripts(config: Config) -> Iterator[Script]:
    return ScriptDirectory.from_config(config).walk_revisions()


def _oldest(config: Config) -> str:
    """What the newest migration that says so says."""
    said = [getattr(each.module, "OLDEST", "") for each in _scripts(config)]
    return max(said)


def _left_behind(connection: Connection, oldest: str) -> list[str]:
    """The nodes that were heard of late and are too old for the tables, by their names."""
    if not inspect(connection).has_table(node.name):
        return []
    at_work = (NodeState.UP.value, NodeState.DRAINING.value)
    query = select(node.c.name, node.c.revision).where(
        node.c.state.in_(at_work),
        node.c.beat_at > _now(connection) - _ALIVE,
        node.c.revision < oldest,
    )
    rows = connection.execute(query.order_by(node.c.name, node.c.boot))
    return [f"node {row.name} (made for {row.revision})" for row in rows]


def _now(connection: Connection) -> datetime:
    """By the database's clock, where it is another machine's."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    return connection.execute(select(func.now())).scalar_one()
