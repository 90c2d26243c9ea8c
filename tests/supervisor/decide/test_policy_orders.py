"""The policy by rule, severity and diagnosis: orders, means, caps, and the terms of each action."""

from dataclasses import replace

import pytest

from midwatch_monitor.budget import forecast, share_used
from midwatch_monitor.config.policy import PolicyRow, PolicySettings
from midwatch_monitor.config.tasks import BudgetSpec
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    Budget,
    Diagnosis,
    Grant,
    Meter,
    Part,
    Plan,
    PlanStep,
    PlanStepState,
    Severity,
    Terms,
)
from midwatch_monitor.state.intervention import InterventionState
from midwatch_stage.deciding import failed
from midwatch_stage.factories import alert, judged, plan
from midwatch_supervisor.decide.context import (
    ConcurrentEdit,
    DecisionContext,
    DiagnosedCause,
    Means,
)
from midwatch_supervisor.decide.policy import (
    allowed_actions,
    bound_decision,
    capped_grant,
    choose,
    grant_room,
    order_for,
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


def test_only_what_is_nearly_gone_is_granted() -> None:
    terms = terms_for(Action.GRANT_BUDGET, CONTEXT, Diagnosis.BUDGET)
    assert terms == Terms(grant=Grant(requests=15))


def test_the_next_model_is_the_first_that_had_no_turn() -> None:
    assert terms_for(Action.SWITCH_MODEL, CONTEXT, Diagnosis.UNKNOWN) == Terms(model="big")


@pytest.mark.parametrize(
    ("cause", "terms"),
    [
        (Diagnosis.WRONG_APPROACH, Terms()),
        (Diagnosis.UNKNOWN, Terms()),
        (Diagnosis.NEEDS_SPLIT, Terms()),
        (Diagnosis.BUDGET, Terms(keep=("**",))),
        (Diagnosis.PROVIDER, Terms(keep=("**",))),
        (Diagnosis.ENVIRONMENT, Terms(keep=("**",))),
        (Diagnosis.WRONG_WORKER, Terms(keep=("**",), worker="other")),
    ],
)
def test_what_a_restart_keeps_depends_on_the_cause(cause: Diagnosis, terms: Terms) -> None:
    assert terms_for(Action.RESTART, CONTEXT, cause) == terms


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
def test_more_plan_steps_than_parts_go_together(
    steps: int, most: int, sizes: tuple[int, ...]
) -> None:
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
def test_all_grants_together_stay_within_a_share_of_the_limits(
    granted: Grant, grants: int, expected: Grant
) -> None:
    given = BudgetSpec(requests=60, minutes=10)
    assert grant_room(given, granted, grants=grants, policy=POLICY) == expected


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 60])
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
    ("tokens", "expected"), [(3000, ("requests", "tokens")), (2999, ("requests",))]
)
def test_from_three_quarters_on_a_resource_is_tight(tokens: int, expected: tuple[str, ...]) -> None:
    now = replace(CONTEXT.budget, tokens=Meter(used=tokens, limit=4000))
    assert scarce_resources(now) == expected


def test_where_nothing_is_tight_what_goes_first_is() -> None:
    calm = Budget(requests=Meter(used=1, limit=60), minutes=Meter(used=1, limit=10))
    assert scarce_resources(calm) == ("minutes",)


def test_a_forecast_goes_on_at_the_rate_since_the_attempt_began() -> None:
    began = Budget(requests=Meter(used=10, limit=100))
    now = Budget(requests=Meter(used=30, limit=100))
    assert forecast(began, now, steps=10, ahead=8) == pytest.approx(0.46)
    assert forecast(began, now, steps=0, ahead=8) == 0.3


DEFAULTS = PolicySettings()
EVERYTHING = Means(
    attempts=1, models=("big",), workers=("other",), grant=Grant(requests=15), may_split=True
)
TALK = (Action.NUDGE, Action.REPLAN)


def context(
    *alerts: Alert,
    cause: Diagnosis = Diagnosis.WRONG_APPROACH,
    earlier: tuple[InterventionState, ...] = (),
) -> DecisionContext:
    return DecisionContext(
        escalation=7,
        alerts=alerts or (alert("cycle"),),
        reading=DiagnosedCause(cause=cause),
        interventions=earlier,
        means=EVERYTHING,
        plan=plan("one", "two"),
        policy=DEFAULTS,
    )


