"""Rows that cannot be read: each is named once, and the others are read.

That is a row of a kind which only a newer Midwatch knows, too: it may write beside this one.
"""

import logging
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select

from midwatch_monitor.errors import JournalCorruptError, JournalTooNewError
from midwatch_monitor.journal.core.encoding import kind_of, read
from midwatch_monitor.journal.core.masks import shown
from midwatch_monitor.records import Fault, Record

log = logging.getLogger(__name__)

PART = "journal"
"""Whose fault it is called where an entry cannot be read."""
_MOST_NAMED = 50
"""Rows that one process names: `midwatch db check` knows them all."""
_named: set[tuple[str, str]] = set()

R = TypeVar("R", bound=Record)


def pass_over(connection: Connection, name: str, why: str) -> None:
    """Name a row of a journal, unless that was done."""
    row = (str(connection.engine.url), name)
    if row in _named or len(_named) > _MOST_NAMED:
        return
    _named.add(row)
    if len(_named) > _MOST_NAMED:
        log.warning("more rows cannot be read: `midwatch db check` names them")
    else:
        log.warning("%s cannot be read and is passed over: %s", name, why)


def record_in(connection: Connection, name: str, kind: str, body: str) -> Record | Fault:
    """The record of a row; a fault that names the row in place of one that cannot be read.

    So it has its place among the entries, whoever counts or follows them.
    """
    try:
        return shown(connection, read(kind, body))
    except (JournalCorruptError, JournalTooNewError) as error:
        pass_over(connection, name, str(error))
        return Fault(part=PART, error=f"{name} cannot be read: {error}")


def record_of(connection: Connection, name: str, word: type[R], body: str | None) -> R | None:
    """The record of a row that is one of a kind; `None` where it is missing or cannot be read."""
    record = None if body is None else record_in(connection, name, kind_of(word), body)
    return record if isinstance(record, word) else None


def rows_of(
    connection: Connection, query: Select[*tuple[Any, ...]], word: type[R], limit: int | None = None
) -> list[tuple[Row[Any], R]]:
    """The rows of a query with their records, at most `limit` that can be read.

    It asks for each row's `entry` and `body`, in an order.
    """
    found: list[tuple[Row[Any], R]] = []
    seen = 0
    while True:
        wanted = None if limit is None else limit - len(found)
        rows = connection.execute(query.limit(wanted).offset(seen or None)).all()
        seen += len(rows)
        for row in rows:
            record = record_of(connection, f"entry {row.entry}", word, row.body)
            if record is not None:
                found.append((row, record))
        if wanted is None or len(rows) < wanted or len(found) == limit:
            return found
