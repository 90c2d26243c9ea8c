"""The runs that were handed over to a fleet, as they end: what there is to look back at then."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from midwatch_monitor.journal.admin.damage import record_of
from midwatch_monitor.journal.core import queries, tables
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.journal.core.journal import Journal
from midwatch_monitor.journal.fleet.unattended import EMBEDDED
from midwatch_monitor.journal.learned import versions
from midwatch_monitor.records import Keeper, Run, TaskTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """Where the work of a run in one project was over."""

    project: str
    task: int
    """The last of its tasks that was over."""
    entry: int
    """The journal id of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The runs of which a task began or ended since the last look."""

    last: int
    """The newest entry of the whole journal: the next look asks for what is after it."""
    runs: Sequence[Run]
    """Oldest first."""


class Ends:
    """The ends of submitted runs in a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def moved(self, after: int, *, limit: int) -> Moved:
        """The runs that may have ended since an entry; of more than `limit`, the newest."""
        return await self._journal.read(_moved, after, limit)

    async def of(self, run: int) -> list[RunEnd]:
        """The ends of a run, one a project; none as long as any of its tasks is not over."""
        return await self._journal.read(_ends, run)

    async def looked_back_after(self, end: RunEnd) -> bool:
        """Whether a look back after an end is stored."""
        return await self._journal.read(versions.looked_back_after, end.entry)


def _moved(connection: Connection, after: int, limit: int) -> Moved:
    # First the end, then what is before it: what is written meanwhile is found the next time.
    last = max(after, queries.last_id(connection))
    entry, task, run = tables.entry, tables.task, tables.run
    query = (
        select(run.c.id)
        .join(task, task.c.run == run.c.id)
        .join(entry, entry.c.task == task.c.id)
        .where(
            entry.c.kind == kind_of(TaskTransition),
            entry.c.id > after,
            run.c.keeper == Keeper.MONITOR.value,
            task.c.spec != EMBEDDED,
        )
        .distinct()
        .order_by(run.c.id.desc())
        .limit(limit)
    )
    ids = connection.execute(query).scalars().all() if last > after else ()
    return Moved(last=last, runs=queries.runs(connection, run.c.id.in_(ids)) if ids else ())


def _ends(connection: Connection, run: int) -> list[RunEnd]:
    entry, task, project = tables.entry, tables.task, tables.project
    newest = (
        select(func.max(entry.c.id))
        .join(task, task.c.id == entry.c.task)
        .where(task.c.run == run, entry.c.kind == kind_of(TaskTransition))
        .group_by(entry.c.task)
    )
    query = (
        select(entry.c.id, entry.c.task, entry.c.body, project.c.name)
        .join(task, task.c.id == entry.c.task)
        .outerjoin(project, project.c.id == task.c.project)
        .where(entry.c.id.in_(newest))
        .order_by(entry.c.id)
    )
    rows = connection.execute(query).all()
    if not all(_over(connection, row.id, row.body) for row in rows):
        return []
    ends = {
        row.name: RunEnd(project=row.name, task=row.task, entry=row.id) for row in rows if row.name
    }
    return sorted(ends.values(), key=lambda end: end.entry)


def _over(connection: Connection, entry: int, body: str) -> bool:
    state = record_of(connection, f"entry {entry}", TaskTransition, body)
    return state is not None and state.lifecycle.over
