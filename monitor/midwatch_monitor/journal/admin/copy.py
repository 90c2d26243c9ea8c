"""Copies a journal into another database, completely or not at all."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from shlex import quote
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    bindparam,
    func,
    insert,
    select,
    text,
    update,
)

from midwatch_monitor.errors import JournalCorruptError, JournalError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import read
from midwatch_monitor.journal.core.engine import Store, explain_errors, transaction
from midwatch_monitor.journal.core.schema import migrate, read_version, require_place
from midwatch_monitor.journal.core.tables import NUMBERED, REVISION, metadata
from midwatch_monitor.journal.learned import facts, lessons, search
from midwatch_monitor.journal.learned.search import TextIndex, Wording
from midwatch_monitor.records import Fact, Lesson

COPIED = tuple(
    table
    for table in metadata.sorted_tables
    if table.name not in {tables.compatibility.name, tables.receipt.name}
)
"""The tables to copy, each after those it refers to. The other two are specific to a database."""
_BATCH = 500
"""Number of rows read and written at a time."""
_SPACE = 2**256

CopyProgress = Callable[[str, int], None]
"""Called with the table being copied, and the number of rows copied."""


@dataclass(slots=True)
class _Content:
    """A table's row count, and a digest of its rows that ignores their order."""

    rows: int = 0
    digest: int = 0

    def add(self, row: Row[Any]) -> None:
        said = hashlib.sha256(repr(tuple(row)).encode("utf-8", "surrogatepass")).digest()
        self.rows += 1
        self.digest = (self.digest + int.from_bytes(said, "big")) % _SPACE


def contents(store: Store) -> dict[str, int]:
    """Return the number of rows of each table that would be copied."""
    with explain_errors(store.name), _open_to_read(store) as connection:
        _require_current(connection, store.name)
        return {table.name: count_rows(connection, table) for table in COPIED}


def require_room(store: Store) -> None:
    """Raise JournalError if the target already contains something."""
    with explain_errors(store.name), _open_to_read(store) as connection:
        _require_empty(connection, store.name)


def copy(source: Store, target: Store, progress: CopyProgress) -> dict[str, int]:
    """Copy all of `source` into the empty or new database `target`; return each table's row count.

    The source is only read, as a snapshot of one moment. The copy is compared with it at the end;
    if anything is wrong, the target stays empty.
    """
    if target.writing is None:
        raise JournalError(f"{target.name} is open for reading only")
    with explain_errors(source.name), _open_to_read(source) as old:
        _require_current(old, source.name)
        last = {name: mark.last for name, mark in marks(old).items()}
        shown = {index: _indexed_ids(old, index) for index in TextIndex}
        with explain_errors(target.name), transaction(target.writing) as new:
            _disable_idle_limit(new)
            _make_room(new, target.name)
            rows = {table: _rows(old, table, source.name) for table in COPIED}
            copied = {table.name: _copy_rows(rows[table], new, table, progress) for table in COPIED}
            go_on_after(new, last)
            for index, ids in shown.items():
                _put_words(new, index, ids)
            _verify_copy(new, copied, target.name)
            return {name: each.rows for name, each in copied.items()}


def _open_to_read(store: Store) -> Connection:
    connection = store.reader.connect()
    _disable_idle_limit(connection)
    return connection


def _disable_idle_limit(connection: Connection) -> None:
    """Disable the connection's idle limit, since the other side may take a long time."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))


def _require_current(connection: Connection, name: str) -> None:
    found = read_version(connection).revision
    if found != REVISION:
        at = f"its tables are at {found}" if found else "it has no tables"
        raise JournalError(
            f"{name} cannot be copied: {at}, but this Midwatch needs {REVISION}; "
            f"`midwatch db upgrade --journal {quote(name)}` upgrades it"
        )


def _require_empty(connection: Connection, name: str) -> None:
    if read_version(connection).revision is None:
        require_place(connection, name)
        return
    _require_current(connection, name)
    for table in COPIED:
        if connection.execute(select(1).select_from(table).limit(1)).first() is not None:
            raise JournalError(f"{name} is not empty: there are rows in its `{table.name}`")


def _make_room(connection: Connection, name: str) -> None:
    _require_empty(connection, name)
    if read_version(connection).revision is None:
        migrate(connection, name)


def count_rows(connection: Connection, table: Table, *where: ColumnElement[bool]) -> int:
    """Return the number of a table's rows, or of those that meet the conditions."""
    query = select(func.count()).select_from(table).where(*where)
    return connection.execute(query).scalar_one()


