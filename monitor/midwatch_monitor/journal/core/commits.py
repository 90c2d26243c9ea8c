"""A commit: what is refused, and how the rest is stored, as many rows at once as can be.

Every function here runs in a write transaction: no other writer comes between what it looks up
and what it then writes. A recorder writes under the incarnation of an attempt's lease, a monitor
under that of its guard; who writes under an old one is refused. What the commits of one transaction
were written under is asked at once for all of them.
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
    """Store what belongs together. Raises StaleIncarnationError for what comes too late."""
    try:
        (entries,) = commit_all(connection, [what])
    except IntegrityError as error:
        if is_duplicate(error):
            raise StaleIncarnationError(
                f"another process has already written this part of attempt {_subject(what)}"
            ) from error
        raise
    return entries


def commit_all(connection: Connection, given: Sequence[Commit]) -> list[tuple[Entry, ...]]:
    """Store many commits in their order, or raise for one of them: then none may stay."""
    _require_incarnations(connection, given)
    entries = append(connection, [draft for each in given for draft in each.drafts])
    for each in given:
        if each.messages or each.results:
            _extend(connection, each)
    rest = iter(entries)
    return [tuple(islice(rest, len(each.drafts))) for each in given]


def _subject(what: Commit) -> str:
    numbers = {what.attempt, *(draft.attempt for draft in what.drafts)} - {None}
    return ", ".join(map(str, numbers))


def _extend(connection: Connection, what: Commit) -> None:
    """Append to the attempt's history and to the results of its tool calls."""
    if what.attempt is None:
        raise ValueError("a commit with messages or results must name its attempt")
    for each in (*what.messages, *what.results):
        if len(each.body) > MOST_BYTES:
            size, most = len(each.body) // 1024**2, MOST_BYTES // 1024**2
            raise JournalError(f"a message or result of {size} MiB is not stored: {most} at most")
    if what.messages:
        rows = [{"attempt": what.attempt, "idx": m.index, "body": m.body} for m in what.messages]
        connection.execute(insert(tables.message), rows)
    if what.results:
        rows = [{"attempt": what.attempt, "call": r.call, "body": r.body} for r in what.results]
        connection.execute(insert(tables.result), rows)


_WRITTEN = "at incarnation {}, not {}: another process"
_WATCHED = "watched at incarnation {}, not {}: another monitor"


def incarnation(connection: Connection, attempt: int) -> int | None:
    """The one of the attempt's lease; `None` if nobody has claimed it."""
    return _incarnations_held(connection, tables.lease, [attempt]).get(attempt)


def _require_incarnations(connection: Connection, given: Sequence[Commit]) -> None:
    """Raise StaleIncarnationError for a commit under a lease or a guard that has another now."""
    leased = {_leases_of(each) for each in given if each.incarnation is not None}
    _require_held(connection, tables.lease, leased, _WRITTEN)
    guarded = {pair for each in given if each.guard is not None for pair in _guards_of(each)}
    _require_held(connection, tables.guard, guarded, _WATCHED)


def require_guard(connection: Connection, attempt: int, guard: int) -> None:
    """Raise StaleIncarnationError where the guard of the attempt has another incarnation now."""
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


def _guards_of(what: Commit) -> set[tuple[int, int | None]]:
    return {(each.attempt, what.guard) for each in what.drafts if each.attempt is not None}


def _incarnations_held(
    connection: Connection, table: Table, attempts: Collection[int]
) -> Mapping[int, int]:
    """The incarnation of each of the attempts that has one."""
    wanted = list(attempts)
    if connection.dialect.name == "sqlite":
        return dict(
            execute_in_sqlite(connection, _in_sqlite(table), (json.dumps(wanted),)).fetchall()
        )
    if len(wanted) == 1:
        rows = connection.execute(_of_one(table), {"of": wanted[0]})
    else:
        rows = connection.execute(_of_many(table), {"of": wanted})
    return dict(rows.all())


@cache
def _in_sqlite(table: Table) -> str:
    # A list of any length is one value: the driver knows the statement again.
    return (
        f"SELECT attempt, incarnation FROM {table.name} "
        "WHERE attempt IN (SELECT value FROM json_each(?))"
    )


@cache
def _of_one(table: Table) -> Select[int, int]:
    # Apart from many: PostgreSQL makes a new plan for every list, and keeps the one for a number.
    return _of(table).where(table.c.attempt == bindparam("of"))


@cache
def _of_many(table: Table) -> Select[int, int]:
    return _of(table).where(table.c.attempt == any_(bindparam("of", type_=ARRAY(BigInteger))))


def _of(table: Table) -> Select[int, int]:
    return select(table.c.attempt, table.c.incarnation)


R = TypeVar("R", bound=Record)

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
_OF_TASK = _LATEST.where(tables.entry.c.task == bindparam("of"))
_OF_ATTEMPT = _LATEST.where(tables.entry.c.attempt == bindparam("of"))
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


