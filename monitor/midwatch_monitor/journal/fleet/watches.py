"""What monitors look after: their leases, and the runs that no process of their own looks after.

A lease lasts for so long unless it is renewed. One that has run out and that nobody took is still
its holder's, with the same incarnation; that rises only when another holder takes it, so what the
one before says from then on is refused.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    DateTime,
    Integer,
    Table,
    Text,
    and_,
    case,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import sqlite

from midwatch_monitor.journal.core import tables, work
from midwatch_monitor.journal.core.encoding import kind_of, record_of
from midwatch_monitor.journal.core.journal import Journal
from midwatch_monitor.journal.core.tables import Moment
from midwatch_monitor.records import AttemptTransition, Hint, Keeper

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql


NOBODY = ""
"""The holder of an attempt that nobody needs to look after any more."""
_MANY = 5_000
"""Attempts in one statement; databases limit how many values it may have."""


def _present() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """Who wants a lease, how long, and since when."""

    holder: str
    seconds: float
    at: datetime
    """The moment by this process's clock, which only SQLite goes by: it has none of its own."""

    def begin(self, connection: Connection) -> ColumnElement[Any]:
        """The present moment, by the clock that all who share the database go by."""
        if connection.dialect.name == "sqlite":
            return literal(self.at, Moment())
        return func.clock_timestamp(type_=DateTime(timezone=True))

    def end(self, connection: Connection) -> ColumnElement[Any]:
        """When the lease runs out."""
        length = timedelta(seconds=self.seconds)
        if connection.dialect.name == "sqlite":
            return literal(self.at + length, Moment())
        return self.begin(connection) + literal(length)


EMBEDDED = "{}"
"""What stands for the assignment of a task that came without a task file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What was written since the last look."""

    last: int
    """The newest entry of the whole journal: the next look asks for what is after it."""
    hints: dict[int, tuple[Hint, ...]]
    """By run; the newest entry of each kind and attempt."""


class Watches:
    """The leases of monitors in a journal, and the runs with `Keeper.MONITOR`."""

    def __init__(self, journal: Journal, *, clock: Callable[[], datetime] = _present) -> None:
        """Lease what is in a journal; `clock` counts only where the database has none."""
        self._journal = journal
        self._clock = clock

    def _term(self, holder: str, seconds: float) -> _Term:
        if holder == NOBODY:
            raise ValueError("a holder must have a name")
        return _Term(holder=holder, seconds=seconds, at=self._clock())

    async def take(
        self, attempts: Collection[int], *, holder: str, seconds: float
    ) -> dict[int, int]:
        """Take or renew the leases on attempts; those that `holder` then has, with incarnation.

        Left out is what another holds whose lease has not run out, and what was erased.
        """
        if not attempts:
            return {}
        return await self._journal.write(
            _take, sorted(set(attempts)), term=self._term(holder, seconds)
        )

    async def run_out(self, attempts: Collection[int]) -> set[int]:
        """Those of these attempts whose holder did not renew its lease in time."""
        if not attempts:
            return set()
        return await self._journal.read(_run_out, sorted(set(attempts)), self._clock())

    async def finish(self, attempts: Collection[int], *, holder: str) -> None:
        """Nobody needs to look after these any more: they are over, and all is judged."""
        if attempts:
            await self._journal.write(_finish, sorted(set(attempts)), self._term(holder, 0))

    async def release(self, *, holder: str) -> None:
        """Let others take all that `holder` has, at once."""
        await self._journal.write(_release, tables.guard, self._term(holder, 0))

    async def take_post(self, name: str, *, holder: str, seconds: float) -> int | None:
        """Take or renew a post; its incarnation, or `None` while another has it."""
        return await self._journal.write(_take_post, name, term=self._term(holder, seconds))

    async def release_post(self, name: str, *, holder: str) -> None:
        """Let another take a post at once, if `holder` has it."""
        of = tables.post.c.name == name
        await self._journal.write(_release, tables.post, self._term(holder, 0), of)

    async def news(self, after: int) -> News:
        """What was written after an entry to runs that no process of their own looks after."""
        return await self._journal.read(_news, after)

    async def unfinished(self, *, since: datetime) -> list[int]:
        """The runs for monitors with an attempt that is not over, or not judged to its end.

        An attempt without a runner may never end, because its process was killed: of which
        nothing was written since a moment, it is left out.
        """
        return await self._journal.read(_unfinished, since)


def _take(connection: Connection, attempts: list[int], *, term: _Term) -> dict[int, int]:
    guard, attempt = tables.guard, tables.attempt
    held: dict[int, int] = {}
    for some in _parts(attempts):
        # From the table of attempts: one that was erased meanwhile is no error.
        wanted = select(
            attempt.c.id, literal(term.holder, Text()), literal(1, Integer()), term.end(connection)
        ).where(attempt.c.id.in_(some))
        columns = ["attempt", "holder", "incarnation", "until"]
        insert = _insert(connection, guard).from_select(columns, wanted)
        taken = _or_take(connection, insert, guard, "attempt", term)
        rows = connection.execute(taken.returning(guard.c.attempt, guard.c.incarnation))
        held |= {row.attempt: row.incarnation for row in rows}
    return held


