"""Submits a whole run, with all its tasks or not at all, and finds open tasks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, func, insert, or_, select

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal.core import tables, work
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.journal.core.engine import parts
from midwatch_monitor.records import Lifecycle, Run, SupervisedBy, TaskTransition
from midwatch_monitor.records.work import EMBEDDED


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task to be stored."""

    name: str
    title: str
    spec: str
    project: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionKey:
    """A caller's key for a submitted run, so that a repeated request finds the same run."""

    fleet: str
    name: str
    digest: str
    """Digest of what is submitted: a key already used for something else is refused."""


def submit(
    connection: Connection,
    tasks: Sequence[NewTask],
    *,
    source: str,
    settings: str,
    at: datetime,
    key: SubmissionKey | None = None,
) -> tuple[Run, bool]:
    """Store a new run with its tasks; return it, and whether the key had it already.

    Writers take turns, so of two simultaneous requests the second finds the first one's run.
    Raises UsageError if the key was used for something else.
    """
    there = key and find_submission(connection, key)
    if there is not None:
        return there, True
    run = work.add_run(
        connection, source=source, settings=settings, at=at, supervised_by=SupervisedBy.MONITOR
    )
    for task in tasks:
        work.add_task(
            connection,
            run=run.id,
            name=task.name,
            title=task.title,
            spec=task.spec,
            project=task.project,
            at=at,
        )
    if key is not None:
        values = {"fleet": key.fleet, "key": key.name, "digest": key.digest, "run": run.id}
        connection.execute(insert(tables.submission), values)
    return run, False


def find_submission(connection: Connection, key: SubmissionKey) -> Run | None:
    """Return the run that was submitted under a key; `None` if there is none.

    Raises UsageError if the key was used for something else.
    """
    table = tables.submission
    query = select(table).where(table.c.fleet == key.fleet, table.c.key == key.name)
    row = connection.execute(query).first()
    if row is None:
        return None
    if row.digest != key.digest:
        raise UsageError(
            f"the key {key.name} belongs to run {row.run}, which was submitted with other tasks: "
            "choose another key"
        )
    (run,) = work.runs(connection, tables.run.c.id == row.run)
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """The states of tasks that were submitted, began or ended since the last call."""

    last: int
    """The newest entry of the whole journal: the next call asks for later ones."""
    erasure: int
    """The newest erasure."""
    afresh: bool
    """Whether all tasks are included because something was erased: earlier results are void."""
    open: dict[int, int]
    """The run of each task that is not over."""
    over: frozenset[int]
    """Tasks that are over."""


def moves(connection: Connection, after: int, erasure: int) -> Moves:
    """Return the tasks of a fleet that changed their state after an entry, or all after an erasure.

    Only runs that monitors supervise count. Agents with their own watch are left out: there is
    nothing to dispatch.
    """
    newest = connection.execute(select(func.max(tables.erasure.c.id))).scalar() or 0
    afresh = newest != erasure
    rows = connection.execute(_select_changed_tasks(0 if afresh else after)).all()
    return Moves(
        last=max(after, work.last_id(connection)),
        erasure=newest,
        afresh=afresh,
        open={row.task: row.run for row in rows if not row.over},
        over=frozenset(row.task for row in rows if row.over),
    )


def _select_changed_tasks(after: int) -> Select[int, int, bool]:
    """Select tasks that changed state after an entry, with their runs and whether they are over."""
    run, task, entry = tables.run, tables.task, tables.entry
    # Only each task's last state is read: a journal may hold years of tasks.
    changed = (
        select(func.max(entry.c.id).label("id"))
        .where(entry.c.kind == kind_of(TaskTransition), entry.c.id > after)
        .group_by(entry.c.task)
        .subquery()
    )
    # Quotes inside texts are escaped in JSON, so only the field can match.
    over = or_(
        *(
            entry.c.body.contains(f'"lifecycle":{space}"{each.value}"', autoescape=True)
            for each in Lifecycle
            if each.over
            for space in ("", " ")
        )
    )
    return (
        select(task.c.id.label("task"), task.c.run, over.label("over"))
        .select_from(changed)
        .join(entry, entry.c.id == changed.c.id)
        .join(task, task.c.id == entry.c.task)
        .join(run, run.c.id == task.c.run)
        .where(run.c.keeper == SupervisedBy.MONITOR.value, task.c.spec != EMBEDDED)
    )


def runs_of(connection: Connection, ids: Collection[int]) -> list[Run]:
    """Return the runs with these ids, oldest first."""
    found = (work.runs(connection, tables.run.c.id.in_(some)) for some in parts(ids))
    return [run for some in found for run in some]
