"""Checks the integrity of a journal's database."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from io import BytesIO
from typing import Any

from pydantic_core import from_json
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    Row,
    Table,
    func,
    select,
    text,
    type_coerce,
)
from sqlalchemy.exc import DataError
from sqlalchemy.types import TypeEngine

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import JournalCorruptError
from midwatch_monitor.journal.admin.copy import count_rows, marks
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import read
from midwatch_monitor.journal.core.schema import read_version
from midwatch_monitor.journal.core.tables import (
    REVISION,
    UNREADABLE,
    Packed,
    UtcTime,
    metadata,
    unpack,
)
from midwatch_monitor.records import (
    Chore,
    FactAct,
    FactState,
    GuidelinesState,
    Method,
    NodeState,
    Origin,
    SupervisedBy,
)
from midwatch_monitor.records.entry import KINDS

_PAGE = 500
"""Number of rows held in memory at a time."""
_MOST_LISTED = 20
"""Number of broken rows listed for each table."""
_AT_ONCE = 8 * 1024 * 1024
"""Bytes of JSON that are parsed as a whole; longer ones are parsed piece by piece."""
_SHORT = 60
"""Characters shown of a name."""
_CHOICES: Mapping[Column[Any], type[StrEnum]] = {
    tables.run.c.keeper: SupervisedBy,
    tables.node.c.state: NodeState,
    tables.lesson_use.c.method: Method,
    tables.lesson_use.c.origin: Origin,
    tables.fact.c.state: FactState,
    tables.fact.c.ended: FactAct,
    tables.guidelines.c.state: GuidelinesState,
    tables.chore.c.chore: Chore,
}
_JSON = frozenset({tables.run.c.settings, tables.task.c.spec})


def _keep_halves(connection: Connection) -> None:
    """Make SQLite return invalid UTF-8 as surrogates, so that it can be recognised."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.dbapi_connection
        driver.text_factory = _with_halves


def _with_halves(stored: bytes) -> str:
    return stored.decode(errors="surrogateescape")


def _unreadable_rows(connection: Connection) -> Iterator[str]:
    """Read all rows, a page at a time, and yield a problem for each broken one."""
    _keep_halves(connection)
    for table in metadata.sorted_tables:
        columns = [type_coerce(each, _stored_type(each)).label(each.name) for each in table.columns]
        query = select(*columns).order_by(*table.primary_key.columns)
        broken = 0
        try:
            for row in connection.execute(query.execution_options(yield_per=_PAGE)):
                if problem := _row_problem(table, row):
                    broken += 1
                    if broken <= _MOST_LISTED:
                        yield f"{_name(table, row)} cannot be read: {problem}"
        except DataError:  # from PostgreSQL's driver, which does not say which row
            yield f"`{table.name}` has a row that this program cannot read"
        if broken > _MOST_LISTED:
            yield f"and {broken - _MOST_LISTED} more rows of `{table.name}` cannot be read"


def _row_problem(table: Table, row: Row[Any]) -> str:
    """Return what is wrong with a row; empty if nothing."""
    for column, value in zip(table.columns, row, strict=True):
        if problem := _value_problem(column, value):
            return f"{column.name}: {problem}"
    if table is tables.entry and row.kind in KINDS.values():
        try:
            read(row.kind, row.body)
        except JournalCorruptError as error:
            return str(error)
    return ""


def _stored_type(column: Column[Any]) -> TypeEngine[Any]:
    """Return the type to read a column with: the stored one, if the column's own type converts
    values.
    """
    match column.type:
        case Packed():
            return LargeBinary()
        case Boolean():
            return Integer()
        case kind:
            return kind


def _name(table: Table, row: Row[Any]) -> str:
    """Return a row's name, made only of its key, attempt and kind."""
    keys = [column.name for column in table.primary_key.columns]
    if len(keys) == 1:
        name = f"{table.name} {_short_text(getattr(row, keys[0]))}"
    else:
        said = ", ".join(f"{key} {_short_text(getattr(row, key))}" for key in keys)
        name = f"{table.name} of {said}"
    if table is not tables.entry:
        return name
    whose = f"task {row.task}" if row.attempt is None else f"attempt {row.attempt}"
    return f"{name} ({_short_text(row.kind)} of {whose})"


def _short_text(value: object) -> str:
    """Return a part of a key in printable form: a broken row may contain anything."""
    return repr(value)[:_SHORT]


def _value_problem(column: Column[Any], value: object) -> str:
    """Return what is wrong with a value; empty if nothing."""
    if value is None:
        return "" if column.nullable else "no value"
    kind = column.type
    if isinstance(kind, Packed):
        return _packed_problem(value)
    for type_, is_right, what in _RIGHT:
        if isinstance(kind, type_):
            return "" if is_right(value) else f"not {what}"
    return _wrong_text(column, value)