def _run_out(connection: Connection, attempts: list[int], at: datetime) -> set[int]:
    guard, now = tables.guard, _Term(holder="", seconds=0, at=at).begin(connection)
    late = select(guard.c.attempt).where(guard.c.until <= now)
    found: set[int] = set()
    for some in _parts(attempts):
        found.update(connection.execute(late.where(guard.c.attempt.in_(some))).scalars())
    return found


def _take_post(connection: Connection, name: str, *, term: _Term) -> int | None:
    post = tables.post
    insert = _insert(connection, post).values(
        name=name, holder=term.holder, incarnation=1, until=term.end(connection)
    )
    taken = _or_take(connection, insert, post, "name", term)
    return connection.execute(taken.returning(post.c.incarnation)).scalar()


def _insert(connection: Connection, table: Table) -> "sqlite.Insert | postgresql.Insert":
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    # Only where there is such a server: it takes as long to import as half the journal.
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


def _or_take(
    connection: Connection,
    insert: "sqlite.Insert | postgresql.Insert",
    table: Table,
    key: str,
    term: _Term,
) -> "sqlite.Insert | postgresql.Insert":
    """Where there is a lease already: renew one's own, take one that has run out."""
    mine = table.c.holder == term.holder
    return insert.on_conflict_do_update(
        index_elements=[key],
        set_={
            "holder": term.holder,
            "incarnation": case((mine, table.c.incarnation), else_=table.c.incarnation + 1),
            "until": term.end(connection),
        },
        where=or_(mine, table.c.until <= term.begin(connection)),
    )


def _finish(connection: Connection, attempts: list[int], term: _Term) -> None:
    guard = tables.guard
    for some in _parts(attempts):
        mine = and_(guard.c.attempt.in_(some), guard.c.holder == term.holder)
        ended = update(guard).where(mine)
        connection.execute(ended.values(holder=NOBODY, until=term.begin(connection)))


def _release(
    connection: Connection, table: Table, term: _Term, of: ColumnElement[bool] | None = None
) -> None:
    # The row stays: the next holder's incarnation must be another one.
    running = table.c.until > term.begin(connection)
    wanted = [table.c.holder == term.holder, running, *([] if of is None else [of])]
    connection.execute(update(table).where(*wanted).values(until=term.begin(connection)))


def _parts(attempts: list[int]) -> Iterator[list[int]]:
    for first in range(0, len(attempts), _MANY):
        yield attempts[first : first + _MANY]


def _news(connection: Connection, after: int) -> News:
    # First the end, then what is before it: what is written meanwhile is found the next time.
    last = max(after, work.last_id(connection))
    entry, task, run = tables.entry, tables.task, tables.run
    newest = func.max(entry.c.id).label("newest")
    query = (
        select(task.c.run, entry.c.task, entry.c.attempt, entry.c.kind, newest)
        .join(task, task.c.id == entry.c.task)
        .join(run, run.c.id == task.c.run)
        .where(entry.c.id > after, entry.c.id <= last, run.c.keeper == Keeper.MONITOR.value)
        .group_by(task.c.run, entry.c.task, entry.c.attempt, entry.c.kind)
        .order_by(newest)
    )
    hints: dict[int, tuple[Hint, ...]] = {}
    for row in connection.execute(query) if last > after else ():
        hint = Hint(entry=row.newest, kind=row.kind, task=row.task, attempt=row.attempt)
        hints[row.run] = (*hints.get(row.run, ()), hint)
    return News(last=last, hints=hints)


def _unfinished(connection: Connection, since: datetime) -> list[int]:
    attempt, task, run, guard = tables.attempt, tables.task, tables.run, tables.guard
    entry = tables.entry
    of = select(entry).where(entry.c.attempt == attempt.c.id).order_by(entry.c.id.desc()).limit(1)
    heard = of.with_only_columns(entry.c.at).scalar_subquery()
    state = of.where(entry.c.kind == kind_of(AttemptTransition)).with_only_columns(entry.c.body)
    query = (
        select(
            run.c.id,
            attempt.c.id.label("attempt"),
            guard.c.holder,
            state.scalar_subquery().label("state"),
        )
        .join(task, task.c.run == run.c.id)
        .join(attempt, attempt.c.task == task.c.id)
        .outerjoin(guard, guard.c.attempt == attempt.c.id)
        .where(
            run.c.keeper == Keeper.MONITOR.value,
            or_(guard.c.holder.is_(None), guard.c.holder != NOBODY),
            or_(task.c.spec != EMBEDDED, heard >= since),
        )
    )
    rows = connection.execute(query)
    found = [
        (row.id, row.holder is not None or not _over(connection, row.attempt, row.state))
        for row in rows
    ]
    return sorted({id_ for id_, unfinished in found if unfinished})


def _over(connection: Connection, attempt: int, body: str | None) -> bool:
    name = f"the last state of attempt {attempt}"
    state = record_of(connection, name, AttemptTransition, body)
    return state is not None and state.lifecycle.over
