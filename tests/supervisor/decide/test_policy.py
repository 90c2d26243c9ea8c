"""The policy table: what is allowed, what is chosen, what is refused."""

import pytest

from midwatch_monitor.config.settings import Mode, PolicySettings
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    Decision,
    Diagnosis,
    Outcome,
    Severity,
    Terms,
)
from midwatch_monitor.state.intervention import InterventionState
from midwatch_stage.deciding import failed
from midwatch_stage.factories import alert, judged
from midwatch_supervisor.decide.context import DecisionContext, DiagnosedCause, Means
from midwatch_supervisor.decide.policy import (
    ACTIONS,
    action_message,
    allowed_actions,
    approval_needed,
    bound_decision,
    choose,
)

DEFAULTS = PolicySettings()
UNKNOWN = Diagnosis.UNKNOWN


def context(
    *rules: str,
    earlier: tuple[InterventionState, ...] = (),
    escalations: int = 0,
    attempts: int = 1,
    policy: PolicySettings = DEFAULTS,
) -> DecisionContext:
    return DecisionContext(
        escalation=7,
        alerts=tuple(alert(rule) for rule in rules),
        interventions=earlier,
        escalations=escalations,
        means=Means(attempts=attempts),
        policy=policy,
    )


def may(now: DecisionContext, diagnosis: Diagnosis = UNKNOWN) -> tuple[Action, ...]:
    return allowed_actions(now, diagnosis)


def words(action: Action, now: DecisionContext) -> str:
    return action_message(action, now, UNKNOWN, Terms())


def wanted(action: Action, message: str = "Do this.") -> Decision:
    return Decision(
        escalation=7,
        action=action,
        diagnosis=Diagnosis.WRONG_APPROACH,
        message=message,
        rationale="I say so.",
        plan=("one",),
        by=Actor.SUPERVISOR,
        author="model",
    )


TALK = (Action.OBSERVE, Action.NUDGE, Action.REPLAN, Action.ASK_OPERATOR)
ONLY_NUDGE = PolicySettings(rules={"repeated_edits": (Action.NUDGE,)})


@pytest.mark.parametrize(
    ("now", "reached"),
    [
        (context("repeated_edits"), TALK),
        (context("low_confidence", "repeated_edits"), TALK),
        (
            context("repeated_edits", earlier=failed(Action.NUDGE)),
            (*TALK[:3], Action.RESTART, Action.ASK_OPERATOR, Action.STOP),
        ),
        (
            context("repeated_edits", attempts=0, earlier=failed(Action.NUDGE)),
            (*TALK, Action.STOP),
        ),
        (
            context("repeated_edits", policy=ONLY_NUDGE),
            (Action.OBSERVE, Action.NUDGE, Action.ASK_OPERATOR),
        ),
        (context("repeated_edits", escalations=20), (Action.ASK_OPERATOR, Action.STOP)),
        (context("low_confidence", escalations=20), (Action.ASK_OPERATOR,)),
    ],
    ids=[
        "words only at first",
        "confidence takes nothing from another rule",
        "the whole ladder once something was in vain",
        "no restart without an attempt left",
        "what stands in the rule's own order",
        "requirement 17: a person or the end after the last escalation",
        "no end for confidence alone",
    ],
)
def test_what_may_be_done(now: DecisionContext, reached: tuple[Action, ...]) -> None:
    assert may(now) == reached


def test_what_stands_first_in_an_order_needs_nothing_before_it() -> None:
    assert Action.RESTART in may(context("silence"))
    assert Action.STOP not in may(context("silence"))


@pytest.mark.parametrize("rule", ["low_confidence", "declining_confidence"])
@pytest.mark.parametrize(
    "policy",
    [DEFAULTS, PolicySettings(rules={}), PolicySettings(rules={"low_confidence": (Action.STOP,)})],
)
def test_confidence_alone_never_reaches_force(rule: str, policy: PolicySettings) -> None:
    force = {Action.REPLAN, Action.RESTART, Action.STOP}
    now = context(rule, policy=policy, earlier=failed(Action.NUDGE))
    assert not any(force & set(may(now, diagnosis)) for diagnosis in Diagnosis)


