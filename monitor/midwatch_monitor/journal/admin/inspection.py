"""Every row of a journal, read as its readers do: which of them cannot be."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from io import BytesIO
from typing import Any

from pydantic_core import from_json
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    Row,
    Table,
    select,
    type_coerce,
)
from sqlalchemy.exc import DataError
from sqlalchemy.types import TypeEngine

from midwatch_monitor.errors import JournalCorruptError, JournalTooNewError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.columns import UNREADABLE, Moment, Packed, metadata, unpacked
from midwatch_monitor.journal.core.encoding import read
from midwatch_monitor.records import (
    Chore,
    FactAct,
    FactState,
    GuidelinesState,
    Keeper,
    Method,
    NodeState,
    Origin,
)

_PAGE = 500
"""Rows that are held at a time."""
_LISTED = 20
"""Rows of a table that are named."""
_AT_ONCE = 8 * 1024 * 1024
"""Bytes of JSON that are read as a whole; longer ones are read piece by piece."""
_SHORT = 60
"""Characters of a name that are said."""
_CHOICES: Mapping[Column[Any], type[StrEnum]] = {
    tables.run.c.keeper: Keeper,
    tables.node.c.state: NodeState,
    tables.lesson_use.c.method: Method,
    tables.lesson_use.c.origin: Origin,
    tables.fact.c.state: FactState,
    tables.fact.c.ended: FactAct,
    tables.guidelines.c.state: GuidelinesState,
    tables.chore.c.chore: Chore,
}
_JSON = frozenset({tables.run.c.settings, tables.task.c.spec})


@dataclass(slots=True, kw_only=True)
class Inspection:
    """What was found of the rows that were looked at."""

    problems: list[str] = field(default_factory=list[str])
    newer: int = 0
    """Entries of kinds that only a newer Midwatch knows: they are not broken."""

    def look_at(self, connection: Connection) -> None:
        """Read all rows, some at a time."""
        _keep_halves(connection)
        for table in metadata.sorted_tables:
            self._look_at(connection, table)

    def _look_at(self, connection: Connection, table: Table) -> None:
        broken = 0
        try:
            for row in _rows(connection, table):
                if problem := self._problem(table, row):
                    broken += 1
                    if broken <= _LISTED:
                        self.problems.append(f"{_name(table, row)} cannot be read: {problem}")
        except DataError:  # of PostgreSQL's driver, which does not say where
            self.problems.append(f"a row of `{table.name}` holds what this program cannot read")
        if broken > _LISTED:
            more = broken - _LISTED
            self.problems.append(f"and {more} more rows of `{table.name}` cannot be read")

    def _problem(self, table: Table, row: Row[Any]) -> str:
        """What is wrong with a row; empty where nothing is."""
        for column, value in zip(table.columns, row, strict=True):
            if problem := _wrong(column, value):
                return f"{column.name}: {problem}"
        if table is tables.entry:
            try:
                read(row.kind, row.body)
            except JournalTooNewError:
                self.newer += 1
            except JournalCorruptError as error:
                return str(error)
        return ""


def _keep_halves(connection: Connection) -> None:
    """Let SQLite give what is no UTF-8 so that it can be told from what is."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.dbapi_connection
        driver.text_factory = _with_halves


def _with_halves(stored: bytes) -> str:
    return stored.decode(errors="surrogateescape")


def _rows(connection: Connection, table: Table) -> Iterator[Row[Any]]:
    columns = [type_coerce(each, _stored(each)).label(each.name) for each in table.columns]
    query = select(*columns).order_by(*table.primary_key.columns)
    yield from connection.execute(query.execution_options(yield_per=_PAGE))


def _stored(column: Column[Any]) -> TypeEngine[Any]:
    """How a column is looked at, where its own type makes something else of what stands there."""
    match column.type:
        case Packed():
            return LargeBinary()
        case Boolean():
            return Integer()
        case kind:
            return kind


def _name(table: Table, row: Row[Any]) -> str:
    """What a row is called: no more than its key, its attempt and kind."""
    keys = [column.name for column in table.primary_key.columns]
    if len(keys) == 1:
        name = f"{table.name} {_short(getattr(row, keys[0]))}"
    else:
        said = ", ".join(f"{key} {_short(getattr(row, key))}" for key in keys)
        name = f"{table.name} of {said}"
    if table is not tables.entry:
        return name
    whose = f"task {row.task}" if row.attempt is None else f"attempt {row.attempt}"
    return f"{name} ({_short(row.kind)} of {whose})"


def _short(value: object) -> str:
    """A part of a key as it may be printed: whoever broke a row may have written anything there."""
    return repr(value)[:_SHORT]


def _wrong(column: Column[Any], value: object) -> str:
    """What is wrong with a value; empty where nothing is."""
    if value is None:
        return "" if column.nullable else "nothing stands there"
    kind = column.type
    if isinstance(kind, Packed):
        return _unpackable(value)
    for type_, is_right, what in _RIGHT:
        if isinstance(kind, type_):
            return "" if is_right(value) else f"no {what}"
    return _wrong_text(column, value)


_RIGHT: tuple[tuple[type, Callable[[object], bool], str], ...] = (
    (Moment, lambda value: value is not UNREADABLE, "time"),
    (Boolean, lambda value: value in (0, 1), "truth value"),
    (Integer, lambda value: isinstance(value, int), "whole number"),
    (Float, lambda value: isinstance(value, int | float), "number"),
    (LargeBinary, lambda value: isinstance(value, bytes | memoryview), "bytes"),
)


def _wrong_text(column: Column[Any], value: object) -> str:
    if not isinstance(value, str):
        return "no text"
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


def _unpackable(value: object) -> str:
    if not isinstance(value, bytes):
        return "no bytes"
    try:
        _parse(unpacked(value))
    except JournalCorruptError as error:
        return str(error)
    except ValueError:
        return "not JSON"
    return ""


def _parse(body: bytes) -> None:
    """Raise ValueError for what is not JSON."""
    if len(body) <= _AT_ONCE:
        from_json(body)
        return
    import ijson  # pyright: ignore[reportMissingTypeStubs]

    try:
        for _ in ijson.basic_parse(BytesIO(body)):
            pass
    except ijson.JSONError as error:
        raise ValueError(str(error)) from error
