"""Open chores (what remains to be learned from entries), and the summaries of attempts."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, Connection, case, exists, insert, or_, select, update

from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import rows_of
from midwatch_monitor.journal.learned.projects import EntryOwner
from midwatch_monitor.records import (
    Chore,
    Entry,
    FactState,
    KnownSummary,
    OpenChore,
    Study,
    StudyState,
    Summary,
)

_ORDER = (Chore.LESSON, Chore.SUMMARY, Chore.REVIEW)
"""Order of an entry's chores: the review comes last, since the others may record facts."""


def open_chore(
    connection: Connection, about: int, chore: Chore, *, attempt: int, owner: EntryOwner
) -> None:
    """Add a chore for an entry, or reopen it."""
    table = tables.chore
    change = update(table).where(table.c.about == about, table.c.chore == chore.value)
    if connection.execute(change, {"open": True, "tries": 0}).rowcount:
        return
    values = {
        "about": about,
        "chore": chore.value,
        "project": owner.project,
        "attempt": attempt,
        "open": True,
        "tries": 0,
    }
    connection.execute(insert(table), values)


def end(connection: Connection, entry: Entry, attempt: int, owner: EntryOwner) -> None:
    """Open the chores of a finished attempt: its summary, and a review if facts wait for one."""
    open_chore(connection, entry.id, Chore.SUMMARY, attempt=attempt, owner=owner)
    if connection.execute(select(_waits_for(attempt))).scalar():
        open_chore(connection, entry.id, Chore.REVIEW, attempt=attempt, owner=owner)


def wait(connection: Connection, attempt: int, owner: EntryOwner) -> None:
    """Open the review of a waiting fact; does nothing until the fact's attempt is over."""
    table = tables.chore
    ended = select(table.c.about).where(
        table.c.attempt == attempt, table.c.chore == Chore.SUMMARY.value
    )
    for about in connection.execute(ended).scalars().all():
        open_chore(connection, about, Chore.REVIEW, attempt=attempt, owner=owner)


def _waits_for(attempt: int | ColumnElement[int]) -> ColumnElement[bool]:
    fact = tables.fact
    return exists().where(
        fact.c.attempt == attempt,
        fact.c.live.is_(True),
        fact.c.state == FactState.PENDING.value,
    )


def study(connection: Connection, study: Study) -> None:
    """Record a try at a chore: if it failed, the chore stays open.

    Raises StaleIncarnationError if the chore is already done.

    A chore that was erased in the meantime is ignored.
    """
    table = tables.chore
    here = (table.c.about == study.about, table.c.chore == study.chore.value)
    row = connection.execute(select(table.c.open, table.c.tries).where(*here)).one_or_none()
    if row is None:
        return
    if not row.open:
        raise StaleIncarnationError(
            f"another process has already done the {study.chore.value} of entry {study.about}"
        )
    failed = study.state is StudyState.FAILED
    values = {"open": failed, "tries": row.tries + failed}
    connection.execute(update(table).where(*here), values)


def still_open(
    connection: Connection,
    *,
    tries: int,
    attempt: int | None = None,
    kinds: Collection[Chore] = tuple(Chore),
) -> list[OpenChore]:
    """Return the open chores of some kinds, newest first.

    Chores that failed `tries` times are left out, except reviews, since facts wait for those.
    """
    table, entry, project = tables.chore, tables.entry, tables.project
    review = Chore.REVIEW.value
    order = case({each.value: place for place, each in enumerate(_ORDER)}, value=table.c.chore)
    query = (
        select(table, entry.c.task, project.c.name)
        .join(entry, entry.c.id == table.c.about)
        .join(project, project.c.id == table.c.project)
        .where(
            table.c.open,
            table.c.chore.in_([each.value for each in kinds]),
            or_(table.c.chore == review, table.c.tries < tries),
            or_(table.c.chore != review, _waits_for(table.c.attempt)),
        )
        .order_by(table.c.about.desc(), order)
    )
    if attempt is not None:
        query = query.where(table.c.attempt == attempt)
    return [
        OpenChore(
            about=row.about,
            chore=Chore(row.chore),
            task=row.task,
            attempt=row.attempt,
            project=row.name,
            tries=row.tries,
        )
        for row in connection.execute(query)
    ]


def sum_up(connection: Connection, entry: Entry, owner: EntryOwner) -> None:
    """Store the summary of an attempt. Only the first one counts."""
    table = tables.summary
    if entry.attempt is None:
        return
    there = select(table.c.entry).where(table.c.attempt == entry.attempt)
    if connection.execute(there).first() is None:
        values = {"entry": entry.id, "project": owner.project, "attempt": entry.attempt}
        connection.execute(insert(table), values)


def summaries(
    connection: Connection, project: str, *, after: int = 0, limit: int = 50
) -> list[KnownSummary]:
    """Return a project's first summaries with ids above `after`, one for each attempt."""
    table, entry, task = tables.summary, tables.entry, tables.task
    query = (
        select(table, entry.c.at, entry.c.body, entry.c.task, task.c.name)
        .join(entry, entry.c.id == table.c.entry)
        .join(task, task.c.id == entry.c.task)
        .join(tables.project, tables.project.c.id == table.c.project)
        .where(tables.project.c.name == project, table.c.entry > after)
        .order_by(table.c.entry)
    )
    return [
        KnownSummary(
            id=row.entry,
            at=row.at,
            task=row.task,
            task_name=row.name,
            attempt=row.attempt,
            summary=said,
        )
        for row, said in rows_of(connection, query, Summary, limit)
    ]
