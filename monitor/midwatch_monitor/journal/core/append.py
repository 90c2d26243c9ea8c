"""How drafts become rows of the log: refused, numbered and stored, as many at once as can be."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from itertools import groupby

from sqlalchemy import Connection, Dialect, bindparam, select, update

from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.columns import Moment
from midwatch_monitor.journal.core.encoding import kind_of, mask_drafts, record_json, record_of
from midwatch_monitor.journal.core.engine import execute_in_sqlite
from midwatch_monitor.journal.learned import index
from midwatch_monitor.records import (
    AttemptTransition,
    Draft,
    Entry,
    Escalation,
    EscalationState,
    Lifecycle,
    Record,
    TaskTransition,
)

_FOLLOWS = {
    EscalationState.OPEN: {EscalationState.OPEN},
    EscalationState.ANSWERED: {EscalationState.OPEN},
    EscalationState.CLOSED: {EscalationState.OPEN, EscalationState.ANSWERED},
}
"""After which states of an escalation each may stand."""

_ALONE: frozenset[type[Record]] = (
    frozenset({TaskTransition, AttemptTransition, Escalation}) | index.KINDS
)
"""What looks at what stands before it, or changes more than the log."""

# The statements are built once, and the two of most commits are the driver's own: going through
# SQLAlchemy takes longer than SQLite needs.
_LATEST = (
    select(tables.entry.c.body)
    .where(tables.entry.c.kind == bindparam("kind"))
    .order_by(tables.entry.c.id.desc())
    .limit(1)
)
_OF_TASK = _LATEST.where(tables.entry.c.task == bindparam("task"))
_OF_ATTEMPT = _LATEST.where(tables.entry.c.attempt == bindparam("attempt"))
_OF_BOTH = _OF_TASK.where(tables.entry.c.attempt == bindparam("attempt"))
_CLOSE = update(tables.escalation).where(
    tables.escalation.c.id == bindparam("of"), tables.escalation.c.closed_at.is_(None)
)
_COLUMNS = "at, kind, task, attempt, seq, body"
_WIDTH = 6
_TOGETHER = 100
"""Rows of one statement of SQLite, which takes 999 values at least."""
# `%b` is psycopg's for binary: as text an array of texts takes both sides several times as long.
_POSTGRESQL = f"""
INSERT INTO entry ({_COLUMNS})
SELECT {_COLUMNS} FROM unnest(
    %b::timestamptz[], %b::text[], %b::bigint[], %b::bigint[], %b::integer[], %b::text[]
) WITH ORDINALITY AS draft ({_COLUMNS}, place) ORDER BY place
RETURNING id
"""


def append(connection: Connection, drafts: Sequence[Draft]) -> list[Entry]:
    """Store drafts in their order. Raises StaleIncarnationError for what comes too late."""
    drafts = mask_drafts(connection, drafts)
    if _ALONE.isdisjoint([type(draft.record) for draft in drafts]):
        return _store(connection, drafts)
    entries: list[Entry] = []
    for alone, part in groupby(drafts, key=_is_alone):
        if not alone:
            entries += _store(connection, list(part))
            continue
        for draft in part:
            _refuse(connection, draft)
            (entry,) = _store(connection, [draft])
            index.take_in(connection, entry)
            entries.append(entry)
    return entries


def _is_alone(draft: Draft) -> bool:
    return type(draft.record) in _ALONE


def _store(connection: Connection, drafts: Sequence[Draft]) -> list[Entry]:
    values = _values(connection.dialect, drafts)
    into = _into_postgresql if connection.dialect.name == "postgresql" else _into_sqlite
    return [
        Entry(
            id=id_,
            record=draft.record,
            at=draft.at,
            task=draft.task,
            attempt=draft.attempt,
            seq=draft.seq,
        )
        for id_, draft in zip(into(connection, values), drafts, strict=True)
    ]


def _values(dialect: Dialect, drafts: Sequence[Draft]) -> list[object]:
    """What stands in the columns of all drafts, one after the other."""
    stored = _stored(dialect)
    values: list[object] = []
    at: datetime | None = None
    moment: object = None
    for draft in drafts:
        if draft.at is not at:  # those of one commit mostly share it
            at, moment = draft.at, stored(draft.at)
        record = draft.record
        kind = kind_of(type(record))
        values += (moment, kind, draft.task, draft.attempt, draft.seq, record_json(record))
    return values


@cache
def _stored(dialect: Dialect) -> Callable[[datetime], object]:
    """How the database's driver is given a moment."""
    processor = Moment().dialect_impl(dialect).bind_processor(dialect)
    if processor is None:
        raise JournalError(f"moments cannot be stored in {dialect.name}")

    def stored(at: datetime) -> object:
        try:
            return processor(at)
        except ValueError as error:
            raise JournalError(str(error)) from error

    return stored


