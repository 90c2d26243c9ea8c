"""Messages of the policy table, built from the summaries of the alerts. Pure."""

from dataclasses import dataclass, field

from midwatch_monitor.records import Action, Alert, Checkpoint, Diagnosis, Terms
from midwatch_supervisor.decide.context import ConcurrentEdit
from midwatch_supervisor.decide.diagnosis import RefusedCalls, RepeatedFailure
from midwatch_supervisor.present.numbers import grant_text, steps_text
from midwatch_supervisor.present.text_line import asked_words, brief

_HELP = "explicit_escalation"
_ADVICE = {
    _HELP: "Write down what exactly you need and what you have ruled out; try the "
    "smallest next act that would tell more, and report what it showed.",
    "low_confidence": "Name what you are least sure of and check that first, with a command whose "
    "result can prove you wrong.",
    "declining_confidence": "Name what changed since you were more confident, and check that "
    "first, with a command whose result can prove you wrong.",
    "multiple_blockers": "Take the one blocker that the others depend on and work only on that; "
    "say which one it is.",
    "stalled_progress": "Do not repeat what you did since your last progress: say what kept it "
    "from working, then take a smaller act whose result you can check.",
    "missed_checkpoint": "Call `reflect` now with your true progress, confidence and blockers, "
    "then go on.",
}
_ANY_ADVICE = (
    "Stop repeating it: read the last output again and state the cause before the next act."
)

_LAST = frozenset({Action.ASK_OPERATOR, Action.STOP})
"""Actions whose message a person reads."""
_OWED = {
    "report_error": "The worker does not analyse the failure with `report_error`",
    "check_plan": "The worker does not look at its plan with `check_plan`",
}
"""What a worker must do before it may continue but does not, by the tool that a refusal names."""
_LOOPS = frozenset(
    {
        "same_failure",
        "repeated_edits",
        "redundant_steps",
        "repeated_call",
        "cycle",
        "fruitless_steps",
        "error_streak",
        "revert_churn",
        "stalled_progress",
        "missed_checkpoint",
    }
)
"""Rules about work that makes no progress or is not reported; a repeated failure explains them."""

_BY_CAUSE = {
    Diagnosis.MISSING_DEPENDENCY: "Something that it needs is not there. Do not repeat the call: "
    "find out by which name it is known here, or do without it; if neither is possible, call "
    "`reflect` with `escalate` and name exactly what must be installed.",
    Diagnosis.ENVIRONMENT: "What stands in the way lies outside your files. Do not go round it "
    "again: do what does not depend on it, and call `reflect` with `escalate` and the exact "
    "message if nothing else is left.",
    Diagnosis.BUDGET: "The budget ends before the work does. Do the least that passes the "
    "acceptance checks, leave out the rest, and use `request_budget` if that cannot do.",
    Diagnosis.NEEDS_SPLIT: "This is too much for one plan step. Finish the smallest part of it "
    "that can be checked by itself, and say what is left.",
    Diagnosis.WRONG_WORKER: "You lack a tool or a permission for this. Do what you can do with "
    "what you have, and name what is missing.",
}
"""Advice for causes that say more than the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSubject:
    """The subject of a message."""

    alerts: tuple[Alert, ...]
    cause: Diagnosis = Diagnosis.UNKNOWN
    earlier: tuple[str, ...] = ()
    """What was done since the last recovery, to be read by a person."""
    terms: Terms = field(default_factory=Terms)
    concurrent: tuple[ConcurrentEdit, ...] = ()
    failure: RepeatedFailure | None = None
    """The failure that the attempt keeps hitting, if known."""
    refused: RefusedCalls | None = None
    """Calls that the gate refused recently."""
    failed_before: str = ""
    """Acceptance check that the previous attempt failed; empty if unknown."""
    report: Checkpoint | None = None
    """The worker's last report."""


def message(action: Action, matter: MessageSubject) -> str:
    """Return the text that goes with an action; empty only for `observe`."""
    seen = " ".join(_sentence(_summary(action, alert, matter)) for alert in matter.alerts)
    seen = f"{_repetition_text(action, matter)}{seen or 'The attempt needs attention.'}"
    match action:
        case Action.NUDGE:
            return f"{seen} {advice(matter)}"
        case Action.REPLAN if matter.cause is Diagnosis.NEEDS_SPLIT:
            return (
                f"{seen} That is more than one plan step holds. Write the plan for what is left "
                "anew, in smaller steps that can each be checked, and go on with the first."
            )
        case Action.REPLAN:
            return (
                f"{seen} The current approach does not get there. Stop, and write a new plan for "
                "what is left: another approach that repeats nothing of this one, in steps that "
                "can each be checked, before you change anything else."
            )
        case Action.RESTART:
            return f"{seen} {_restart_advice(matter)}"
        case Action.ASK_OPERATOR:
            return (
                f"{seen} {_cause_text(matter)}{_tried_words(matter.earlier)} What should be done?"
            )
        case Action.STOP:
            return f"{seen} {_cause_text(matter)}{_tried_words(matter.earlier)}"
        case _:
            return _with_terms(action, seen, matter.terms)


def _summary(action: Action, alert: Alert, matter: MessageSubject) -> str:
    """Return an alert's summary; if the worker asks for help, a person also reads the reasons."""
    if alert.key.rule != _HELP:
        return alert.summary or alert.key.rule
    if action in {Action.NUDGE, Action.REPLAN}:
        return "You asked for help"
    report = matter.report
    reasons = asked_words(report) if report else ""
    return ": ".join(filter(None, (alert.summary, reasons)))


