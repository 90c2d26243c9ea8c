"""Leases on attempts and on duties, and the runs that only monitors supervise.

A lease expires unless it is renewed. Until somebody else takes an expired lease, its holder may
renew it with the same incarnation. The incarnation rises only when another holder takes the lease;
from then on, the previous holder's writes are refused.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Table,
    Text,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from midwatch_monitor.journal.core import tables, work
from midwatch_monitor.journal.core.clock import Clock, now
from midwatch_monitor.journal.core.encoding import kind_of, record_of
from midwatch_monitor.journal.core.engine import database_time, parts
from midwatch_monitor.journal.core.journal import Journal, JournalPart, read_method, write_method
from midwatch_monitor.journal.core.tables import UtcTime
from midwatch_monitor.records import AttemptTransition, Hint, SupervisedBy
from midwatch_monitor.records.work import EMBEDDED

NOBODY = ""
"""The holder of an attempt that no longer needs a monitor."""
RUN_POST = "run "
"""Prefix of a post whose holder works on the run with the number that follows."""


def _time(connection: Connection, clock: Clock) -> datetime:
    """Return the time that all users of the database share; SQLite has no clock of its own."""
    return clock() if connection.dialect.name == "sqlite" else database_time(connection)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """Who wants a lease, and for how long."""

    holder: str
    seconds: float
    clock: Clock

    def until(self, now: datetime) -> datetime:
        """Return when a lease taken at a time expires."""
        return now + timedelta(seconds=self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalNews:
    """What was written since the last call."""

    last: int
    """The newest entry of the whole journal: the next call asks for later ones."""
    hints: dict[int, tuple[Hint, ...]]
    """By run: a hint at the newest entry of each kind, for each attempt and task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A duty that one process has at a time, as of when it was read."""

    until: datetime
    """When its lease expires, unless it is renewed."""
    seconds_left: float

    @property
    def expired(self) -> bool:
        """Whether no process has it."""
        return self.seconds_left <= 0


def _take_leases(connection: Connection, attempts: Collection[int], term: _Term) -> dict[int, int]:
    guard, attempt = tables.guard, tables.attempt
    now, held = _time(connection, term.clock), dict[int, int]()
    for some in parts(attempts):
        these = guard.c.attempt.in_(some)
        _renew(connection, guard, these, term, now)
        # Selected from the attempts: it is no error if one was erased in the meantime.
        new = select(
            *(attempt.c.id, literal(term.holder, Text()), literal(1, Integer())),
            literal(term.until(now), UtcTime()),
        ).where(attempt.c.id.in_(some), ~exists().where(guard.c.attempt == attempt.c.id))
        columns = ["attempt", "holder", "incarnation", "until"]
        connection.execute(insert(guard).from_select(columns, new))
        mine = select(guard.c.attempt, guard.c.incarnation)
        rows = connection.execute(mine.where(these, guard.c.holder == term.holder))
        held |= {row.attempt: row.incarnation for row in rows}
    return held


def _renew(
    connection: Connection, table: Table, these: ColumnElement[bool], term: _Term, now: datetime
) -> None:
    """Renew the holder's own leases among those selected, and take expired ones of others."""
    mine = table.c.holder == term.holder
    taken = case((mine, table.c.incarnation), else_=table.c.incarnation + 1)
    values = {"holder": term.holder, "incarnation": taken, "until": term.until(now)}
    free = or_(mine, table.c.until <= now)
    connection.execute(update(table).where(these, free).values(values))


def _run_out(connection: Connection, attempts: Collection[int], clock: Clock) -> set[int]:
    guard, now = tables.guard, _time(connection, clock)
    late = select(guard.c.attempt).where(guard.c.until <= now)
    found: set[int] = set()
    for some in parts(attempts):
        found.update(connection.execute(late.where(guard.c.attempt.in_(some))).scalars())
    return found


def _take_post(connection: Connection, name: str, term: _Term) -> int | None:
    post, now = tables.post, _time(connection, term.clock)
    this = post.c.name == name
    _renew(connection, post, this, term, now)
    row = connection.execute(select(post).where(this)).first()
    if row is not None:
        return row.incarnation if row.holder == term.holder else None
    values = {"name": name, "holder": term.holder, "incarnation": 1, "until": term.until(now)}
    connection.execute(insert(post), values)
    return 1


def _read_posts(connection: Connection, names: Collection[str], clock: Clock) -> dict[str, Post]:
    post, now = tables.post, _time(connection, clock)
    found: dict[str, Post] = {}
    for some in parts(names):
        for row in connection.execute(select(post).where(post.c.name.in_(some))):
            left = (row.until - now).total_seconds()
            found[row.name] = Post(until=row.until, seconds_left=left)
    return found


def _delete_post(connection: Connection, name: str) -> None:
    connection.execute(delete(tables.post).where(tables.post.c.name == name))


