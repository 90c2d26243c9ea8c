"""The nodes of a fleet, as the journal knows them: every start of one is a row.

How long a node was silent is told by the clock of the journal's database, as the clocks of two
machines may differ.
"""

import json
from collections import defaultdict
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import kind_of, pass_over, rows_of
from midwatch_monitor.journal.core.engine import database_time, parts
from midwatch_monitor.journal.core.journal import Journal, JournalPart, read_method, write_method
from midwatch_monitor.journal.core.tables import REVISION
from midwatch_monitor.journal.fleet.watches import NOBODY
from midwatch_monitor.records import (
    LOST_AFTER_SECONDS,
    AttemptTransition,
    Keeper,
    Lifecycle,
    NodeState,
    NodeStatus,
    name_of,
)
from midwatch_monitor.records.work import EMBEDDED

_ALIVE = [each for each in NodeState if not each.gone]
MISSED = 2
"""Beats that a node may miss once its broker said that it is gone."""
_KEPT = timedelta(days=1)
"""How long people see of a node that it has left or was lost."""
_MOST_FORGOTTEN = 1000
"""Nodes at a time: others wait for the transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InHand:
    """An attempt that a process has."""

    attempt: int
    task: str
    number: int
    holder: str
    """The process."""
    since: datetime
    """When that took it."""
    shared: bool
    """Whether any node may go on with it: not where a process has it to itself."""

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.task}#{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorStatus:
    """What one start of a monitor holds, or held last, of what nobody took over since."""

    holder: str
    until: datetime
    """When the last of its leases runs out, unless it renews it."""
    attempts: tuple[int, ...] = ()
    """Those that it looks after."""
    posts: tuple[str, ...] = ()
    """What one monitor of all does: `learner`, `dispatch FLEET`."""

    @property
    def name(self) -> str:
        """As it was started."""
        return name_of(self.holder)

    def lives(self, now: datetime) -> bool:
        """Whether it holds anything at a moment, by the clock of the journal."""
        return now < self.until


def _of(name: str, boot: str | None) -> list[ColumnElement[bool]]:
    found = [tables.node.c.name == name]
    return found if boot is None else [*found, tables.node.c.boot == boot]


def _enter(connection: Connection, status: NodeStatus, *, alive_seconds: float) -> None:
    """Let a node begin; what was there of earlier starts of it goes.

    Raises UsageError where another process of that name was heard within `alive_seconds`.
    """
    node, now = tables.node, database_time(connection)
    heard = now - timedelta(seconds=alive_seconds)
    alive = [*_of(status.name, None), node.c.state.in_(_ALIVE), node.c.beat_at > heard]
    if connection.execute(select(node.c.boot).where(*alive)).first() is not None:
        raise UsageError(
            f"there is a node {status.name} already, and it was heard just now: give this one "
            f"another name with --name; if it was killed, try again in {alive_seconds:g} s"
        )
    connection.execute(delete(node).where(*_of(status.name, None)))
    _forget(connection)
    values = asdict(status) | {
        "state": status.state.value,
        "labels": ",".join(status.labels),
        "revision": status.revision or REVISION,
        "started_at": now,
        "beat_at": now,
        "doubted_at": None,
    }
    connection.execute(insert(node), values)


def _beat(
    connection: Connection, name: str, boot: str, *, busy: int, state: NodeState = NodeState.UP
) -> NodeState | None:
    """Say that a node lives, and what it does; answers what it was taken for until then.

    `LOST` means that others may have gone on with what it has in hand, and `None` that another
    process goes by its name now.
    """
    node = tables.node
    before = connection.execute(select(node.c.state).where(*_of(name, boot))).scalar()
    if before is None:
        return None
    values = {
        "busy": busy,
        "state": state.value,
        "beat_at": database_time(connection),
        "doubted_at": None,
    }
    connection.execute(update(node).where(*_of(name, boot)), values)
    return NodeState(before)


def _doubt(connection: Connection, name: str, boot: str | None = None) -> None:
    """Note that the broker says of a node, or of one start of it, that it is gone."""
    change = update(tables.node).where(*_of(name, boot), tables.node.c.state.in_(_ALIVE))
    connection.execute(change, {"doubted_at": database_time(connection)})


def _silence_conditions(
    connection: Connection, after_seconds: float, beat_seconds: float
) -> list[ColumnElement[bool]]:
    node, now = tables.node, database_time(connection)
    silent = node.c.beat_at < now - timedelta(seconds=after_seconds)
    missed = node.c.beat_at < now - timedelta(seconds=MISSED * beat_seconds)
    return [node.c.state.in_(_ALIVE), silent | (node.c.doubted_at.is_not(None) & missed)]


def _any_silent(
    connection: Connection,
    after_seconds: float,
    beat_seconds: float,
    ours: list[ColumnElement[bool]],
) -> bool:
    missed = and_(*_silence_conditions(connection, after_seconds, beat_seconds), *ours)
    query = select(tables.node.c.name).where(or_(missed, and_(*_long_gone(connection))))
    return connection.execute(query.limit(1)).first() is not None


def _long_gone(connection: Connection) -> list[ColumnElement[bool]]:
    node = tables.node
    return [node.c.state.not_in(_ALIVE), node.c.beat_at < database_time(connection) - _KEPT]


def _forget(connection: Connection) -> None:
    node = tables.node
    which = select(node.c.name, node.c.boot).where(*_long_gone(connection)).limit(_MOST_FORGOTTEN)
    connection.execute(delete(node).where(tuple_(node.c.name, node.c.boot).in_(which)))


def _lose(
    connection: Connection,
    after_seconds: float,
    beat_seconds: float,
    ours: list[ColumnElement[bool]],
) -> list[NodeStatus]:
    _forget(connection)
    found = _starts(
        connection, *_silence_conditions(connection, after_seconds, beat_seconds), *ours
    )
    for status in found:
        change = update(tables.node).where(*_of(status.name, status.boot))
        connection.execute(change, {"state": NodeState.LOST.value})
    return found


def _starts(connection: Connection, *which: ColumnElement[bool]) -> list[NodeStatus]:
    node = tables.node
    query = select(node).where(*which).order_by(node.c.started_at, node.c.boot)
    found: list[NodeStatus] = []
    for row in connection.execute(query).mappings():
        if row["state"] in list(NodeState):
            known: dict[str, Any] = {
                **row,
                "state": NodeState(row["state"]),
                "labels": tuple(each for each in row["labels"].split(",") if each),
            }
            found.append(NodeStatus(**known))
        else:
            pass_over(connection, f"node {row['name']}", "nobody knows what it does")
    return found


def _newest(connection: Connection, *ours: ColumnElement[bool]) -> list[NodeStatus]:
    """The newest start of each node, by name.

    One that was silent for too long is lost, even if nobody is left to note it.
    """
    newest = {status.name: status for status in _starts(connection, *ours)}
    if not newest:
        return []
    since = database_time(connection) - _lost_after(connection)
    return [
        replace(each, state=NodeState.LOST)
        if each.state in _ALIVE and each.beat_at < since
        else each
        for _, each in sorted(newest.items())
    ]


def _lost_after(connection: Connection) -> timedelta:
    """How long a node may be silent: as the run has it that was handed over last."""
    run = tables.run
    query = select(run.c.settings).where(run.c.keeper == Keeper.MONITOR.value)
    settings = connection.execute(query.order_by(run.c.id.desc()).limit(1)).scalar()
    try:
        said = json.loads(settings or "")["fleet"]["lost_after_seconds"]
        return timedelta(seconds=float(said))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return timedelta(seconds=LOST_AFTER_SECONDS)


def _in_hand(connection: Connection) -> dict[str, list[int]]:
    """The attempts that are at work, by the process that wrote to them last."""
    lease, entry = tables.lease, tables.entry
    kind = kind_of(AttemptTransition)
    last = (
        select(entry.c.attempt, func.max(entry.c.id).label("id"))
        .where(entry.c.kind == kind, entry.c.attempt.is_not(None))
        .group_by(entry.c.attempt)
        .subquery()
    )
    query = (
        select(lease.c.attempt, lease.c.holder, entry.c.id.label("entry"), entry.c.body)
        .join(last, last.c.attempt == lease.c.attempt)
        .join(entry, entry.c.id == last.c.id)
        .order_by(lease.c.attempt)
    )
    held: dict[str, list[int]] = {}
    for row, state in rows_of(connection, query, AttemptTransition):
        if state.lifecycle is Lifecycle.WORKING:
            held.setdefault(row.holder, []).append(row.attempt)
    return held


def _name_attempts(connection: Connection, attempts: Collection[int]) -> dict[int, InHand]:
    """Attempts with their names and since when their process has them, by id."""
    run, task, attempt, lease = tables.run, tables.task, tables.attempt, tables.lease
    shared = and_(run.c.keeper == Keeper.MONITOR.value, task.c.spec != EMBEDDED)
    query = (
        select(attempt.c.id.label("attempt"), task.c.name.label("task"), attempt.c.number)
        .add_columns(lease.c.holder, lease.c.at.label("since"), shared.label("shared"))
        .join(task, task.c.id == attempt.c.task)
        .join(run, run.c.id == task.c.run)
        .join(lease, lease.c.attempt == attempt.c.id)
    )
    found: dict[int, InHand] = {}
    for some in parts(attempts):
        rows = connection.execute(query.where(attempt.c.id.in_(some))).mappings()
        found |= {row["attempt"]: InHand(**row) for row in rows}
    return found


def _monitors(connection: Connection) -> list[MonitorStatus]:
    """The monitors that hold something, or that held last what nobody holds, by name."""
    guard, post = tables.guard, tables.post
    looked_after = connection.execute(
        select(guard).where(guard.c.holder != NOBODY).order_by(guard.c.attempt)
    ).all()
    held = connection.execute(select(post).order_by(post.c.name)).all()
    until: dict[str, datetime] = {}
    for row in (*looked_after, *held):
        until[row.holder] = max(row.until, until.get(row.holder, row.until))
    attempts: dict[str, list[int]] = defaultdict(list)
    for row in looked_after:
        attempts[row.holder].append(row.attempt)
    posts: dict[str, list[str]] = defaultdict(list)
    for row in held:
        posts[row.holder].append(row.name)
    return [
        MonitorStatus(
            holder=holder,
            until=until[holder],
            attempts=tuple(attempts[holder]),
            posts=tuple(posts[holder]),
        )
        for holder in sorted(until)
    ]


class Nodes(JournalPart):
    """The rows of nodes in a journal: of one fleet, or of all that share it."""

    def __init__(self, journal: Journal, *, fleet: str | None = None) -> None:
        super().__init__(journal)
        self._ours = [] if fleet is None else [tables.node.c.fleet == fleet]

    enter = write_method(_enter)
    beat = write_method(_beat)
    doubt = write_method(_doubt)
    in_hand = read_method(_in_hand)
    named = read_method(_name_attempts)
    monitors = read_method(_monitors)

    async def lose(self, *, after_seconds: float, beat_seconds: float) -> list[NodeStatus]:
        """Give up all nodes that were not heard in time; those that were.

        What has left or was given up is forgotten a day after it was last heard.
        """
        if not await self.journal.read(_any_silent, after_seconds, beat_seconds, self._ours):
            return []
        return await self.journal.write(_lose, after_seconds, beat_seconds, self._ours)

    async def all(self) -> list[NodeStatus]:
        """The newest start of each node, by name; lost is who was silent for too long."""
        return await self.journal.read(_newest, *self._ours)

    async def starts(self) -> list[NodeStatus]:
        """All starts of all nodes that are remembered, as they are stored, oldest first."""
        return await self.journal.read(_starts, *self._ours)
