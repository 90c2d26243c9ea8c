"""What is finished stays; what is open may be replaced."""

from midwatch_monitor.words import Change, Plan, PlanStep, PlanStepState
from midwatch_tools.revision import change, with_current_done, with_remaining

DONE = PlanStep(title="read", state=PlanStepState.DONE)
SKIPPED = PlanStep(title="guess", state=PlanStepState.SKIPPED)
PLAN = Plan(steps=(DONE, SKIPPED, PlanStep(title="write"), PlanStep(title="check")), revision=1)


def test_new_plan_steps_replace_the_open_ones_only() -> None:
    assert with_remaining(PLAN, ["a", "b"]) == Plan(
        steps=(DONE, SKIPPED, PlanStep(title="a"), PlanStep(title="b")), revision=2
    )


def test_the_first_open_plan_step_is_the_one_that_is_finished() -> None:
    after = with_current_done(PLAN)
    assert after.steps[2] == PlanStep(title="write", state=PlanStepState.DONE)
    assert (after.current, after.open_titles, after.revision) == (4, ("check",), 1)


def test_a_plan_with_nothing_open_stays_as_it_is() -> None:
    closed = Plan(steps=(DONE, SKIPPED))
    assert with_current_done(closed) == closed


def test_the_rules_are_told_where_the_plan_stands() -> None:
    assert change(PLAN) == Change(plan_step=3, plan_steps=4, revision=1)
