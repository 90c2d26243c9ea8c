"""The runs that no process of their own looks after: what is new in them, and what is unfinished.

A monitor looks after all of them, however many have ended: nothing here reads a run that is over.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, or_, select

from midwatch_monitor.journal.admin.damage import record_of
from midwatch_monitor.journal.core import queries, tables
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.journal.core.journal import Journal
from midwatch_monitor.journal.fleet.watches import NOBODY
from midwatch_monitor.records import AttemptTransition, Hint, Keeper

EMBEDDED = "{}"
"""What stands for the assignment of a task that came without a task file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What was written since the last look."""

    last: int
    """The newest entry of the whole journal: the next look asks for what is after it."""
    hints: dict[int, tuple[Hint, ...]]
    """By run; the newest entry of each kind and attempt."""


class Unattended:
    """The runs of a journal with `Keeper.MONITOR`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def news(self, after: int) -> News:
        """What was written after an entry."""
        return await self._journal.read(_news, after)

    async def unfinished(self, *, since: datetime) -> list[int]:
        """The runs with an attempt that is not over, or was watched and not judged to its end.

        An attempt without a runner may never end, because its process was killed: of which
        nothing was written since a moment, it is left out.
        """
        return await self._journal.read(_unfinished, since)


def _news(connection: Connection, after: int) -> News:
    # First the end, then what is before it: what is written meanwhile is found the next time.
    last = max(after, queries.last_id(connection))
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
