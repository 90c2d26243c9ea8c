"""The terms of actions: parts, grants, models, and what a restart keeps; and how a budget goes."""

from dataclasses import replace

import pytest

from midwatch_monitor.budget import forecast, share_used
from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.tasks import BudgetSpec
from midwatch_monitor.records import (
    Action,
    Budget,
    Diagnosis,
    Grant,
    Meter,
    Part,
    Plan,
    PlanStep,
    PlanStepState,
    Terms,
)
from midwatch_supervisor.decide.context import DecisionContext, Means
from midwatch_supervisor.decide.policy import (
    capped_grant,
    grant_room,
    parts,
    scarce_resources,
    terms_for,
)

POLICY = PolicySettings()
CONTEXT = DecisionContext(
    means=Means(
        attempts=1,
        models=("big", "bigger"),
        workers=("other",),
        grant=Grant(requests=15, tokens=1000),
    ),
    budget=Budget(requests=Meter(used=54, limit=60), tokens=Meter(used=10, limit=4000)),
    policy=POLICY,
)


@pytest.mark.parametrize(
    ("action", "cause", "terms"),
    [
        (Action.GRANT_BUDGET, Diagnosis.BUDGET, Terms(grant=Grant(requests=15))),
        (Action.SWITCH_MODEL, Diagnosis.UNKNOWN, Terms(model="big")),
        (Action.RESTART, Diagnosis.WRONG_APPROACH, Terms()),
        (Action.RESTART, Diagnosis.ENVIRONMENT, Terms(keep=("**",))),
        (Action.RESTART, Diagnosis.WRONG_WORKER, Terms(keep=("**",), worker="other")),
    ],
    ids=[
        "only what is nearly gone is granted",
        "the next model is the first that had no turn",
        "work that went wrong is dropped",
        "work that something hindered is kept",
        "another worker goes on with it",
    ],
)
def test_what_an_action_comes_with(action: Action, cause: Diagnosis, terms: Terms) -> None:
    assert terms_for(action, CONTEXT, cause) == terms


def test_a_restart_keeps_the_work_where_its_cause_lies_outside_of_it() -> None:
    assert {each for each in Diagnosis if terms_for(Action.RESTART, CONTEXT, each).keep} == {
        *("budget", "provider", "environment", "missing_dependency", "wrong_worker")
    }


def test_requirement_12_a_split_makes_a_task_of_each_open_plan_step_with_its_own_checks() -> None:
    done = PlanStep(title="Look", state=PlanStepState.DONE)
    read = PlanStep(title="Read it", files=("a.py",), acceptance=("pytest a",))
    steps = (done, read, PlanStep(title="Write it"))
    assert parts(Plan(steps=steps), most=6) == (
        Part(title="Read it", goal="Read it. It leaves behind: a.py.", acceptance=("pytest a",)),
        Part(title="Write it", goal="Write it."),
    )


@pytest.mark.parametrize(
    ("steps", "most", "sizes"), [(7, 3, (2, 3, 2)), (2, 6, (1, 1)), (0, 6, ())]
)
def test_steps_beyond_the_parts_go_together(steps: int, most: int, sizes: tuple[int, ...]) -> None:
    whole = Plan(steps=tuple(PlanStep(title=f"step {n}") for n in range(steps)))
    found = parts(whole, most=most)
    assert tuple(len(part.title.split("; ")) for part in found) == sizes
    assert "; ".join(part.title for part in found) == "; ".join(whole.open_titles)


@pytest.mark.parametrize(
    ("granted", "grants", "expected"),
    [
        (Grant(), 0, Grant(requests=15, minutes=2.5)),
        (Grant(requests=15), 1, Grant(requests=15, minutes=5)),
        (Grant(requests=30, minutes=5), 1, Grant()),
        (Grant(), 2, Grant()),
    ],
)
def test_grants_stay_within_a_share(granted: Grant, grants: int, expected: Grant) -> None:
    given = BudgetSpec(requests=60, minutes=10)
    assert grant_room(given, granted, grants=grants, policy=POLICY) == expected


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_no_rounding_grants_more_than_the_share(limit: int) -> None:
    first = grant_room(BudgetSpec(requests=limit), Grant(), grants=0, policy=POLICY)
    second = grant_room(BudgetSpec(requests=limit), first, grants=1, policy=POLICY)
    assert first.requests + second.requests <= limit / 2


def test_what_is_wanted_is_cut_to_what_may_be_granted() -> None:
    wanted = Grant(requests=100, tokens=5, cost_usd=1)
    assert capped_grant(wanted, Grant(requests=15, tokens=1000)) == Grant(requests=15, tokens=5)


def test_the_tightest_limit_says_how_much_is_used() -> None:
    assert share_used(CONTEXT.budget) == 0.9
    assert share_used(Budget(requests=Meter(used=10))) == 0


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (replace(CONTEXT.budget, tokens=Meter(used=3000, limit=4000)), ("requests", "tokens")),
        (replace(CONTEXT.budget, tokens=Meter(used=2999, limit=4000)), ("requests",)),
        (Budget(requests=Meter(used=1, limit=60), minutes=Meter(used=1, limit=10)), ("minutes",)),
    ],
    ids=["from three quarters on", "below it", "where nothing is tight, what goes first"],
)
def test_which_resources_are_tight(budget: Budget, expected: tuple[str, ...]) -> None:
    assert scarce_resources(budget) == expected


def test_a_forecast_goes_on_at_the_rate_since_the_attempt_began() -> None:
    began = Budget(requests=Meter(used=10, limit=100))
    now = Budget(requests=Meter(used=30, limit=100))
    assert forecast(began, now, steps=10, ahead=8) == pytest.approx(0.46)
    assert forecast(began, now, steps=0, ahead=8) == 0.3
