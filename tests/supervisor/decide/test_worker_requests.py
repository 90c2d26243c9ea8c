"""What becomes of what a worker asks for, and what the policy's own actions come with."""

from dataclasses import replace

import pytest

from midwatch_monitor.budget import forecast, share_used
from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.tasks import BudgetSpec
from midwatch_monitor.records import (
    Action,
    Actor,
    Budget,
    BudgetRequest,
    Diagnosis,
    Grant,
    Meter,
    Part,
    Plan,
    PlanCheck,
    PlanStep,
    PlanStepState,
    Ruling,
    Severity,
    Terms,
)
from midwatch_supervisor.decide.answer import GrantAnswer
from midwatch_supervisor.decide.context import DecisionContext, Means
from midwatch_supervisor.decide.policy import (
    capped_grant,
    grant_room,
    parts,
    scarce_resources,
    terms_for,
)
from midwatch_supervisor.decide.worker_requests import (
    OpenRequest,
    RequestRuling,
    RequestVerdict,
    by_policy,
    by_verdict,
)
from midwatch_tests.factories import alert, intervention

STUCK = alert(severity=Severity.CRITICAL, summary="it goes round")
CONTEXT = DecisionContext(
    means=Means(grant=Grant(requests=15)),
    budget=Budget(requests=Meter(used=50, limit=60)),
    policy=PolicySettings(),
)
MORE = OpenRequest(
    id=9, request=BudgetRequest(wanted=Grant(requests=10), reason="two tests are left")
)
CHECK = PlanCheck(
    plan_step=2,
    assumption="there is a module",
    reality="there is none",
    impact="the rest must make it",
    proposed=("make it", "use it"),
    ruling=Ruling.PENDING,
)
PLAN = OpenRequest(id=9, request=CHECK, revisions_left=2)


def request_for(grant: Grant) -> OpenRequest:
    return replace(MORE, request=BudgetRequest(wanted=grant, reason="more"))


def test_work_that_moves_is_given_what_it_asks_for() -> None:
    ruled = by_policy(MORE, CONTEXT)
    assert ruled.intervention(MORE, needs_approval=False) == intervention(
        Action.GRANT_BUDGET,
        message="Granted: 50 of 60 requests are used.",
        terms=Terms(grant=Grant(requests=10)),
        petition=9,
    )


def test_who_names_no_amount_is_given_of_what_runs_out() -> None:
    means = Means(grant=Grant(requests=15, tokens=500))
    assert by_policy(request_for(Grant()), replace(CONTEXT, means=means)).grant == Grant(
        requests=15
    )


def context_after(requests: float, tokens: float = 0) -> DecisionContext:
    budget = Budget(requests=Meter(used=requests, limit=60), tokens=Meter(used=tokens, limit=1000))
    means = Means(grant=Grant(requests=15, tokens=500))
    return replace(CONTEXT, budget=budget, means=means)


@pytest.mark.parametrize(
    ("requests", "done", "granted"),
    [
        (3, 0, False),
        (30, 40, False),
        (30, 39, True),
        (45, 74, True),
        (45, 75, False),
        (44, None, False),
        (45, None, True),
    ],
)
def test_what_runs_short_is_granted(requests: float, done: float | None, granted: bool) -> None:
    ruled = by_policy(replace(MORE, done=done, slack=10), context_after(requests))
    assert ruled.granted == granted


def test_of_what_is_asked_for_only_that_is_granted_which_runs_out() -> None:
    both = replace(request_for(Grant(requests=5, tokens=100)), done=40.0)
    assert by_policy(both, context_after(6, tokens=900)) == RequestRuling(
        granted=True,
        grant=Grant(tokens=100),
        reason="900 of 1,000 tokens are used for 40 % of the work. You asked for 5 requests, "
        "100 tokens; only this much is granted now.",
    )


NO_MEANS = replace(CONTEXT, means=Means())
GOES_ROUND = replace(CONTEXT, alerts=(STUCK,))
EARLY = "2 of 60 requests are used"
UNKNOWN = "58 are left, and how much of the work is done is unknown. Ask again when 75 % are used."


