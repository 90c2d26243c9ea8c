"""The policy table: what is allowed, what is chosen, and what becomes of a model's decision."""

from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor.config.policy import PolicyRow
from midwatch_monitor.config.settings import Mode, PolicySettings
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    Decision,
    Diagnosis,
    Grant,
    Outcome,
    Severity,
    Terms,
)
from midwatch_monitor.state.intervention import InterventionState
from midwatch_supervisor.decide.context import (
    ConcurrentEdit,
    DecisionContext,
    DiagnosedCause,
    Means,
)
from midwatch_supervisor.decide.policy import (
    action_message,
    allowed_actions,
    approval_needed,
    bound_decision,
    choose,
    order_for,
)
from midwatch_tests.deciding import failed
from midwatch_tests.factories import alert, judged, plan

OBSERVE, NUDGE, REPLAN = Action.OBSERVE, Action.NUDGE, Action.REPLAN
SWITCH, RESTART, SPLIT = Action.SWITCH_MODEL, Action.RESTART, Action.SPLIT
GRANT, ASK, STOP = Action.GRANT_BUDGET, Action.ASK_OPERATOR, Action.STOP
UNKNOWN, WRONG = Diagnosis.UNKNOWN, Diagnosis.WRONG_APPROACH
DEFAULTS = PolicySettings()
EVERYTHING = Means(
    attempts=1, models=("big",), workers=("other",), grant=Grant(requests=15), may_split=True
)
MISSED = AlertKey(rule="missed_checkpoint")
OBSERVED = frozenset({AlertKey(rule="cycle")})
CONFLICT = alert("workspace_conflict", subject="a.py")
TALK = (OBSERVE, NUDGE, REPLAN, ASK)
LADDER = (NUDGE, REPLAN, RESTART, ASK, STOP)


def context(
    *alerts: Alert | str,
    cause: Diagnosis = UNKNOWN,
    earlier: tuple[Action, ...] = (),
    **fields: Any,
) -> DecisionContext:
    """About these alerts (`cycle`, if none is named), after actions that were in vain."""
    given: dict[str, Any] = {
        "alerts": tuple(
            alert(each) if isinstance(each, str) else each for each in alerts or ("cycle",)
        ),
        "reading": DiagnosedCause(cause=cause),
        "interventions": failed(*earlier),
        "means": EVERYTHING,
        "plan": plan("one", "two"),
        "policy": DEFAULTS,
        **fields,
    }
    return DecisionContext(escalation=7, **given)


def context_of_edits(*others: str, **fields: Any) -> DecisionContext:
    """About a file that is edited again and again, and what else was seen; one attempt is left."""
    given: dict[str, Any] = {"means": Means(attempts=1), **fields}
    return context("repeated_edits", *others, **given)


def actions_for(now: DecisionContext, diagnosis: Diagnosis = UNKNOWN) -> tuple[Action, ...]:
    return allowed_actions(now, diagnosis)


@pytest.mark.parametrize(
    ("now", "reached"),
    [
        (context_of_edits(), TALK),
        (context_of_edits("low_confidence"), TALK),
        (context_of_edits(earlier=(NUDGE,)), (*TALK[:3], RESTART, ASK, STOP)),
        (context_of_edits(earlier=(NUDGE,), means=Means()), (*TALK, STOP)),
        (
            context_of_edits(policy=PolicySettings(rules={"repeated_edits": (NUDGE,)})),
            (OBSERVE, NUDGE, ASK),
        ),
        (context("silence"), (OBSERVE, RESTART, ASK)),
        (context_of_edits(escalations=20), (ASK, STOP)),
        (context("low_confidence", escalations=20), (ASK,)),
        (context_of_edits(earlier=(NUDGE,) * 5), (*TALK[:3], RESTART, ASK, STOP)),
        (context_of_edits(earlier=(NUDGE,) * 6), (ASK, STOP)),
        (context_of_edits(before=failed(*[NUDGE] * 12)), (ASK, STOP)),
    ],
    ids=[
        "words only at first",
        "confidence takes nothing from another rule",
        "the whole ladder once something was in vain",
        "no restart without an attempt left",
        "what stands in the rule's own order",
        "what stands first in an order needs nothing before it",
        "requirement 17: a person or the end after the last escalation",
        "no end for confidence alone",
        "before the last intervention",
        "requirement 17: after the last intervention",
        "requirement 17: the cap of the task counts all its attempts",
    ],
)
def test_what_may_be_done(now: DecisionContext, reached: tuple[Action, ...]) -> None:
    assert actions_for(now) == reached


