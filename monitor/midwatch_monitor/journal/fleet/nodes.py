"""The nodes of a fleet in the journal: one row for each start.

How long a node has been silent is measured by the database's clock, since the clocks of two
machines may differ.
"""

import json
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
from midwatch_monitor.journal.fleet.monitor_leases import NOBODY, RUN_POST
from midwatch_monitor.records import (
    LOST_AFTER_SECONDS,
    AttemptTransition,
    Lifecycle,
    NodeState,
    NodeStatus,
    SupervisedBy,
    name_of,
)
from midwatch_monitor.records.work import EMBEDDED

_ALIVE = [each for each in NodeState if not each.gone]
MISSED = 2
"""Heartbeats that a node may miss once the broker has reported it as gone."""
_KEPT = timedelta(days=1)
"""How long a node that left or was lost is still shown."""
_MOST_FORGOTTEN = 1000
"""Number of nodes forgotten at a time, since other writers wait for the transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAttempt:
    """An attempt that a process works on."""

    attempt: int
    task: str
    number: int
    holder: str
    """The process that holds the attempt's lease."""
    since: datetime
    """When the process took it."""
    shared: bool
    """Whether any node may continue it, not only the process that has it."""

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"{self.task}#{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorStatus:
    """What one start of a monitor holds, or held last if nobody has taken it over since."""

    holder: str
    until: datetime
    """When the last of its leases expires, unless it is renewed."""
    attempts: tuple[int, ...] = ()
    """The attempts it monitors."""
    posts: tuple[str, ...] = ()
    """Duties that only one monitor has at a time: `learner`, `dispatch FLEET`."""

    @property
    def name(self) -> str:
        """The monitor's name, without the part for this start."""
        return name_of(self.holder)

    def lives(self, now: datetime) -> bool:
        """Whether it holds anything at that time, by the journal's clock."""
        return now < self.until


def _node_conditions(name: str, boot: str | None) -> list[ColumnElement[bool]]:
    found = [tables.node.c.name == name]
    return found if boot is None else [*found, tables.node.c.boot == boot]


def _add_node(connection: Connection, status: NodeStatus, *, alive_seconds: float) -> None:
    """Add a row for a node's start, and remove those of its earlier starts.

    Raises UsageError if another process of that name was heard from within `alive_seconds`.
    """
    node, now = tables.node, database_time(connection)
    heard = now - timedelta(seconds=alive_seconds)
    alive = [*_node_conditions(status.name, None), node.c.state.in_(_ALIVE), node.c.beat_at > heard]
    if connection.execute(select(node.c.boot).where(*alive)).first() is not None:
        raise UsageError(
            f"there is already a node {status.name}, and it was heard from just now: give this one "
            f"another name with --name; if it was killed, try again in {alive_seconds:g} s"
        )
    connection.execute(delete(node).where(*_node_conditions(status.name, None)))
    _delete_long_gone(connection)
    values = asdict(status) | {
        "state": status.state.value,
        "labels": ",".join(status.labels),
        "revision": status.revision or REVISION,
        "started_at": now,
        "beat_at": now,
        "doubted_at": None,
    }
    connection.execute(insert(node), values)


def _record_beat(
    connection: Connection, name: str, boot: str, *, busy: int, state: NodeState = NodeState.UP
) -> NodeState | None:
    """Record a node's heartbeat and its work; return its previous state.

    `LOST` means that others may have taken over its work, and `None` that another process now uses
    its name.
    """
    node = tables.node
    before = connection.execute(select(node.c.state).where(*_node_conditions(name, boot))).scalar()
    if before is None:
        return None
    values = {
        "busy": busy,
        "state": state.value,
        "beat_at": database_time(connection),
        "doubted_at": None,
    }
    connection.execute(update(node).where(*_node_conditions(name, boot)), values)
    return NodeState(before)


def _record_doubt(connection: Connection, name: str, boot: str | None = None) -> None:
    """Record the broker's report that a node, or one start of it, is gone."""
    change = update(tables.node).where(
        *_node_conditions(name, boot), tables.node.c.state.in_(_ALIVE)
    )
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


def _delete_long_gone(connection: Connection) -> None:
    node = tables.node
    which = select(node.c.name, node.c.boot).where(*_long_gone(connection)).limit(_MOST_FORGOTTEN)
    connection.execute(delete(node).where(tuple_(node.c.name, node.c.boot).in_(which)))


