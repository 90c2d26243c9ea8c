"""What is written in one transaction, and what is refused there.

Every function here runs in a write transaction: no other writer comes between what it looks up
and what it then writes.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, CursorResult, Table, insert, select, update
from sqlalchemy.exc import IntegrityError

from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal.core import commits, incarnations, tables
from midwatch_monitor.journal.core.append import append
from midwatch_monitor.journal.core.columns import MOST_BYTES
from midwatch_monitor.journal.core.encoding import kind_of, record_in
from midwatch_monitor.journal.core.engine import is_duplicate
from midwatch_monitor.journal.core.incarnations import moved, require_open
from midwatch_monitor.journal.learned import projects
from midwatch_monitor.records import (
    AlertKey,
    Attempt,
    AttemptTransition,
    Commit,
    Delivery,
    DeliveryState,
    Draft,
    Entry,
    Escalation,
    EscalationState,
    Intervention,
    Keeper,
    Lifecycle,
    Run,
    Task,
    TaskTransition,
)

if TYPE_CHECKING:
    from midwatch_monitor.journal.core.journal import Journal


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
        project=projects.ensure(connection, project),
        trial_of=projects.ensure(connection, trial_of),
    )
    state = TaskTransition(lifecycle=Lifecycle.SUBMITTED)
    append(connection, [Draft(record=state, at=at, task=id_)])
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
    """Store a new attempt, submitted. Raises StaleIncarnationError where its task is over."""
    require_open(connection, task)
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
    state = AttemptTransition(lifecycle=Lifecycle.SUBMITTED)
    append(connection, [Draft(record=state, at=at, task=task, attempt=id_)])
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
    held = incarnations.incarnation(connection, attempt)
    if held is None:
        values = {"attempt": attempt, "incarnation": 1, "holder": holder, "at": at}
        connection.execute(insert(lease), values)
        return 1
    change = update(lease).where(lease.c.attempt == attempt)
    connection.execute(change, {"incarnation": held + 1, "holder": holder, "at": at})
    return held + 1


def commit(connection: Connection, what: Commit) -> tuple[Entry, ...]:
    """Store what belongs together. Raises StaleIncarnationError for what comes too late."""
    try:
        (entries,) = commit_all(connection, [what])
    except IntegrityError as error:
        if is_duplicate(error):
            raise StaleIncarnationError(
                f"another process has already written this part of attempt {_subject(what)}"
            ) from error
        raise
    return entries


def commit_all(connection: Connection, given: Sequence[Commit]) -> list[tuple[Entry, ...]]:
    """Store many commits in their order, or raise for one of them: then none may stay."""
    incarnations.require(connection, given)
    entries = append(connection, [draft for each in given for draft in each.drafts])
    for each in given:
        if each.messages or each.results:
            _extend(connection, each)
    rest = iter(entries)
    return [tuple(islice(rest, len(each.drafts))) for each in given]


def _subject(what: Commit) -> str:
    numbers = {what.attempt, *(draft.attempt for draft in what.drafts)} - {None}
    return ", ".join(map(str, numbers))


def _extend(connection: Connection, what: Commit) -> None:
    """Append to the attempt's history and to the results of its tool calls."""
    if what.attempt is None:
        raise ValueError("a commit with messages or results must name its attempt")
    for each in (*what.messages, *what.results):
        if len(each.body) > MOST_BYTES:
            size, most = len(each.body) // 1024**2, MOST_BYTES // 1024**2
            raise JournalError(f"a message or result of {size} MiB is not stored: {most} at most")
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
    guard: int | None = None,
) -> Escalation | None:
    """Open the attempt's escalation; `None` if one is open already.

    Raises StaleIncarnationError when another monitor has taken the attempt over.
    """
    if guard is not None:
        incarnations.require_guard(connection, attempt, guard)
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
    append(connection, [Draft(record=escalation, at=at, task=task, attempt=attempt)])
    return escalation


def _insert(connection: Connection, table: Table, **values: object) -> int:
    """Insert one row; its id."""
    return _id_of(connection.execute(insert(table), values))


def _id_of(inserted: CursorResult[Any]) -> int:
    key = inserted.inserted_primary_key
    if key is None:
        raise ValueError("a row of this table has no id")
    return key[0]


def answers(draft: Draft) -> int | None:
    """What of a worker's a draft answers, by journal id; `None` if nothing. Pure."""
    return draft.record.petition if isinstance(draft.record, Intervention) else None


async def answer(journal: "Journal", what: Commit) -> tuple[Entry, ...] | None:
    """Store it unless it answers what was answered already; `None` where it does.

    An answer that was rejected, also by what is stored here, is none. Raises as `Journal.commit`.
    """
    if any(answers(draft) is not None for draft in what.drafts):
        return await journal.write(_commit_answer, what)
    return await journal.commit(what)


def _commit_answer(connection: Connection, what: Commit) -> tuple[Entry, ...] | None:
    rejected = {each for draft in what.drafts if (each := _rejects(draft.record)) is not None}
    for draft in what.drafts:
        petition = answers(draft)
        if petition is not None and _answered(connection, draft, petition, rejected):
            return None
    return commits.commit(connection, what)


def _answered(connection: Connection, draft: Draft, petition: int, rejected: set[int]) -> bool:
    entry = tables.entry
    kinds = [kind_of(Intervention), kind_of(Delivery)]
    query = select(entry.c.id, entry.c.kind, entry.c.body).where(
        entry.c.attempt == draft.attempt, entry.c.id > petition, entry.c.kind.in_(kinds)
    )
    stands = set[int]()
    for row in connection.execute(query.order_by(entry.c.id)):
        record = record_in(connection, f"entry {row.id}", row.kind, row.body)
        if isinstance(record, Intervention) and record.petition == petition:
            stands.add(row.id)
        elif (turned_down := _rejects(record)) is not None:
            stands.discard(turned_down)
    return bool(stands - rejected)


def _rejects(record: object) -> int | None:
    """The intervention that a record turns down."""
    if isinstance(record, Delivery) and record.state is DeliveryState.REJECTED:
        return record.intervention
    return None


def commit_unmoved(
    connection: Connection, what: Commit, *, task: int, after: int
) -> tuple[Entry, ...] | None:
    """Store it unless the task has moved since an entry; `None` where it has.

    So it does not begin, or go on with another attempt, between the look and the word.
    """
    return None if moved(connection, task, after) else commits.commit(connection, what)


def reopen(
    connection: Connection, order: Draft, states: Sequence[Draft], *, step: int, after: int
) -> tuple[Entry, ...] | None:
    """Store the restart of an attempt that is over, and the states of the tasks that it opens.

    It is delivered at once: nobody is at work there who could stamp it. `step` is the attempt's
    last. `None` where its task has moved since an entry.
    """
    if moved(connection, order.task, after):
        return None
    (issued,) = append(connection, [order])
    stamp = Delivery(intervention=issued.id, state=DeliveryState.DELIVERED, step=step)
    return issued, *append(connection, [replace(order, record=stamp), *states], opening=True)
