"""Finds the project that an entry belongs to."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.core import tables


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryOwner:
    """The project and the task that an entry belongs to."""

    project: int
    """The project's key in the journal."""
    task: str
    """The task's name."""


def key_of(connection: Connection, name: str) -> int | None:
    """Return the key of the project with that name; `None` if the journal has none."""
    query = select(tables.project.c.id).where(tables.project.c.name == name)
    return connection.execute(query).scalar()


def ensure(connection: Connection, name: str) -> int | None:
    """Return the key of the project, and create it if missing; `None` for no name."""
    if not name:
        return None
    found = key_of(connection, name)
    if found is not None:
        return found
    new = insert(tables.project).returning(tables.project.c.id)
    return connection.execute(new, {"name": name}).scalar_one()


def owner_of(connection: Connection, task: int) -> EntryOwner | None:
    """Return the owner of a task's entries; `None` if nothing is learned from the task."""
    table = tables.task
    query = select(table.c.project, table.c.name).where(table.c.id == task)
    row = connection.execute(query).one_or_none()
    if row is None or row.project is None:
        return None
    return EntryOwner(project=row.project, task=row.name)


def names(connection: Connection) -> list[str]:
    """Return the names of all projects, sorted."""
    return list(
        connection.execute(select(tables.project.c.name).order_by(tables.project.c.name)).scalars()
    )


def sources_of(
    connection: Connection, owner: EntryOwner, sources: Iterable[int], attempt: int | None
) -> tuple[int, ...]:
    """Return the attempts that something comes from, with that of its own entry first.

    Raises JournalError for a missing attempt, and for one of another project: what was learned from
    a project must be erased with it.
    """
    own = () if attempt is None else (attempt,)
    wanted = tuple(dict.fromkeys((*own, *sources)))
    if not wanted:
        raise JournalError("anything learned must name an attempt that it comes from")
    table, task = tables.attempt, tables.task
    query = (
        select(table.c.id)
        .join(task, task.c.id == table.c.task)
        .where(table.c.id.in_(wanted), task.c.project == owner.project)
    )
    strange = set(wanted) - set(connection.execute(query).scalars())
    if strange:
        raise JournalError(f"attempt {min(strange)} does not belong to the project")
    return wanted
