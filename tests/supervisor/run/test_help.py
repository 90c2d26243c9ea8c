"""A worker asked for help: what counts as an answer, so that its work needs no reservation."""

import pytest

from midwatch_monitor.records import (
    BY_TIMEOUT,
    Action,
    Actor,
    CheckpointDecision,
    DeliveryState,
    Intervention,
    Outcome,
    Record,
)
from midwatch_monitor.state.intervention import Interventions
from midwatch_stage.factories import delivery, entries, intervention, outcome, reflecting
from midwatch_supervisor.run.completion import was_help_answered

ASKED = reflecting(4, 50, 50, decision=CheckpointDecision.ESCALATE)
ARRIVED = delivery(step=5)


@pytest.mark.parametrize(
    ("act", "news", "answered"),
    [
        (intervention(), (ARRIVED,), False),
        (intervention(), (ARRIVED, outcome()), True),
        (intervention(), (ARRIVED, outcome(outcome=Outcome.NO_EFFECT)), False),
        (intervention(by=Actor.OPERATOR), (ARRIVED,), True),
        (intervention(by=Actor.OPERATOR), (), False),
        (intervention(by=Actor.OPERATOR), (delivery(step=3),), False),
        (intervention(Action.ASK_OPERATOR), (ARRIVED,), True),
        (intervention(Action.ACKNOWLEDGE, by=Actor.OPERATOR), (ARRIVED,), False),
        (
            intervention(needs_approval=True),
            (delivery(state=DeliveryState.APPROVED, author="ada"), ARRIVED),
            True,
        ),
        (
            intervention(needs_approval=True),
            (delivery(state=DeliveryState.APPROVED, author=BY_TIMEOUT), ARRIVED),
            False,
        ),
    ],
)
def test_help_came_if_a_person_heard_of_it_or_the_answer_helped(
    act: Intervention, news: tuple[Record, ...], answered: bool
) -> None:
    known = Interventions()
    for each in entries(act, *news):
        known.fold(each)
    assert was_help_answered(ASKED, known.delivered) is answered
