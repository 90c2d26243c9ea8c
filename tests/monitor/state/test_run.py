"""What of a run is open, folded from its entries."""

from datetime import UTC, datetime

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    BudgetRequest,
    Delivery,
    DeliveryState,
    Entry,
    Grant,
    Intervention,
    Lifecycle,
    Record,
)
from midwatch_monitor.state.run import RunState

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
ASKS = BudgetRequest(wanted=Grant(requests=10), reason="more to do")
HELD = Intervention(
    action=Action.GRANT_BUDGET, by=Actor.SUPERVISOR, message="", petition=1, needs_approval=True
)
REJECTED = Delivery(intervention=2, state=DeliveryState.REJECTED, step=3)
OVER = AttemptTransition(lifecycle=Lifecycle.FAILED)


@pytest.mark.parametrize(
    ("records", "open_ones"),
    [
        ([ASKS, HELD], []),
        ([ASKS, HELD, REJECTED], [1]),
        ([ASKS, HELD, OVER, REJECTED], []),
        ([ASKS, HELD, REJECTED, OVER], []),
    ],
    ids=["answered", "its answer was rejected", "rejected after the end", "over after that"],
)
def test_a_question_is_open_again_once_its_answer_was_rejected_unless_its_attempt_is_over(
    records: list[Record], open_ones: list[int]
) -> None:
    run = RunState()
    for id, record in enumerate(records, 1):
        run.fold(Entry(id=id, at=AT, task=1, attempt=7, record=record))
    assert list(run.requests) == open_ones
