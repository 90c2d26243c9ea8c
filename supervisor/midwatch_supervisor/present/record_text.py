"""What each record of an attempt says to a person: a line, and all of it. Pure.

Every text is harmless for a terminal: what agents wrote has lost its escapes and overrides.
"""

from collections.abc import Iterable, Mapping

from pydantic import TypeAdapter, ValidationError

from midwatch_monitor.records import (
    Acceptance,
    Alert,
    AlertKey,
    AttemptTransition,
    Change,
    Checkpoint,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Ending,
    Escalation,
    EscalationState,
    Fault,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Plan,
    Record,
    Severity,
    Snapshot,
    Step,
    StepKind,
)
from midwatch_supervisor.present import accounts
from midwatch_supervisor.present import learning_text as taught
from midwatch_supervisor.present.plain import plain
from midwatch_supervisor.present.signs import LIFECYCLE_SIGNS, SEVERITY_SIGNS, SPLIT_SIGN
from midwatch_supervisor.present.spelling import (
    in_brackets,
    plan_lines,
    saved_words,
    steps_words,
    terms_words,
)
from midwatch_supervisor.present.text_line import LEARNING, NODE, Told, Tone, because, brief

_ARGUMENTS = TypeAdapter(dict[str, object])
_MAX_ARGS = 10_000
"""Characters of arguments that are looked into for a line."""


_TONES: Mapping[Severity, Tone] = {
    Severity.NOTICE: Tone.DIM,
    Severity.WARNING: Tone.WARN,
    Severity.CRITICAL: Tone.BAD,
}
_LIFECYCLES: Mapping[Lifecycle, Tone] = {
    Lifecycle.INPUT_REQUIRED: Tone.WARN,
    Lifecycle.COMPLETED: Tone.GOOD,
    Lifecycle.FAILED: Tone.BAD,
}
_DELIVERIES: Mapping[DeliveryState, tuple[str, Tone]] = {
    DeliveryState.APPROVED: ("✓", Tone.GOOD),
    DeliveryState.REJECTED: ("✗", Tone.WARN),
    DeliveryState.DELIVERED: ("»", Tone.ACCENT),
    DeliveryState.EXPIRED: ("⊘", Tone.DIM),
}
_OUTCOMES: Mapping[Outcome, tuple[str, Tone]] = {
    Outcome.RECOVERED: ("✓", Tone.GOOD),
    Outcome.NO_EFFECT: ("=", Tone.WARN),
    Outcome.MADE_WORSE: ("✗", Tone.BAD),
}


def line(record: Record, about: Intervention | None = None) -> Told:
    """A record as one line.

    `about` is the intervention that a stamp or an outcome is of, or that answers a petition.
    """
    match record:
        case Step(checkpoint=Checkpoint() as checkpoint):
            return Told(sign="◆", what="reflects", text=_report(checkpoint), tone=Tone.ACCENT)
        case Step() as step:
            return _step(step)
        case Alert() as alert:
            return _alert(alert)
        case AttemptTransition(ending=Ending.SPLIT) as state:
            text = f"split{because(state.reason)}"
            return Told(sign=SPLIT_SIGN, what="status", text=text, tone=Tone.DIM)
        case AttemptTransition() as state:
            text = f"{state.lifecycle.value}{because(state.reason)}"
            return _standing(state.lifecycle, text)
        case Change(node=str() as node):
            return Told(sign="→", what="node", text=f"goes on on {brief(node)}", tone=Tone.WARN)
        case Snapshot() as saved:
            return Told(sign="·", what="saved", text=saved_words(saved), tone=Tone.DIM)
        case Change() as change:
            lifecycle = change.lifecycle or Lifecycle.WORKING
            return _standing(lifecycle, lifecycle.value)
        case Plan() as plan:
            return Told(sign="≡", what="plan", text=_plan(plan), tone=Tone.DIM)
        case _:
            return _handled(record, about)


def _handled(record: Record, about: Intervention | None) -> Told:
    match record:
        case Escalation() as asked:
            rules = brief(_rules(asked.alerts))
            text = f"{asked.id} {asked.state.value}: {rules}{because(asked.reason)}"
            tone = Tone.WARN if asked.state is EscalationState.OPEN else Tone.DIM
            return Told(sign="!", what="escalation", text=text, tone=tone)
        case Decision() as made:
            return _decided(made)
        case Intervention() as issued:
            held = "waits for approval" if issued.needs_approval else "issued"
            terms = brief(in_brackets(terms_words(issued.terms)))
            what = f"{issued.action} {terms}".rstrip()
            text = f"{what} {held}, by {author(issued)}{because(issued.message)}"
            return Told(sign="→", what="message", text=text, tone=Tone.ACCENT)
        case Delivery() as stamp:
            sign, tone = _DELIVERIES[stamp.state]
            by = f" by {brief(stamp.author)}" if stamp.author else ""
            text = f"{_action(about)} {stamp.state.value}{by}{because(stamp.comment)}"
            return Told(sign=sign, what=stamp.state.value, text=text, tone=tone)
        case OutcomeReport() as judged:
            sign, tone = _OUTCOMES[judged.outcome]
            text = f"{_action(about)}: {judged.outcome.value}{because(judged.reason)}"
            return Told(sign=sign, what="outcome", text=text, tone=tone)
        case _:
            return _verdict(record, about)