@pytest.mark.parametrize(("replans", "expected"), [(2, True), (3, False)])
def test_no_replan_beyond_the_maximum(replans: int, expected: bool) -> None:
    now = context("repeated_edits", earlier=failed(*[Action.REPLAN] * replans))
    assert (Action.REPLAN in may(now)) is expected


@pytest.mark.parametrize(("count", "capped"), [(5, False), (6, True)])
def test_requirement_17_after_the_last_intervention_only_a_person_or_the_end_remains(
    count: int, capped: bool
) -> None:
    now = context("repeated_edits", earlier=failed(*[Action.NUDGE] * count))
    assert (may(now) == (Action.ASK_OPERATOR, Action.STOP)) is capped


LADDER = (Action.NUDGE, Action.REPLAN, Action.RESTART, Action.ASK_OPERATOR, Action.STOP)


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        *((failed(*LADDER[:count]), rung) for count, rung in enumerate(LADDER)),
        (failed(*LADDER), Action.ASK_OPERATOR),
        ((judged(Action.NUDGE, Outcome.MADE_WORSE),), Action.REPLAN),
        ((judged(Action.NUDGE),), Action.NUDGE),
        ((*failed(Action.NUDGE), judged(Action.REPLAN, Outcome.RECOVERED)), Action.NUDGE),
    ],
    ids=[
        *LADDER,
        "after the last rung",
        "made worse climbs like no effect",
        "what is not judged yet has not failed",
        "a recovery begins it anew",
    ],
)
def test_the_ladder_is_climbed_one_rung_at_a_time(
    earlier: tuple[InterventionState, ...], expected: Action
) -> None:
    assert choose(context("repeated_edits", earlier=earlier)).action is expected


def test_requirement_17_after_the_last_escalation_a_person_is_asked() -> None:
    assert choose(context("repeated_edits", escalations=20)).action is Action.ASK_OPERATOR


def test_low_confidence_alone_is_only_observed_at_first() -> None:
    decision = choose(context("low_confidence"))
    assert (decision.action, decision.message) == (Action.OBSERVE, "")


def test_the_worst_alert_about_the_work_decides_the_order() -> None:
    alerts = (alert("cycle"), alert("silence", Severity.CRITICAL))
    now = DecisionContext(alerts=alerts, policy=DEFAULTS)
    assert "(silence, " in choose(now).rationale


@pytest.mark.parametrize("rule", ["missed_checkpoint", "low_confidence", "declining_confidence"])
def test_how_a_worker_reports_hides_nothing_that_is_wrong_with_its_work(rule: str) -> None:
    alerts = (alert(rule, Severity.CRITICAL), alert("repeated_edits", subject="a.py"))
    decision = choose(DecisionContext(alerts=alerts, policy=DEFAULTS))
    assert decision.action is Action.NUDGE
    assert decision.message.startswith("repeated_edits was seen. Stop editing `a.py`")
    assert rule not in decision.message


def test_a_worker_that_only_does_not_report_is_never_restarted_for_it() -> None:
    missed = (AlertKey(rule="missed_checkpoint"),)
    told = tuple(
        judged(action, Outcome.NO_EFFECT, answers=missed)
        for action in (Action.NUDGE, Action.OBSERVE)
    )
    assert choose(context("missed_checkpoint")).action is Action.NUDGE
    assert choose(context("missed_checkpoint", earlier=told[:1])).action is Action.OBSERVE
    assert choose(context("missed_checkpoint", earlier=told)).action is Action.ASK_OPERATOR


def test_that_a_worker_was_told_in_vain_to_report_uses_up_no_word_about_its_work() -> None:
    missed = AlertKey(rule="missed_checkpoint")
    told = (judged(Action.NUDGE, Outcome.NO_EFFECT, answers=(missed,)),)
    assert choose(context("same_failure", earlier=told)).action is Action.NUDGE
    assert choose(context("missed_checkpoint", earlier=told)).action is Action.OBSERVE


