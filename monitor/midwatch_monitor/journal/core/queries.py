"""What is read from the journal, as words. A query without conditions gives everything."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    LargeBinary,
    Row,
    Table,
    func,
    select,
    type_coerce,
)

from midwatch_monitor.errors import JournalCorruptError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.columns import MOST_BYTES, UNREADABLE, unpack
from midwatch_monitor.journal.core.encoding import pass_over, record_in
from midwatch_monitor.records import Attempt, Entry, Keeper, Message, Result, Run, Task

_MOST_HISTORY = 2 * MOST_BYTES
"""What all messages or results of an attempt may come to: they are read at once."""


def runs(connection: Connection, *wanted: ColumnElement[bool]) -> list[Run]:
    """Runs, oldest first."""
    query = select(tables.run).where(*wanted).order_by(tables.run.c.id)
    found: list[Run] = []
    for row in connection.execute(query):
        if row.keeper not in list(Keeper):
            pass_over(connection, f"run {row.id}", "nobody knows who looks after it")
            continue
        run = Run(
            id=row.id,
            started_at=row.started_at,
            source=row.source,
            settings=row.settings,
            keeper=Keeper(row.keeper),
        )
        found.append(run)
    return found


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
    """Entries in the order of their ids, at most `limit`.

    In the place of a record that cannot be read stands a `Fault` of the journal, of whatever kind
    the others are that were asked for.
    """
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
    if row.at is UNREADABLE:
        pass_over(connection, f"the time of entry {row.id}", "none stands there")
    return Entry(
        id=row.id,
        record=record_in(connection, f"entry {row.id}", row.kind, row.body),
        at=row.at,
        task=row.task,
        attempt=row.attempt,
        seq=row.seq,
    )


def messages(connection: Connection, attempt: int) -> list[Message]:
    """An attempt's history with its model, in order.

    Raises JournalCorruptError where a part of it cannot be read: nobody goes on with a gap in it.
    """
    found = _unpacked(connection, tables.message.c.idx, tables.message, attempt)
    return [Message(index=int(key), body=body) for key, body in found]


def results(connection: Connection, attempt: int) -> list[Result]:
    """What an attempt's tool calls returned, by the ids of the calls.

    Raises JournalCorruptError where one cannot be read: no call is made twice for that.
    """
    found = _unpacked(connection, tables.result.c.call, tables.result, attempt)
    return [Result(call=key, body=body) for key, body in found]


def _unpacked(
    connection: Connection, key: Column[Any], table: Table, attempt: int
) -> list[tuple[Any, bytes]]:
    packed = type_coerce(table.c.body, LargeBinary).label("packed")
    query = select(key.label("key"), packed).where(table.c.attempt == attempt).order_by(key)
    found: list[tuple[Any, bytes]] = []
    left = _MOST_HISTORY
    for row in connection.execute(query):
        try:
            body = unpack(row.packed, min(left, MOST_BYTES))
        except JournalCorruptError as error:
            name = f"{table.name} {row.key} of attempt {attempt}"
            raise JournalCorruptError(f"{name} cannot be read: {error}") from error
        left -= len(body)
        found.append((row.key, body))
    return found


def last_id(connection: Connection) -> int:
    """The newest entry's id; 0 while there is none."""
    return connection.execute(select(func.max(tables.entry.c.id))).scalar() or 0
