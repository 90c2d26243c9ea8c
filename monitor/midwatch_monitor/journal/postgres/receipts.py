"""What a process wrote last to PostgreSQL, so that a commit whose answer was lost is done once.

PostgreSQL can be asked what became of a transaction's id, but not after a crash: an id that had
not yet reached the disk is given again, and another's commit would be taken for one's own. So the
transaction itself leaves a row.
"""

from datetime import timedelta
from uuid import uuid4

from sqlalchemy import Connection, Label, delete, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from midwatch_monitor.errors import JournalTooNewError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.engine import LOCK
from midwatch_monitor.journal.core.tables import REVISION

_KEPT = timedelta(days=1)
"""Of a process that was killed; one that lives asks within its patience."""


def _oldest() -> Label[str]:
    """Which revision the tables ask for, once the writers' lock is held.

    The statement was begun before that, and sees what was there then; but who locks a row gets it
    as it is by then. An upgrade holds the same lock, so that none can be between.
    """
    row = select(tables.compatibility.c.oldest).with_for_update(read=True, key_share=True)
    return row.scalar_subquery().label("oldest")


class Receipts:
    """The receipts of one writer. Numbers rise from 1, one for each transaction to be done."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._writer = uuid4().hex
        table = tables.receipt
        row = insert(table).values(writer=self._writer, at=func.now())
        new = row.excluded
        self._sign = row.on_conflict_do_update(
            index_elements=[table.c.writer],
            set_={"number": new.number, "at": new.at},
            where=table.c.number != new.number,
        ).returning(func.pg_advisory_xact_lock(literal(LOCK)), _oldest())

    def sign(self, connection: Connection, number: int) -> bool:
        """Begin the transaction with that number; whether it is still to be done.

        Waits for an earlier try that the server still works at, and then for other writers: ids
        are to be committed in their order. Raises JournalTooNewError where the tables have gone
        beyond this program by then; nothing is written.
        """
        signed = connection.execute(self._sign, {"number": number}).first()
        if signed is None:
            return False
        if signed.oldest is not None and signed.oldest > REVISION:
            raise JournalTooNewError(
                f"{self._name} was brought up to date by a newer Midwatch, which this one "
                f"({REVISION}) cannot work beside: update Midwatch to one that knows "
                f"{signed.oldest}"
            )
        return True

    def clear(self, connection: Connection) -> None:
        """Take away one's own receipt, and those of processes that are long gone."""
        table = tables.receipt
        gone = table.c.at < func.now() - _KEPT
        connection.execute(delete(table).where((table.c.writer == self._writer) | gone))
