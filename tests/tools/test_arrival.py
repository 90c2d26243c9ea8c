"""What arrives changes the plan and the budget; guidance that comes too late does not arrive."""

import pytest

from midwatch_monitor import records as r
from midwatch_tests import factories
from midwatch_tests.factories import intervention
from midwatch_tools.inbox import arrival_records, stamp, too_late

KEY = r.AlertKey(rule="workspace_conflict", subject="a.py")
OTHER = r.AlertKey(rule="same_failure")
PLAN = r.Plan(steps=(r.PlanStep(title="a", requests=8), r.PlanStep(title="b", requests=7)))
BUDGET = r.Budget(requests=r.Meter(used=5, limit=20))


def alert(resolution: r.Resolution | None = None, key: r.AlertKey = KEY) -> r.Alert:
    state = r.AlertState.RESOLVED if resolution else r.AlertState.FIRING
    return factories.alert(state=state, key=key, resolution=resolution)


FIRES, CLEARED = alert(), alert(r.Resolution.CLEARED)
NUDGE = intervention(answers=(KEY,))


@pytest.mark.parametrize(
    ("said", "before", "after", "late"),
    [
        (NUDGE, (FIRES,), (CLEARED,), True),
        (NUDGE, (), (), False),
        (NUDGE, (), (alert(r.Resolution.RESTARTED),), False),
        (NUDGE, (), (CLEARED, FIRES), False),
        (NUDGE, (), (alert(r.Resolution.CLEARED, OTHER),), False),
        (NUDGE, (FIRES, CLEARED), (), False),
        (intervention(by=r.Actor.OPERATOR, answers=(KEY,)), (), (CLEARED,), False),
        (intervention(answers=(KEY,), needs_approval=True), (), (CLEARED,), False),
        (intervention(answers=(KEY,), petition=3), (), (CLEARED,), False),
        (intervention(r.Action.GRANT_BUDGET, answers=(KEY,)), (), (CLEARED,), False),
        (intervention(answers=(KEY, OTHER)), (), (CLEARED,), False),
    ],
    ids=[
        "cleared",
        "it still fires",
        "only its window was emptied",
        "it came again",
        "another alert",
        "fallen silent before",
        "a person's",
        "a person approved it",
        "an answer",
        "a grant",
        "half of it is not over",
    ],
)
def test_guidance_is_too_late_once_all_that_it_answers_was_cleared(
    said: r.Intervention, before: tuple[r.Alert, ...], after: tuple[r.Alert, ...], late: bool
) -> None:
    alerts = [*enumerate(before, 1), *enumerate(after, 11)]
    assert too_late(10, said, [factories.entry(id, each) for id, each in alerts]) is late


def records(said: r.Intervention) -> tuple[r.Record, ...]:
    return arrival_records([(3, said)], plan=PLAN, budget=BUDGET, model="", step=4, least=2)


def test_new_plan_steps_share_the_requests_that_are_left() -> None:
    steps = tuple(r.PlanStep(title=title, requests=5) for title in ("c", "d", "e"))
    change = r.Change(plan_step=1, plan_steps=3, revision=1, plan_step_requests=5)
    arrived = records(intervention(r.Action.REPLAN, plan=("c", "d", "e")))
    assert arrived == (stamp(3, 4), r.Plan(steps=steps, revision=1), change)


def test_granted_requests_are_for_the_plan_step_in_hand() -> None:
    plan = r.Plan(steps=(r.PlanStep(title="a", requests=13), PLAN.steps[1]))
    change = r.Change(budget=r.Budget(requests=r.Meter(used=5, limit=25)), plan_step_requests=13)
    granted = r.Terms(grant=r.Grant(requests=5))
    assert records(intervention(r.Action.GRANT_BUDGET, terms=granted)) == (
        stamp(3, 4),
        plan,
        change,
    )