def _decided(made: Decision) -> Told:
    by = brief(made.author or made.by.value)
    terms = brief(in_brackets(terms_words(made.terms)))
    what = f"{made.action} {terms}".rstrip()
    cause = f"{made.diagnosis}{in_brackets(steps_words(made.steps))}"
    if made.refused:
        text = f"REFUSED: {what} by {by}{because(made.refused)}"
        return Told(sign="✗", what="decision", text=text, tone=Tone.WARN)
    text = f"{what} by {by}: {cause}{because(made.rationale)}"
    return Told(sign="§", what="decision", text=text, tone=Tone.ACCENT)


def _verdict(record: Record, about: Intervention | None) -> Told:
    match record:
        case Acceptance() as check:
            sign, tone = ("✓", Tone.GOOD) if check.passed else ("✗", Tone.BAD)
            verdict = "passed" if check.passed else "FAILED"
            return Told(sign=sign, what="check", text=f"{verdict} {brief(check.check)}", tone=tone)
        case Fault(part=part, error=error) if part == NODE:
            return Told(sign="✗", what="node", text=brief(error), tone=Tone.WARN)
        case Fault() as fault:
            part = fault.part if fault.part.startswith(LEARNING) else f"{fault.part} of the watch"
            text = f"{brief(part)} failed: {brief(fault.error)}"
            return Told(sign="✗", what="fault", text=text, tone=Tone.BAD)
        case _:
            told = accounts.line(record, about) or taught.line(record)
            return told or Told(sign=" ", what=type(record).__name__.lower(), text="")


def author(issued: Intervention) -> str:
    """By whom an intervention is: the name with the role, where there is a name."""
    return brief(f"{issued.author} ({issued.by})" if issued.author else issued.by.value)


def _step(step: Step) -> Told:
    if step.kind is StepKind.MESSAGE:
        return Told(sign="“", what="says", text=brief(step.text))
    failed = step.ok is False or bool(step.exit_code)
    code = f" (exit code {step.exit_code})" if step.exit_code else ""
    verdict = f"FAILED{code}: " if failed else ""
    object = ", ".join(edit.path for edit in step.edits) or step.path or spelled(step.args)
    return Told(
        sign="✗" if failed else "·",
        what=brief(step.tool) or "tool",
        text=f"{verdict}{brief(object)}",
        tone=Tone.WARN if failed else Tone.PLAIN,
    )


def spelled(args: str) -> str:
    """Arguments for a line: of a JSON object only what is set, one value alone without its name."""
    try:
        found = _ARGUMENTS.validate_json(args) if len(args) <= _MAX_ARGS else {}
    except ValidationError:
        return args
    told = {name: value for name, value in found.items() if value not in (None, "")}
    if len(told) == 1:
        return str(*told.values())
    return ", ".join(f"{name}: {value}" for name, value in told.items()) or args


def _report(told: Checkpoint) -> str:
    blockers = f", blocked by {'; '.join(told.blockers)}" if told.blockers else ""
    notes = f": {told.notes}" if told.notes else ""
    return brief(
        f"progress {told.progress_percent} % of plan step {told.plan_step}, "
        f"confidence {told.confidence} %, {told.decision}{blockers}{notes}"
    )


def _alert(alert: Alert) -> Told:
    about = f" ({brief(alert.key.subject)})" if alert.key.subject else ""
    ended = f" ({alert.resolution})" if alert.resolution else ""
    head = f"{alert.state.value}{ended} {alert.severity} {brief(alert.key.rule)}{about}"
    text = f"{head}{because(alert.summary)}"
    if not alert.firing:
        return Told(sign="○", what="alert", text=text, tone=Tone.DIM)
    sign = SEVERITY_SIGNS[alert.severity]
    return Told(sign=sign, what="alert", text=text, tone=_TONES[alert.severity])


def _standing(lifecycle: Lifecycle, text: str) -> Told:
    tone = _LIFECYCLES.get(lifecycle, Tone.DIM)
    return Told(sign=LIFECYCLE_SIGNS[lifecycle], what="status", text=text, tone=tone)