@pytest.mark.parametrize(
    "policy",
    [
        DEFAULTS,
        PolicySettings(rules={}),
        PolicySettings(rules={"low_confidence": (STOP,)}),
        PolicySettings(table=(PolicyRow(rule="low_confidence", actions=(STOP, NUDGE)),)),
    ],
)
@pytest.mark.parametrize("rule", ["low_confidence", "declining_confidence"])
def test_confidence_alone_never_reaches_force(rule: str, policy: PolicySettings) -> None:
    now = context(rule, policy=policy, earlier=(NUDGE,))
    assert not any({REPLAN, RESTART, STOP} & set(actions_for(now, each)) for each in Diagnosis)


@pytest.mark.parametrize("diagnosis", Diagnosis)
def test_no_diagnosis_opens_force_before_anything_was_tried(diagnosis: Diagnosis) -> None:
    own = {RESTART} if diagnosis is Diagnosis.WRONG_WORKER else set[Action]()
    assert set(actions_for(context(cause=diagnosis), diagnosis)) - own <= set(TALK)


@pytest.mark.parametrize(("action", "cap"), [(REPLAN, 3), (SWITCH, 2)])
def test_a_persons_orders_count_against_no_maximum(action: Action, cap: int) -> None:
    nudged = failed(NUDGE)
    found = [
        action
        in actions_for(context(interventions=(*nudged, *failed(*[action] * times, by=by))), WRONG)
        for times, by in ((cap - 1, Actor.POLICY), (cap, Actor.POLICY), (cap, Actor.OPERATOR))
    ]
    assert found == [True, False, True]


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        *((failed(*LADDER[:count]), rung) for count, rung in enumerate(LADDER)),
        (failed(*LADDER), ASK),
        ((judged(NUDGE, Outcome.MADE_WORSE),), REPLAN),
        ((judged(NUDGE),), NUDGE),
        ((*failed(NUDGE), judged(REPLAN, Outcome.RECOVERED)), NUDGE),
    ],
    ids=[
        *LADDER,
        "after the last rung",
        "made worse climbs like no effect",
        "what is not judged yet has not failed",
        "a recovery begins it anew",
    ],
)
def test_the_ladder_is_climbed(earlier: tuple[InterventionState, ...], expected: Action) -> None:
    assert choose(context_of_edits(interventions=earlier)).action is expected


def test_d6_long_work_on_one_plan_step_leads_to_doubt_before_another_try() -> None:
    order = order_for("steps_on_plan_step", Severity.WARNING, UNKNOWN, DEFAULTS)
    assert order[:2] == (NUDGE, REPLAN)
    assert order.index(RESTART) > 1


def test_a_row_that_names_the_rule_goes_before_its_own_order_and_others_after_it() -> None:
    any_rule = PolicyRow(diagnosis=UNKNOWN, actions=(ASK,))
    critical = PolicyRow(rule="cycle", severity=Severity.CRITICAL, actions=(STOP,))
    policy = PolicySettings(rules={"cycle": (NUDGE, REPLAN)}, table=(any_rule, critical))
    orders = [
        order_for(rule, severity, UNKNOWN, policy)
        for rule, severity in (
            ("cycle", Severity.CRITICAL),
            ("cycle", Severity.WARNING),
            ("monologue", Severity.CRITICAL),
        )
    ]
    assert orders == [(STOP,), (NUDGE, REPLAN), (ASK,)]


