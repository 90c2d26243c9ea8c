"""What is finished stays; what is open may be replaced."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.settings import Approver, PlanSettings
from midwatch_tests.factories import delivery, entries, intervention, reflecting, step
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

DONE = r.PlanStep(title="read", state=r.PlanStepState.DONE)
SKIPPED = r.PlanStep(title="guess", state=r.PlanStepState.SKIPPED)
PLAN = r.Plan(
    steps=(DONE, SKIPPED, r.PlanStep(title="write"), r.PlanStep(title="check")), revision=1
)
CHECKED = r.PlanStep(title="Write a", files=("a.txt",), acceptance=("grep a a.txt",), requests=7)
LATER = r.PlanStep(title="Test it", acceptance=("make test",))
TWICE = (r.PlanStep(title="try", requests=1), r.PlanStep(title="try", requests=2))
GONE = "no longer expected by a revision: a.txt"


@pytest.mark.parametrize(
    ("steps", "titles", "after"),
    [
        (PLAN.steps, ["a", "b"], (DONE, SKIPPED, r.PlanStep(title="a"), r.PlanStep(title="b"))),
        ((DONE, LATER), ["look", "Test it"], (DONE, r.PlanStep(title="look"), LATER)),
        (TWICE, ["try"] * 3, (*TWICE, r.PlanStep(title="try"))),
        ((CHECKED, LATER), ["write  A", "Test it"], (replace(CHECKED, title="write  A"), LATER)),
        (
            (CHECKED, LATER),
            ["Write aa", "Try it"],
            (
                r.PlanStep(title="Write aa", acceptance=CHECKED.acceptance, flag=GONE),
                r.PlanStep(title="Try it", acceptance=LATER.acceptance),
            ),
        ),
    ],
    ids=["others", "what stays", "two of one title", "other letters and spaces", "another title"],
)
def test_a_revision_replaces_plan_steps(
    steps: tuple[r.PlanStep, ...], titles: list[str], after: tuple[r.PlanStep, ...]
) -> None:
    made = with_remaining(r.Plan(steps=steps, revision=1), titles)
    assert made == r.Plan(steps=after, revision=2)


def test_nor_is_a_check_lost_by_dropping_the_plan_step() -> None:
    (only,) = with_remaining(r.Plan(steps=(CHECKED, LATER)), ["Test it"]).steps
    assert only.acceptance == ("make test", "grep a a.txt")


def test_a_plan_that_is_ordered_says_itself_what_is_checked() -> None:
    plan = r.Plan(steps=(CHECKED, LATER))
    assert with_remaining(plan, ["Write b"], ordered=True).steps == (r.PlanStep(title="Write b"),)


def test_the_first_open_plan_step_is_the_one_that_is_finished_with_its_reservation() -> None:
    after = with_current_done(PLAN, "not on Windows")
    done = r.PlanStep(title="write", state=r.PlanStepState.DONE, flag="not on Windows")
    assert after.steps[2] == done
    assert (after.current, after.open_titles, after.revision) == (4, ("check",), 1)
    before = r.Plan(steps=(replace(CHECKED, flag=GONE),))
    assert with_current_done(before, "untested").steps[0].flag == f"{GONE}; untested"
    closed = r.Plan(steps=(DONE, SKIPPED))
    assert with_current_done(closed) == closed


def test_the_rules_are_told_where_the_plan_stands_and_the_share_of_the_plan_step_in_hand() -> None:
    assert plan_change(PLAN) == r.Change(plan_step=3, plan_steps=4, revision=1)
    plan = r.Plan(steps=(DONE, CHECKED))
    assert plan_change(plan) == r.Change(
        plan_step=2, plan_steps=2, revision=0, plan_step_requests=7
    )


GOAL = r.PlanStep(title="the goal")


@pytest.mark.parametrize(
    ("plan", "written"),
    [(r.Plan(steps=(GOAL,)), False), (r.Plan(steps=(GOAL,), revision=1), True), (PLAN, True)],
)
def test_the_goal_alone_is_no_plan(plan: r.Plan, written: bool) -> None:
    assert is_written(plan) is written


def replan_order(**fields: Any) -> r.Intervention:
    return intervention(r.Action.REPLAN, r.Actor.SUPERVISOR, **fields)


REPLAN = replan_order()
ARRIVED = delivery()
EXPIRED = delivery(state=r.DeliveryState.EXPIRED)
PIVOT = reflecting(decision=r.CheckpointDecision.PIVOT)
SET = step(2, "set_plan")
REFUSED = step(2, "set_plan", ok=False)


@pytest.mark.parametrize(
    ("records", "wanting"),
    [
        ([], StepsWanted.NOTHING),
        ([REPLAN], StepsWanted.NOTHING),
        ([REPLAN, EXPIRED], StepsWanted.NOTHING),
        ([replan_order(plan=("a",)), ARRIVED], StepsWanted.NOTHING),
        ([REPLAN, ARRIVED], StepsWanted.ORDERED),
        ([REPLAN, ARRIVED, PIVOT, REFUSED], StepsWanted.ORDERED),
        ([REPLAN, ARRIVED, SET], StepsWanted.NOTHING),
        ([PIVOT], StepsWanted.PIVOT),
        ([PIVOT, SET], StepsWanted.NOTHING),
    ],
)
def test_steps_are_wanted_until_written(records: Sequence[r.Record], wanting: StepsWanted) -> None:
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
    done = r.PlanStep(title="a", state=r.PlanStepState.DONE, requests=9)
    plan = r.Plan(steps=(done, r.PlanStep(title="b"), r.PlanStep(title="c", confidence=20)))
    given = share_requests(plan, r.Meter(used=20, limit=60), least=2)
    assert [step.requests for step in given.steps] == [9, 14, 26]


@pytest.mark.parametrize(
    ("titles", "requests"), [("a", r.Meter(limit=60)), ("ab", r.Meter(limit=None))]
)
def test_nothing_is_shared_without_limit_or_plan_steps(titles: str, requests: r.Meter) -> None:
    plan = r.Plan(steps=tuple(r.PlanStep(title=title) for title in titles))
    assert share_requests(plan, requests, least=2) == plan


def make_check(plan_step: int = 2, **fields: Any) -> r.PlanCheck:
    return r.PlanCheck(plan_step=plan_step, assumption="a", reality="r", impact="i", **fields)


CHECK = make_check()
PROPOSAL = make_check(proposed=("b", "c"))
PENDING = make_check(ruling=r.Ruling.PENDING)
REFUSED_CHECK = make_check(ruling=r.Ruling.REFUSED)


def answer(action: r.Action) -> r.Intervention:
    return intervention(action, r.Actor.SUPERVISOR, petition=1)


@pytest.mark.parametrize(
    ("records", "is_in"),
    [
        ((), False),
        ((CHECK,), True),
        ((make_check(1),), False),
        ((PENDING,), True),
        ((REFUSED_CHECK,), False),
        ((REFUSED_CHECK, CHECK), True),
        ((PENDING, answer(r.Action.NUDGE)), False),
        ((PENDING, answer(r.Action.REPLAN)), True),
    ],
)
def test_a_plan_step_is_checked_until_a_yes(records: tuple[r.Record, ...], is_in: bool) -> None:
    assert answered(entries(*records), 2) is is_in


@pytest.mark.parametrize(
    ("check", "made", "approval", "ruling", "reason"),
    [
        (CHECK, 9, Approver.SUPERVISOR, r.Ruling.GRANTED, ""),
        (PROPOSAL, 1, Approver.POLICY, r.Ruling.GRANTED, "within the caps"),
        (PROPOSAL, 1, Approver.SUPERVISOR, r.Ruling.PENDING, ""),
        (PROPOSAL, 2, Approver.POLICY, r.Ruling.REFUSED, "2 of 2 revisions of this task's plan"),
        (
            PROPOSAL,
            2,
            Approver.SUPERVISOR,
            r.Ruling.REFUSED,
            "2 of 2 revisions of this task's plan",
        ),
    ],
)
def test_a_proposal_is_ruled_by_the_cap_and_by_who_approves(
    check: r.PlanCheck, made: int, approval: Approver, ruling: r.Ruling, reason: str
) -> None:
    found = rule_on_check(
        check, made=made, settings=PlanSettings(max_revisions=2, approval=approval)
    )
    assert (found.ruling, found.reason[: len(reason)]) == (ruling, reason)


def plan(revision: int) -> r.Plan:
    return r.Plan(steps=(), revision=revision)


@pytest.mark.parametrize(
    ("records", "made"),
    [
        ((plan(0),), 0),
        ((plan(0), plan(0), plan(1), plan(2)), 2),
        ((plan(0), replan_order(), delivery(2), plan(1), plan(2)), 1),
        ((plan(0), replan_order(petition=1), delivery(2), plan(1)), 1),
        ((plan(3),), 0),
    ],
    ids=["the first plan", "its own", "an order", "an approval", "taken over"],
)
def test_only_a_workers_revisions_count(records: tuple[r.Record, ...], made: int) -> None:
    assert revisions(entries(*records)) == made


def test_revisions_count_over_all_attempts() -> None:
    first, second = entries(plan(0), plan(1)), entries(plan(0), plan(1), attempt=2, first=3)
    assert revisions([*first, *second]) == 2
