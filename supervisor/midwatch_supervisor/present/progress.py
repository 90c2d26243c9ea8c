"""A run's lines as a person reads them while it goes on. Pure; nothing is said by colour alone."""

from collections.abc import Iterable
from datetime import tzinfo

from midwatch_monitor.records import (
    AlertState,
    Ending,
    EscalationState,
    Lifecycle,
    Resolution,
    Severity,
    StepKind,
)
from midwatch_monitor.state.intervention import InterventionStatus
from midwatch_supervisor.present.line import (
    AlertLine,
    AttemptLine,
    CheckpointLine,
    DecisionLine,
    DoneLine,
    EscalationLine,
    InterventionLine,
    Line,
    StepLine,
    TaskLine,
    TaskSum,
)
from midwatch_supervisor.present.spelling import in_brackets, steps_words

_WIDTH = 160
"""Characters that a text of somebody else's may take on a line."""
_WAY = {
    InterventionStatus.ISSUED: "",
    InterventionStatus.HELD: " waits for approval",
    InterventionStatus.APPROVED: " approved",
    InterventionStatus.REJECTED: " rejected",
    InterventionStatus.DELIVERED: " delivered",
    InterventionStatus.EXPIRED: " came too late",
}


def text(line: Line, zone: tzinfo | None = None) -> str | None:
    """One line for people, its time in `zone` (default: this machine's), or `None`.

    Nothing is said of alerts that do not fire yet or only end with their attempt, nor of an
    escalation once it is open.
    """
    told = _told(line)
    if told is None:
        return None
    who = line.task if line.number is None else f"{line.task}#{line.number}"
    return f"{line.at.astimezone(zone):%H:%M:%S} {who}: {told}"


def ended(line: DoneLine) -> tuple[str, ...]:
    """The end of a run for people, one line a task."""
    return tuple(_sum(task) for task in line.tasks)


def reserved(task: str, reservations: Iterable[str]) -> str:
    """A completed task, by its name, with its reservations."""
    return f"{task}: {Lifecycle.COMPLETED}, with reservations: {short('; '.join(reservations))}"


def short(text: str, width: int = _WIDTH) -> str:
    """A text on one line, cut at its end."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else f"{flat[: width - 1]}…"


def described(line: StepLine | CheckpointLine) -> str:
    """A step on one line, without its time."""
    if isinstance(line, CheckpointLine):
        return _checkpoint(line)
    verdict = {True: " ok", False: " FAILED", None: ""}[line.ok]
    if line.exit_code:
        verdict = f" FAILED (exit code {line.exit_code})"
    if line.kind is StepKind.MESSAGE:
        return f"step {line.step}: says {short(line.text)}"
    what = ", ".join(line.edits) if line.edits else line.args
    return short(f"step {line.step}: {line.tool} {what}") + verdict


def _told(line: Line) -> str | None:
    match line:
        case TaskLine():
            return _task(line)
        case AttemptLine():
            by = " with ".join(each for each in (line.worker, line.model) if each)
            status = "split" if line.ending is Ending.SPLIT else line.status.value
            return " ".join(each for each in (status, _because(line.reason, by)) if each)
        case StepLine() | CheckpointLine():
            return described(line)
        case AlertLine():
            return _alert(line)
        case EscalationLine():
            rules = ", ".join(line.rules)
            return f"ESCALATION {line.id}: {rules}" if line.state is EscalationState.OPEN else None
        case DecisionLine():
            return _decision(line)
        case InterventionLine():
            return _intervention(line)


def _task(line: TaskLine) -> str:
    checks = line.acceptance
    of = f" ({checks.passed} of {checks.total} checks pass)" if checks.total else ""
    return f"{line.status.value}{of}{_reason(line.reason)}"


def _because(reason: str, by: str) -> str:
    return f"({by}){_reason(reason)}" if by else _reason(reason).lstrip()


def _reason(reason: str) -> str:
    return f": {short(reason)}" if reason else ""


def _checkpoint(line: CheckpointLine) -> str:
    blockers = f", blocked by {'; '.join(line.blockers)}" if line.blockers else ""
    told = (
        f"step {line.step}: reflects: {line.progress_percent} % of plan step {line.plan_step}, "
        f"confidence {line.confidence} %, {line.decision}{blockers}"
    )
    return short(told)


def _alert(line: AlertLine) -> str | None:
    about = f" ({line.subject})" if line.subject else ""
    if line.state is AlertState.FIRING:
        mark = "NOTICE" if line.severity is Severity.NOTICE else f"ALERT {line.severity}"
        return f"{mark} {line.rule}{about} at step {line.step}: {short(line.summary)}"
    if line.state is AlertState.RESOLVED and line.resolution is not Resolution.ENDED:
        return f"resolved: {line.rule}{about} at step {line.step}"
    return None


def _decision(line: DecisionLine) -> str:
    author = in_brackets(line.author)
    terms = in_brackets(short(line.terms))
    steps = in_brackets(short(steps_words(line.steps)))
    told = f"DECISION {line.action}{terms} by {line.by}{author}: {line.diagnosis}{steps}"
    if line.rationale:
        told = f"{told}; {short(line.rationale)}"
    return f"{told}; REFUSED{_reason(line.refused)}" if line.refused else told


def _intervention(line: InterventionLine) -> str:
    if line.outcome is not None:
        return f"OUTCOME of {line.action} ({line.id}): {line.outcome}{_reason(line.reason)}"
    by = f" by {line.author or line.by}"
    told = f"INTERVENTION {line.action} ({line.id}){by}{_WAY[line.state]}"
    fresh = line.state in {InterventionStatus.ISSUED, InterventionStatus.HELD}
    if not fresh:
        return told
    return f"{told}{in_brackets(short(line.terms))}{_reason(line.message)}"


def _sum(task: TaskSum) -> str:
    checks = f"{task.acceptance.passed} of {task.acceptance.total} checks pass"
    return (
        f"{task.id}: {task.status.value}, {checks}, {_count(task.attempts, 'attempt')}, "
        f"{_count(task.alerts, 'alert')}, {_count(task.interventions, 'intervention')}, "
        f"{task.recovered} recovered"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