def test_d6_long_work_on_one_plan_step_leads_to_doubt_before_another_try() -> None:
    order = order_for("steps_on_plan_step", Severity.WARNING, Diagnosis.UNKNOWN, DEFAULTS)
    assert order[:2] == TALK
    assert order.index(Action.RESTART) > 1


@pytest.mark.parametrize(
    ("rule", "cause", "first"),
    [
        ("cycle", Diagnosis.WRONG_APPROACH, Action.NUDGE),
        ("cycle", Diagnosis.FALSE_ALARM, Action.OBSERVE),
        ("cycle", Diagnosis.PROVIDER, Action.OBSERVE),
        ("cycle", Diagnosis.INFEASIBLE, Action.ASK_OPERATOR),
        ("cycle", Diagnosis.NEEDS_SPLIT, Action.REPLAN),
        ("cycle", Diagnosis.WRONG_WORKER, Action.RESTART),
        ("explicit_escalation", Diagnosis.UNKNOWN, Action.NUDGE),
        ("explicit_escalation", Diagnosis.INFEASIBLE, Action.ASK_OPERATOR),
        ("silence", Diagnosis.INFEASIBLE, Action.RESTART),
    ],
)
def test_the_table_is_keyed_by_rule_and_diagnosis(
    rule: str, cause: Diagnosis, first: Action
) -> None:
    assert order_for(rule, Severity.WARNING, cause, DEFAULTS)[0] is first


def test_a_row_that_names_the_rule_goes_before_the_rules_own_order_and_that_before_the_rest() -> (
    None
):
    any_rule = PolicyRow(diagnosis=Diagnosis.UNKNOWN, actions=(Action.ASK_OPERATOR,))
    critical = PolicyRow(rule="cycle", severity=Severity.CRITICAL, actions=(Action.STOP,))
    policy = PolicySettings(rules={"cycle": TALK}, table=(any_rule, critical))
    orders = [
        order_for(rule, severity, Diagnosis.UNKNOWN, policy)
        for rule, severity in (
            ("cycle", Severity.CRITICAL),
            ("cycle", Severity.WARNING),
            ("monologue", Severity.CRITICAL),
        )
    ]
    assert orders == [critical.actions, TALK, any_rule.actions]


def test_a_row_never_makes_stated_confidence_a_ground_for_force() -> None:
    row = PolicyRow(rule="low_confidence", actions=(Action.STOP, Action.NUDGE))
    policy = PolicySettings(table=(row,))
    order = order_for("low_confidence", Severity.CRITICAL, Diagnosis.UNKNOWN, policy)
    assert order == (Action.NUDGE,)


@pytest.mark.parametrize(
    ("cause", "earlier", "expected"),
    [
        (Diagnosis.WRONG_APPROACH, TALK, Action.SWITCH_MODEL),
        (Diagnosis.WRONG_APPROACH, (*TALK, Action.SWITCH_MODEL), Action.RESTART),
        (Diagnosis.NEEDS_SPLIT, (Action.REPLAN,), Action.SPLIT),
        (Diagnosis.BUDGET, (Action.NUDGE,), Action.GRANT_BUDGET),
        (Diagnosis.ENVIRONMENT, (Action.NUDGE,), Action.ASK_OPERATOR),
        (Diagnosis.MISSING_DEPENDENCY, (Action.NUDGE, Action.ASK_OPERATOR), Action.STOP),
        (Diagnosis.WRONG_WORKER, (), Action.RESTART),
    ],
)
def test_each_cause_has_its_ladder(
    cause: Diagnosis, earlier: tuple[Action, ...], expected: Action
) -> None:
    assert choose(context(cause=cause, earlier=failed(*earlier))).action is expected


