"""Versions of the guidelines in the index, and which summaries reflections have used."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, insert, select, update

from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import rows_of
from midwatch_monitor.journal.learned.projects import EntryOwner, key_of
from midwatch_monitor.records import (
    Entry,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    GuidelinesState,
    KnownGuidelines,
    Reflection,
)

_AFTER = {
    GuidelinesAct.APPROVED: GuidelinesState.PROPOSED,
    GuidelinesAct.REJECTED: GuidelinesState.PROPOSED,
    GuidelinesAct.ROLLED_BACK: GuidelinesState.LIVE,
}
"""The state that a version must have for each act."""


def propose(connection: Connection, entry: Entry, proposal: Guidelines, owner: EntryOwner) -> None:
    """Store a new version. Raises StaleIncarnationError if its number is taken."""
    table = tables.guidelines
    taken = select(table.c.entry).where(
        table.c.project == owner.project, table.c.version == proposal.version
    )
    if connection.execute(taken).first() is not None:
        raise StaleIncarnationError(
            f"version {proposal.version} of the guidelines already exists: "
            "another process wrote one at the same time"
        )
    values = {
        "entry": entry.id,
        "project": owner.project,
        "version": proposal.version,
        "state": GuidelinesState.PROPOSED.value,
        "author": "",
        "comment": "",
    }
    connection.execute(insert(table), values)


def mark(connection: Connection, entry: Entry, mark: GuidelinesMark) -> None:
    """Update the states of a project's versions.

    Raises StaleIncarnationError if the version is not in the state that the act needs, or was
    compared with a version no longer in force: somebody else has decided in the meantime.
    """
    row = _row(connection, mark.guidelines)
    needed = _AFTER[mark.act]
    if row.state != needed.value:
        raise StaleIncarnationError(
            f"version {row.version} of the guidelines is {row.state}, not {needed.value}: "
            f"it cannot be {mark.act.value}"
        )
    said = {"decided_at": entry.at, "author": mark.author, "comment": mark.comment}
    live = GuidelinesState.LIVE.value
    if mark.act is GuidelinesAct.APPROVED:
        before = _live_version(connection, row.project)
        if mark.over is not None and mark.over != (before or 0):
            raise StaleIncarnationError(
                f"version {row.version} of the guidelines was compared with one that is no longer "
                "in force"
            )
        _update_version(connection, before, state=GuidelinesState.FORMER.value)
        _update_version(connection, row.entry, **said, state=live, before=before)
        return
    _update_version(connection, row.entry, **said, state=GuidelinesState.REJECTED.value)
    if mark.act is GuidelinesAct.ROLLED_BACK:
        _update_version(connection, row.before, state=live)


def _row(connection: Connection, key: int) -> Row[Any]:
    table = tables.guidelines
    row = connection.execute(select(table).where(table.c.entry == key)).one_or_none()
    if row is None:
        raise JournalError(f"there is no version of guidelines {key}")
    return row


def _live_version(connection: Connection, project: int) -> int | None:
    table = tables.guidelines
    query = select(table.c.entry).where(
        table.c.project == project, table.c.state == GuidelinesState.LIVE.value
    )
    return connection.execute(query).scalar()


def _update_version(connection: Connection, key: int | None, **values: object) -> None:
    if key is not None:
        change = update(tables.guidelines).where(tables.guidelines.c.entry == key)
        connection.execute(change, values)


def look_back(
    connection: Connection, entry: Entry, reflection: Reflection, owner: EntryOwner
) -> None:
    """Record the last summary that a reflection on a project's attempts has used.

    Raises StaleIncarnationError if another reflection was faster: no summary is used twice.
    """
    last = _watermark(connection, owner.project)
    again = reflection.watermark == last and bool(reflection.attempts)
    if reflection.watermark < last or again:
        raise StaleIncarnationError(
            f"another process has looked back as far as entry {last}, this one only as far as "
            f"{reflection.watermark}"
        )
    values = {"entry": entry.id, "project": owner.project, "watermark": reflection.watermark}
    connection.execute(insert(tables.reflection), values)


def watermark(connection: Connection, project: str) -> int:
    """Return the journal id of the newest summary that a reflection used; 0 before the first."""
    key = key_of(connection, project)
    return 0 if key is None else _watermark(connection, key)


def _watermark(connection: Connection, project: int) -> int:
    table = tables.reflection
    query = select(table.c.watermark).where(table.c.project == project)
    return connection.execute(query.order_by(table.c.entry.desc()).limit(1)).scalar() or 0


def known_versions(connection: Connection, *wanted: ColumnElement[bool]) -> list[KnownGuidelines]:
    """Return versions with their states, newest first."""
    table, entry, project = tables.guidelines, tables.entry, tables.project
    query = (
        select(table, entry.c.at, entry.c.body, project.c.name)
        .join(entry, entry.c.id == table.c.entry)
        .join(project, project.c.id == table.c.project)
        .where(*wanted)
        .order_by(table.c.entry.desc())
    )
    return [
        KnownGuidelines(
            id=row.entry,
            at=row.at,
            project=row.name,
            guidelines=said,
            state=GuidelinesState(row.state),
            decided_at=row.decided_at,
            author=row.author,
            comment=row.comment,
        )
        for row, said in rows_of(connection, query, Guidelines)
    ]