def test_without_any_alert_a_person_is_asked() -> None:
    assert choose(context()).action is Action.ASK_OPERATOR


def test_a_choice_is_a_whole_decision() -> None:
    now = DecisionContext(
        escalation=7,
        alerts=(alert("repeated_edits", subject="calc.py"),),
        reading=DiagnosedCause(cause=Diagnosis.WRONG_APPROACH, steps=(3, 5)),
        policy=DEFAULTS,
    )
    assert choose(now) == Decision(
        escalation=7,
        action=Action.NUDGE,
        diagnosis=Diagnosis.WRONG_APPROACH,
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


def test_the_same_advice_is_given_once() -> None:
    message = words(Action.NUDGE, context("same_failure", "cycle"))
    assert message.count("read the last output again") == 1


def test_a_person_is_told_what_was_tried() -> None:
    message = words(Action.ASK_OPERATOR, context("cycle", earlier=failed(Action.NUDGE)))
    assert message == ("cycle was seen. Tried so far: nudge (no effect). What should be done?")


@pytest.mark.parametrize("rule", ["explicit_escalation", "multiple_blockers", "cycle"])
@pytest.mark.parametrize("action", ACTIONS[1:])
def test_every_action_but_observe_says_what_was_seen(action: Action, rule: str) -> None:
    asked = rule == "explicit_escalation" and action in {Action.NUDGE, Action.REPLAN}
    seen = "You asked for help." if asked else f"{rule} was seen"
    assert seen in words(action, context(rule))


def test_an_allowed_decision_stays_as_it_is() -> None:
    decision = wanted(Action.REPLAN)
    assert bound_decision(decision, context("repeated_edits")) == decision


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (Action.STOP, Action.ASK_OPERATOR),
        (Action.RESTART, Action.NUDGE),
        (Action.REPLAN, Action.NUDGE),
        (Action.PAUSE, Action.OBSERVE),
    ],
)
def test_a_forbidden_decision_becomes_the_nearest_gentler_one(
    action: Action, expected: Action
) -> None:
    assert bound_decision(wanted(action), context("low_confidence")).action is expected


def test_a_refusal_is_told_and_leaves_no_plan() -> None:
    decision = bound_decision(wanted(Action.REPLAN), context("low_confidence"))
    assert (decision.message, decision.plan) == ("Do this.", ())
    assert decision.rationale == (
        "I say so. [the model wanted replan; the policy allows only observe, nudge, ask_operator]"
    )


def test_at_a_cap_a_gentle_decision_goes_to_a_person() -> None:
    now = context("repeated_edits", escalations=20)
    decision = bound_decision(wanted(Action.OBSERVE, message=""), now)
    assert decision.action is Action.ASK_OPERATOR
    assert decision.message == action_message(Action.ASK_OPERATOR, now, decision.diagnosis, Terms())


@pytest.mark.parametrize(
    ("action", "mode", "needed"),
    [
        (Action.NUDGE, Mode.ACT, False),
        (Action.RESTART, Mode.ACT, True),
        (Action.NUDGE, Mode.ADVISE, True),
        (Action.NUDGE, Mode.OFF, True),
        (Action.OBSERVE, Mode.ADVISE, False),
        (Action.ASK_OPERATOR, Mode.ADVISE, False),
    ],
)
def test_who_must_approve(action: Action, mode: Mode, needed: bool) -> None:
    policy = PolicySettings(needs_approval=(Action.RESTART,))
    assert approval_needed(action, mode, policy) is needed


def test_what_somebody_else_started_is_not_stopped_without_a_person() -> None:
    acts = (Action.OBSERVE, Action.NUDGE, Action.STOP)
    assert approval_needed(Action.STOP, Mode.ACT, PolicySettings(), acts=acts)
    assert not approval_needed(Action.NUDGE, Mode.ACT, PolicySettings(), acts=acts)
