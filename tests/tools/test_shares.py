"""How requests are shared among plan steps: more for what one is less sure of."""

import pytest

from midwatch_monitor.records import Meter, Plan, PlanStep, PlanStepState
from midwatch_tools.plan_change import shared, shares


def test_an_unsure_plan_step_gets_clearly_more_than_sure_ones() -> None:
    """D9: 80 % for the first three plan steps, 40 % for the fifth."""
    given = shares((80, 80, 80, 70, 40), 60, 2)
    assert given == (10, 10, 10, 12, 18)


@pytest.mark.parametrize(
    ("confidences", "requests", "given"),
    [
        ((), 60, ()),
        ((100,), 7, (7,)),
        ((100, 0), 40, (8, 32)),
        ((None, 70), 20, (10, 10)),
        ((90, 90, 90), 10, (4, 3, 3)),
        ((50, 50), 3, (2, 1)),
        ((50, 50), 0, (0, 0)),
        ((50, 50), -5, (0, 0)),
    ],
)
def test_what_there_is_is_shared_by_weight(
    confidences: tuple[int | None, ...], requests: int, given: tuple[int, ...]
) -> None:
    assert shares(confidences, requests, 2) == given


def test_each_plan_step_gets_the_least_share_where_there_is_enough() -> None:
    assert shares((100, 100, 0), 24, 8) == (8, 8, 8)


def test_finished_plan_steps_get_nothing_of_what_is_left() -> None:
    done = PlanStep(title="a", state=PlanStepState.DONE, requests=9)
    plan = Plan(steps=(done, PlanStep(title="b"), PlanStep(title="c", confidence=20)))
    given = shared(plan, Meter(used=20, limit=60), least=2)
    assert [step.requests for step in given.steps] == [9, 14, 26]


@pytest.mark.parametrize(
    ("titles", "requests"), [("a", Meter(limit=60)), ("ab", Meter(limit=None))]
)
def test_nothing_is_shared_without_a_limit_or_with_one_plan_step(
    titles: str, requests: Meter
) -> None:
    plan = Plan(steps=tuple(PlanStep(title=title) for title in titles))
    assert shared(plan, requests, least=2) == plan
