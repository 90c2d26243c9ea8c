"""Whether a journal's database is in order."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, ForeignKey, Table, func, select, text

from midwatch_monitor.journal.admin.inspection import Inspection
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.columns import metadata
from midwatch_monitor.journal.core.identity import marks
from midwatch_monitor.journal.core.schema import read_version
from midwatch_monitor.journal.core.tables import REVISION

_LISTED = 20
"""Attempts that are named for one kind of problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What was found."""

    revision: str | None
    oldest: str | None
    counts: dict[str, int]
    """Rows by table."""
    last: int
    """The newest entry's id; 0 where there is none."""
    latest: datetime | None
    """When it was written."""
    problems: tuple[str, ...]
    """A sentence each; none where all is well."""
    newer: int = 0
    """Entries of kinds that only a newer Midwatch knows."""


def check(connection: Connection) -> Health:
    """Look through all of a journal: every row is read, some at a time."""
    version = read_version(connection)
    if not version.current:
        at = version.revision or "nothing"
        problem = f"its tables are at {at}, and this Midwatch works with {REVISION}: " + (
            "update it" if version.newer else "see `midwatch db upgrade`"
        )
        return Health(
            revision=version.revision,
            oldest=version.oldest,
            counts={},
            last=0,
            latest=None,
            problems=(problem,),
        )
    last, latest = _newest(connection)
    inspection = Inspection()
    inspection.look_at(connection)
    return Health(
        revision=version.revision,
        oldest=version.oldest,
        counts={table.name: _count(connection, table) for table in metadata.sorted_tables},
        last=last,
        latest=latest,
        problems=(*_problems(connection), *inspection.problems),
        newer=inspection.newer,
    )


def _problems(connection: Connection) -> Iterator[str]:
    yield from _damage(connection)
    yield from _gaps(connection)
    yield from _holes(connection)
    yield from _numbers(connection)
    for table in metadata.sorted_tables:
        for column in table.columns:
            for key in column.foreign_keys:
                yield from _orphans(connection, table, key)


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _newest(connection: Connection) -> tuple[int, datetime | None]:
    entry = tables.entry
    query = select(entry.c.id, entry.c.at).order_by(entry.c.id.desc()).limit(1)
    row = connection.execute(query).first()
    return (0, None) if row is None else (row.id, row.at)


def _damage(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for said in connection.execute(text("PRAGMA quick_check(5)")).scalars():
            if said != "ok":
                yield f"the file is damaged: {said}"


def _gaps(connection: Connection) -> Iterator[str]:
    """The recorder numbers what it writes of an attempt from 1, and leaves out none."""
    entry = tables.entry
    many, first, last = (
        func.count(entry.c.seq).label("many"),
        func.min(entry.c.seq).label("first"),
        func.max(entry.c.seq).label("last"),
    )
    query = (
        select(entry.c.attempt, many, first, last)
        .where(entry.c.attempt.is_not(None), entry.c.seq.is_not(None))
        .group_by(entry.c.attempt)
        .having((first != 1) | (last != many))
        .order_by(entry.c.attempt)
        .limit(_LISTED)
    )
    for row in connection.execute(query):
        yield (
            f"the sequence of attempt {row.attempt} has gaps: {row.many} entries from {row.first} "
            f"to {row.last}"
        )


def _holes(connection: Connection) -> Iterator[str]:
    """A history is numbered from 0, and whoever goes on with it needs all of it."""
    message = tables.message
    many, last = func.count().label("many"), func.max(message.c.idx).label("last")
    query = (
        select(message.c.attempt, many, last)
        .group_by(message.c.attempt)
        .having(last != many - 1)
        .order_by(message.c.attempt)
        .limit(_LISTED)
    )
    for row in connection.execute(query):
        yield (
            f"the history of attempt {row.attempt} has gaps: {row.many} messages, the last is "
            f"number {row.last}"
        )


def _numbers(connection: Connection) -> Iterator[str]:
    for name, mark in marks(connection).items():
        if mark.last < mark.highest:
            yield (
                f"the next id of {name} would be taken: {mark.last} was given last, "
                f"{mark.highest} stands there"
            )


def _orphans(connection: Connection, table: Table, key: ForeignKey) -> Iterator[str]:
    wanted = key.column.table
    parent = wanted.alias("parent")
    query = (
        select(func.count())
        .select_from(table.outerjoin(parent, parent.c[key.column.name] == key.parent))
        .where(key.parent.is_not(None), parent.c[key.column.name].is_(None))
    )
    many = connection.execute(query).scalar_one()
    if many:
        yield f"{many} rows in `{table.name}` name a row of `{wanted.name}` that is not there"