def _with_terms(action: Action, seen: str, terms: Terms) -> str:
    """Return the text of an action that mainly states its terms."""
    match action:
        case Action.GRANT_BUDGET:
            return (
                f"{seen} You are given {grant_text(terms.grant)} more. Use it for the least that "
                "passes the acceptance checks."
            )
        case Action.SWITCH_MODEL:
            return (
                f"{seen} Another model goes on from here. Look at the state of the work as if you "
                "had not seen it, and state the cause of the last failure before the next act."
            )
        case Action.SPLIT:
            titles = "; ".join(part.title for part in terms.parts)
            return f"{seen} The task is split into smaller ones: {titles}."
        case _:
            return ""


def advice(matter: MessageSubject) -> str:
    """Return advice on the alerts: a sentence or two for the cause or each rule, none twice."""
    about = {alert.key.rule for alert in matter.alerts}
    if matter.cause in _BY_CAUSE and about != {"workspace_conflict"}:
        return _BY_CAUSE[matter.cause]
    lines = [_advice_on(alert, matter) for alert in matter.alerts] or [_ANY_ADVICE]
    return " ".join(dict.fromkeys(lines))


def _advice_on(alert: Alert, matter: MessageSubject) -> str:
    if matter.failure is not None and alert.key.rule in _LOOPS:
        file = matter.failure.file
        if matter.failure.edit_failure:
            return (
                f"`{file}` is unchanged, so the result is, too: make the edit succeed before you "
                "run it again."
            )
        stop = f"Stop editing `{file}`" if file else "Do not run it again as it is"
        return (
            f"{stop}: read that output once more, and say what causes this failure and why what "
            "you did last did not reach it, before the next change."
        )
    if matter.refused is not None and alert.key.rule in _LOOPS:
        return "Do what the refusal asks for before any other call: nothing runs until then."
    if alert.key.rule == "repeated_edits":
        file = f"`{alert.key.subject}`" if alert.key.subject else "the same file"
        return (
            f"Stop editing {file}: run what checks it, read the whole output, and state the cause "
            "of what fails before the next change."
        )
    if alert.key.rule == "workspace_conflict":
        elders = (e for e in matter.concurrent if e.path == alert.key.subject and e.elder)
        elder = next(elders, None)
        who = f"in task {elder.task}" if elder else "in another task"
        return (
            f"Another worker is at work on `{alert.key.subject}` {who}: leave it to them, undo "
            "your changes of it, and work on what does not touch it."
        )
    return _ADVICE.get(alert.key.rule, _ANY_ADVICE)


def _repetition_text(action: Action, matter: MessageSubject) -> str:
    """Describe what the attempt keeps repeating, in sentences that precede the alerts."""
    if not any(alert.key.rule in _LOOPS for alert in matter.alerts):
        return ""
    failed = "" if matter.failure is None else _failure_text(matter.failure)
    if matter.refused is None:
        return failed
    if action in _LAST:
        before = matter.failed_before if matter.failure is None else ""
        failed = f"The attempt before this one failed `{brief(before)}`. " if before else failed
        return f"{failed}{_owed_text(matter.refused)}"
    steps, told = steps_text(matter.refused.steps), _sentence(matter.refused.told)
    return f"{failed}Calls were refused before they ran ({steps}): {told} "


def _owed_text(refused: RefusedCalls) -> str:
    """Tell a person what the worker fails to do; quote the refusal only if that is unknown."""
    steps = steps_text(refused.steps)
    if owed := _OWED.get(refused.asked):
        return f"{owed}, so {len(refused.steps)} of its calls were refused ({steps}). "
    return (
        "The worker's calls are refused because it does not first do what it is asked "
        f'({steps}). It was told: "{_sentence(refused.told)}" '
    )


def _failure_text(failure: RepeatedFailure) -> str:
    file, refusal = failure.file, failure.edit_failure
    meanwhile = f", with `{file}` edited in between" if file and not refusal else ""
    steps = steps_text(failure.steps)
    again = (
        f"fails the same way again and again ({steps})"
        if len(failure.steps) > 1
        else f"failed ({steps}) and is called again and again"
    )
    failed = f"Each edit of `{file}` in between failed: {_sentence(refusal)} " if refusal else ""
    return f"`{failure.check}` {again}{meanwhile}: {_sentence(failure.told)} {failed}"


def _restart_advice(matter: MessageSubject) -> str:
    if matter.terms.after:
        return (
            f"Task {matter.terms.after} worked on the same files; its work is now part of your "
            "workspace. Build on it."
        )
    return (
        "Do not repeat that approach. State the cause of that failure first, then choose another."
    )


def _cause_text(matter: MessageSubject) -> str:
    """Name the cause for a person; empty if it is unknown or a false alarm."""
    unsaid = {Diagnosis.UNKNOWN, Diagnosis.FALSE_ALARM}
    cause = matter.cause.replace("_", " ")
    return "" if matter.cause in unsaid else f"Likely cause: {cause}. "


def _tried_words(earlier: tuple[str, ...]) -> str:
    return f"Tried so far: {', '.join(earlier)}." if earlier else "Nothing has been tried so far."


def _sentence(text: str) -> str:
    # No capital letter: a summary may begin with the name of a file.
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
