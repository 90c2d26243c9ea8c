"""Erases everything about a project: the one exception to append-only."""

from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    delete,
    exists,
    func,
    insert,
    select,
)

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.commits import latest
from midwatch_monitor.journal.fleet.monitor_leases import RUN_POST
from midwatch_monitor.journal.learned import projects, search
from midwatch_monitor.journal.learned.search import TextIndex
from midwatch_monitor.records import AttemptTransition, Erasure, Lifecycle, TaskTransition

UNDER_WAY = timedelta(minutes=15)
"""A claimed attempt is under way if it is not over, and was claimed or wrote something within this
time. One that has been silent for longer counts as abandoned: if a process is still working on it,
its next write is refused, as if another process had taken the attempt over.
"""


def footprint(connection: Connection, project: str) -> Erasure:
    """Return what `forget` would delete, with id 0 and the time of the newest entry.

    Raises UsageError for an unknown project.
    """
    key = _project_key(connection, project)
    entry = tables.entry
    newest = select(func.max(entry.c.at)).where(entry.c.task.in_(_tasks(key)))
    at = connection.execute(newest).scalar_one()
    return Erasure(id=0, at=at, author="", **_counts(connection, key))


def forget(connection: Connection, project: str, *, author: str, at: datetime) -> Erasure:
    """Delete everything about a project, and record that it was done."""
    key = _project_key(connection, project)
    _refuse_under_way(connection, project, key, at)
    values = {"at": at, "author": author, **_counts(connection, key)}
    _forget_learned(connection, key)
    _forget_work(connection, key)
    done = connection.execute(insert(tables.erasure).returning(tables.erasure), values)
    return Erasure(**done.mappings().one())


def _project_key(connection: Connection, project: str) -> int:
    key = projects.key_of(connection, project)
    if key is None:
        raise UsageError(f"the journal holds nothing about the project {project!r}")
    return key


def _owned_by(key: int) -> ColumnElement[bool]:
    """Whether a task belongs to the project, or tried its guidelines."""
    return (tables.task.c.project == key) | (tables.task.c.trial_of == key)


def _tasks(key: int) -> Select[int]:
    return select(tables.task.c.id).where(_owned_by(key))


def _attempts(key: int) -> Select[int]:
    return select(tables.attempt.c.id).where(tables.attempt.c.task.in_(_tasks(key)))


def _counts(connection: Connection, key: int) -> dict[str, int]:
    entries = select(tables.entry.c.id).where(tables.entry.c.task.in_(_tasks(key)))
    queries = {"tasks": _tasks(key), "attempts": _attempts(key), "entries": entries}
    return {
        name: connection.execute(select(func.count()).select_from(query.subquery())).scalar_one()
        for name, query in queries.items()
    }


def _refuse_under_way(connection: Connection, project: str, key: int, at: datetime) -> None:
    attempt, lease, entry = tables.attempt, tables.lease, tables.entry
    last = (
        select(entry.c.at)
        .where(entry.c.attempt == attempt.c.id)
        .order_by(entry.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    since = at - UNDER_WAY
    query = (
        select(attempt.c.id)
        .join(lease, lease.c.attempt == attempt.c.id)
        .where(attempt.c.task.in_(_tasks(key)), (lease.c.at >= since) | (last >= since))
    )
    for found in connection.execute(query).scalars().all():
        state = latest(connection, AttemptTransition, attempt=found)
        if state is None or not state.lifecycle.over:
            raise _under_way(f"attempt {found} of {project}")
    # Between two attempts of a task none is under way, but its run continues.
    recent = select(entry.c.task).where(entry.c.task.in_(_tasks(key)), entry.c.at >= since)
    for found in connection.execute(recent.distinct()).scalars().all():
        state = latest(connection, TaskTransition, task=found)
        if state is not None and state.lifecycle is Lifecycle.WORKING:
            raise _under_way(f"task {found} of {project}")


def _under_way(what: str) -> UsageError:
    return UsageError(
        f"{what} is under way: stop it first, "
        f"or wait until it has been silent for {UNDER_WAY.seconds // 60} minutes"
    )


def _forget_learned(connection: Connection, key: int) -> None:
    for shelf, table in ((TextIndex.LESSONS, tables.lesson), (TextIndex.FACTS, tables.fact)):
        keys = connection.execute(select(table.c.entry).where(table.c.project == key)).scalars()
        search.forget(connection, shelf, keys.all())
    lessons = select(tables.lesson.c.entry).where(tables.lesson.c.project == key)
    facts = select(tables.fact.c.entry).where(tables.fact.c.project == key)
    for table in (tables.lesson_use, tables.lesson_source):
        connection.execute(delete(table).where(table.c.lesson.in_(lessons)))
    connection.execute(delete(tables.fact_source).where(tables.fact_source.c.fact.in_(facts)))
    for table in (
        *(tables.lesson_tag, tables.fact_tag, tables.lesson, tables.fact, tables.guidelines),
        *(tables.summary, tables.reflection, tables.chore),
    ):
        connection.execute(delete(table).where(table.c.project == key))


def _forget_work(connection: Connection, key: int) -> None:
    task, run = tables.task, tables.run
    runs = connection.execute(select(task.c.run).where(_owned_by(key)).distinct())
    emptied = runs.scalars().all()
    for table in (
        *(tables.escalation, tables.message, tables.result),
        *(tables.lease, tables.guard, tables.bundle),
    ):
        connection.execute(delete(table).where(table.c.attempt.in_(_attempts(key))))
    for table in (tables.entry, tables.attempt):
        connection.execute(delete(table).where(table.c.task.in_(_tasks(key))))
    connection.execute(delete(task).where(_owned_by(key)))
    left = exists().where(task.c.run == run.c.id)
    gone = select(run.c.id).where(run.c.id.in_(emptied), ~left)
    ids = connection.execute(gone).scalars()
    posts = [f"{RUN_POST}{id}" for id in ids]
    connection.execute(delete(tables.post).where(tables.post.c.name.in_(posts)))
    connection.execute(delete(tables.submission).where(tables.submission.c.run.in_(gone)))
    connection.execute(delete(run).where(run.c.id.in_(emptied), ~left))
    connection.execute(delete(tables.project).where(tables.project.c.id == key))
