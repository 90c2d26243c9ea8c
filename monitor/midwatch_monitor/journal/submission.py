"""A whole run handed over at once: all its tasks are stored, or nothing is; and what is open."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, exists, or_, select

from midwatch_monitor.journal import commits, queries, tables
from midwatch_monitor.journal.records import kind_of
from midwatch_monitor.words import Keeper, Lifecycle, Run, Task, TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task that is to be stored."""

    name: str
    title: str
    spec: str
    project: str = ""
    trial_of: str = ""


def submit(
    connection: Connection,
    *,
    source: str,
    settings: str,
    keeper: Keeper,
    tasks: Sequence[NewTask],
    at: datetime,
) -> tuple[Run, list[Task]]:
    """Store a new run with its tasks, each submitted."""
    run = commits.add_run(connection, source=source, settings=settings, at=at, keeper=keeper)
    return run, [
        commits.add_task(
            connection,
            run=run.id,
            name=task.name,
            title=task.title,
            spec=task.spec,
            project=task.project,
            trial_of=task.trial_of,
            at=at,
        )
        for task in tasks
    ]


def open_runs(connection: Connection) -> list[Run]:
    """The runs that a monitor keeps and that have tasks which are not over, oldest first."""
    run, task, entry = tables.run, tables.task, tables.entry
    # Within a record's JSON a quote of any text is escaped, so that only the field can match.
    over = or_(
        *(
            entry.c.body.contains(f'"lifecycle":{space}"{each.value}"', autoescape=True)
            for each in Lifecycle
            if each.over
            for space in ("", " ")
        )
    )
    ended = exists().where(entry.c.task == task.c.id, entry.c.kind == kind_of(TaskState), over)
    unfinished = select(task.c.run).where(~ended)
    return queries.runs(connection, run.c.keeper == Keeper.MONITOR.value, run.c.id.in_(unfinished))