@pytest.mark.parametrize(
    ("cause", "means", "earlier", "expected"),
    [
        (Diagnosis.WRONG_APPROACH, Means(attempts=1), TALK, Action.RESTART),
        (Diagnosis.WRONG_APPROACH, Means(models=("m",)), TALK, Action.SWITCH_MODEL),
        (Diagnosis.WRONG_WORKER, Means(attempts=1), (), Action.ASK_OPERATOR),
        (Diagnosis.NEEDS_SPLIT, Means(attempts=1), (Action.REPLAN,), Action.ASK_OPERATOR),
        (Diagnosis.BUDGET, Means(), (Action.NUDGE,), Action.ASK_OPERATOR),
        (Diagnosis.PROVIDER, Means(), (Action.OBSERVE,), Action.ASK_OPERATOR),
    ],
)
def test_what_a_task_has_no_means_for_is_passed_over(
    cause: Diagnosis, means: Means, earlier: tuple[Action, ...], expected: Action
) -> None:
    now = replace(context(cause=cause, earlier=failed(*earlier)), means=means)
    assert choose(now).action is expected


@pytest.mark.parametrize("diagnosis", Diagnosis)
def test_no_diagnosis_opens_force_before_anything_was_tried(diagnosis: Diagnosis) -> None:
    found = set(allowed_actions(context(cause=diagnosis), diagnosis))
    own = {Action.RESTART} if diagnosis is Diagnosis.WRONG_WORKER else set[Action]()
    assert found - own <= {Action.OBSERVE, Action.NUDGE, Action.REPLAN, Action.ASK_OPERATOR}


def test_nothing_done_about_an_alert_that_goes_on_was_in_vain() -> None:
    slow = context(alert("error_streak"), cause=Diagnosis.PROVIDER)
    first = replace(slow, policy=PolicySettings(rules={}))
    again = replace(first, observed=frozenset({AlertKey(rule="error_streak")}))
    assert [choose(first).action, choose(again).action] == [Action.OBSERVE, Action.SWITCH_MODEL]


def test_a_new_attempt_begins_with_words_but_not_with_another_restart() -> None:
    before = failed(Action.NUDGE, Action.REPLAN, Action.SWITCH_MODEL, Action.RESTART)
    first = replace(context(), before=before)
    last = replace(first, interventions=failed(*TALK))
    assert [choose(first).action, choose(last).action] == [Action.NUDGE, Action.ASK_OPERATOR]


def test_requirement_17_the_cap_of_the_task_counts_all_its_attempts() -> None:
    now = replace(context(), before=failed(*[Action.NUDGE] * 12))
    assert allowed_actions(now, Diagnosis.UNKNOWN) == (Action.ASK_OPERATOR, Action.STOP)


@pytest.mark.parametrize(
    ("action", "cap"), [(Action.REPLAN, 3), (Action.SWITCH_MODEL, 2)], ids=lambda each: str(each)
)
def test_what_a_person_orders_counts_against_no_cap(action: Action, cap: int) -> None:
    open_ones = [
        action in allowed_actions(replace(context(), before=before), Diagnosis.WRONG_APPROACH)
        for by in (Actor.POLICY, Actor.OPERATOR)
        for before in [failed(Action.NUDGE, *[action] * cap, by=by)]
    ]
    assert open_ones == [False, action is Action.REPLAN]


ALONE = replace(EVERYTHING, attempts=0)


TRIED = context(earlier=failed(Action.NUDGE))
BURNING = context(alert("budget_burn"), cause=Diagnosis.BUDGET, earlier=failed(Action.NUDGE))
SPLIT_NEXT = context(cause=Diagnosis.NEEDS_SPLIT, earlier=failed(Action.REPLAN))
ALARM = context(cause=Diagnosis.FALSE_ALARM)
YOUNGER = ConcurrentEdit(path="a.py", task="other", elder=False)
CONFLICT = alert("workspace_conflict", subject="a.py")
CRITICAL = replace(CONFLICT, severity=Severity.CRITICAL)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (replace(context(), then_used=0.9), Action.NUDGE),
        (
            replace(TRIED, then_used=0.9, policy=PolicySettings(hand_over_at=1)),
            Action.REPLAN,
        ),
        (replace(BURNING, then_used=0.9), Action.GRANT_BUDGET),
        (replace(SPLIT_NEXT, plan=plan("one")), Action.ASK_OPERATOR),
        (replace(ALARM, observed=frozenset({AlertKey(rule="cycle")})), Action.OBSERVE),
        (
            replace(context(alert("silence")), before=(judged(Action.RESTART),)),
            Action.ASK_OPERATOR,
        ),
        (replace(context(CRITICAL, alert("cycle")), concurrent=(YOUNGER,)), Action.NUDGE),
    ],
    ids=[
        "nobody is called before anything was tried",
        "without a share nobody is called early",
        "a budget that goes is answered with more of it",
        "a single plan step is not split",
        "a false alarm stays one however often it comes",
        "a restart that is not judged yet is not repeated",
        "the elder of two at one file is judged by its other alerts",
    ],
)
def test_what_the_table_chooses(now: DecisionContext, expected: Action) -> None:
    assert choose(now).action is expected


