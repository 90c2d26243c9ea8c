"""What of a run is open, folded from its entries."""

import pytest

from midwatch_monitor.records import (
    Action,
    BudgetRequest,
    DeliveryState,
    Grant,
    Lifecycle,
    Record,
)
from midwatch_monitor.state.run import RunState
from midwatch_stage import factories as make

ASKS = BudgetRequest(wanted=Grant(requests=10), reason="more to do")
HELD = make.intervention(Action.GRANT_BUDGET, petition=1, needs_approval=True)
REJECTED = make.delivery(2, DeliveryState.REJECTED, step=3)
OVER = make.transition(Lifecycle.FAILED)


def test_an_escalation_needs_no_decision_once_the_worker_was_told_to_stop() -> None:
    run = RunState()
    stops = make.intervention(Action.STOP), make.delivery(2)
    for each in make.entries(make.escalation(), *stops):
        run.fold(each)
    assert run.escalations == {}


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
    for each in make.entries(*records):
        run.fold(each)
    assert list(run.requests) == open_ones
