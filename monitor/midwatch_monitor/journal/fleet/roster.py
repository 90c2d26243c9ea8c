"""Who has what in hand, for people: attempts by name, and what monitors hold.

A node says in a row of its own that it lives; of a monitor the journal knows only its leases. It
renews them three times in `fleet.lease_seconds`, so one whose leases have all run out is gone.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, select

from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.journal import Journal
from midwatch_monitor.journal.fleet.unattended import EMBEDDED
from midwatch_monitor.journal.fleet.watches import NOBODY
from midwatch_monitor.records import Keeper

_MANY = 500
"""Attempts in one statement; databases limit how many values it may have."""


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
        return self.holder.rpartition(":")[0] or self.holder

    def lives(self, now: datetime) -> bool:
        """Whether it holds anything at a moment, by the clock of the journal."""
        return now < self.until


class Roster:
    """What the leases of a journal tell of the processes of a fleet."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def named(self, attempts: Collection[int]) -> dict[int, InHand]:
        """Attempts with their names and since when their process has them, by id."""
        return await self._journal.read(_named, sorted(set(attempts)))

    async def monitors(self) -> list[MonitorStatus]:
        """The monitors that hold something, or that held last what nobody holds, by name."""
        return await self._journal.read(_monitors)


def _named(connection: Connection, attempts: list[int]) -> dict[int, InHand]:
    run, task, attempt, lease = tables.run, tables.task, tables.attempt, tables.lease
    shared = and_(run.c.keeper == Keeper.MONITOR.value, task.c.spec != EMBEDDED)
    query = (
        select(attempt.c.id, task.c.name, attempt.c.number, lease.c.holder, lease.c.at)
        .add_columns(shared.label("shared"))
        .join(task, task.c.id == attempt.c.task)
        .join(run, run.c.id == task.c.run)
        .join(lease, lease.c.attempt == attempt.c.id)
    )
    found: dict[int, InHand] = {}
    for first in range(0, len(attempts), _MANY):
        some = attempts[first : first + _MANY]
        for row in connection.execute(query.where(attempt.c.id.in_(some))):
            found[row.id] = InHand(
                attempt=row.id,
                task=row.name,
                number=row.number,
                holder=row.holder,
                since=row.at,
                shared=bool(row.shared),
            )
    return found


def _monitors(connection: Connection) -> list[MonitorStatus]:
    guard, post = tables.guard, tables.post
    attempts: dict[str, list[int]] = defaultdict(list)
    posts: dict[str, list[str]] = defaultdict(list)
    until: dict[str, datetime] = {}
    for row in connection.execute(
        select(guard).where(guard.c.holder != NOBODY).order_by(guard.c.attempt)
    ):
        attempts[row.holder].append(row.attempt)
        until[row.holder] = max(row.until, until.get(row.holder, row.until))
    for row in connection.execute(select(post).order_by(post.c.name)):
        posts[row.holder].append(row.name)
        until[row.holder] = max(row.until, until.get(row.holder, row.until))
    return [
        MonitorStatus(
            holder=holder,
            until=until[holder],
            attempts=tuple(attempts[holder]),
            posts=tuple(posts[holder]),
        )
        for holder in sorted(until)
    ]