def _record_lost_nodes(
    connection: Connection,
    after_seconds: float,
    beat_seconds: float,
    ours: list[ColumnElement[bool]],
) -> list[NodeStatus]:
    _delete_long_gone(connection)
    found = _read_starts(
        connection, *_silence_conditions(connection, after_seconds, beat_seconds), *ours
    )
    for status in found:
        change = update(tables.node).where(*_node_conditions(status.name, status.boot))
        connection.execute(change, {"state": NodeState.LOST.value})
    return found


def _read_starts(connection: Connection, *which: ColumnElement[bool]) -> list[NodeStatus]:
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
            pass_over(connection, f"node {row['name']}", "its state is unknown")
    return found


def _newest_starts(connection: Connection, *ours: ColumnElement[bool]) -> list[NodeStatus]:
    """Return the newest start of each node, by name.

    A node that has been silent for too long counts as lost, even if nobody has recorded that.
    """
    newest = {status.name: status for status in _read_starts(connection, *ours)}
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
    """Return how long a node may be silent, as configured in the last submitted run."""
    run = tables.run
    query = select(run.c.settings).where(run.c.keeper == SupervisedBy.MONITOR.value)
    settings = connection.execute(query.order_by(run.c.id.desc()).limit(1)).scalar()
    try:
        said = json.loads(settings or "")["fleet"]["lost_after_seconds"]
        return timedelta(seconds=float(said))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return timedelta(seconds=LOST_AFTER_SECONDS)


def _in_hand(connection: Connection) -> dict[str, list[int]]:
    """Return the attempts under way, by the process that holds their lease."""
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


def _name_attempts(connection: Connection, attempts: Collection[int]) -> dict[int, HeldAttempt]:
    """Return attempts by id, with their names, and when their processes took them."""
    run, task, attempt, lease = tables.run, tables.task, tables.attempt, tables.lease
    shared = and_(run.c.keeper == SupervisedBy.MONITOR.value, task.c.spec != EMBEDDED)
    query = (
        select(attempt.c.id.label("attempt"), task.c.name.label("task"), attempt.c.number)
        .add_columns(lease.c.holder, lease.c.at.label("since"), shared.label("shared"))
        .join(task, task.c.id == attempt.c.task)
        .join(run, run.c.id == task.c.run)
        .join(lease, lease.c.attempt == attempt.c.id)
    )
    found: dict[int, HeldAttempt] = {}
    for some in parts(attempts):
        rows = connection.execute(query.where(attempt.c.id.in_(some))).mappings()
        found |= {row["attempt"]: HeldAttempt(**row) for row in rows}
    return found


def _monitors(connection: Connection) -> list[MonitorStatus]:
    """Return the monitors that hold leases or duties, expired ones included, by name."""
    guard, post = tables.guard, tables.post
    looked_after = connection.execute(
        select(guard).where(guard.c.holder != NOBODY).order_by(guard.c.attempt)
    ).all()
    of_monitors = select(post).where(post.c.name.not_like(f"{RUN_POST}%"))
    held = connection.execute(of_monitors.order_by(post.c.name)).all()
    found: dict[str, MonitorStatus] = {}
    for row in (*looked_after, *held):
        known = found.get(row.holder) or MonitorStatus(holder=row.holder, until=row.until)
        found[row.holder] = replace(known, until=max(row.until, known.until))
    return [
        replace(
            found[holder],
            attempts=tuple(row.attempt for row in looked_after if row.holder == holder),
            posts=tuple(row.name for row in held if row.holder == holder),
        )
        for holder in sorted(found)
    ]


class Nodes(JournalPart):
    """The nodes in a journal, of one fleet or of all fleets that share it."""

    def __init__(self, journal: Journal, *, fleet: str | None = None) -> None:
        super().__init__(journal)
        self._ours = [] if fleet is None else [tables.node.c.fleet == fleet]

    enter = write_method(_add_node)
    beat = write_method(_record_beat)
    doubt = write_method(_record_doubt)
    in_hand = read_method(_in_hand)
    named = read_method(_name_attempts)
    monitors = read_method(_monitors)

    async def lose(self, *, after_seconds: float, beat_seconds: float) -> list[NodeStatus]:
        """Mark nodes that were not heard from in time as lost, and return them.

        Nodes that left or were lost are removed a day after they were last heard from.
        """
        if not await self.journal.read(_any_silent, after_seconds, beat_seconds, self._ours):
            return []
        return await self.journal.write(_record_lost_nodes, after_seconds, beat_seconds, self._ours)

    async def all(self) -> list[NodeStatus]:
        """Return the newest start of each node, by name; silent ones count as lost."""
        return await self.journal.read(_newest_starts, *self._ours)

    async def starts(self) -> list[NodeStatus]:
        """Return all remembered starts of nodes as stored, oldest first."""
        return await self.journal.read(_read_starts, *self._ours)