@pytest.mark.parametrize(
    ("asked", "now", "capped", "told"),
    [
        (MORE, NO_MEANS, True, "no more may be granted without a person."),
        (request_for(Grant(minutes=5)), CONTEXT, True, "has no limit that could be raised."),
        (replace(MORE, turned_down="ann: no"), CONTEXT, True, "it was rejected by ann: no."),
        (replace(PLAN, revisions_left=0), CONTEXT, True, "no more plan changes may be approved."),
        (
            replace(MORE, done=20.0),
            context_after(2),
            False,
            f"{EARLY} for 20 % of the work: at this rate it is enough. Ask again when it is not.",
        ),
        (MORE, context_after(2), False, f"{EARLY}, {UNKNOWN}"),
        (MORE, GOES_ROUND, False, "makes no progress: it goes round. Fix that first."),
    ],
)
def test_a_refusal_says_why_and_at_a_cap_nobody_is_asked(
    asked: OpenRequest, now: DecisionContext, capped: bool, told: str
) -> None:
    ruled = by_policy(asked, now)
    assert (ruled.granted, bool(asked.reason_to_refuse(now))) == (False, capped)
    assert ruled.reason.endswith(told)
    refusal = intervention(message=f"Refused: {ruled.reason}", petition=9)
    assert ruled.intervention(asked, needs_approval=False) == refusal


def test_a_warning_keeps_no_work_from_its_budget() -> None:
    warned = replace(STUCK, severity=Severity.WARNING)
    assert by_policy(MORE, replace(CONTEXT, alerts=(warned,))).granted


def test_a_plan_within_the_caps_is_approved_as_it_was_proposed() -> None:
    act = by_policy(PLAN, CONTEXT).intervention(PLAN, needs_approval=True)
    assert (act.action, act.plan, act.petition) == (Action.REPLAN, ("make it", "use it"), 9)
    assert act.needs_approval


@pytest.mark.parametrize(
    ("wanted", "given"),
    [(None, 10), (GrantAnswer(requests=5), 5), (GrantAnswer(requests=1000), 15)],
)
def test_a_model_cannot_grant_more_than_the_policy(wanted: GrantAnswer | None, given: int) -> None:
    verdict = RequestVerdict(granted=True, grant=wanted, reason="It moves.")
    assert by_verdict(MORE, verdict, CONTEXT, author="m") == RequestRuling(
        granted=True,
        grant=Grant(requests=given),
        reason="It moves.",
        by=Actor.SUPERVISOR,
        author="m",
    )


def test_a_model_that_refuses_gives_nothing() -> None:
    verdict = RequestVerdict(granted=False, grant=GrantAnswer(requests=5), reason="Do less.")
    ruled = by_verdict(MORE, verdict, CONTEXT, author="m")
    act = ruled.intervention(MORE, needs_approval=False)
    assert (act.action, act.message, act.terms) == (Action.NUDGE, "Refused: Do less.", Terms())


NEARLY_SPENT = DecisionContext(
    means=Means(
        attempts=1,
        models=("big", "bigger"),
        workers=("other",),
        grant=Grant(requests=15, tokens=1000),
    ),
    budget=Budget(requests=Meter(used=54, limit=60), tokens=Meter(used=10, limit=4000)),
    policy=PolicySettings(),
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
    assert terms_for(action, NEARLY_SPENT, cause) == terms


def test_a_restart_keeps_the_work_where_its_cause_lies_outside_of_it() -> None:
    assert {each for each in Diagnosis if terms_for(Action.RESTART, NEARLY_SPENT, each).keep} == {
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
    assert grant_room(given, granted, grants=grants, policy=PolicySettings()) == expected


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_no_rounding_grants_more_than_the_share(limit: int) -> None:
    first = grant_room(BudgetSpec(requests=limit), Grant(), grants=0, policy=PolicySettings())
    second = grant_room(BudgetSpec(requests=limit), first, grants=1, policy=PolicySettings())
    assert first.requests + second.requests <= limit / 2


def test_what_is_wanted_is_cut_to_what_may_be_granted() -> None:
    wanted = Grant(requests=100, tokens=5, cost_usd=1)
    assert capped_grant(wanted, Grant(requests=15, tokens=1000)) == Grant(requests=15, tokens=5)


def test_the_tightest_limit_says_how_much_is_used() -> None:
    assert share_used(NEARLY_SPENT.budget) == 0.9
    assert share_used(Budget(requests=Meter(used=10))) == 0


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (replace(NEARLY_SPENT.budget, tokens=Meter(used=3000, limit=4000)), ("requests", "tokens")),
        (replace(NEARLY_SPENT.budget, tokens=Meter(used=2999, limit=4000)), ("requests",)),
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
