"""What is stored about a task only where nothing became of it since one has looked."""

from sqlalchemy import Connection

from midwatch_monitor.journal.core import commits
from midwatch_monitor.journal.learned.standing import moved
from midwatch_monitor.records import Commit, Entry


def commit_unmoved(
    connection: Connection, what: Commit, *, task: int, after: int
) -> tuple[Entry, ...] | None:
    """Store it unless the task has moved since an entry; `None` where it has.

    So it does not begin, or go on with another attempt, between the look and the word.
    """
    return None if moved(connection, task, after) else commits.commit(connection, what)
