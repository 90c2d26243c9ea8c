"""What is written in one transaction, and what is refused there.

Every function here runs in a write transaction: no other writer comes between what it looks up
and what it then writes.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, CursorResult, Table, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import index, projects, tables
from midwatch_monitor.journal.engine import is_duplicate
from midwatch_monitor.journal.records import kind_of, read, written
from midwatch_monitor.words import (
    AlertKey,
    Attempt,
    AttemptState,
    Commit,
    Draft,
    Entry,
    Escalation,
    EscalationState,
    Keeper,
    Lifecycle,
    Run,
    Task,
    TaskState,
)

# The two statements of every commit are built once: that takes longer than SQLite needs.
_HELD = select(tables.lease.c.incarnation).where(tables.lease.c.attempt == bindparam("of"))
_ENTRY = insert(tables.entry)

_FOLLOWS = {
    EscalationState.OPEN: {EscalationState.OPEN},
    EscalationState.ANSWERED: {EscalationState.OPEN},
    EscalationState.CLOSED: {EscalationState.OPEN, EscalationState.ANSWERED},
}
"""After which states of an escalation each may stand."""


def add_run(
    connection: Connection,
    *,
    source: str,
    settings: str,
    at: datetime,
    keeper: Keeper = Keeper.PROCESS,
) -> Run:
    """Store a new run."""
    id_ = _insert(
        connection,
        tables.run,
        source=source,
        settings=settings,
        started_at=at,
        keeper=keeper.value,
    )
    return Run(id=id_, started_at=at, source=source, settings=settings, keeper=keeper)


def add_task(
    connection: Connection,
    *,
    run: int,
    name: str,
    title: str,
    spec: str,
    project: str,
    trial_of: str,
    at: datetime,
) -> Task:
    """Store a new task, submitted."""
    id_ = _insert(
        connection,
        tables.task,
        run=run,
        name=name,
        title=title,
        spec=spec,
        project=projects.made(connection, project),
        trial_of=projects.made(connection, trial_of),
    )
    _append(connection, Draft(record=TaskState(lifecycle=Lifecycle.SUBMITTED), at=at, task=id_))
    return Task(id=id_, run=run, name=name, title=title, spec=spec, project=project)


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
    """Store a new attempt, submitted."""
    id_ = _insert(
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
    state = AttemptState(lifecycle=Lifecycle.SUBMITTED)
    _append(connection, Draft(record=state, at=at, task=task, attempt=id_))
    return Attempt(
        id=id_,
        task=task,
        number=number,
        worker=worker,
        model=model,
        node=node,
        workspace=workspace,
        started_at=at,
    )


def claim(connection: Connection, attempt: int, *, holder: str, at: datetime) -> int:
    """Give the attempt's lease to `holder`; the new incarnation's number, from 1."""
    lease = tables.lease
    held = _incarnation(connection, attempt)
    if held is None:
        values = {"attempt": attempt, "incarnation": 1, "holder": holder, "at": at}
        connection.execute(insert(lease), values)
        return 1
    change = update(lease).where(lease.c.attempt == attempt)
    connection.execute(change, {"incarnation": held + 1, "holder": holder, "at": at})
    return held + 1


def commit(connection: Connection, what: Commit) -> tuple[Entry, ...]:
    """Store what belongs together. Raises StaleIncarnationError for what comes too late."""
    _require_lease(connection, what)
    try:
        entries = tuple(_append(connection, draft) for draft in what.drafts)
        _extend(connection, what)
    except IntegrityError as error:
        if is_duplicate(error):
            raise StaleIncarnationError(
                f"another process has already written this part of attempt {_subject(what)}"
            ) from error
        raise
    return entries


def _subject(what: Commit) -> str:
    numbers = {what.attempt, *(draft.attempt for draft in what.drafts)} - {None}
    return ", ".join(map(str, numbers))


def _require_lease(connection: Connection, what: Commit) -> None:
    if what.incarnation is None:
        return
    if what.attempt is None:
        raise ValueError("a commit with an incarnation must name its attempt")
    held = _incarnation(connection, what.attempt)
    if held != what.incarnation:
        raise StaleIncarnationError(
            f"attempt {what.attempt} is at incarnation {held}, not {what.incarnation}: "
            "another process has taken it over"
        )


def _incarnation(connection: Connection, attempt: int) -> int | None:
    return connection.execute(_HELD, {"of": attempt}).scalar()


def _append(connection: Connection, draft: Draft) -> Entry:
    record = draft.record
    if isinstance(record, TaskState | AttemptState):
        _refuse_late(connection, draft)
    elif isinstance(record, Escalation):
        _move_on(connection, record, draft)
    values = {
        "at": draft.at,
        "kind": kind_of(type(record)),
        "task": draft.task,
        "attempt": draft.attempt,
        "seq": draft.seq,
        "body": written(record),
    }
    entry = Entry(
        id=_id_of(connection.execute(_ENTRY, values)),
        record=record,
        at=draft.at,
        task=draft.task,
        attempt=draft.attempt,
        seq=draft.seq,
    )
    index.take_in(connection, entry)
    return entry


def _refuse_late(connection: Connection, draft: Draft) -> None:
    """Over is over: nothing follows a completed, failed, canceled or rejected status."""
    entry = tables.entry
    kind = kind_of(type(draft.record))
    query = select(entry.c.body).where(entry.c.kind == kind, entry.c.task == draft.task)
    what = f"task {draft.task}"
    if isinstance(draft.record, AttemptState):
        query = query.where(entry.c.attempt == draft.attempt)
        what = f"attempt {draft.attempt}"
    body = connection.execute(query.order_by(entry.c.id.desc()).limit(1)).scalar()
    latest = None if body is None else read(kind, body)
    if isinstance(latest, TaskState | AttemptState) and latest.lifecycle.over:
        raise StaleIncarnationError(
            f"{what} is already {latest.lifecycle.value}; a late result cannot change that"
        )


def _extend(connection: Connection, what: Commit) -> None:
    """Append to the attempt's history and to the results of its tool calls."""
    if not (what.messages or what.results):
        return
    if what.attempt is None:
        raise ValueError("a commit with messages or results must name its attempt")
    if what.messages:
        rows = [{"attempt": what.attempt, "idx": m.index, "body": m.body} for m in what.messages]
        connection.execute(insert(tables.message), rows)
    if what.results:
        rows = [{"attempt": what.attempt, "call": r.call, "body": r.body} for r in what.results]
        connection.execute(insert(tables.result), rows)


