"""How far a database has numbered its rows: an id is never given twice, also after an erasure."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Table, func, select, text

from midwatch_monitor.journal.core import tables

NUMBERED = (
    *(tables.project, tables.run, tables.task, tables.attempt, tables.entry, tables.escalation),
    tables.erasure,
)
"""The tables whose rows the database numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far one table is."""

    last: int
    """The last id that was given; 0 for none."""
    highest: int
    """The highest that stands there."""


def marks(connection: Connection) -> dict[str, Mark]:
    """How far each numbered table is."""
    return {table.name: _mark(connection, table) for table in NUMBERED}


def _mark(connection: Connection, table: Table) -> Mark:
    highest = connection.execute(select(func.max(table.c.id))).scalar() or 0
    if connection.dialect.name == "sqlite":
        query = "SELECT seq FROM sqlite_sequence WHERE name = :name"
        last = connection.execute(text(query), {"name": table.name}).scalar() or 0
    else:
        # Only the sequence itself knows whether its first number was given.
        sequence = connection.execute(_SEQUENCE, {"name": table.name}).scalar_one()
        query = f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}"
        last = connection.execute(text(query)).scalar_one()
    return Mark(last=last, highest=highest)


def go_on_after(connection: Connection, last: Mapping[str, int]) -> None:
    """Let each table's next id be above that."""
    rows = [{"name": name, "last": number} for name, number in last.items() if number]
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), rows)
        query = "INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"
        connection.execute(text(query), rows)
    else:
        query = "SELECT setval(pg_get_serial_sequence(:name, 'id'), :last)"
        for row in rows:
            connection.execute(text(query), row)


_SEQUENCE = text("SELECT pg_get_serial_sequence(:name, 'id')")
