"""Stores and reads runs, tasks, attempts, and what belongs to them.

Functions that add something run in a write transaction. A query without conditions returns
everything.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    LargeBinary,
    Row,
    RowMapping,
    Table,
    func,
    insert,
    select,
    type_coerce,
    update,
)

from midwatch_monitor.errors import JournalCorruptError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.commits import append, incarnation, refuse_late, require_guard
from midwatch_monitor.journal.core.encoding import mask_text, pass_over, record_in
from midwatch_monitor.journal.core.tables import MOST_BYTES, UNREADABLE, unpack
from midwatch_monitor.journal.learned import projects
from midwatch_monitor.records import (
    AlertKey,
    Attempt,
    AttemptTransition,
    Draft,
    Entry,
    Escalation,
    EscalationState,
    Lifecycle,
    Message,
    Result,
    Run,
    SupervisedBy,
    Task,
    TaskTransition,
)

_MOST_HISTORY = 2 * MOST_BYTES
"""Largest total size of an attempt's messages or results, which are read all at once."""


def add_run(
    connection: Connection,
    *,
    source: str,
    settings: str,
    at: datetime,
    supervised_by: SupervisedBy = SupervisedBy.PROCESS,
) -> Run:
    """Store a new run; `supervised_by` says who judges time, escalates and decides for it."""
    keeper = supervised_by.value
    row = _insert(
        connection, tables.run, source=source, settings=settings, started_at=at, keeper=keeper
    )
    return Run(
        id=row["id"], started_at=at, source=source, settings=settings, supervised_by=supervised_by
    )


def add_task(
    connection: Connection,
    *,
    run: int,
    name: str,
    title: str,
    spec: str,
    at: datetime,
    project: str = "",
) -> Task:
    """Store a new task with its first state, submitted.

    Nothing is learned from a task without a project. The title is masked; `spec` is not, since the
    worker needs it as written.
    """
    title = mask_text(connection, title)
    row = _insert(
        connection,
        tables.task,
        run=run,
        name=name,
        title=title,
        spec=spec,
        project=projects.ensure(connection, project),
    )
    state = TaskTransition(lifecycle=Lifecycle.SUBMITTED)
    append(connection, [Draft(record=state, at=at, task=row["id"])])
    return Task(id=row["id"], run=run, name=name, title=title, spec=spec, project=project)


def add_attempt(
    connection: Connection,
    *,
    task: int,
    number: int,
    worker: str,
    model: str,
    node: str,
    workspace: str,
    at: datetime,
) -> Attempt:
    """Store a new attempt, submitted. Raises StaleIncarnationError if its task is over."""
    refuse_late(connection, task=task)
    row = _insert(
        connection,
        tables.attempt,
        task=task,
        number=number,
        worker=worker,
        model=model,
        node=node,
        workspace=workspace,
        started_at=at,
    )
    state = AttemptTransition(lifecycle=Lifecycle.SUBMITTED)
    append(connection, [Draft(record=state, at=at, task=task, attempt=row["id"])])
    return Attempt(**row)


def claim(connection: Connection, attempt: int, *, holder: str, at: datetime) -> int:
    """Take over an attempt with a new incarnation, numbered from 1; older ones may not write."""
    lease = tables.lease
    held = incarnation(connection, attempt)
    if held is None:
        values = {"attempt": attempt, "incarnation": 1, "holder": holder, "at": at}
        connection.execute(insert(lease), values)
        return 1
    change = update(lease).where(lease.c.attempt == attempt)
    connection.execute(change, {"incarnation": held + 1, "holder": holder, "at": at})
    return held + 1


def open_escalation(
    connection: Connection,
    *,
    attempt: int,
    task: int,
    alerts: Sequence[AlertKey],
    reason: str,
    silent: bool = False,
    at: datetime,
    guard: int | None = None,
) -> Escalation | None:
    """Open an escalation for the attempt; return `None` if one is already open.

    `guard` is the incarnation of the monitor's lease on the attempt, if it has one. Raises
    StaleIncarnationError if another monitor has taken the attempt over.
    """
    if guard is not None:
        require_guard(connection, attempt, guard)
    table = tables.escalation
    query = select(table.c.id).where(table.c.attempt == attempt, table.c.closed_at.is_(None))
    if connection.execute(query).first() is not None:
        return None
    escalation = Escalation(
        id=_insert(connection, table, attempt=attempt, opened_at=at)["id"],
        attempt=attempt,
        state=EscalationState.OPEN,
        alerts=tuple(alerts),
        reason=reason,
        silent=silent,
    )
    append(connection, [Draft(record=escalation, at=at, task=task, attempt=attempt)])
    return escalation


