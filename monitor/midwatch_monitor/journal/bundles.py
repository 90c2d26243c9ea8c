"""Saved work of attempts: the newest of each, and who held the attempt last."""

from dataclasses import dataclass, replace

from sqlalchemy import Connection, func, insert, select, update

from midwatch_monitor.journal import commits, queries, tables
from midwatch_monitor.journal.journal import Journal
from midwatch_monitor.journal.records import kind_of, written
from midwatch_monitor.words import Attempt, Commit, Draft, Entry, Intervention, Lease, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """An attempt's saved work, as one file of git's."""

    commit: str
    """The snapshot that it brings."""
    body: bytes


class Bundles:
    """The saved work in a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def put(self, draft: Draft, body: bytes, *, incarnation: int | None) -> Entry:
        """Store a snapshot, and its bundle in place of the one before, as one.

        An empty body leaves the bundle before as it is: the work was pushed, or is too large. The
        snapshot is completed with how many messages the history has by now. Raises
        StaleIncarnationError where another process has taken the attempt over.
        """
        return await self._journal.write(_put, draft, body, incarnation)

    async def get(self, attempt: int) -> Bundle | None:
        """An attempt's saved work; `None` if none is in the journal."""
        return await self._journal.read(_bundle, attempt)

    async def commit_of(self, attempt: int) -> str:
        """The snapshot whose work is in the journal; empty if there is none."""
        return await self._journal.read(_commit_of, attempt)

    async def lease_of(self, attempt: int) -> Lease | None:
        """Who held an attempt last; `None` before anybody did."""
        return await self._journal.read(_lease, attempt)

    async def snapshots(self, attempt: int) -> list[Snapshot]:
        """All that was saved of an attempt, oldest first."""
        entries = self._journal.all_entries(attempt=attempt, kinds=(Snapshot,))
        return [each.record async for each in entries if isinstance(each.record, Snapshot)]

    async def attempts(self, run: int) -> list[Attempt]:
        """All attempts of a run, oldest first."""
        return await self._journal.read(_attempts, run)

    async def issue_once(self, draft: Draft) -> bool:
        """Issue an intervention unless the attempt has had the same one; whether it was issued."""
        return await self._journal.write(_issue_once, draft)


def _put(connection: Connection, draft: Draft, body: bytes, incarnation: int | None) -> Entry:
    snapshot, attempt = draft.record, draft.attempt
    if not isinstance(snapshot, Snapshot) or attempt is None:
        raise ValueError("what is put is a snapshot of an attempt")
    table = tables.message
    count = select(func.count()).where(table.c.attempt == attempt)
    snapshot = replace(snapshot, messages=connection.execute(count).scalar_one())
    draft = replace(draft, record=snapshot)
    what = Commit(drafts=(draft,), attempt=attempt, incarnation=incarnation)
    (entry,) = commits.commit(connection, what)
    if body:
        _replace(connection, attempt, snapshot.commit, body)
    return entry


def _replace(connection: Connection, attempt: int, commit: str, body: bytes) -> None:
    table = tables.bundle
    values = {"commit": commit, "body": body}
    changed = connection.execute(update(table).where(table.c.attempt == attempt), values)
    if not changed.rowcount:
        connection.execute(insert(table), {"attempt": attempt, **values})


def _bundle(connection: Connection, attempt: int) -> Bundle | None:
    table = tables.bundle
    row = connection.execute(select(table).where(table.c.attempt == attempt)).first()
    return None if row is None else Bundle(commit=row.commit, body=row.body)


def _commit_of(connection: Connection, attempt: int) -> str:
    table = tables.bundle
    query = select(table.c.commit).where(table.c.attempt == attempt)
    return connection.execute(query).scalar() or ""


def _lease(connection: Connection, attempt: int) -> Lease | None:
    table = tables.lease
    row = connection.execute(select(table).where(table.c.attempt == attempt)).first()
    return None if row is None else Lease(holder=row.holder, incarnation=row.incarnation)


def _attempts(connection: Connection, run: int) -> list[Attempt]:
    of = select(tables.task.c.id).where(tables.task.c.run == run)
    return queries.attempts(connection, tables.attempt.c.task.in_(of))


def _issue_once(connection: Connection, draft: Draft) -> bool:
    entry = tables.entry
    same = select(entry.c.id).where(
        entry.c.attempt == draft.attempt,
        entry.c.kind == kind_of(Intervention),
        entry.c.body == written(draft.record),
    )
    if connection.execute(same.limit(1)).first() is not None:
        return False
    commits.commit(connection, Commit(drafts=(draft,)))
    return True
