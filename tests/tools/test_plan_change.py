"""What is finished stays; what is open may be replaced."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor.config.settings import Approver, PlanSettings
from midwatch_monitor.records import (
    Action,
    Actor,
    Change,
    CheckpointDecision,
    DeliveryState,
    Intervention,
    Meter,
    Plan,
    PlanCheck,
    PlanStep,
    PlanStepState,
    Record,
    Ruling,
)
from midwatch_stage.factories import delivery, entries, intervention, reflecting, step
from midwatch_tools.plan_change import (
    StepsWanted,
    is_written,
    plan_change,
    revisions,
    share_requests,
    shares,
    steps_wanted,
    with_current_done,
    with_remaining,
)
from midwatch_tools.tools.plan_tools import answered, rule_on_check

DONE = PlanStep(title="read", state=PlanStepState.DONE)
SKIPPED = PlanStep(title="guess", state=PlanStepState.SKIPPED)
PLAN = Plan(steps=(DONE, SKIPPED, PlanStep(title="write"), PlanStep(title="check")), revision=1)
CHECKED = PlanStep(title="Write a", files=("a.txt",), acceptance=("grep a a.txt",), requests=7)
LATER = PlanStep(title="Test it", acceptance=("make test",))
TWICE = (PlanStep(title="try", requests=1), PlanStep(title="try", requests=2))
GONE = "no longer expected by a revision: a.txt"


@pytest.mark.parametrize(
    ("steps", "titles", "after"),
    [
        (PLAN.steps, ["a", "b"], (DONE, SKIPPED, PlanStep(title="a"), PlanStep(title="b"))),
        ((DONE, LATER), ["look", "Test it"], (DONE, PlanStep(title="look"), LATER)),
        (TWICE, ["try"] * 3, (*TWICE, PlanStep(title="try"))),
        ((CHECKED, LATER), ["write  A", "Test it"], (replace(CHECKED, title="write  A"), LATER)),
        (
            (CHECKED, LATER),
            ["Write aa", "Try it"],
            (
                PlanStep(title="Write aa", acceptance=CHECKED.acceptance, flag=GONE),
                PlanStep(title="Try it", acceptance=LATER.acceptance),
            ),
        ),
    ],
    ids=["others", "what stays", "two of one title", "other letters and spaces", "another title"],
)
def test_a_revision_replaces_plan_steps(
    steps: tuple[PlanStep, ...], titles: list[str], after: tuple[PlanStep, ...]
) -> None:
    made = with_remaining(Plan(steps=steps, revision=1), titles)
    assert made == Plan(steps=after, revision=2)


def test_nor_is_a_check_lost_by_dropping_the_plan_step() -> None:
    (only,) = with_remaining(Plan(steps=(CHECKED, LATER)), ["Test it"]).steps
    assert only.acceptance == ("make test", "grep a a.txt")


def test_a_plan_that_is_ordered_says_itself_what_is_checked() -> None:
    plan = Plan(steps=(CHECKED, LATER))
    assert with_remaining(plan, ["Write b"], ordered=True).steps == (PlanStep(title="Write b"),)


def test_the_first_open_plan_step_is_the_one_that_is_finished_with_its_reservation() -> None:
    after = with_current_done(PLAN, "not on Windows")
    done = PlanStep(title="write", state=PlanStepState.DONE, flag="not on Windows")
    assert after.steps[2] == done
    assert (after.current, after.open_titles, after.revision) == (4, ("check",), 1)
    before = Plan(steps=(replace(CHECKED, flag=GONE),))
    assert with_current_done(before, "untested").steps[0].flag == f"{GONE}; untested"
    closed = Plan(steps=(DONE, SKIPPED))
    assert with_current_done(closed) == closed


def test_the_rules_are_told_where_the_plan_stands_and_the_share_of_the_plan_step_in_hand() -> None:
    assert plan_change(PLAN) == Change(plan_step=3, plan_steps=4, revision=1)
    plan = Plan(steps=(DONE, CHECKED))
    assert plan_change(plan) == Change(plan_step=2, plan_steps=2, revision=0, plan_step_requests=7)


GOAL = PlanStep(title="the goal")


@pytest.mark.parametrize(
    ("plan", "written"),
    [(Plan(steps=(GOAL,)), False), (Plan(steps=(GOAL,), revision=1), True), (PLAN, True)],
)
def test_the_goal_alone_is_no_plan(plan: Plan, written: bool) -> None:
    assert is_written(plan) is written


def ordered(**fields: Any) -> Intervention:
    return intervention(Action.REPLAN, Actor.SUPERVISOR, **fields)


REPLAN = ordered()
ARRIVED = delivery()
EXPIRED = delivery(state=DeliveryState.EXPIRED)
PIVOT = reflecting(decision=CheckpointDecision.PIVOT)
SET = step(2, "set_plan")
REFUSED = step(2, "set_plan", ok=False)


@pytest.mark.parametrize(
    ("records", "wanting"),
    [
        ([], StepsWanted.NOTHING),
        ([REPLAN], StepsWanted.NOTHING),
        ([REPLAN, EXPIRED], StepsWanted.NOTHING),
        ([ordered(plan=("a",)), ARRIVED], StepsWanted.NOTHING),
        ([REPLAN, ARRIVED], StepsWanted.ORDERED),
        ([REPLAN, ARRIVED, PIVOT, REFUSED], StepsWanted.ORDERED),
        ([REPLAN, ARRIVED, SET], StepsWanted.NOTHING),
        ([PIVOT], StepsWanted.PIVOT),
        ([PIVOT, SET], StepsWanted.NOTHING),
    ],
)
def test_steps_are_wanted_until_written(records: Sequence[Record], wanting: StepsWanted) -> None:
    assert steps_wanted(entries(*records)) is wanting


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
    given = share_requests(plan, Meter(used=20, limit=60), least=2)
    assert [step.requests for step in given.steps] == [9, 14, 26]


@pytest.mark.parametrize(
    ("titles", "requests"), [("a", Meter(limit=60)), ("ab", Meter(limit=None))]
)
def test_nothing_is_shared_without_limit_or_plan_steps(titles: str, requests: Meter) -> None:
    plan = Plan(steps=tuple(PlanStep(title=title) for title in titles))
    assert share_requests(plan, requests, least=2) == plan


def checked(plan_step: int = 2, **fields: Any) -> PlanCheck:
    return PlanCheck(plan_step=plan_step, assumption="a", reality="r", impact="i", **fields)


CHECK = checked()
PROPOSAL = checked(proposed=("b", "c"))
PENDING = checked(ruling=Ruling.PENDING)
REFUSED_CHECK = checked(ruling=Ruling.REFUSED)


def answer(action: Action) -> Intervention:
    return intervention(action, Actor.SUPERVISOR, petition=1)


@pytest.mark.parametrize(
    ("records", "is_in"),
    [
        ((), False),
        ((CHECK,), True),
        ((checked(1),), False),
        ((PENDING,), True),
        ((REFUSED_CHECK,), False),
        ((REFUSED_CHECK, CHECK), True),
        ((PENDING, answer(Action.NUDGE)), False),
        ((PENDING, answer(Action.REPLAN)), True),
    ],
)
def test_a_plan_step_is_checked_until_a_yes(records: tuple[Record, ...], is_in: bool) -> None:
    assert answered(entries(*records), 2) is is_in


@pytest.mark.parametrize(
    ("check", "made", "approval", "ruling", "reason"),
    [
        (CHECK, 9, Approver.SUPERVISOR, Ruling.GRANTED, ""),
        (PROPOSAL, 1, Approver.POLICY, Ruling.GRANTED, "within the caps"),
        (PROPOSAL, 1, Approver.SUPERVISOR, Ruling.PENDING, ""),
        (PROPOSAL, 2, Approver.POLICY, Ruling.REFUSED, "2 of 2 revisions of this task's plan"),
        (PROPOSAL, 2, Approver.SUPERVISOR, Ruling.REFUSED, "2 of 2 revisions of this task's plan"),
    ],
)
def test_a_proposal_is_ruled_by_the_cap_and_by_who_approves(
    check: PlanCheck, made: int, approval: Approver, ruling: Ruling, reason: str
) -> None:
    found = rule_on_check(
        check, made=made, settings=PlanSettings(max_revisions=2, approval=approval)
    )
    assert (found.ruling, found.reason[: len(reason)]) == (ruling, reason)


def plan(revision: int) -> Plan:
    return Plan(steps=(), revision=revision)


@pytest.mark.parametrize(
    ("records", "made"),
    [
        ((plan(0),), 0),
        ((plan(0), plan(0), plan(1), plan(2)), 2),
        ((plan(0), ordered(), delivery(2), plan(1), plan(2)), 1),
        ((plan(0), ordered(petition=1), delivery(2), plan(1)), 1),
        ((plan(3),), 0),
    ],
    ids=["the first plan", "its own", "an order", "an approval", "taken over"],
)
def test_only_a_workers_revisions_count(records: tuple[Record, ...], made: int) -> None:
    assert revisions(entries(*records)) == made


def test_revisions_count_over_all_attempts() -> None:
    first, second = entries(plan(0), plan(1)), entries(plan(0), plan(1), attempt=2, first=3)
    assert revisions([*first, *second]) == 2