def append(
    connection: Connection, drafts: Sequence[Draft], *, opening: bool = False
) -> list[Entry]:
    """Store drafts in their order. Raises StaleIncarnationError for what comes too late.

    `opening` is a person's word by which tasks that are over are so no more.
    """
    drafts = mask_drafts(connection, drafts)
    if _ALONE.isdisjoint([type(draft.record) for draft in drafts]):
        return _store(connection, drafts)
    entries: list[Entry] = []
    for alone, part in groupby(drafts, key=_is_alone):
        if not alone:
            entries += _store(connection, list(part))
            continue
        for draft in part:
            if not opening:
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
    stored = _moment_encoder(dialect)
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
def _moment_encoder(dialect: Dialect) -> Callable[[datetime], object]:
    """How the database's driver is given a moment."""
    processor = UtcTime().dialect_impl(dialect).bind_processor(dialect)
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
    """The newest record of a kind of a task or of an attempt; `None` where none can be read."""
    query, of, whose = _OF_TASK, task, f"task {task}"
    if attempt is not None:
        query, of, whose = _OF_ATTEMPT, attempt, f"attempt {attempt}"
    kind = kind_of(word)
    body = connection.execute(query, {"kind": kind, "of": of}).scalar()
    return record_of(connection, f"the last {kind} of {whose}", word, body)


def refuse_late(connection: Connection, *, task: int, attempt: int | None = None) -> None:
    """Over is over: nothing follows a completed, failed, canceled or rejected status."""
    if attempt is None:
        state, what = latest(connection, TaskTransition, task=task), f"task {task}"
    else:
        state, what = latest(connection, AttemptTransition, attempt=attempt), f"attempt {attempt}"
    if state is not None and state.lifecycle.over:
        raise StaleIncarnationError(
            f"{what} is already {state.lifecycle.value}; a late result cannot change that"
        )


def _move_on(connection: Connection, escalation: Escalation, draft: Draft) -> None:
    """An escalation is answered once and closed once, whoever else thinks that it is still open."""
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
"""The records by which it shows what can be done about a task."""


def is_answer(draft: Draft) -> bool:
    """Whether a draft answers a worker, or says whether an intervention may take effect. Pure."""
    return _petition(draft.record) is not None or _settles(draft.record) is not None


def commit_answer(connection: Connection, what: Commit) -> tuple[Entry, ...] | None:
    """Store it unless it answers what was answered already; `None` where it does.

    An answer that was rejected, also by what is stored here, is none.
    """
    rejected = {each for draft in what.drafts if (each := _rejects(draft.record)) is not None}
    for draft in what.drafts:
        petition, held = _petition(draft.record), _settles(draft.record)
        if petition is not None and _answered(connection, draft, petition, rejected):
            return None
        if held is not None and _stamped(connection, draft, held):
            return None
    return commit(connection, what)


def _answered(connection: Connection, draft: Draft, petition: int, rejected: set[int]) -> bool:
    stands = set[int]()
    for id, record in _since(connection, draft, petition):
        if isinstance(record, Intervention) and record.petition == petition:
            stands.add(id)
        elif (turned_down := _rejects(record)) is not None:
            stands.discard(turned_down)
    return bool(stands - rejected)


def _stamped(connection: Connection, draft: Draft, held: int) -> bool:
    """Whether an intervention waits no more."""
    since = _since(connection, draft, held)
    return any(isinstance(each, Delivery) and each.intervention == held for _, each in since)


def _since(connection: Connection, draft: Draft, id: int) -> list[tuple[int, Record | None]]:
    """What was said to the attempt of a draft since an entry, and became of it; with ids."""
    entry = tables.entry
    kinds = [kind_of(Intervention), kind_of(Delivery)]
    query = select(entry.c.id, entry.c.kind, entry.c.body).where(
        entry.c.attempt == draft.attempt, entry.c.id > id, entry.c.kind.in_(kinds)
    )
    return [
        (row.id, record_in(connection, f"entry {row.id}", row.kind, row.body))
        for row in connection.execute(query.order_by(entry.c.id))
    ]


def _petition(record: Record) -> int | None:
    """What of a worker's a record answers."""
    return record.petition if isinstance(record, Intervention) else None


def _settles(record: Record) -> int | None:
    """The intervention that a record approves or turns down."""
    if isinstance(record, Delivery) and record.state is DeliveryState.APPROVED:
        return record.intervention
    return _rejects(record)


def _rejects(record: object) -> int | None:
    """The intervention that a record turns down."""
    if isinstance(record, Delivery) and record.state is DeliveryState.REJECTED:
        return record.intervention
    return None


def commit_unmoved(
    connection: Connection, what: Commit, *, task: int, after: int
) -> tuple[Entry, ...] | None:
    """Store it unless the task has moved since an entry; `None` where it has.

    So it does not begin, or go on with another attempt, between the look and the word.
    """
    return None if _moved(connection, task, after) else commit(connection, what)


def reopen(
    connection: Connection, order: Draft, states: Sequence[Draft], *, step: int, after: int
) -> tuple[Entry, ...] | None:
    """Store the restart of an attempt that is over, and the states of the tasks that it opens.

    It is delivered at once: nobody is at work there who could stamp it. `step` is the attempt's
    last. `None` where its task has moved since an entry.
    """
    if _moved(connection, order.task, after):
        return None
    (issued,) = append(connection, [order])
    stamp = Delivery(intervention=issued.id, state=DeliveryState.DELIVERED, step=step)
    return issued, *append(connection, [replace(order, record=stamp), *states], opening=True)


def _moved(connection: Connection, task: int, after: int) -> bool:
    """Whether a task, or an attempt at it, is not as it was after an entry."""
    entry = tables.entry
    newer = select(entry.c.id).where(
        entry.c.task == task,
        entry.c.id > after,
        entry.c.kind.in_([kind_of(each) for each in TURNS]),
    )
    return connection.execute(newer.limit(1)).first() is not None
