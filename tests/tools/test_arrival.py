"""What arrives changes the plan and the budget; guidance that comes too late does not arrive."""

from collections.abc import Sequence

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    Budget,
    Change,
    Grant,
    Intervention,
    Meter,
    Plan,
    PlanStep,
    Record,
    Resolution,
    Terms,
)
from midwatch_stage import factories
from midwatch_tools.inbox import arrival_records, stamp, too_late

KEY = AlertKey(rule="workspace_conflict", subject="a.py")
OTHER = AlertKey(rule="same_failure")
PLAN = Plan(steps=(PlanStep(title="a", requests=8), PlanStep(title="b", requests=7)))
BUDGET = Budget(requests=Meter(used=5, limit=20))


def alert(key: AlertKey = KEY, resolution: Resolution | None = None) -> Alert:
    state = AlertState.RESOLVED if resolution else AlertState.FIRING
    return factories.alert(state=state, key=key, resolution=resolution)


CLEARED = alert(resolution=Resolution.CLEARED)
NUDGE = Intervention(action=Action.NUDGE, by=Actor.POLICY, answers=(KEY,))


def late(intervention: Intervention, *after: Alert, before: Sequence[Alert] = ()) -> bool:
    """Whether it is too late by the alerts before and after its entry, which is the tenth."""
    alerts = [*enumerate(before, 1), *enumerate(after, 11)]
    return too_late(10, intervention, [factories.entry(id, each) for id, each in alerts])


def test_guidance_is_too_late_once_what_it_answers_was_cleared() -> None:
    assert late(NUDGE, CLEARED, before=[alert()])


@pytest.mark.parametrize(
    "after",
    [
        (),
        (alert(resolution=Resolution.RESTARTED),),
        (CLEARED, alert()),
        (alert(OTHER, Resolution.CLEARED),),
    ],
    ids=["it still fires", "only its window was emptied", "it came again", "another alert"],
)
def test_guidance_arrives_as_long_as_what_it_answers_is_not_over(after: tuple[Alert, ...]) -> None:
    assert not late(NUDGE, *after)


def test_guidance_about_what_had_fallen_silent_before_arrives() -> None:
    assert not late(NUDGE, before=[alert(), CLEARED])


@pytest.mark.parametrize(
    "intervention",
    [
        Intervention(action=Action.NUDGE, by=Actor.OPERATOR, answers=(KEY,)),
        Intervention(action=Action.NUDGE, by=Actor.SUPERVISOR, answers=(KEY,), needs_approval=True),
        Intervention(action=Action.NUDGE, by=Actor.POLICY, petition=3, answers=(KEY,)),
        Intervention(action=Action.GRANT_BUDGET, by=Actor.POLICY, answers=(KEY,)),
        Intervention(action=Action.NUDGE, by=Actor.POLICY, answers=(KEY, OTHER)),
    ],
    ids=["a person's", "a person approved it", "an answer", "a grant", "half of it is not over"],
)
def test_what_else_is_due_arrives(intervention: Intervention) -> None:
    assert not late(intervention, CLEARED)


def records(intervention: Intervention) -> tuple[Record, ...]:
    return arrival_records([(3, intervention)], plan=PLAN, budget=BUDGET, model="", step=4, least=2)


def test_new_plan_steps_share_the_requests_that_are_left() -> None:
    replan = Intervention(action=Action.REPLAN, by=Actor.POLICY, plan=("c", "d", "e"))
    plan = Plan(
        steps=tuple(PlanStep(title=title, requests=5) for title in ("c", "d", "e")), revision=1
    )
    change = Change(plan_step=1, plan_steps=3, revision=1, plan_step_requests=5)
    assert records(replan) == (stamp(3, 4), plan, change)


def test_granted_requests_are_for_the_plan_step_in_hand() -> None:
    terms = Terms(grant=Grant(requests=5))
    grant = Intervention(action=Action.GRANT_BUDGET, by=Actor.POLICY, terms=terms)
    plan = Plan(steps=(PlanStep(title="a", requests=13), PLAN.steps[1]))
    budget = Budget(requests=Meter(used=5, limit=25))
    change = Change(budget=budget, plan_step_requests=13)
    assert records(grant) == (stamp(3, 4), plan, change)
