"""Whether a task is over, and whether anything became of it since one has looked."""

from sqlalchemy import Connection, select

from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal.admin.damage import record_of
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.records import (
    AttemptTransition,
    Delivery,
    Intervention,
    Record,
    TaskTransition,
)

TURNS: tuple[type[Record], ...] = (TaskTransition, AttemptTransition, Intervention, Delivery)
"""The records by which it shows what can be done about a task."""


def require_open(connection: Connection, task: int) -> None:
    """Raise StaleIncarnationError where a task is over: nobody begins with it any more."""
    entry = tables.entry
    query = select(entry.c.body).where(
        entry.c.task == task, entry.c.kind == kind_of(TaskTransition)
    )
    body = connection.execute(query.order_by(entry.c.id.desc()).limit(1)).scalar()
    state = record_of(connection, f"the last state of task {task}", TaskTransition, body)
    if state is not None and state.lifecycle.over:
        raise StaleIncarnationError(f"task {task} is already {state.lifecycle.value}")


def moved(connection: Connection, task: int, after: int) -> bool:
    """Whether a task, or an attempt at it, is not as it was after an entry."""
    entry = tables.entry
    newer = select(entry.c.id).where(
        entry.c.task == task,
        entry.c.id > after,
        entry.c.kind.in_([kind_of(each) for each in TURNS]),
    )
    return connection.execute(newer.limit(1)).first() is not None
