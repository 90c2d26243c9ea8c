"""With what reservations a task counts as completed, and how that is told."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from midwatch_monitor.records import (
    Attempt,
    Completion,
    Entry,
    Lifecycle,
    Record,
    Task,
    TaskTransition,
)
from midwatch_supervisor.present.lines import Transcript
from midwatch_supervisor.present.progress import reserved

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
TASK = Task(id=1, run=1, name="totals", title="", spec="{}")
FIRST = Attempt(
    id=4, task=1, number=1, worker="coder", model="m", node="n", workspace="w", started_at=AT
)
FLAGGED = Completion(
    plan_step=0, goal="g", confidence=70, accepted=True, flag="open: b", doubts=("a: x", "a: x")
)
DONE = TaskTransition(lifecycle=Lifecycle.COMPLETED)
FAILED = TaskTransition(lifecycle=Lifecycle.FAILED)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ((FLAGGED, DONE), (("totals", ("open: b", "a: x")),)),
        ((FLAGGED,), ()),
        ((FLAGGED, FAILED), ()),
        ((replace(FLAGGED, accepted=False), DONE), ()),
        ((replace(FLAGGED, plan_step=1), DONE), ()),
        ((FLAGGED, replace(FLAGGED, flag="", doubts=()), DONE), ()),
    ],
)
def test_the_end_names_the_reservations_of_what_was_accepted_last(
    records: Sequence[Record], expected: tuple[tuple[str, tuple[str, ...]], ...]
) -> None:
    transcript = Transcript([TASK], [FIRST])
    for id, record in enumerate(records, start=1):
        transcript.line(Entry(id=id, record=record, at=AT, task=1, attempt=4))
    assert transcript.reserved == expected


def test_a_task_that_is_completed_with_reservations_is_told_with_them() -> None:
    told = reserved("totals", ("still open: b", "not reviewed"))
    assert told == "totals: completed, with reservations: still open: b; not reviewed"
