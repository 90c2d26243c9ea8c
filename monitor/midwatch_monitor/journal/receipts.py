"""What a process wrote last to PostgreSQL, so that a commit whose answer was lost is done once.

PostgreSQL can be asked what became of a transaction's id, but not after a crash: an id that had
not yet reached the disk is given again, and another's commit would be taken for one's own. So the
transaction itself leaves a row.
"""

from datetime import timedelta
from uuid import uuid4

from sqlalchemy import Connection, delete, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from midwatch_monitor.errors import JournalTooNewError
from midwatch_monitor.journal import tables
from midwatch_monitor.journal.engine import LOCK
from midwatch_monitor.journal.tables import REVISION

_KEPT = timedelta(days=1)
"""Of a process that was killed; one that lives asks within its patience."""
_KNOWN = "midwatch"


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
        ).returning(func.pg_advisory_xact_lock(literal(LOCK)))

    def sign(self, connection: Connection, number: int) -> bool:
        """Begin the transaction with that number; whether it is still to be done.

        Waits for an earlier try that the server still works at, and then for other writers: ids
        are to be committed in their order. Raises JournalTooNewError where the tables have gone
        beyond this program since the last connection.
        """
        self._check(connection)
        return connection.execute(self._sign, {"number": number}).first() is not None

    def _check(self, connection: Connection) -> None:
        """Once for each connection: whoever is cut off may come back to newer tables."""
        if connection.info.get(_KNOWN):
            return
        oldest = connection.execute(select(tables.compatibility.c.oldest)).scalar()
        if oldest is not None and oldest > REVISION:
            raise JournalTooNewError(
                f"{self._name} was brought up to date by a newer Midwatch, which this one "
                f"({REVISION}) cannot work beside: update Midwatch to one that knows {oldest}"
            )
        connection.info[_KNOWN] = True

    def clear(self, connection: Connection) -> None:
        """Take away one's own receipt, and those of processes that are long gone."""
        table = tables.receipt
        gone = table.c.at < func.now() - _KEPT
        connection.execute(delete(table).where((table.c.writer == self._writer) | gone))
