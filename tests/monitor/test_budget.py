"""Whether a budget lasts is told from the numbers that the rule sees."""

import pytest

from midwatch_monitor.budget import Outlook, done_percent, outlook, raise_limits, renew, spend
from midwatch_monitor.records import Budget, Grant, Meter, Plan, PlanStep
from midwatch_tools.instructions import budget_line, exhausted_limits

BUDGET = Budget(requests=Meter(used=15, limit=20), tokens=Meter(used=100, limit=1000))


def test_the_tightest_limit_is_looked_at() -> None:
    ahead = outlook(BUDGET, 25)
    assert ahead is not None
    assert ahead == Outlook(resource="requests", used=15, limit=20, done=25, enough=False)
    assert (ahead.percent, ahead.left, ahead.needed) == (75, 5, 45)
    assert outlook(Budget(requests=Meter(used=3)), 10) is None


@pytest.mark.parametrize(
    ("done", "slack", "enough"),
    [(75, 0, True), (74, 0, False), (65, 10, True), (64, 10, False), (0, 10, False), (None, 0, 1)],
)
def test_it_is_enough_while_the_work_keeps_up_and_without_any_progress_nobody_knows(
    done: float | None, slack: float, enough: bool
) -> None:
    ahead = outlook(BUDGET, done, slack=slack)
    assert ahead is not None
    assert ahead.enough == enough
    assert (ahead.needed is None) is (not done)


@pytest.mark.parametrize(
    ("plan_step", "plan_steps", "within", "done"),
    [(1, 0, None, None), (1, 0, 40, 40), (1, 4, None, 0), (2, 4, 50, 37.5), (5, 4, None, 100)],
)
def test_the_share_that_is_done_comes_from_the_plan_and_the_last_report(
    plan_step: int, plan_steps: int, within: int | None, done: float | None
) -> None:
    assert done_percent(plan_step, plan_steps, within) == done


LIMITED = Budget(
    requests=Meter(limit=2),
    tokens=Meter(limit=100),
    cost_usd=Meter(limit=0.5),
    minutes=Meter(limit=1.5),
)


def test_what_is_used_adds_up_and_limits_stay() -> None:
    spent = spend(spend(LIMITED, requests=1, tokens=40), tokens=2, cost_usd=0.25, minutes=1)
    assert spent == Budget(
        requests=Meter(used=1, limit=2),
        tokens=Meter(used=42, limit=100),
        cost_usd=Meter(used=0.25, limit=0.5),
        minutes=Meter(used=1, limit=1.5),
    )


@pytest.mark.parametrize(
    ("used", "gone"),
    [
        (spend(LIMITED, requests=1, tokens=99, cost_usd=0.4, minutes=1), ""),
        (spend(LIMITED, requests=2), "2 of 2 requests"),
        (spend(LIMITED, tokens=101, cost_usd=0.5), "101 of 100 tokens, 0.5 of 0.5 US dollars"),
        (spend(LIMITED, minutes=1.5), "1.5 of 1.5 minutes"),
        (spend(Budget(), requests=10_000, minutes=10_000), ""),
        (Budget(requests=Meter(limit=0)), "0 of 0 requests"),
    ],
)
def test_a_limit_that_is_reached_is_named(used: Budget, gone: str) -> None:
    assert exhausted_limits(used) == gone


def test_a_grant_raises_the_limits_that_there_are() -> None:
    budget = Budget(requests=Meter(used=2, limit=2), tokens=Meter(used=5))
    assert raise_limits(budget, [Grant(requests=3, tokens=9), Grant(requests=1)]) == Budget(
        requests=Meter(used=2, limit=6), tokens=Meter(used=5)
    )


PLAN = Plan(steps=(PlanStep(title="a", requests=8), PlanStep(title="b")))


@pytest.mark.parametrize(
    ("progress", "rate"),
    [
        (50, "At this rate enough: 25 % of the requests for 25 % of the work."),
        (20, "At this rate NOT enough: 25 % of the requests for 10 % of the work; simplify"),
    ],
)
def test_the_worker_is_told_what_is_used_and_whether_it_lasts(progress: int, rate: str) -> None:
    budget = Budget(requests=Meter(used=5, limit=20), tokens=Meter(used=12345.0))
    line = budget_line(budget, PLAN, progress, made=5, slack=0)
    assert line.startswith("Budget: 5 of 20 requests (15 left). This plan step: 5 of 8 requests. ")
    assert rate in line


def test_requirement_22_used_and_left_are_never_rounded_to_an_exponent() -> None:
    budget = Budget(
        tokens=Meter(used=1_234_567, limit=2_000_000), minutes=Meter(used=0.126, limit=10)
    )
    line = budget_line(budget, Plan(steps=()), None, made=0, slack=0)
    assert "1,234,567 of 2,000,000 tokens (765,433 left); 0.13 of 10 minutes (9.87 left)" in line
    assert line.endswith("62 % of the tokens are used.")
    assert budget_line(Budget(requests=Meter(used=5)), PLAN, None, made=5, slack=0) == ""


def test_a_worker_that_never_reported_is_not_told_that_nothing_is_done() -> None:
    budget = Budget(requests=Meter(used=9, limit=60))
    line = budget_line(budget, PLAN, None, made=9, slack=0)
    assert "of the work" not in line
    assert "15 % of the requests are used" in line


def test_what_is_begun_again_has_the_whole_budget_once_more_above_what_was_used() -> None:
    whole = Budget(requests=Meter(limit=20), minutes=Meter(limit=5))
    assert renew(BUDGET, whole) == Budget(
        requests=Meter(used=15, limit=35), tokens=Meter(used=100), minutes=Meter(limit=5)
    )
