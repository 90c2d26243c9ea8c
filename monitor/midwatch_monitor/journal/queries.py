"""What is read from the journal, as words. A query without conditions gives everything."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select

from midwatch_monitor.journal import tables
from midwatch_monitor.journal.masks import shown
from midwatch_monitor.journal.records import read
from midwatch_monitor.words import Attempt, Entry, Keeper, Message, Result, Run, Task


def runs(connection: Connection, *wanted: ColumnElement[bool]) -> list[Run]:
    """Runs, oldest first."""
    query = select(tables.run).where(*wanted).order_by(tables.run.c.id)
    return [
        Run(
            id=row.id,
            started_at=row.started_at,
            source=row.source,
            settings=row.settings,
            keeper=Keeper(row.keeper),
        )
        for row in connection.execute(query)
    ]


def tasks(connection: Connection, *wanted: ColumnElement[bool]) -> list[Task]:
    """Tasks, in the order in which they were handed over."""
    task, project = tables.task, tables.project
    query = (
        select(task, project.c.name.label("owner"))
        .outerjoin(project, project.c.id == task.c.project)
        .where(*wanted)
        .order_by(task.c.id)
    )
    return [
        Task(
            id=row.id,
            run=row.run,
            name=row.name,
            title=row.title,
            spec=row.spec,
            project=row.owner or "",
        )
        for row in connection.execute(query)
    ]


def attempts(connection: Connection, *wanted: ColumnElement[bool]) -> list[Attempt]:
    """Attempts, oldest first."""
    query = select(tables.attempt).where(*wanted).order_by(tables.attempt.c.id)
    return [
        Attempt(
            id=row.id,
            task=row.task,
            number=row.number,
            worker=row.worker,
            model=row.model,
            node=row.node,
            workspace=row.workspace,
            started_at=row.started_at,
        )
        for row in connection.execute(query)
    ]


def entries(
    connection: Connection, *wanted: ColumnElement[bool], run: int | None, limit: int
) -> list[Entry]:
    """Entries in the order of their ids, at most `limit`."""
    entry, task = tables.entry, tables.task
    query = select(entry).where(*wanted).order_by(entry.c.id).limit(limit)
    if run is not None:
        query = query.where(entry.c.task.in_(select(task.c.id).where(task.c.run == run)))
    return [_entry(connection, row) for row in connection.execute(query)]


def active(connection: Connection, since: datetime) -> list[int]:
    """The ids of the tasks of which anything was written at a moment or later."""
    entry = tables.entry
    query = select(entry.c.task).where(entry.c.at >= since).distinct().order_by(entry.c.task)
    return list(connection.execute(query).scalars())


def _entry(connection: Connection, row: Row[Any]) -> Entry:
    return Entry(
        id=row.id,
        record=shown(connection, read(row.kind, row.body)),
        at=row.at,
        task=row.task,
        attempt=row.attempt,
        seq=row.seq,
    )


def messages(connection: Connection, attempt: int) -> list[Message]:
    """An attempt's history with its model, in order."""
    table = tables.message
    query = select(table).where(table.c.attempt == attempt).order_by(table.c.idx)
    return [Message(index=row.idx, body=row.body) for row in connection.execute(query)]


def results(connection: Connection, attempt: int) -> list[Result]:
    """What an attempt's tool calls returned, by the ids of the calls."""
    table = tables.result
    query = select(table).where(table.c.attempt == attempt).order_by(table.c.call)
    return [Result(call=row.call, body=row.body) for row in connection.execute(query)]


def last_id(connection: Connection) -> int:
    """The newest entry's id; 0 while there is none."""
    return connection.execute(select(func.max(tables.entry.c.id))).scalar() or 0
