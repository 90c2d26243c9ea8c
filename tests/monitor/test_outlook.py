"""Whether a budget lasts is told from the numbers that the rule sees."""

import pytest

from midwatch_monitor.outlook import Outlook, done_percent, outlook
from midwatch_monitor.records import Budget, Meter

BUDGET = Budget(requests=Meter(used=15, limit=20), tokens=Meter(used=100, limit=1000))


def test_the_tightest_limit_is_looked_at() -> None:
    assert outlook(BUDGET, 25) == Outlook(
        resource="requests", used=15, limit=20, done=25, enough=False
    )


def test_left_and_needed_follow_from_used_and_done() -> None:
    ahead = outlook(BUDGET, 25)
    assert ahead is not None
    assert (ahead.percent, ahead.left, ahead.needed) == (75, 5, 45)


@pytest.mark.parametrize(
    ("done", "slack", "enough"),
    [(75, 0, True), (74, 0, False), (65, 10, True), (64, 10, False), (0, 10, False), (None, 0, 1)],
)
def test_it_is_enough_while_the_work_keeps_up(
    done: float | None, slack: float, enough: bool
) -> None:
    ahead = outlook(BUDGET, done, slack=slack)
    assert ahead is not None
    assert ahead.enough == enough


@pytest.mark.parametrize("done", [None, 0])
def test_without_any_progress_nobody_knows_what_is_needed(done: float | None) -> None:
    ahead = outlook(BUDGET, done)
    assert ahead is not None
    assert ahead.needed is None


def test_without_limits_there_is_no_outlook() -> None:
    assert outlook(Budget(requests=Meter(used=3)), 10) is None


@pytest.mark.parametrize(
    ("plan_step", "plan_steps", "within", "done"),
    [(1, 0, None, None), (1, 0, 40, 40), (1, 4, None, 0), (2, 4, 50, 37.5), (5, 4, None, 100)],
)
def test_the_share_that_is_done_comes_from_the_plan_and_the_last_report(
    plan_step: int, plan_steps: int, within: int | None, done: float | None
) -> None:
    assert done_percent(plan_step, plan_steps, within) == done
