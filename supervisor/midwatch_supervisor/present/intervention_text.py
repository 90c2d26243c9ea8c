"""Alerts, escalations, decisions, interventions and messages to people as text. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from midwatch_monitor.records import (
    Action,
    Alert,
    AlertKey,
    BudgetRequest,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Escalation,
    EscalationState,
    Intervention,
    Notified,
    Outcome,
    OutcomeReport,
    PermissionRequest,
    PlanCheck,
    Resolution,
    Severity,
    Terms,
)
from midwatch_monitor.state.attempt_details import AlertStatus
from midwatch_monitor.state.intervention import InterventionState, WorkerRequest
from midwatch_supervisor.present.numbers import amount, count_noun, grant_text, steps_text
from midwatch_supervisor.present.text_line import (
    SEVERITY_SIGNS,
    Parts,
    TextLine,
    Tone,
    because,
    brief,
    by,
    in_brackets,
    number_lines,
)

_SEVERITIES: Mapping[Severity, Tone] = {
    Severity.NOTICE: Tone.DIM,
    Severity.WARNING: Tone.WARN,
    Severity.CRITICAL: Tone.BAD,
}
_DELIVERIES: Mapping[DeliveryState, tuple[str, Tone, str]] = {
    DeliveryState.APPROVED: ("✓", Tone.GOOD, "approved"),
    DeliveryState.REJECTED: ("✗", Tone.WARN, "rejected"),
    DeliveryState.DELIVERED: ("»", Tone.ACCENT, "delivered"),
    DeliveryState.EXPIRED: ("⊘", Tone.DIM, "came too late"),
}
_OUTCOMES: Mapping[Outcome, tuple[str, Tone]] = {
    Outcome.RECOVERED: ("✓", Tone.GOOD),
    Outcome.NO_EFFECT: ("=", Tone.WARN),
    Outcome.MADE_WORSE: ("✗", Tone.BAD),
}
_ENDED: Mapping[Resolution | None, str] = {
    None: "",
    Resolution.CLEARED: "",
    Resolution.RESTARTED: " (its window restarted)",
    Resolution.ENDED: " (the attempt ended)",
}


def alert_text(alert: Alert, status: AlertStatus) -> str:
    """Return an alert in its present state, which may be more than its record contains."""
    ended = "" if status is AlertStatus.ENDED else _ENDED[alert.resolution]
    return _alert_text(alert, f"{status}{ended}")


def _alert_text(alert: Alert, state: str) -> str:
    head = f"{state} {alert.severity} {brief(alert.key.rule)}{in_brackets(alert.key.subject)}"
    return f"{head}{because(alert.summary)}{in_brackets(steps_text(alert.evidence))}"


def _alert_line(alert: Alert) -> TextLine:
    state = f"{alert.state}{_ENDED[alert.resolution]}"
    return TextLine(
        SEVERITY_SIGNS[alert.severity] if alert.firing else "○",
        "alert",
        _alert_text(alert, state),
        _SEVERITIES[alert.severity] if alert.firing else Tone.DIM,
        (
            ("alert", f"{alert.severity} {alert.key.rule}, {state} at step {alert.step}"),
            ("about", alert.key.subject),
            ("summary", alert.summary),
            ("value", amount(alert.value)),
            ("since step", str(alert.since_step)),
            ("evidence", steps_text(alert.evidence)),
        ),
    )


def rules_text(keys: Iterable[AlertKey]) -> str:
    """Return the rules of some alerts, each once."""
    return brief(", ".join(dict.fromkeys(key.rule for key in keys)))


def _escalation_text(asked: Escalation) -> TextLine:
    told = rules_text(asked.alerts)
    reason = because(asked.reason) if asked.reason != told else ""
    return TextLine(
        "!",
        "escalation",
        f"{asked.id} {asked.state.value}: {told}{reason}",
        Tone.WARN if asked.state is EscalationState.OPEN else Tone.DIM,
    )


def _decision_text(made: Decision) -> TextLine:
    act = f"{action_text(made.action, made.terms)}{by(made.author or made.by.value)}"
    cause = f"{diagnosis_text(made.diagnosis)}{in_brackets(steps_text(made.steps))}"
    refused = bool(made.refused)
    return TextLine(
        "✗" if refused else "§",
        "decision",
        f"REFUSED: {act}{because(made.refused)}"
        if refused
        else f"{act}: {cause}{because(made.rationale)}",
        Tone.WARN if refused else Tone.ACCENT,
        (
            ("decision", f"{act}: {cause}"),
            ("refused", made.refused),
            ("rationale", made.rationale),
            ("message", made.message),
            ("plan", number_lines(made.plan)),
        ),
    )


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """Return a diagnosis in words: `wrong approach`."""
    return diagnosis.value.replace("_", " ")


def action_text(action: Action, terms: Terms) -> str:
    """Return an action with its terms: `grant_budget (20 requests)`."""
    return f"{action}{in_brackets(terms_text(terms))}"


def proposal_text(proposed: Intervention) -> str:
    """Return what an intervention that waits for approval would say and plan, in lines."""
    said = proposed.message or "(no message)"
    return "\n".join(filter(None, (said, number_lines(proposed.plan))))


def terms_text(terms: Terms) -> str:
    """Return what exactly an action does, if its name does not say it; else empty."""
    parts = (
        grant_text(terms.grant),
        f"model {terms.model}" if terms.model else "",
        f"worker {terms.worker}" if terms.worker else "",
        f"keeps {', '.join(terms.keep)}" if terms.keep else "",
        f"after {terms.after}" if terms.after else "",
        f"parts: {', '.join(part.title for part in terms.parts)}" if terms.parts else "",
    )
    return "; ".join(filter(None, parts))


_REACHED: Mapping[Action, str] = {
    Action.NUDGE: "guided",
    Action.PAUSE: "paused",
    Action.STOP: "stopped",
}


def reach_text(acts: Collection[Action]) -> str:
    """Return what can be done to a worker that somebody else started."""
    possible = " and ".join(word for each, word in _REACHED.items() if each in acts)
    return f"it can be {possible} from here" if possible else "it is only watched"


def author_text(issued: Intervention) -> str:
    """Return who issued an intervention: the name if there is one, with the role."""
    return brief(f"{issued.author} ({issued.by})" if issued.author else issued.by.value)


def intervention_text(issued: Intervention, id: int) -> TextLine:
    """Return an intervention as issued, with its id unless that is 0."""
    state = "waits for approval" if issued.needs_approval else "issued"
    name = f"{action_text(issued.action, issued.terms)}{f' {id}' if id else ''}"
    return TextLine(
        "→",
        "message",
        f"{name} {state}, by {author_text(issued)}{because(issued.message)}",
        Tone.ACCENT,
        _intervention_parts(issued),
    )


def _intervention_parts(issued: Intervention) -> Parts:
    held = ", waits for approval" if issued.needs_approval else ""
    unknown = issued.diagnosis is Diagnosis.UNKNOWN
    return (
        ("intervention", f"{issued.action} by {author_text(issued)}{held}"),
        ("terms", terms_text(issued.terms)),
        ("because of", "" if unknown else diagnosis_text(issued.diagnosis)),
        ("message", issued.message),
        ("plan", number_lines(issued.plan)),
        ("answers", rules_text(issued.answers)),
    )


def delivery_text(stamp: Delivery, about: Intervention | None) -> TextLine:
    """Return the state of an intervention's delivery."""
    sign, tone, state = _DELIVERIES[stamp.state]
    text = f"{_intervention_name(about)} {_stamp_text(stamp)}"
    parts = ((state, text), *(_intervention_parts(about) if about else ()))
    return TextLine(sign, stamp.state.value, text, tone, parts)


