"""How often a task's plan was revised by its workers, over all attempts."""

from collections.abc import Iterable

from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Plan,
)


async def revisions_made(recorder: Recorder) -> int:
    """The revisions that the workers of the recorder's task have made, by the journal."""
    entries: list[Entry] = []
    after = 0
    while page := await recorder.journal.entries(
        after, task=recorder.attempt.task, kinds=(Plan, Intervention, Delivery)
    ):
        entries += page
        after = page[-1].id
    return revisions(entries)


def revisions(entries: Iterable[Entry]) -> int:
    """The revisions of plans in these entries, but for those that the supervisor ordered.

    What a worker proposed and the supervisor approved is the worker's. An attempt's first plan is
    no revision.
    """
    made = 0
    known: dict[int | None, int] = {}
    ordered: set[int] = set()
    for entry in entries:
        record = entry.record
        if isinstance(record, Plan):
            made += max(0, record.revision - known.get(entry.attempt, record.revision))
            known[entry.attempt] = record.revision
        elif isinstance(record, Intervention):
            if record.action is Action.REPLAN and record.petition is None:
                ordered.add(entry.id)
        elif isinstance(record, Delivery) and record.state is DeliveryState.DELIVERED:
            made -= record.intervention in ordered
    return max(0, made)