@pytest.mark.parametrize(
    ("cause", "earlier", "means", "expected"),
    [
        (WRONG, (NUDGE, REPLAN), EVERYTHING, SWITCH),
        (WRONG, (NUDGE, REPLAN, SWITCH), EVERYTHING, RESTART),
        (Diagnosis.NEEDS_SPLIT, (REPLAN,), EVERYTHING, SPLIT),
        (Diagnosis.BUDGET, (NUDGE,), EVERYTHING, GRANT),
        (Diagnosis.ENVIRONMENT, (NUDGE,), EVERYTHING, ASK),
        (Diagnosis.MISSING_DEPENDENCY, (NUDGE, ASK), EVERYTHING, STOP),
        (Diagnosis.WRONG_WORKER, (), EVERYTHING, RESTART),
        (Diagnosis.INFEASIBLE, (), EVERYTHING, ASK),
        (Diagnosis.NEEDS_SPLIT, (), EVERYTHING, REPLAN),
        (WRONG, (NUDGE, REPLAN), Means(attempts=1), RESTART),
        (WRONG, (NUDGE, REPLAN), Means(models=("m",)), SWITCH),
        (Diagnosis.WRONG_WORKER, (), Means(attempts=1), ASK),
        (Diagnosis.NEEDS_SPLIT, (REPLAN,), Means(attempts=1), ASK),
        (Diagnosis.BUDGET, (NUDGE,), Means(), ASK),
        (Diagnosis.PROVIDER, (OBSERVE,), Means(), ASK),
    ],
)
def test_each_cause_has_its_ladder_and_what_a_task_has_no_means_for_is_passed_over(
    cause: Diagnosis, earlier: tuple[Action, ...], means: Means, expected: Action
) -> None:
    assert choose(context(cause=cause, earlier=earlier, means=means)).action is expected


BURNING = context("budget_burn", cause=Diagnosis.BUDGET)
TRIED = context(cause=WRONG, earlier=(NUDGE,))
ALARM = context(cause=Diagnosis.FALSE_ALARM, observed=OBSERVED)
SLOW = context(cause=Diagnosis.PROVIDER, policy=PolicySettings(rules={}))
ONE_STEP = context(cause=Diagnosis.NEEDS_SPLIT, earlier=(REPLAN,), plan=plan("one"))
YOUNGER = ConcurrentEdit(path="a.py", task="other", elder=False)
ELDER = replace(YOUNGER, elder=True)
CRITICAL = replace(CONFLICT, severity=Severity.CRITICAL)
YIELDS = context(
    CONFLICT, cause=Diagnosis.ENVIRONMENT, earlier=(NUDGE,), means=Means(), concurrent=(ELDER,)
)
TOLD = tuple(judged(each, Outcome.NO_EFFECT, answers=(MISSED,)) for each in (NUDGE, OBSERVE))
ALONE = replace(EVERYTHING, attempts=0)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (context_of_edits(escalations=20), ASK),
        (context("low_confidence"), OBSERVE),
        (context(alerts=()), ASK),
        (context("missed_checkpoint"), NUDGE),
        (context("missed_checkpoint", interventions=TOLD[:1]), OBSERVE),
        (context("missed_checkpoint", interventions=TOLD), ASK),
        (context("same_failure", interventions=TOLD[:1]), NUDGE),
        (context(then_used=0.9), NUDGE),
        (replace(TRIED, then_used=0.9, policy=PolicySettings(hand_over_at=1)), REPLAN),
        (replace(TRIED, then_used=0.5, means=ALONE), REPLAN),
        (replace(TRIED, then_used=0.51, means=ALONE), ASK),
        (replace(TRIED, then_used=0.6, before=failed(RESTART)), ASK),
        (replace(BURNING, then_used=0.9, interventions=failed(NUDGE)), GRANT),
        (replace(BURNING, then_used=0.95), NUDGE),
        (replace(BURNING, then_used=1.0), GRANT),
        (ONE_STEP, ASK),
        (ALARM, OBSERVE),
        (SLOW, OBSERVE),
        (replace(SLOW, observed=OBSERVED), SWITCH),
        (context("silence", before=(judged(RESTART),)), ASK),
        (context(before=failed(NUDGE, REPLAN, SWITCH, RESTART)), NUDGE),
        (context(before=failed(SWITCH, RESTART), earlier=(NUDGE, REPLAN)), ASK),
        (context(CRITICAL, "cycle", concurrent=(YOUNGER,)), NUDGE),
        (YIELDS, OBSERVE),
        (replace(YIELDS, concurrent=(), escalations=99), OBSERVE),
        (context("explicit_escalation"), NUDGE),
        (context("explicit_escalation", cause=Diagnosis.INFEASIBLE), ASK),
        (context("silence", cause=Diagnosis.INFEASIBLE), RESTART),
    ],
    ids=[
        "requirement 17: after the last escalation a person is asked",
        "low confidence alone is only observed at first",
        "without any alert a person is asked",
        "a worker that does not report is told to",
        "in vain, and is never restarted for it",
        "but a person is asked at last",
        "and that uses up no word about its work",
        "nobody is called before anything was tried",
        "without a share nobody is called early",
        "at the share there is budget left",
        "a person is called while there is",
        "no restart comes again before the person who is called in time",
        "a budget that goes is answered with more of it",
        "words come first as long as they can be judged",
        "what could not be judged before the budget ends is not tried before a grant",
        "a single plan step is not split",
        "a false alarm stays one however often it comes",
        "a provider's fault is waited for",
        "nothing done about an alert that goes on was in vain",
        "a restart that is not judged yet is not repeated",
        "a new attempt begins with words",
        "but not with another restart",
        "the elder of two at one file is judged by its other alerts",
        "a conflict that one yields to is no reason to call a person",
        "nor is one that the other yields to",
        "a call for help is answered by words",
        "or by a person, where it cannot be done as it is asked",
        "who is silent is begun anew whatever the cause",
    ],
)
def test_what_the_table_chooses(now: DecisionContext, expected: Action) -> None:
    assert choose(now).action is expected


