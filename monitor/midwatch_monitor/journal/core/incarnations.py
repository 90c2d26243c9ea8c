"""Under which incarnation an attempt is written; who writes under an old one is refused.

A recorder writes under the attempt's lease, a monitor under its guard. What the commits of one
transaction were written under is asked at once for all of them.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from sqlalchemy import ARRAY, BigInteger, Connection, Select, Table, any_, bindparam, select

from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import kind_of, record_of
from midwatch_monitor.journal.core.engine import execute_in_sqlite
from midwatch_monitor.records import (
    AttemptTransition,
    Commit,
    Delivery,
    Intervention,
    Record,
    TaskTransition,
)

_WRITTEN = "at incarnation {}, not {}: another process"
_WATCHED = "watched at incarnation {}, not {}: another monitor"


def incarnation(connection: Connection, attempt: int) -> int | None:
    """The one of the attempt's lease; `None` if nobody has claimed it."""
    return _held(connection, tables.lease, [attempt]).get(attempt)


def require(connection: Connection, given: Sequence[Commit]) -> None:
    """Raise StaleIncarnationError for a commit under a lease or a guard that has another now."""
    leased = {_leased(each) for each in given if each.incarnation is not None}
    _require(connection, tables.lease, leased, _WRITTEN)
    guarded = {pair for each in given if each.guard is not None for pair in _guarded(each)}
    _require(connection, tables.guard, guarded, _WATCHED)


def require_guard(connection: Connection, attempt: int, guard: int) -> None:
    """Raise StaleIncarnationError where the guard of the attempt has another incarnation now."""
    _require(connection, tables.guard, {(attempt, guard)}, _WATCHED)


def _require(
    connection: Connection, table: Table, wanted: Collection[tuple[int, int | None]], how: str
) -> None:
    if not wanted:
        return
    held = _held(connection, table, {attempt for attempt, _ in wanted})
    for attempt, number in sorted(wanted):
        if held.get(attempt) != number:
            stands = how.format(held.get(attempt), number)
            raise StaleIncarnationError(f"attempt {attempt} is {stands} has taken it over")


def _leased(what: Commit) -> tuple[int, int | None]:
    if what.attempt is None:
        raise ValueError("a commit with an incarnation must name its attempt")
    return what.attempt, what.incarnation


def _guarded(what: Commit) -> set[tuple[int, int | None]]:
    return {(each.attempt, what.guard) for each in what.drafts if each.attempt is not None}


def _held(connection: Connection, table: Table, attempts: Collection[int]) -> Mapping[int, int]:
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


TURNS: tuple[type[Record], ...] = (TaskTransition, AttemptTransition, Intervention, Delivery)
"""The records by which it shows what can be done about a task."""


def require_open(connection: Connection, task: int) -> None:
    """Raise StaleIncarnationError where a task is over: nobody begins with it any more."""
    entry = tables.entry
    query = select(entry.c.body).where(
        entry.c.task == task, entry.c.kind == kind_of(TaskTransition)
    )
    body = connection.execute(query.order_by(entry.c.id.desc()).limit(1)).scalar()
    state = record_of(connection, f"the last state of task {task}", TaskTransition, body)
    if state is not None and state.lifecycle.over:
        raise StaleIncarnationError(f"task {task} is already {state.lifecycle.value}")


def moved(connection: Connection, task: int, after: int) -> bool:
    """Whether a task, or an attempt at it, is not as it was after an entry."""
    entry = tables.entry
    newer = select(entry.c.id).where(
        entry.c.task == task,
        entry.c.id > after,
        entry.c.kind.in_([kind_of(each) for each in TURNS]),
    )
    return connection.execute(newer.limit(1)).first() is not None
