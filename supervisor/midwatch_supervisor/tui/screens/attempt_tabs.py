"""The other lists of the attempt view: alerts, plan, messages, acceptance checks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from midwatch_monitor.records import (
    Acceptance,
    Alert,
    Feedback,
    Outcome,
    Plan,
    PlanStep,
    PlanStepState,
)
from midwatch_monitor.state.intervention import InterventionStatus
from midwatch_supervisor.present.learning_text import verdict_words
from midwatch_supervisor.present.plain import plain
from midwatch_supervisor.present.record_text import author, detail
from midwatch_supervisor.present.spelling import in_brackets, terms_words
from midwatch_supervisor.present.text_line import Tone, because, brief
from midwatch_supervisor.tui.screens.attempt_tab import Facet, tone_style
from midwatch_supervisor.tui.screens.timeline import clock, number, sign
from midwatch_supervisor.tui.state.attempt_timeline import Item, Telling
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """One plan step with its place in the plan."""

    number: int
    step: PlanStep
    current: bool


def numbered(plan: Plan) -> tuple[Numbered, ...]:
    """The plan as lines."""
    return tuple(
        Numbered(number=place, step=step, current=place == plan.current)
        for place, step in enumerate(plan.steps, start=1)
    )


def alerts(zone: tzinfo | None) -> Facet[Item]:
    """The history of the alerts, with the steps that each is grounded on."""
    return Facet(
        [
            Column(title="time", width=8, rank=4, draw=clock(zone)),
            Column(title="step", width=4, rank=1, draw=number),
            Column(title="", width=1, rank=0, draw=sign),
            Column(title="state", width=8, rank=0, draw=_alert_state),
            Column(title="severity", width=8, rank=3, draw=_severity),
            Column(title="rule", width=20, rank=0, draw=_rule),
            Column(title="evidence", width=10, rank=2, draw=_evidence, grow=1),
            Column(title="summary", width=12, rank=1, draw=_summary, grow=3),
        ],
        id="alerts",
        detail=lambda item: item.detail,
        empty="No alert so far.",
        follow=True,
    )


def _alert_state(item: Item, colours: Palette) -> Cell:
    state = item.record.state.value if isinstance(item.record, Alert) else ""
    return state, tone_style(item.told.tone, colours)


def _severity(item: Item, colours: Palette) -> Cell:
    severity = item.record.severity.value if isinstance(item.record, Alert) else ""
    return severity, tone_style(item.told.tone, colours)


def _rule(item: Item, colours: Palette) -> Cell:
    return brief(item.record.key.rule) if isinstance(item.record, Alert) else "", colours.strong


def _evidence(item: Item, colours: Palette) -> Cell:
    steps = item.record.evidence if isinstance(item.record, Alert) else ()
    return ", ".join(map(str, steps)) or "-", colours.text


def _summary(item: Item, colours: Palette) -> Cell:
    if not isinstance(item.record, Alert):
        return "", colours.text
    ended = f"({item.record.resolution}) " if item.record.resolution else ""
    return f"{ended}{brief(item.record.summary)}", colours.text


def plan() -> Facet[Numbered]:
    """The plan steps with their states."""
    return Facet(
        [
            Column(title="no", width=3, rank=1, draw=_place),
            Column(title="state", width=9, rank=0, draw=_plan_state),
            Column(title="plan step", width=20, rank=0, draw=_title, grow=2),
            Column(title="sure", width=4, rank=3, draw=_sure),
            Column(title="share", width=5, rank=3, draw=_share),
            Column(title="files", width=12, rank=4, draw=_files, grow=1),
            Column(title="flag", width=12, rank=2, draw=_flag, grow=1),
        ],
        id="plan",
        detail=_of_plan_step,
        empty="There is no plan.",
    )


def _place(each: Numbered, colours: Palette) -> Cell:
    return f"{each.number:>3}", colours.dim


def _plan_state(each: Numbered, colours: Palette) -> Cell:
    if each.current:
        return "▶ now", colours.accent
    match each.step.state:
        case PlanStepState.DONE:
            return "✓ done", colours.good
        case PlanStepState.SKIPPED:
            return "⊘ skipped", colours.dim
        case PlanStepState.OPEN:
            return "· open", colours.text


def _title(each: Numbered, colours: Palette) -> Cell:
    return brief(each.step.title), colours.strong if each.current else colours.text


def _sure(each: Numbered, colours: Palette) -> Cell:
    confidence = each.step.confidence
    return ("", colours.dim) if confidence is None else (f"{confidence:>3}%", colours.text)


def _share(each: Numbered, colours: Palette) -> Cell:
    requests = each.step.requests
    return ("", colours.dim) if requests is None else (f"{requests:>5}", colours.text)


def _files(each: Numbered, colours: Palette) -> Cell:
    return brief(", ".join(each.step.files)), colours.dim


def _flag(each: Numbered, colours: Palette) -> Cell:
    flag = brief(each.step.flag)
    return (f"⚑ {flag}", colours.warn) if flag else ("", colours.dim)


def _of_plan_step(each: Numbered) -> str:
    """All of a plan step, in paragraphs."""
    step = each.step
    sure = "" if step.confidence is None else f"{step.confidence} %"
    parts = {
        f"plan step {each.number}": step.title,
        "confidence": sure,
        "share of the model requests": "" if step.requests is None else str(step.requests),
        "files that it should leave": "\n".join(step.files),
        "acceptance": "\n".join(step.acceptance),
        "finished with a flag": step.flag,
    }
    return plain("\n\n".join(f"{name}:\n{text}" for name, text in parts.items() if text))


def messages(zone: tzinfo | None) -> Facet[Telling]:
    """What was done to the attempt, by whom, when it arrived and what came of it."""
    return Facet(
        [
            Column(title="time", width=8, rank=3, draw=_issued_at(zone)),
            Column(title="step", width=4, rank=4, draw=_issued_step),
            Column(title="act", width=12, rank=0, draw=_action),
            Column(title="by", width=12, rank=1, draw=_by, grow=1),
            Column(title="arrived", width=18, rank=0, draw=_arrived(zone)),
            Column(title="outcome", width=12, rank=0, draw=_outcome, grow=2),
            Column(title="message", width=12, rank=2, draw=_message, grow=3),
        ],
        id="messages",
        detail=lambda telling: telling.detail,
        empty="Nobody has said or done anything to this attempt.",
        follow=True,
    )


def _issued_at(zone: tzinfo | None) -> Callable[[Telling, Palette], Cell]:
    def at(telling: Telling, colours: Palette) -> Cell:
        return f"{telling.at.astimezone(zone):%H:%M:%S}", colours.dim

    return at


def _issued_step(telling: Telling, colours: Palette) -> Cell:
    return f"{telling.step or '-':>4}", colours.dim


def _action(telling: Telling, colours: Palette) -> Cell:
    return telling.fate.intervention.action.value, colours.strong


def _by(telling: Telling, colours: Palette) -> Cell:
    return author(telling.fate.intervention), colours.text


_WAYS: Mapping[InterventionStatus, str] = {
    InterventionStatus.ISSUED: "… not yet",
    InterventionStatus.HELD: "? needs approval",
    InterventionStatus.APPROVED: "… approved",
    InterventionStatus.REJECTED: "✗ rejected",
    InterventionStatus.EXPIRED: "⊘ came too late",
    InterventionStatus.DELIVERED: "» delivered",
}


def _arrived(zone: tzinfo | None) -> Callable[[Telling, Palette], Cell]:
    def arrived(telling: Telling, colours: Palette) -> Cell:
        if telling.delivered_step is not None and telling.stamped_at is not None:
            step = "" if telling.earlier else f" step {telling.delivered_step}"
            return f"» {telling.stamped_at.astimezone(zone):%H:%M:%S}{step}", colours.good
        held = telling.fate.status is InterventionStatus.HELD
        return _WAYS[telling.fate.status], colours.warn if held else colours.dim

    return arrived


def _outcome(telling: Telling, colours: Palette) -> Cell:
    reason = because(telling.fate.reason)
    match telling.fate.outcome:
        case None:
            return "-", colours.dim
        case Outcome.RECOVERED:
            return f"✓ recovered{reason}", colours.good
        case Outcome.NO_EFFECT:
            return f"= no effect{reason}", colours.warn
        case Outcome.MADE_WORSE:
            return f"✗ made worse{reason}", colours.bad


def _message(telling: Telling, colours: Palette) -> Cell:
    what = telling.fate.intervention
    said = brief(f"{what.message}{in_brackets(terms_words(what.terms))}")
    return said or "-", colours.text


Check = Acceptance | Feedback
"""What was said of the result: by a check, by a person, or by what became of it."""


def checks() -> Facet[Check]:
    """The acceptance checks that were run, with what they said, then the verdicts."""
    return Facet(
        [
            Column(title="result", width=8, rank=0, draw=_verdict),
            Column(title="check", width=20, rank=0, draw=_check, grow=1),
            Column(title="detail", width=20, rank=1, draw=_detail, grow=1),
        ],
        id="checks",
        detail=detail,
        empty="No acceptance check was run yet: they are run when the worker says it is done.",
    )


def _verdict(check: Check, colours: Palette) -> Cell:
    if isinstance(check, Feedback):
        sign, tone = ("✓ accept", Tone.GOOD) if check.accepted else ("✗ reject", Tone.WARN)
    else:
        sign, tone = ("✓ passed", Tone.GOOD) if check.passed else ("✗ FAILED", Tone.BAD)
    return sign, tone_style(tone, colours)


def _check(check: Check, colours: Palette) -> Cell:
    if isinstance(check, Feedback):
        return f"result {verdict_words(check)}", colours.text
    return brief(check.check), colours.text


def _detail(check: Check, colours: Palette) -> Cell:
    said = check.comment if isinstance(check, Feedback) else check.detail
    return brief(said), colours.dim