def _into_sqlite(connection: Connection, values: Sequence[object]) -> Iterable[int]:
    """Insert rows; their ids, which follow one another because nobody else writes meanwhile.

    One statement for many rows: with one for each, the thread would wait after each of them until
    the event loop's lets it go on, which is up to 5 ms.
    """
    last = 0
    for begin in range(0, len(values), _TOGETHER * _WIDTH):
        part = tuple(values[begin : begin + _TOGETHER * _WIDTH])
        last = execute_in_sqlite(connection, _sqlite(len(part) // _WIDTH), part).lastrowid or 0
    return range(last - len(values) // _WIDTH + 1, last + 1)


@cache
def _sqlite(rows: int) -> str:
    return f"INSERT INTO entry ({_COLUMNS}) VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?)"] * rows)


def _into_postgresql(connection: Connection, values: Sequence[object]) -> Iterable[int]:
    """Insert rows; their ids, which rise in the order of the rows, perhaps with gaps."""
    columns = tuple(list(values[place::_WIDTH]) for place in range(_WIDTH))
    return sorted(connection.exec_driver_sql(_POSTGRESQL, columns).scalars())


def _refuse(connection: Connection, draft: Draft) -> None:
    match draft.record:
        case TaskTransition() | AttemptTransition():
            _refuse_late(connection, draft)
        case Escalation() as escalation:
            _move_on(connection, escalation, draft)
        case _:
            pass


def _refuse_late(connection: Connection, draft: Draft) -> None:
    """Over is over: nothing follows a completed, failed, canceled or rejected status.

    Only a person opens a task again: no late result says that it is submitted (see `reopen`).
    """
    if isinstance(draft.record, TaskTransition) and draft.record.lifecycle is Lifecycle.SUBMITTED:
        return
    kind = kind_of(type(draft.record))
    query, what = _OF_TASK, f"task {draft.task}"
    values: dict[str, object] = {"kind": kind, "task": draft.task}
    if isinstance(draft.record, AttemptTransition):
        query, what = _OF_BOTH, f"attempt {draft.attempt}"
        values["attempt"] = draft.attempt
    body = connection.execute(query, values).scalar()
    word = type(draft.record)
    latest = record_of(connection, f"the last state of {what}", word, body)
    if isinstance(latest, TaskTransition | AttemptTransition) and latest.lifecycle.over:
        raise StaleIncarnationError(
            f"{what} is already {latest.lifecycle.value}; a late result cannot change that"
        )


def _move_on(connection: Connection, escalation: Escalation, draft: Draft) -> None:
    """An escalation is answered once and closed once, whoever else thinks that it is still open."""
    kind = kind_of(Escalation)
    body = connection.execute(_OF_ATTEMPT, {"kind": kind, "attempt": draft.attempt}).scalar()
    name = f"the last escalation of attempt {draft.attempt}"
    latest = record_of(connection, name, Escalation, body)
    if (
        latest is not None
        and latest.id == escalation.id
        and latest.state not in _FOLLOWS[escalation.state]
    ):
        raise StaleIncarnationError(f"escalation {escalation.id} is already {latest.state.value}")
    if escalation.state is EscalationState.CLOSED:
        connection.execute(_CLOSE, {"of": escalation.id, "closed_at": draft.at})