def _plan(plan: Plan) -> str:
    count = len(plan.steps)
    now = plan.steps[plan.current - 1].title if plan.current <= count else "all done"
    where = f"plan step {min(plan.current, count)} of {count}"
    return f"revision {plan.revision}, {where}: {brief(now)}"


def _rules(keys: Iterable[AlertKey]) -> str:
    return ", ".join(dict.fromkeys(key.rule for key in keys))


def _action(about: Intervention | None) -> str:
    return about.action.value if about else "an act"


def detail(record: Record, about: Intervention | None = None) -> str:
    """All that a record says, in paragraphs, each under its name."""
    return spelled_out(_parts(record, about))


def spelled_out(parts: Iterable[tuple[str, str]]) -> str:
    """Texts under their names, harmless for a terminal; what is empty is left out."""
    return plain("\n\n".join(f"{name}:\n{text}" for name, text in parts if text))


_Parts = Iterable[tuple[str, str]]


def _parts(record: Record, about: Intervention | None) -> _Parts:
    match record:
        case Step() as step:
            return _of_step(step)
        case Alert() as alert:
            return _of_alert(alert)
        case Decision() as made:
            return (
                ("decision", f"{made.action} by {made.by}, {made.diagnosis}"),
                ("refused", made.refused),
                ("evidence", steps_words(made.steps)),
                ("terms", terms_words(made.terms)),
                ("rationale", made.rationale),
                ("message", made.message),
                ("plan", _numbered(made.plan)),
            )
        case Intervention() as issued:
            return _of_intervention(issued)
        case Acceptance() as check:
            verdict = "passed" if check.passed else "FAILED"
            return ("check", check.check), ("result", verdict), ("detail", check.detail)
        case Plan() as plan:
            return ((f"plan, revision {plan.revision}", "\n".join(plan_lines(plan))),)
        case Delivery() | OutcomeReport():
            told = line(record, about)
            said = _of_intervention(about) if about else ()
            return (told.what, told.text), *said
        case _:
            told = line(record, about)
            parts = accounts.parts(record, about) or taught.parts(record)
            return parts or ((told.what, told.text),)


def _of_step(step: Step) -> _Parts:
    checkpoint = step.checkpoint
    verdict = {True: "ok", False: "failed", None: ""}[step.ok]
    code = "" if step.exit_code is None else f"exit code {step.exit_code}"
    cost = f"{step.cost_usd:g} US dollars" if step.cost_usd else ""
    tokens = f"{step.tokens} tokens" if step.tokens else ""
    facts = (step.tool or step.kind.value, verdict, code, tokens, cost)
    return (
        (f"step {step.number}", ", ".join(each for each in facts if each)),
        ("report", _whole(checkpoint) if checkpoint else ""),
        ("arguments", "" if checkpoint else step.args),
        ("changed", "\n".join(edit.path for edit in step.edits)),
        ("said", step.text),
        ("output", step.output),
    )


def _whole(told: Checkpoint) -> str:
    left = told.estimated_steps_left
    lines = (
        f"plan step {told.plan_step}, progress {told.progress_percent} %, "
        f"confidence {told.confidence} %, {told.decision}",
        *(f"blocked by: {blocker}" for blocker in told.blockers),
        *(f"done by its own word: {path}" for path in told.files_done),
        "" if left is None else f"steps left, as it thinks: {left}",
        told.notes,
    )
    return "\n".join(each for each in lines if each)


def _of_alert(alert: Alert) -> _Parts:
    ended = f" ({alert.resolution})" if alert.resolution else ""
    return (
        ("alert", f"{alert.severity} {alert.key.rule}, {alert.state}{ended} at step {alert.step}"),
        ("about", alert.key.subject),
        ("summary", alert.summary),
        ("value", f"{alert.value:g}"),
        ("since step", str(alert.since_step)),
        ("evidence", f"steps {', '.join(map(str, alert.evidence))}" if alert.evidence else ""),
    )


def _of_intervention(issued: Intervention) -> _Parts:
    held = ", waits for approval" if issued.needs_approval else ""
    return (
        ("act", f"{issued.action} by {author(issued)}{held}"),
        ("terms", terms_words(issued.terms)),
        ("because of", "" if issued.diagnosis is Diagnosis.UNKNOWN else issued.diagnosis.value),
        ("message", issued.message),
        ("plan", _numbered(issued.plan)),
        ("meant for", _rules(issued.answers)),
    )


def _numbered(titles: Iterable[str]) -> str:
    return "\n".join(f"{number}. {title}" for number, title in enumerate(titles, start=1))