def _finish_leases(connection: Connection, attempts: Collection[int], term: _Term) -> None:
    guard, values = tables.guard, {"holder": NOBODY, "until": _time(connection, term.clock)}
    for some in parts(attempts):
        mine = and_(guard.c.attempt.in_(some), guard.c.holder == term.holder)
        connection.execute(update(guard).where(mine).values(values))


def _release(
    connection: Connection, table: Table, term: _Term, of: ColumnElement[bool] | None = None
) -> None:
    # The row is kept: the next holder's incarnation must differ.
    now = _time(connection, term.clock)
    wanted = [table.c.holder == term.holder, table.c.until > now, *([] if of is None else [of])]
    connection.execute(update(table).where(*wanted).values(until=now))


def _read_news(connection: Connection, after: int) -> JournalNews:
    """Return what was written after an entry to runs that monitors supervise."""
    # The last id first, then the entries up to it: later ones are found next time.
    last = max(after, work.last_id(connection))
    entry, task, run = tables.entry, tables.task, tables.run
    newest = func.max(entry.c.id).label("newest")
    query = (
        select(task.c.run, entry.c.task, entry.c.attempt, entry.c.kind, newest)
        .join(task, task.c.id == entry.c.task)
        .join(run, run.c.id == task.c.run)
        .where(entry.c.id > after, entry.c.id <= last, run.c.keeper == SupervisedBy.MONITOR.value)
        .group_by(task.c.run, entry.c.task, entry.c.attempt, entry.c.kind)
        .order_by(newest)
    )
    hints: dict[int, tuple[Hint, ...]] = {}
    for row in connection.execute(query) if last > after else ():
        hint = Hint(entry=row.newest, kind=row.kind, task=row.task, attempt=row.attempt)
        hints[row.run] = (*hints.get(row.run, ()), hint)
    return JournalNews(last=last, hints=hints)


def _unfinished_runs(connection: Connection, *, since: datetime) -> list[int]:
    """Return the runs for monitors that have an attempt that is not over, or not fully judged.

    An agent with its own watch never ends its attempt if its process is killed: such an attempt is
    left out if nothing has been written about it since the given time.
    """
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
            run.c.keeper == SupervisedBy.MONITOR.value,
            or_(guard.c.holder.is_(None), guard.c.holder != NOBODY),
            or_(task.c.spec != EMBEDDED, heard >= since),
        )
    )
    rows = connection.execute(query)
    found = [
        (row.id, row.holder is not None or not _is_over(connection, row.attempt, row.state))
        for row in rows
    ]
    return sorted({id_ for id_, unfinished in found if unfinished})


def _is_over(connection: Connection, attempt: int, body: str | None) -> bool:
    name = f"the last state of attempt {attempt}"
    state = record_of(connection, name, AttemptTransition, body)
    return state is not None and state.lifecycle.over


class MonitorLeases(JournalPart):
    """Takes and renews leases of monitors; finds the runs with `SupervisedBy.MONITOR`."""

    def __init__(self, journal: Journal, *, clock: Clock = now) -> None:
        """Manage leases in a journal; `clock` is used only if the database has none."""
        super().__init__(journal)
        self._clock = clock

    def _term(self, holder: str, seconds: float = 0) -> _Term:
        if holder == NOBODY:
            raise ValueError("a holder must have a name")
        return _Term(holder=holder, seconds=seconds, clock=self._clock)

    async def take(
        self, attempts: Collection[int], *, holder: str, seconds: float
    ) -> dict[int, int]:
        """Take or renew leases on attempts; return those that `holder` then has, with incarnation.

        Attempts with another holder's valid lease, and erased ones, are left out.
        """
        if not attempts:
            return {}
        return await self.journal.write(_take_leases, attempts, self._term(holder, seconds))

    async def run_out(self, attempts: Collection[int]) -> set[int]:
        """Return those of these attempts whose holders did not renew their leases in time."""
        return await self.journal.read(_run_out, attempts, self._clock) if attempts else set()

    async def finish(self, attempts: Collection[int], *, holder: str) -> None:
        """Record that these attempts no longer need a monitor: they are over and fully judged."""
        if attempts:
            await self.journal.write(_finish_leases, attempts, self._term(holder))

    async def release(self, *, holder: str) -> None:
        """Release all leases of `holder` at once."""
        await self.journal.write(_release, tables.guard, self._term(holder))

    async def take_post(self, name: str, *, holder: str, seconds: float) -> int | None:
        """Take or renew a duty that one process has at a time; return its incarnation.

        Returns `None` while another process holds it.
        """
        return await self.journal.write(_take_post, name, self._term(holder, seconds))

    async def release_post(self, name: str, *, holder: str) -> None:
        """Release a duty at once, if `holder` has it."""
        of = tables.post.c.name == name
        await self.journal.write(_release, tables.post, self._term(holder), of)

    async def posts(self, names: Collection[str]) -> dict[str, Post]:
        """Return those of these duties that some process has or had, by name."""
        return await self.journal.read(_read_posts, names, self._clock) if names else {}

    delete_post = write_method(_delete_post)
    news = read_method(_read_news)
    unfinished = read_method(_unfinished_runs)
