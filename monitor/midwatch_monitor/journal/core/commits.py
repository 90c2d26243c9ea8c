"""Commits: which ones are refused, and how the rest are stored in as few statements as possible.

All functions here run in a write transaction, so no other writer comes between a lookup and the
write that follows. A recorder writes under the incarnation of an attempt's lease, a monitor under
that of its guard; writes under an old one are refused. The incarnations of all commits in a
transaction are looked up together.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import groupby, islice
from typing import TypeVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Connection,
    Dialect,
    Select,
    Table,
    any_,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import (
    kind_of,
    mask_drafts,
    record_in,
    record_json,
    record_of,
)
from midwatch_monitor.journal.core.engine import execute_in_sqlite, is_duplicate
from midwatch_monitor.journal.core.tables import MOST_BYTES, UtcTime
from midwatch_monitor.journal.learned import index
from midwatch_monitor.records import (
    AttemptTransition,
    Commit,
    Delivery,
    DeliveryState,
    Draft,
    Entry,
    Escalation,
    EscalationState,
    Intervention,
    Record,
    TaskTransition,
)


def commit(connection: Connection, what: Commit) -> tuple[Entry, ...]:
    """Store one commit. Raises StaleIncarnationError if it comes too late."""
    return commit_all(connection, [what])[0]


def commit_all(connection: Connection, given: Sequence[Commit]) -> list[tuple[Entry, ...]]:
    """Store many commits in order. If one of them raises, all must be rolled back.

    Raises StaleIncarnationError for one that comes too late.
    """
    _require_incarnations(connection, given)
    try:
        entries = append(connection, [draft for each in given for draft in each.drafts])
        for each in given:
            if each.messages or each.results:
                _extend_history(connection, each)
    except IntegrityError as error:
        if len(given) == 1 and is_duplicate(error):
            raise StaleIncarnationError(
                f"another process has already written this part of attempt {_subject(given[0])}"
            ) from error
        raise
    rest = iter(entries)
    return [tuple(islice(rest, len(each.drafts))) for each in given]


def _subject(what: Commit) -> str:
    numbers = {what.attempt, *(draft.attempt for draft in what.drafts)} - {None}
    return ", ".join(map(str, numbers))


def _extend_history(connection: Connection, what: Commit) -> None:
    """Append to the attempt's history and to the results of its tool calls."""
    if what.attempt is None:
        raise ValueError("a commit with messages or results must name its attempt")
    for each in (*what.messages, *what.results):
        if len(each.body) > MOST_BYTES:
            size, most = len(each.body) // 1024**2, MOST_BYTES // 1024**2
            raise JournalError(f"a message or result of {size} MiB is too large: {most} at most")
    if what.messages:
        rows = [{"attempt": what.attempt, "idx": m.index, "body": m.body} for m in what.messages]
        connection.execute(insert(tables.message), rows)
    if what.results:
        rows = [{"attempt": what.attempt, "call": r.call, "body": r.body} for r in what.results]
        connection.execute(insert(tables.result), rows)


_WRITTEN = "at incarnation {}, not {}: another process"
_WATCHED = "watched at incarnation {}, not {}: another monitor"


def incarnation(connection: Connection, attempt: int) -> int | None:
    """Return the incarnation of the attempt's lease, or `None` if nobody has claimed it."""
    return _incarnations_held(connection, tables.lease, [attempt]).get(attempt)


def _require_incarnations(connection: Connection, given: Sequence[Commit]) -> None:
    """Raise StaleIncarnationError for a commit whose lease or guard now has another incarnation."""
    leased = {_leases_of(each) for each in given if each.incarnation is not None}
    _require_held(connection, tables.lease, leased, _WRITTEN)
    guarded = {
        (draft.attempt, each.guard)
        for each in given
        for draft in each.drafts
        if each.guard is not None and draft.attempt is not None
    }
    _require_held(connection, tables.guard, guarded, _WATCHED)


def require_guard(connection: Connection, attempt: int, guard: int) -> None:
    """Raise StaleIncarnationError if the attempt's guard now has another incarnation."""
    _require_held(connection, tables.guard, {(attempt, guard)}, _WATCHED)


