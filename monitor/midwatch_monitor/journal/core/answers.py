"""What a worker asked for is answered once: of two who do at the same time, the first counts."""

from sqlalchemy import Connection, select

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.admin.damage import record_in
from midwatch_monitor.journal.core import commits, tables
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.records import Commit, Delivery, DeliveryState, Draft, Entry, Intervention


def answers(draft: Draft) -> int | None:
    """What of a worker's a draft answers, by journal id; `None` if nothing. Pure."""
    return draft.record.petition if isinstance(draft.record, Intervention) else None


async def answer(journal: Journal, what: Commit) -> tuple[Entry, ...] | None:
    """Store it unless it answers what was answered already; `None` where it does.

    An answer that was rejected, also by what is stored here, is none. Raises as `Journal.commit`.
    """
    if any(answers(draft) is not None for draft in what.drafts):
        return await journal.write(_commit, what)
    return await journal.commit(what)


def _commit(connection: Connection, what: Commit) -> tuple[Entry, ...] | None:
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
