"""What becomes of what a worker asks for."""

from dataclasses import replace

import pytest

from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.records import (
    Action,
    Actor,
    Budget,
    BudgetRequest,
    Grant,
    Meter,
    PlanCheck,
    Ruling,
    Severity,
    Terms,
)
from midwatch_stage.factories import alert, intervention
from midwatch_supervisor.decide.answer import GrantAnswer
from midwatch_supervisor.decide.context import DecisionContext, Means
from midwatch_supervisor.decide.worker_requests import (
    OpenRequest,
    RequestRuling,
    RequestVerdict,
    by_policy,
    by_verdict,
)

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


def wants(grant: Grant) -> OpenRequest:
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
    assert by_policy(wants(Grant()), replace(CONTEXT, means=means)).grant == Grant(requests=15)


def used(requests: float, tokens: float = 0) -> DecisionContext:
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
    ruled = by_policy(replace(MORE, done=done, slack=10), used(requests))
    assert ruled.granted == granted


def test_of_what_is_asked_for_only_that_is_granted_which_runs_out() -> None:
    both = replace(wants(Grant(requests=5, tokens=100)), done=40.0)
    assert by_policy(both, used(6, tokens=900)) == RequestRuling(
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
        (wants(Grant(minutes=5)), CONTEXT, True, "has no limit that could be raised."),
        (replace(MORE, turned_down="ann: no"), CONTEXT, True, "it was rejected by ann: no."),
        (replace(PLAN, revisions_left=0), CONTEXT, True, "no more plan changes may be approved."),
        (
            replace(MORE, done=20.0),
            used(2),
            False,
            f"{EARLY} for 20 % of the work: at this rate it is enough. Ask again when it is not.",
        ),
        (MORE, used(2), False, f"{EARLY}, {UNKNOWN}"),
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
