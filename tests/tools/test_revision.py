"""What is finished stays; what is open may be replaced."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    Change,
    Checkpoint,
    Course,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Plan,
    PlanStep,
    PlanStepState,
    Record,
    Step,
    StepKind,
)
from midwatch_tools.plan_change import (
    Wanting,
    change,
    wanted,
    with_current_done,
    with_remaining,
    written,
)

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


def test_a_plan_step_that_stays_keeps_what_is_known_of_it() -> None:
    known = PlanStep(title="write", files=("a.py",), acceptance=("make test",), requests=7)
    plan = Plan(steps=(DONE, known, PlanStep(title="check")))
    assert with_remaining(plan, ["look", "write"]).steps == (DONE, PlanStep(title="look"), known)


def test_two_plan_steps_of_one_title_stay_two() -> None:
    plan = Plan(steps=(PlanStep(title="try", requests=1), PlanStep(title="try", requests=2)))
    again = with_remaining(plan, ["try", "try", "try"])
    assert [step.requests for step in again.steps] == [1, 2, None]


def test_a_finished_plan_step_keeps_its_flag() -> None:
    assert with_current_done(PLAN, "not on Windows").steps[2].flag == "not on Windows"


def test_the_rules_are_told_the_share_of_the_plan_step_in_hand() -> None:
    plan = Plan(steps=(DONE, PlanStep(title="write", requests=7)))
    assert change(plan) == Change(plan_step=2, plan_steps=2, revision=0, plan_step_requests=7)


@pytest.mark.parametrize(
    ("plan", "is_written"),
    [
        (Plan(steps=(PlanStep(title="the goal"),)), False),
        (Plan(steps=(PlanStep(title="the goal"),), revision=1), True),
        (PLAN, True),
    ],
)
def test_the_goal_alone_is_no_plan(plan: Plan, is_written: bool) -> None:
    assert written(plan) is is_written


REPLAN = Intervention(action=Action.REPLAN, by=Actor.SUPERVISOR)
WITH_STEPS = Intervention(action=Action.REPLAN, by=Actor.SUPERVISOR, plan=("a",))
ARRIVED = Delivery(intervention=1, state=DeliveryState.DELIVERED)
EXPIRED = Delivery(intervention=1, state=DeliveryState.EXPIRED)
PIVOT = Step(
    number=1,
    kind=StepKind.CHECKPOINT,
    checkpoint=Checkpoint(progress_percent=1, confidence=9, decision=Course.PIVOT),
)
SET = Step(number=2, kind=StepKind.TOOL, tool="set_plan", ok=True)
REFUSED = Step(number=2, kind=StepKind.TOOL, tool="set_plan", ok=False)


@pytest.mark.parametrize(
    ("records", "wanting"),
    [
        ([], Wanting.NOTHING),
        ([REPLAN], Wanting.NOTHING),
        ([REPLAN, EXPIRED], Wanting.NOTHING),
        ([WITH_STEPS, ARRIVED], Wanting.NOTHING),
        ([REPLAN, ARRIVED], Wanting.ORDERED),
        ([REPLAN, ARRIVED, PIVOT, REFUSED], Wanting.ORDERED),
        ([REPLAN, ARRIVED, SET], Wanting.NOTHING),
        ([PIVOT], Wanting.PIVOT),
        ([PIVOT, SET], Wanting.NOTHING),
    ],
)
def test_new_plan_steps_are_wanted_until_they_are_written(
    records: Sequence[Record], wanting: Wanting
) -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    entries = [Entry(id=n, record=each, at=at, task=1) for n, each in enumerate(records, start=1)]
    assert wanted(entries) is wanting


# -- checks of plan steps that a revision drops --------------------------------------------------

CHECKED = PlanStep(title="Write a", files=("a.txt",), acceptance=("grep a a.txt",))
LATER = PlanStep(title="Test it", acceptance=("make test",))
ASKED = Plan(steps=(CHECKED, LATER))


def test_a_worker_gets_rid_of_no_check_by_another_title() -> None:
    first, last = with_remaining(ASKED, ["Write aa", "Try it"]).steps
    assert (first.acceptance, last.acceptance) == (("grep a a.txt",), ("make test",))
    assert first.flag == "no longer expected by a revision: a.txt"


def test_nor_by_dropping_the_plan_step() -> None:
    (only,) = with_remaining(ASKED, ["Test it"]).steps
    assert only.acceptance == ("make test", "grep a a.txt")


def test_a_title_is_the_same_title_in_other_letters_and_spaces() -> None:
    first, last = with_remaining(ASKED, ["write  A", "Test it"]).steps
    assert (first.files, first.acceptance, first.flag) == (CHECKED.files, CHECKED.acceptance, "")
    assert last == LATER


def test_a_plan_that_is_ordered_says_itself_what_is_checked() -> None:
    assert with_remaining(ASKED, ["Write b"], ordered=True).steps == (PlanStep(title="Write b"),)


def test_a_reservation_from_before_stays_when_the_plan_step_is_done() -> None:
    plan = Plan(steps=(PlanStep(title="a", flag="no longer expected by a revision: a.txt"),))
    (done,) = with_current_done(plan, "untested").steps
    assert done.flag == "no longer expected by a revision: a.txt; untested"