def _rows(connection: Connection, table: Table, name: str) -> Iterator[Row[Any]]:
    """Yield a table's rows. Raises JournalError, with the database's name, as they are read."""
    query = select(table).order_by(*table.primary_key.columns)
    with explain_errors(name):
        yield from connection.execute(query.execution_options(yield_per=_BATCH))


def _copy_rows(
    rows: Iterator[Row[Any]], new: Connection, table: Table, progress: CopyProgress
) -> _Content:
    content = _Content()
    names = [column.name for column in table.columns]
    later = dict.fromkeys(_self_references(table))
    referring: list[dict[str, Any]] = []
    while batch := list(islice(rows, _BATCH)):
        values = [dict(zip(names, row, strict=True)) for row in batch]
        referring += [row for row in values if any(row[name] is not None for name in later)]
        new.execute(insert(table), [row | later for row in values])
        for row in batch:
            content.add(row)
        progress(table.name, content.rows)
    _fill_references(new, table, referring)
    return content


def _self_references(table: Table) -> list[str]:
    """Return the columns that refer to the same table, possibly to a later row."""
    keys = (key for column in table.columns for key in column.foreign_keys)
    return [key.parent.name for key in keys if key.column.table is table]


def _fill_references(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Fill in references to other rows of the same table."""
    if not rows:
        return
    (key,) = table.primary_key.columns
    change = update(table).where(key == bindparam("of"))
    wanted = _self_references(table)
    values = [{"of": row[key.name], **{name: row[name] for name in wanted}} for row in rows]
    connection.execute(change, values)


def _indexed_ids(connection: Connection, index: TextIndex) -> frozenset[int]:
    """Return the ids of the indexed entries; each database has its own kind of index."""
    key = "rowid" if connection.dialect.name == "sqlite" else "id"
    return frozenset(connection.execute(text(f"SELECT {key} FROM {index.value}")).scalars())


def _put_words(new: Connection, index: TextIndex, ids: Collection[int]) -> None:
    """Index the texts of these entries."""
    table = tables.lesson if index is TextIndex.LESSONS else tables.fact
    entry = tables.entry
    query = select(entry.c.id, entry.c.kind, entry.c.body, table.c.project).join(
        table, table.c.entry == entry.c.id
    )
    for row in new.execute(query).all():
        if row.id in ids:
            search.put(new, index, row.project, {row.id: _index_wording(row.kind, row.body)})


def _index_wording(kind: str, body: str) -> Wording:
    match read(kind, body):
        case Lesson() as lesson:
            return lessons.wording_of(lesson)
        case Fact() as fact:
            return facts.wording_of(fact)
        case _:
            raise JournalCorruptError("the journal holds something else in place of a lesson")


def _verify_copy(connection: Connection, copied: dict[str, _Content], name: str) -> None:
    for table in COPIED:
        found = _Content()
        for row in _rows(connection, table, name):
            found.add(row)
        if found != copied[table.name]:
            raise JournalError(
                f"the copy of {table.name} differs ({found.rows} rows, not "
                f"{copied[table.name].rows}): nothing was copied"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMark:
    """The last id that a table assigned, and the highest one in it."""

    last: int
    """The last id assigned; 0 if none."""
    highest: int
    """The highest existing id."""


def marks(connection: Connection) -> dict[str, TableMark]:
    """Return the marks of the tables whose ids the database assigns, by name."""
    return {table.name: _table_mark(connection, table) for table in NUMBERED}


def _table_mark(connection: Connection, table: Table) -> TableMark:
    highest = connection.execute(select(func.max(table.c.id))).scalar() or 0
    if connection.dialect.name == "sqlite":
        query = "SELECT seq FROM sqlite_sequence WHERE name = :name"
        last = connection.execute(text(query), {"name": table.name}).scalar() or 0
    else:
        # Only the sequence itself tells whether its first number was used.
        sequence = connection.execute(_SEQUENCE, {"name": table.name}).scalar_one()
        query = f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}"
        last = connection.execute(text(query)).scalar_one()
    return TableMark(last=last, highest=highest)


def go_on_after(connection: Connection, last: Mapping[str, int]) -> None:
    """Make each table continue its ids after the given one."""
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