def _require_held(
    connection: Connection, table: Table, wanted: Collection[tuple[int, int | None]], how: str
) -> None:
    if not wanted:
        return
    held = _incarnations_held(connection, table, {attempt for attempt, _ in wanted})
    for attempt, number in sorted(wanted):
        if held.get(attempt) != number:
            stands = how.format(held.get(attempt), number)
            raise StaleIncarnationError(f"attempt {attempt} is {stands} has taken it over")


def _leases_of(what: Commit) -> tuple[int, int | None]:
    if what.attempt is None:
        raise ValueError("a commit with an incarnation must name its attempt")
    return what.attempt, what.incarnation


def _incarnations_held(
    connection: Connection, table: Table, attempts: Collection[int]
) -> Mapping[int, int]:
    """Return the incarnations of the attempts that have one."""
    wanted = list(attempts)
    if connection.dialect.name == "sqlite":
        return dict(
            execute_in_sqlite(connection, _in_sqlite(table), (json.dumps(wanted),)).fetchall()
        )
    return dict(connection.execute(_in_postgresql(table), {"of": wanted}).all())


@cache
def _in_sqlite(table: Table) -> str:
    # A list of any length as one value, so that the driver can reuse the statement.
    return (
        f"SELECT attempt, incarnation FROM {table.name} "
        "WHERE attempt IN (SELECT value FROM json_each(?))"
    )


@cache
def _in_postgresql(table: Table) -> Select[int, int]:
    return select(table.c.attempt, table.c.incarnation).where(
        table.c.attempt == any_(bindparam("of", type_=ARRAY(BigInteger)))
    )


R = TypeVar("R", bound=Record)

_FOLLOWS = {
    EscalationState.OPEN: {EscalationState.OPEN},
    EscalationState.ANSWERED: {EscalationState.OPEN},
    EscalationState.CLOSED: {EscalationState.OPEN, EscalationState.ANSWERED},
}
"""The states that each state of an escalation may follow."""

_ALONE: frozenset[type[Record]] = (
    frozenset({TaskTransition, AttemptTransition, Escalation}) | index.KINDS
)
"""Records that depend on earlier ones, or change more than the log."""

# The statements are built once, and the two that most commits need go directly to the driver:
# SQLAlchemy's overhead is larger than SQLite's own time.
_LATEST = (
    select(tables.entry.c.body)
    .where(tables.entry.c.kind == bindparam("kind"))
    .order_by(tables.entry.c.id.desc())
    .limit(1)
)
_OF_TASK = _LATEST.where(tables.entry.c.task == bindparam("of"))
_OF_ATTEMPT = _LATEST.where(tables.entry.c.attempt == bindparam("of"))
_CLOSE = update(tables.escalation).where(
    tables.escalation.c.id == bindparam("of"), tables.escalation.c.closed_at.is_(None)
)
_COLUMNS = "at, kind, task, attempt, seq, body"
_WIDTH = 6
_TOGETHER = 100
"""Rows in one SQLite statement, which accepts at least 999 values."""
# `%b` is psycopg's binary format: arrays sent as text take both sides several times as long.
_POSTGRESQL = f"""
INSERT INTO entry ({_COLUMNS})
SELECT {_COLUMNS} FROM unnest(
    %b::timestamptz[], %b::text[], %b::bigint[], %b::bigint[], %b::integer[], %b::text[]
) WITH ORDINALITY AS draft ({_COLUMNS}, place) ORDER BY place
RETURNING id
"""


def append(
    connection: Connection, drafts: Sequence[Draft], *, opening: bool = False
) -> list[Entry]:
    """Store drafts in order. Raises StaleIncarnationError for one that comes too late.

    `opening` allows new states for tasks that are over, for a restart that a person orders.
    """
    drafts = mask_drafts(connection, drafts)
    if _ALONE.isdisjoint([type(draft.record) for draft in drafts]):
        return _store(connection, drafts)
    entries: list[Entry] = []
    for alone, part in groupby(drafts, key=lambda draft: type(draft.record) in _ALONE):
        if not alone:
            entries += _store(connection, list(part))
            continue
        for draft in part:
            if not opening:
                _refuse_outdated(connection, draft)
            (entry,) = _store(connection, [draft])
            index.index_entry(connection, entry)
            entries.append(entry)
    return entries


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
    """Return the column values of all drafts, one after the other."""
    stored = _moment_encoder(dialect)
    values: list[object] = []
    at: datetime | None = None
    moment: object = None
    for draft in drafts:
        if draft.at is not at:  # the drafts of one commit mostly share it
            at, moment = draft.at, stored(draft.at)
        record = draft.record
        kind = kind_of(type(record))
        values += (moment, kind, draft.task, draft.attempt, draft.seq, record_json(record))
    return values


