"""Saved work of attempts: the newest bundle of each, and who held the attempt last."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from midwatch_monitor.errors import JournalCorruptError
from midwatch_monitor.journal.core import commits, tables, work
from midwatch_monitor.journal.core.encoding import kind_of, record_json, rows_of
from midwatch_monitor.journal.core.engine import parts
from midwatch_monitor.journal.core.journal import JournalPart, read_method, write_method
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Commit,
    Draft,
    Entry,
    Intervention,
    Lease,
    Snapshot,
    TaskTransition,
)

MOST_BYTES = 1_000_000_000
"""Largest bundle that is read: no configuration lets a larger one be saved (`max_bundle_mb`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """An attempt's saved work, as one git bundle."""

    commit: str
    """The snapshot in it."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptUse:
    """Whether anybody still works on an attempt or on its task."""

    attempt: Attempt
    over: bool
    last: bool
    """Whether it is the last attempt of its task so far."""
    ended_at: datetime | None
    """When its task ended; `None` while the task is not over."""


def _store_snapshot(
    connection: Connection, draft: Draft, body: bytes, *, incarnation: int | None
) -> Entry:
    """Store a snapshot, and replace the previous bundle, in one transaction.

    An empty body keeps the previous bundle: the work was pushed, or is too large. The number of
    messages in the history is added to the snapshot. Raises StaleIncarnationError if another
    process has taken the attempt over.
    """
    snapshot, attempt = draft.record, draft.attempt
    if not isinstance(snapshot, Snapshot) or attempt is None:
        raise ValueError("only a snapshot of an attempt can be put")
    table = tables.message
    count = select(func.count()).where(table.c.attempt == attempt)
    snapshot = replace(snapshot, messages=connection.execute(count).scalar_one())
    draft = replace(draft, record=snapshot)
    what = Commit(drafts=(draft,), attempt=attempt, incarnation=incarnation)
    (entry,) = commits.commit(connection, what)
    if body:
        _replace_bundle(connection, attempt, snapshot.commit, body)
    return entry


def _replace_bundle(connection: Connection, attempt: int, commit: str, body: bytes) -> None:
    table = tables.bundle
    values = {"commit": commit, "body": body}
    changed = connection.execute(update(table).where(table.c.attempt == attempt), values)
    if not changed.rowcount:
        connection.execute(insert(table), {"attempt": attempt, **values})


def _bundle(connection: Connection, attempt: int) -> Bundle | None:
    """Return an attempt's saved work; `None` if none is in the journal.

    Raises JournalCorruptError if it is larger than Midwatch ever saves.
    """
    table = tables.bundle
    size = connection.execute(
        select(func.length(table.c.body)).where(table.c.attempt == attempt)
    ).scalar()
    if size is not None and size > MOST_BYTES:
        raise JournalCorruptError(f"the saved work of attempt {attempt} has {size} bytes")
    query = select(table.c.commit, table.c.body).where(table.c.attempt == attempt)
    row = connection.execute(query).mappings().first()
    return None if row is None else Bundle(**row)


def _commit_of(connection: Connection, attempt: int) -> str:
    """Return the snapshot whose work is in the journal; empty if there is none."""
    table = tables.bundle
    query = select(table.c.commit).where(table.c.attempt == attempt)
    return connection.execute(query).scalar() or ""


def _lease(connection: Connection, attempt: int) -> Lease | None:
    """Return who held an attempt last; `None` if nobody has."""
    table = tables.lease
    query = select(table.c.holder, table.c.incarnation).where(table.c.attempt == attempt)
    row = connection.execute(query).mappings().first()
    return None if row is None else Lease(**row)


def _attempts(connection: Connection, run: int) -> list[Attempt]:
    """Return all attempts of a run, oldest first."""
    of = select(tables.task.c.id).where(tables.task.c.run == run)
    return work.attempts(connection, tables.attempt.c.task.in_(of))


def _attempt_uses(connection: Connection, run: int) -> list[AttemptUse]:
    """Return the use of each attempt of a run, oldest first."""
    task, attempt, entry = tables.task, tables.attempt, tables.entry
    of = select(task.c.id).where(task.c.run == run)
    ids = select(attempt.c.id).where(attempt.c.task.in_(of))
    ended = _end_times(connection, entry.c.task, of, TaskTransition)
    over = _end_times(connection, entry.c.attempt, ids, AttemptTransition)
    attempts = work.attempts(connection, attempt.c.task.in_(of))
    last = {each.task: each.id for each in sorted(attempts, key=lambda each: each.number)}
    return [
        AttemptUse(
            attempt=each,
            over=each.id in over,
            last=last[each.task] == each.id,
            ended_at=ended.get(each.task),
        )
        for each in attempts
    ]


def _end_times(
    connection: Connection,
    of: ColumnElement[Any],
    wanted: Select[Any],
    kind: type[TaskTransition | AttemptTransition],
) -> dict[int, datetime]:
    """Return the end times of the wanted tasks or attempts that are over."""
    entry = tables.entry
    newest = select(func.max(entry.c.id)).where(of.in_(wanted), entry.c.kind == kind_of(kind))
    query = select(of.label("of"), entry.c.at, entry.c.id.label("entry"), entry.c.body)
    query = query.where(entry.c.id.in_(newest.group_by(of)))
    rows = rows_of(connection, query, kind)
    return {row.of: row.at for row, state in rows if state.lifecycle.over}


def _find_outlived(connection: Connection) -> list[int]:
    attempt, bundle = tables.attempt, tables.bundle
    later = attempt.alias()
    followed = exists().where(later.c.task == attempt.c.task, later.c.number > attempt.c.number)
    of = bundle.join(attempt, attempt.c.id == bundle.c.attempt)
    query = select(attempt.c.id, attempt.c.task).select_from(of).where(followed)
    rows = connection.execute(query).all()
    tasks = query.with_only_columns(attempt.c.task)
    over = _end_times(connection, tables.entry.c.task, tasks, TaskTransition) if rows else {}
    return [row.id for row in rows if row.task in over]


def _delete_bundles(connection: Connection, attempts: Sequence[int]) -> None:
    table = tables.bundle
    connection.execute(delete(table).where(table.c.attempt.in_(attempts)))


def _issue_once(connection: Connection, draft: Draft, *, incarnation: int | None = None) -> bool:
    """Issue an intervention unless the attempt has had the same one; return whether it was issued.

    Raises StaleIncarnationError if another process has taken the attempt over.
    """
    entry = tables.entry
    same = select(entry.c.id).where(
        entry.c.attempt == draft.attempt,
        entry.c.kind == kind_of(Intervention),
        entry.c.body == record_json(draft.record),
    )
    if connection.execute(same.limit(1)).first() is not None:
        return False
    what = Commit(drafts=(draft,), attempt=draft.attempt, incarnation=incarnation)
    commits.commit(connection, what)
    return True


class Bundles(JournalPart):
    """The saved work in a journal."""

    put = write_method(_store_snapshot)
    get = read_method(_bundle)
    commit_of = read_method(_commit_of)
    lease_of = read_method(_lease)
    attempts = read_method(_attempts)
    issue_once = write_method(_issue_once)
    standings = read_method(_attempt_uses)

    async def snapshots(self, attempt: int) -> list[Snapshot]:
        """Return all snapshots of an attempt, oldest first."""
        entries = self.journal.all_entries(attempt=attempt, kinds=(Snapshot,))
        return [each.record async for each in entries if isinstance(each.record, Snapshot)]

    async def drop_outlived(self) -> int:
        """Remove bundles that are no longer needed; return their number.

        In a task that is over, these are the bundles of all attempts but the last: its result may
        still be needed, or the parts of a split task may have begun from it.
        """
        gone = await self.journal.read(_find_outlived)
        for some in parts(gone, 500):  # others wait for each transaction
            await self.journal.write(_delete_bundles, some)
        return len(gone)