def _insert(connection: Connection, table: Table, **values: object) -> RowMapping:
    """Insert one row and return it."""
    return connection.execute(insert(table).returning(table), values).mappings().one()


def runs(connection: Connection, *wanted: ColumnElement[bool]) -> list[Run]:
    """Return runs, oldest first."""
    query = select(tables.run).where(*wanted).order_by(tables.run.c.id)
    found: list[Run] = []
    for row in connection.execute(query).mappings():
        values = dict(row)
        keeper = values.pop("keeper")
        if keeper in list(SupervisedBy):
            found.append(Run(**values, supervised_by=SupervisedBy(keeper)))
        else:
            pass_over(connection, f"run {row['id']}", "it is unknown who supervises it")
    return found


def tasks(connection: Connection, *wanted: ColumnElement[bool]) -> list[Task]:
    """Return tasks in the order of their submission."""
    task, project = tables.task, tables.project
    owner = func.coalesce(project.c.name, "").label("project")
    query = (
        select(task.c.id, task.c.run, task.c.name, task.c.title, task.c.spec, owner)
        .outerjoin(project, project.c.id == task.c.project)
        .where(*wanted)
        .order_by(task.c.id)
    )
    found = [Task(**row) for row in connection.execute(query).mappings()]
    return [replace(each, title=mask_text(connection, each.title)) for each in found]


def attempts(connection: Connection, *wanted: ColumnElement[bool]) -> list[Attempt]:
    """Return attempts, oldest first."""
    query = select(tables.attempt).where(*wanted).order_by(tables.attempt.c.id)
    return [Attempt(**row) for row in connection.execute(query).mappings()]


def entries(
    connection: Connection, *wanted: ColumnElement[bool], run: int | None, limit: int
) -> list[Entry]:
    """Return at most `limit` entries in the order of their ids.

    An unreadable record is replaced by a `Fault` of the journal, whatever kinds were requested.
    """
    entry, task = tables.entry, tables.task
    query = select(entry).where(*wanted).order_by(entry.c.id).limit(limit)
    if run is not None:
        query = query.where(entry.c.task.in_(select(task.c.id).where(task.c.run == run)))
    return [_entry(connection, row) for row in connection.execute(query)]


def active(connection: Connection, since: datetime) -> list[int]:
    """Return the ids of tasks whose newest entry is at or after a time."""
    entry, task = tables.entry, tables.task
    of = select(entry.c.at).where(entry.c.task == task.c.id).order_by(entry.c.id.desc()).limit(1)
    query = select(task.c.id).where(of.scalar_subquery() >= since).order_by(task.c.id)
    return list(connection.execute(query).scalars())


def _entry(connection: Connection, row: Row[Any]) -> Entry:
    if row.at is UNREADABLE:
        pass_over(connection, f"the time of entry {row.id}", "it is not a time")
    return Entry(
        id=row.id,
        record=record_in(connection, f"entry {row.id}", row.kind, row.body),
        at=row.at,
        task=row.task,
        attempt=row.attempt,
        seq=row.seq,
    )


def messages(connection: Connection, attempt: int) -> list[Message]:
    """Return an attempt's history with its model, in order.

    Raises JournalCorruptError if a part is unreadable: a history with a gap cannot be resumed.
    """
    found = _unpack_rows(connection, tables.message.c.idx, tables.message, attempt)
    return [Message(index=int(key), body=body) for key, body in found]


def results(connection: Connection, attempt: int) -> list[Result]:
    """Return the results of an attempt's tool calls, by call id.

    Raises JournalCorruptError if one is unreadable: without it, a call would be made twice.
    """
    found = _unpack_rows(connection, tables.result.c.call, tables.result, attempt)
    return [Result(call=key, body=body) for key, body in found]


def _unpack_rows(
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
    """Return the newest entry's id; 0 if there is none."""
    return connection.execute(select(func.max(tables.entry.c.id))).scalar() or 0