def settled_text(state: InterventionState) -> str:
    """Return an intervention's state: by whom it was approved or rejected, and why."""
    stamps = dict.fromkeys(filter(None, (state.settled, state.stamp)))
    return "; ".join(map(_stamp_text, stamps)) or state.status.value


def _stamp_text(stamp: Delivery) -> str:
    return f"{_DELIVERIES[stamp.state][2]}{by(stamp.author)}{because(stamp.comment)}"


def outcome_text(report: OutcomeReport, about: Intervention | None) -> TextLine:
    """Return the effect of an intervention."""
    sign, tone = _OUTCOMES[report.outcome]
    text = f"{_intervention_name(about)}: {report.outcome.value}{because(report.reason)}"
    parts = (("outcome", text), *(_intervention_parts(about) if about else ()))
    return TextLine(sign, "outcome", text, tone, parts)


def _intervention_name(about: Intervention | None) -> str:
    return about.action.value if about else "an intervention"


def _notified_text(sent: Notified) -> TextLine:
    text = f"{brief(sent.target)} was notified of {count_noun(len(sent.keys), 'thing')}"
    return TextLine("→", "notify", text, Tone.DIM, (("about", "\n".join(sent.keys)),))


INTERVENTION_TEXTS: Mapping[type, Callable[[Any], TextLine]] = {
    Alert: _alert_line,
    Escalation: _escalation_text,
    Decision: _decision_text,
    Notified: _notified_text,
}
"""The texts of these kinds of records."""


_REQUESTS: Mapping[type, str] = {
    PlanCheck: "plan revision",
    BudgetRequest: "budget request",
    PermissionRequest: "permission",
}


def request_name(request: WorkerRequest) -> str:
    """Return the kind of a request in a word or two."""
    return _REQUESTS[type(request)]


def request_text(request: WorkerRequest) -> str:
    """Return what a worker asks for, and why."""
    match request:
        case PlanCheck():
            plan = "; ".join(request.proposed) or "the plan as it is"
            return f"asks to revise its plan: {plan} ({request.choice or request.reality})"
        case BudgetRequest():
            return f"asks for budget: {grant_text(request.wanted) or 'more'} ({request.reason})"
        case PermissionRequest():
            return f"asks to {request.what}"