_RIGHT: tuple[tuple[type, Callable[[object], bool], str], ...] = (
    (UtcTime, lambda value: value is not UNREADABLE, "a time"),
    (Boolean, lambda value: value in (0, 1), "a boolean"),
    (Integer, lambda value: isinstance(value, int), "a whole number"),
    (Float, lambda value: isinstance(value, int | float), "a number"),
    (LargeBinary, lambda value: isinstance(value, bytes | memoryview), "bytes"),
)


def _wrong_text(column: Column[Any], value: object) -> str:
    if not isinstance(value, str):
        return "not text"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return "not UTF-8"
    if column in _CHOICES and value not in list(_CHOICES[column]):
        return f"none of {', '.join(_CHOICES[column])}"
    if column in _JSON:
        try:
            return "" if isinstance(from_json(value), dict) else "not a JSON object"
        except ValueError:
            return "not JSON"
    return ""


def _packed_problem(value: object) -> str:
    if not isinstance(value, bytes):
        return "not bytes"
    try:
        _parse(unpack(value))
    except JournalCorruptError as error:
        return str(error)
    except ValueError:
        return "not JSON"
    return ""


def _parse(body: bytes) -> None:
    """Raise ValueError for invalid JSON."""
    if len(body) <= _AT_ONCE:
        from_json(body)
        return
    import ijson  # pyright: ignore[reportMissingTypeStubs]

    try:
        for _ in ijson.basic_parse(BytesIO(body)):
            pass
    except ijson.JSONError as error:
        raise ValueError(str(error)) from error


_LISTED = 20
"""Number of attempts named for one kind of problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalHealth:
    """The result of a check."""

    revision: str | None
    oldest: str | None
    counts: dict[str, int]
    """Number of rows by table."""
    last: int
    """The newest entry's id; 0 if there are none."""
    latest: datetime | None
    """The newest entry's time."""
    problems: tuple[str, ...]
    """A sentence for each problem."""
    newer: int = 0
    """Number of entries of kinds that only a newer Midwatch knows."""


def check(connection: Connection) -> JournalHealth:
    """Check a whole journal, reading every row, a page at a time."""
    version = read_version(connection)
    if not version.current:
        at = f"its tables are at {version.revision}" if version.revision else "it has no tables"
        problem = f"{at}, and this Midwatch works with {REVISION}: " + (
            "update it" if version.newer else f"see `{command('db upgrade')}`"
        )
        return JournalHealth(
            revision=version.revision,
            oldest=version.oldest,
            counts={},
            last=0,
            latest=None,
            problems=(problem,),
        )
    last, latest = _newest_entry(connection)
    unknown = select(func.count()).where(tables.entry.c.kind.not_in(KINDS.values()))
    return JournalHealth(
        revision=version.revision,
        oldest=version.oldest,
        counts={table.name: count_rows(connection, table) for table in metadata.sorted_tables},
        last=last,
        latest=latest,
        problems=(*_database_problems(connection), *_unreadable_rows(connection)),
        newer=connection.execute(unknown).scalar_one(),
    )


def _database_problems(connection: Connection) -> Iterator[str]:
    yield from _file_damage(connection)
    # The recorder never skips a number, and resuming needs the whole history.
    yield from _gaps(connection, tables.entry.c.seq, first=1, what="sequence", of="entries")
    yield from _gaps(connection, tables.message.c.idx, first=0, what="history", of="messages")
    yield from _number_problems(connection)
    for table in metadata.sorted_tables:
        for column in table.columns:
            for key in column.foreign_keys:
                yield from _orphans(connection, table, key)


def _newest_entry(connection: Connection) -> tuple[int, datetime | None]:
    entry = tables.entry
    query = select(entry.c.id, entry.c.at).order_by(entry.c.id.desc()).limit(1)
    row = connection.execute(query).first()
    return (0, None) if row is None else (row.id, row.at)


def _file_damage(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for said in connection.execute(text("PRAGMA quick_check(5)")).scalars():
            if said != "ok":
                yield f"the file is damaged: {said}"


def _gaps(
    connection: Connection, number: Column[Any], *, first: int, what: str, of: str
) -> Iterator[str]:
    """Yield a problem for each attempt whose numbers are not consecutive."""
    attempt = number.table.c.attempt
    many, low, high = (
        func.count(number).label("many"),
        func.min(number).label("low"),
        func.max(number).label("high"),
    )
    query = (
        select(attempt, many, low, high)
        .where(attempt.is_not(None), number.is_not(None))
        .group_by(attempt)
        .having((low != first) | (high - low != many - 1))
        .order_by(attempt)
        .limit(_LISTED)
    )
    for row in connection.execute(query):
        gaps = f"{row.many} {of} from {row.low} to {row.high}"
        yield f"the {what} of attempt {row.attempt} has gaps: {gaps}"


def _number_problems(connection: Connection) -> Iterator[str]:
    for name, mark in marks(connection).items():
        if mark.last < mark.highest:
            yield (
                f"the next id of {name} already exists: the last one assigned was {mark.last}, "
                f"and the highest is {mark.highest}"
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
        yield f"{many} rows in `{table.name}` refer to a row of `{wanted.name}` that does not exist"