def test_once_a_person_must_be_called_no_other_plan_is_allowed_but_another_attempt_is() -> None:
    assert REPLAN in actions_for(replace(TRIED, then_used=0.5, means=ALONE))
    late = replace(TRIED, then_used=0.6)
    assert REPLAN not in actions_for(late)
    assert choose(late).action is RESTART
    assert bound_decision(choose(late), late).action is RESTART


def test_the_reason_calls_for_a_person_only_where_one_is_called() -> None:
    late = replace(TRIED, then_used=0.6)
    burning = replace(BURNING, then_used=0.9, interventions=failed(NUDGE))
    for now in (late, replace(late, means=ALONE), burning):
        made = choose(now)
        assert ("a person must be called" in made.rationale) is (made.action is ASK)
        assert made.rationale.endswith(f", so {made.action}")


def test_the_worst_alert_about_the_work_decides_the_order() -> None:
    now = context("cycle", alert("silence", Severity.CRITICAL))
    assert "(silence, " in choose(now).rationale


@pytest.mark.parametrize("rule", ["missed_checkpoint", "low_confidence", "declining_confidence"])
def test_how_a_worker_reports_hides_nothing_that_is_wrong_with_its_work(rule: str) -> None:
    worse = alert(rule, Severity.CRITICAL)
    decision = choose(context(worse, alert("repeated_edits", subject="a.py")))
    assert decision.action is NUDGE
    assert decision.message.startswith("repeated_edits was seen. Stop editing `a.py`")
    assert rule not in decision.message


@pytest.mark.parametrize(
    ("elder", "earlier", "expected", "after", "told"),
    [
        (True, (), NUDGE, "", True),
        (True, (NUDGE,), RESTART, "other", True),
        (False, (), OBSERVE, "", False),
        (False, (OBSERVE,), OBSERVE, "", False),
    ],
)
def test_of_two_at_one_file_only_the_younger_yields(
    elder: bool, earlier: tuple[Action, ...], expected: Action, after: str, told: bool
) -> None:
    rival = replace(YOUNGER, elder=elder)
    decision = choose(context(CONFLICT, cause=WRONG, earlier=earlier, concurrent=(rival,)))
    assert (decision.action, decision.terms.after) == (expected, after)
    assert ("ask other" in decision.message) is told