@cache
def _moment_encoder(dialect: Dialect) -> Callable[[datetime], object]:
    """Return a function that converts a time for the database's driver."""
    processor = UtcTime().dialect_impl(dialect).bind_processor(dialect)
    if processor is None:
        raise JournalError(f"times cannot be stored in {dialect.name}")

    def stored(at: datetime) -> object:
        try:
            return processor(at)
        except ValueError as error:
            raise JournalError(str(error)) from error

    return stored


def _into_sqlite(connection: Connection, values: Sequence[object]) -> Iterable[int]:
    """Insert rows and return their ids, which are consecutive because nobody else is writing.

    Many rows go into one statement: with one statement each, the thread would wait up to 5 ms after
    every row for the event loop's thread.
    """
    last = 0
    for begin in range(0, len(values), _TOGETHER * _WIDTH):
        part = tuple(values[begin : begin + _TOGETHER * _WIDTH])
        last = (
            execute_in_sqlite(connection, _sqlite_insert(len(part) // _WIDTH), part).lastrowid or 0
        )
    return range(last - len(values) // _WIDTH + 1, last + 1)


@cache
def _sqlite_insert(rows: int) -> str:
    return f"INSERT INTO entry ({_COLUMNS}) VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?)"] * rows)


def _into_postgresql(connection: Connection, values: Sequence[object]) -> Iterable[int]:
    """Insert rows and return their ids, which increase in row order, perhaps with gaps."""
    columns = tuple(list(values[place::_WIDTH]) for place in range(_WIDTH))
    return sorted(connection.exec_driver_sql(_POSTGRESQL, columns).scalars())


def _refuse_outdated(connection: Connection, draft: Draft) -> None:
    match draft.record:
        case TaskTransition():
            refuse_late(connection, task=draft.task)
        case AttemptTransition():
            refuse_late(connection, task=draft.task, attempt=draft.attempt)
        case Escalation() as escalation:
            _move_on(connection, escalation, draft)
        case _:
            pass


def latest(
    connection: Connection, word: type[R], *, task: int | None = None, attempt: int | None = None
) -> R | None:
    """Return the newest record of a kind for a task or an attempt; `None` if none can be read."""
    query, of, whose = _OF_TASK, task, f"task {task}"
    if attempt is not None:
        query, of, whose = _OF_ATTEMPT, attempt, f"attempt {attempt}"
    kind = kind_of(word)
    body = connection.execute(query, {"kind": kind, "of": of}).scalar()
    return record_of(connection, f"the last {kind} of {whose}", word, body)


def refuse_late(connection: Connection, *, task: int, attempt: int | None = None) -> None:
    """Refuse any state after a final one: completed, failed, canceled or rejected."""
    if attempt is None:
        state, what = latest(connection, TaskTransition, task=task), f"task {task}"
    else:
        state, what = latest(connection, AttemptTransition, attempt=attempt), f"attempt {attempt}"
    if state is not None and state.lifecycle.over:
        raise StaleIncarnationError(
            f"{what} is already {state.lifecycle.value}; a late result cannot change that"
        )


def _move_on(connection: Connection, escalation: Escalation, draft: Draft) -> None:
    """Refuse to answer or close an escalation twice."""
    before = latest(connection, Escalation, attempt=draft.attempt)
    if (
        before is not None
        and before.id == escalation.id
        and before.state not in _FOLLOWS[escalation.state]
    ):
        raise StaleIncarnationError(f"escalation {escalation.id} is already {before.state.value}")
    if escalation.state is EscalationState.CLOSED:
        connection.execute(_CLOSE, {"of": escalation.id, "closed_at": draft.at})


TURNS: tuple[type[Record], ...] = (TaskTransition, AttemptTransition, Intervention, Delivery)
"""The records that decide what can be done about a task."""


def commit_answer(connection: Connection, what: Commit) -> tuple[Entry, ...] | None:
    """Store a commit, or return `None` if it answers something that is already answered.

    An answer is one to a worker, or the approval or rejection of an intervention. Rejected answers
    do not count, including those that this commit rejects.
    """
    rejected = {
        each for draft in what.drafts if (each := _rejected_intervention(draft.record)) is not None
    }
    for draft in what.drafts:
        request, held = _answered_request(draft.record), _settled_intervention(draft.record)
        if request is not None and _is_answered(connection, draft, request, rejected):
            return None
        if held is not None and _is_decided(connection, draft, held):
            return None
    return commit(connection, what)


def _is_answered(connection: Connection, draft: Draft, request: int, rejected: set[int]) -> bool:
    stands = set[int]()
    for id, record in _interventions_since(connection, draft, request):
        if isinstance(record, Intervention) and record.petition == request:
            stands.add(id)
        elif (turned_down := _rejected_intervention(record)) is not None:
            stands.discard(turned_down)
    return bool(stands - rejected)


def _is_decided(connection: Connection, draft: Draft, held: int) -> bool:
    """Whether an intervention was decided or delivered."""
    since = _interventions_since(connection, draft, held)
    return any(isinstance(each, Delivery) and each.intervention == held for _, each in since)


def _interventions_since(
    connection: Connection, draft: Draft, id: int
) -> list[tuple[int, Record | None]]:
    """Return interventions and deliveries of a draft's attempt since an entry, with ids."""
    entry = tables.entry
    kinds = [kind_of(Intervention), kind_of(Delivery)]
    query = select(entry.c.id, entry.c.kind, entry.c.body).where(
        entry.c.attempt == draft.attempt, entry.c.id > id, entry.c.kind.in_(kinds)
    )
    return [
        (row.id, record_in(connection, f"entry {row.id}", row.kind, row.body))
        for row in connection.execute(query.order_by(entry.c.id))
    ]


def _answered_request(record: Record) -> int | None:
    """Return the id of the worker request that a record answers."""
    return record.petition if isinstance(record, Intervention) else None


def _settled_intervention(record: Record) -> int | None:
    """Return the id of the intervention that a record approves or rejects."""
    if isinstance(record, Delivery) and record.state is DeliveryState.APPROVED:
        return record.intervention
    return _rejected_intervention(record)


def _rejected_intervention(record: object) -> int | None:
    """Return the id of the intervention that a record rejects."""
    if isinstance(record, Delivery) and record.state is DeliveryState.REJECTED:
        return record.intervention
    return None


def commit_unmoved(
    connection: Connection, what: Commit, *, task: int, after: int
) -> tuple[Entry, ...] | None:
    """Store a commit, or return `None` if the task has changed since an entry.

    So a task cannot begin, or continue with another attempt, between the read and the write.
    """
    return None if _has_changed(connection, task, after) else commit(connection, what)


def reopen(
    connection: Connection, order: Draft, states: Sequence[Draft], *, step: int, after: int
) -> tuple[Entry, ...] | None:
    """Store the restart of an attempt that is over, and the states of the tasks it reopens.

    The restart is stored as delivered, since there is no worker to stamp it. `step` is the last
    step of the attempt. Returns `None` if its task has changed since an entry.
    """
    if _has_changed(connection, order.task, after):
        return None
    (issued,) = append(connection, [order])
    stamp = Delivery(intervention=issued.id, state=DeliveryState.DELIVERED, step=step)
    return issued, *append(connection, [replace(order, record=stamp), *states], opening=True)


def _has_changed(connection: Connection, task: int, after: int) -> bool:
    """Whether a task, or an attempt at it, has changed since an entry."""
    entry = tables.entry
    newer = select(entry.c.id).where(
        entry.c.task == task,
        entry.c.id > after,
        entry.c.kind.in_([kind_of(each) for each in TURNS]),
    )
    return connection.execute(newer.limit(1)).first() is not None