@pytest.mark.parametrize(("then", "expected"), [(0.5, Action.REPLAN), (0.51, Action.ASK_OPERATOR)])
def test_a_person_is_called_while_there_is_budget_left(then: float, expected: Action) -> None:
    now = replace(context(earlier=failed(Action.NUDGE)), then_used=then, means=ALONE)
    assert choose(now).action is expected
    assert (Action.REPLAN in allowed_actions(now, Diagnosis.UNKNOWN)) is (expected is Action.REPLAN)


def test_another_attempt_comes_before_the_person_who_is_called_in_time() -> None:
    now = replace(context(earlier=failed(Action.NUDGE)), then_used=0.6)
    assert choose(now).action is Action.RESTART
    assert bound_decision(choose(now), now).action is Action.RESTART
    again = replace(now, before=failed(Action.RESTART), interventions=failed(Action.NUDGE))
    assert choose(again).action is Action.ASK_OPERATOR


def test_the_reason_calls_for_a_person_only_where_one_is_called() -> None:
    late = replace(context(earlier=failed(Action.NUDGE)), then_used=0.6)
    burning = context(alert("budget_burn"), cause=Diagnosis.BUDGET, earlier=failed(Action.NUDGE))
    for now in (late, replace(late, means=ALONE), replace(burning, then_used=0.9)):
        made = choose(now)
        called = made.action is Action.ASK_OPERATOR
        assert ("a person must be called" in made.rationale) is called
        assert made.rationale.endswith(f", so {made.action}")


def test_what_could_not_be_judged_before_the_budget_ends_is_not_tried_before_a_grant() -> None:
    burning = context(alert("budget_burn"), cause=Diagnosis.BUDGET)
    actions = [choose(replace(burning, then_used=then)).action for then in (0.95, 1.0)]
    assert actions == [Action.NUDGE, Action.GRANT_BUDGET]


@pytest.mark.parametrize(
    ("elder", "earlier", "expected"),
    [
        (True, (), Action.NUDGE),
        (True, (Action.NUDGE,), Action.RESTART),
        (False, (), Action.OBSERVE),
        (False, (Action.OBSERVE,), Action.OBSERVE),
    ],
)
def test_of_two_at_one_file_only_the_younger_yields(
    elder: bool, earlier: tuple[Action, ...], expected: Action
) -> None:
    rival = ConcurrentEdit(path="a.py", task="other", elder=elder)
    now = replace(context(CONFLICT, earlier=failed(*earlier)), concurrent=(rival,))
    decision = choose(now)
    assert decision.action is expected
    assert decision.terms.after == ("other" if expected is Action.RESTART else "")
    assert ("task other" in decision.message) is (expected is not Action.OBSERVE) or (
        expected is Action.RESTART
    )


def test_what_a_person_rejected_is_not_proposed_again() -> None:
    now = replace(context(), rejected=frozenset({Action.NUDGE}))
    assert choose(now).action is Action.REPLAN
    assert choose(now).rationale.endswith(": nudge was turned down, so replan")
    tried = replace(now, interventions=failed(Action.REPLAN))
    assert ": replan did not help, nudge was turned down, so " in choose(tried).rationale
    late = replace(now, then_used=0.6, means=ALONE)
    assert choose(late).action is Action.ASK_OPERATOR


def test_a_conflict_is_no_reason_to_call_a_person() -> None:
    elder = ConcurrentEdit(path="a.py", task="first", elder=True)
    yields = replace(
        context(CONFLICT, cause=Diagnosis.ENVIRONMENT, earlier=failed(Action.NUDGE)),
        concurrent=(elder,),
        means=Means(),
    )
    keeps = replace(yields, concurrent=(), escalations=99)
    assert [choose(each).action for each in (yields, keeps)] == [Action.OBSERVE] * 2