def open_escalation(
    connection: Connection,
    *,
    attempt: int,
    task: int,
    alerts: Sequence[AlertKey],
    reason: str,
    silent: bool,
    at: datetime,
) -> Escalation | None:
    """Open the attempt's escalation; `None` if one is open already."""
    table = tables.escalation
    query = select(table.c.id).where(table.c.attempt == attempt, table.c.closed_at.is_(None))
    if connection.execute(query).first() is not None:
        return None
    escalation = Escalation(
        id=_insert(connection, table, attempt=attempt, opened_at=at),
        attempt=attempt,
        state=EscalationState.OPEN,
        alerts=tuple(alerts),
        reason=reason,
        silent=silent,
    )
    _append(connection, Draft(record=escalation, at=at, task=task, attempt=attempt))
    return escalation


def _move_on(connection: Connection, escalation: Escalation, draft: Draft) -> None:
    """An escalation is answered once and closed once, whoever else thinks that it is still open."""
    entry = tables.entry
    query = select(entry.c.body).where(
        entry.c.kind == kind_of(Escalation), entry.c.attempt == draft.attempt
    )
    body = connection.execute(query.order_by(entry.c.id.desc()).limit(1)).scalar()
    latest = None if body is None else read(kind_of(Escalation), body)
    if (
        isinstance(latest, Escalation)
        and latest.id == escalation.id
        and latest.state not in _FOLLOWS[escalation.state]
    ):
        raise StaleIncarnationError(f"escalation {escalation.id} is already {latest.state.value}")
    if escalation.state is EscalationState.CLOSED:
        _close(connection, escalation.id, draft.at)


def _close(connection: Connection, escalation: int, at: datetime) -> None:
    table = tables.escalation
    change = update(table).where(table.c.id == escalation, table.c.closed_at.is_(None))
    connection.execute(change, {"closed_at": at})


def _insert(connection: Connection, table: Table, **values: object) -> int:
    """Insert one row; its id."""
    return _id_of(connection.execute(insert(table), values))


def _id_of(inserted: CursorResult[Any]) -> int:
    key = inserted.inserted_primary_key
    if key is None:
        raise ValueError("a row of this table has no id")
    return key[0]