def test_what_a_person_rejected_is_not_proposed_again() -> None:
    now = context(cause=WRONG, rejected=frozenset({NUDGE}))
    assert choose(now).action is REPLAN
    assert choose(now).rationale.endswith(": nudge was turned down, so replan")
    tried = replace(now, interventions=failed(REPLAN))
    assert ": replan did not help, nudge was turned down, so " in choose(tried).rationale
    assert choose(replace(now, then_used=0.6, means=ALONE)).action is ASK


def test_a_choice_is_a_whole_decision() -> None:
    edited = alert("repeated_edits", subject="calc.py")
    now = context(edited, reading=DiagnosedCause(cause=WRONG, steps=(3, 5)))
    assert choose(now) == Decision(
        escalation=7,
        action=NUDGE,
        diagnosis=WRONG,
        message=(
            "repeated_edits was seen. Stop editing `calc.py`: run what checks it, read the whole "
            "output, and state the cause of what fails before the next change."
        ),
        rationale=(
            "by the policy table (repeated_edits, wrong_approach): no earlier action has failed, "
            "so nudge"
        ),
        steps=(3, 5),
        by=Actor.POLICY,
    )


def test_a_person_is_told_what_was_tried() -> None:
    message = action_message(ASK, context(earlier=(NUDGE,)), UNKNOWN, Terms())
    assert message == "cycle was seen. Tried so far: nudge (no effect). What should be done?"


def make_decision(action: Action, message: str = "Do this.") -> Decision:
    return Decision(
        escalation=7,
        action=action,
        diagnosis=WRONG,
        message=message,
        rationale="I say so.",
        plan=("one",),
        by=Actor.SUPERVISOR,
        author="model",
    )


@pytest.mark.parametrize(
    ("action", "expected"),
    [(STOP, ASK), (RESTART, NUDGE), (REPLAN, NUDGE), (Action.PAUSE, OBSERVE)],
)
def test_what_is_forbidden_becomes_the_nearest_gentler(action: Action, expected: Action) -> None:
    assert bound_decision(make_decision(action), context("low_confidence")).action is expected


def test_an_allowed_decision_stays_and_of_another_the_refusal_is_told_and_no_plan_left() -> None:
    decision = make_decision(REPLAN)
    assert bound_decision(decision, context_of_edits()) == decision
    refused = bound_decision(decision, context("low_confidence"))
    assert (refused.message, refused.plan) == ("Do this.", ())
    assert refused.rationale == (
        "I say so. [the model wanted replan; the policy allows only observe, nudge, ask_operator]"
    )


def test_at_a_cap_a_gentle_decision_goes_to_a_person() -> None:
    now = context_of_edits(escalations=20)
    decision = bound_decision(make_decision(OBSERVE, message=""), now)
    assert decision.action is ASK
    assert decision.message == action_message(ASK, now, WRONG, Terms())


@pytest.mark.parametrize(
    ("action", "mode", "acts", "needed"),
    [
        (NUDGE, Mode.ACT, None, False),
        (RESTART, Mode.ACT, None, True),
        (NUDGE, Mode.ADVISE, None, True),
        (NUDGE, Mode.OFF, None, True),
        (OBSERVE, Mode.ADVISE, None, False),
        (ASK, Mode.ADVISE, None, False),
        (STOP, Mode.ACT, (OBSERVE, NUDGE, STOP), True),
        (NUDGE, Mode.ACT, (OBSERVE, NUDGE, STOP), False),
    ],
)
def test_who_must_approve_also_that_what_somebody_else_started_is_stopped(
    action: Action, mode: Mode, acts: tuple[Action, ...] | None, needed: bool
) -> None:
    policy = PolicySettings(needs_approval=(RESTART,))
    assert approval_needed(action, mode, policy, acts=acts) is needed
