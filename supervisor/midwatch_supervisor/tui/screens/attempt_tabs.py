"""The tabs of an attempt's view: timeline, alerts, plan, diff, messages, acceptance checks."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from midwatch_monitor.records import (
    Acceptance,
    Feedback,
    Outcome,
    Plan,
    PlanStep,
    PlanStepState,
    Severity,
    Step,
)
from midwatch_monitor.state.attempt_details import AlertStatus
from midwatch_monitor.state.intervention import InterventionState, InterventionStatus
from midwatch_supervisor.present.intervention_text import author_text, terms_text
from midwatch_supervisor.present.learning_text import verdict_text
from midwatch_supervisor.present.record_text import line
from midwatch_supervisor.present.text_line import (
    SEVERITY_SIGNS,
    Tone,
    because,
    brief,
    in_brackets,
    paragraphs,
    plain,
)
from midwatch_supervisor.tui.state.attempt_timeline import (
    KINDS,
    AlertTabLine,
    AttemptTimeline,
    TimelineItem,
    intervention_detail,
)
from midwatch_supervisor.tui.widgets.palette import Cell, Ink, tone_ink
from midwatch_supervisor.tui.widgets.table import Column, Draw, Table, clock, time_column

EVIDENCE = "◀"
"""Marks steps that are evidence of an alert."""


class TimelineTab(Table[TimelineItem]):
    """Steps, checkpoints, alerts and interventions, in journal order."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        def marked(item: TimelineItem) -> Cell:
            of_step = isinstance(item.record, Step) and item.record.number in self.evidence
            return (EVIDENCE if of_step else " "), "warn"

        def said(part: str) -> Draw[TimelineItem]:
            return lambda item: (getattr(item.told, part), tone_ink(item.told.tone))

        super().__init__(
            [
                time_column("time", 2, lambda item: item.at, now),
                Column("step", 4, 1, lambda item: (f"{item.step or '-':>4}", "dim")),
                Column("", 1, 0, marked),
                Column("", 1, 0, said("sign")),
                Column("what", 12, 1, said("what")),
                Column("", 20, 0, said("text"), grow=1),
            ],
            name="timeline",
            nothing="Nothing has happened yet.",
            text=lambda item: item.words,
            kinds=KINDS,
            searches=True,
            key=lambda item: item.id,
            detail=lambda item: item.detail,
            follow=True,
        )
        self.evidence: Collection[int] = ()
        """Steps marked as an alert's evidence."""

    def jump(self, timeline: AttemptTimeline, step: int) -> bool:
        """Put the cursor on a step; return whether the timeline has it.

        A filter that hides the step is cleared.
        """
        index = timeline.index_of(step)
        if index is None:
            return False
        self.take(timeline.items)
        item = timeline.items[index]
        if item not in self.items:
            self.close_filter()
        self.see(item.id)
        return True


_ALERT_STYLES: Mapping[AlertStatus, Ink] = {
    AlertStatus.ACKNOWLEDGED: "text",
    AlertStatus.SILENCED: "dim",
    AlertStatus.RESOLVED: "good",
    AlertStatus.ENDED: "dim",
    AlertStatus.PENDING: "dim",
}
"""A firing alert has the style of its severity."""


def alerts_tab(now: Callable[[], datetime]) -> Table[AlertTabLine]:
    """Return the table of alerts in their current state, each with its changes below."""
    return Table(
        [
            Column("", 1, 0, _alert_sign),
            Column("state", 12, 0, _alert_state),
            time_column("since", 2, lambda line: line.at, now),
            Column("step", 4, 1, lambda line: (f"{line.alert.step or '-':>4}", "dim")),
            Column("severity", 8, 3, lambda line: (line.alert.severity.value, "text")),
            Column("rule", 20, 0, _rule_cell),
            Column("evidence", 10, 4, _evidence_cell, grow=1),
            Column("summary", 12, 1, _summary_cell, grow=3),
        ],
        name="alerts",
        searches=True,
        nothing="No alerts yet.",
        key=lambda line: (line.alert.key, line.change, line.at),
        detail=lambda line: line.detail,
    )


def _alert_ink(line: AlertTabLine) -> Ink:
    critical = line.alert.severity is Severity.CRITICAL
    return _ALERT_STYLES.get(line.status, "bad" if critical else "warn")


def _alert_sign(line: AlertTabLine) -> Cell:
    if line.change:
        return " ", "dim"
    return SEVERITY_SIGNS[line.alert.severity], _alert_ink(line)


def _alert_state(line: AlertTabLine) -> Cell:
    if line.change:
        return f"  {line.status}", "dim"
    return line.status.value, _alert_ink(line)


def _rule_cell(line: AlertTabLine) -> Cell:
    return "" if line.change else brief(line.alert.key.rule), "strong"


def _evidence_cell(line: AlertTabLine) -> Cell:
    return ", ".join(map(str, line.alert.evidence)) or "-", "text"


def _summary_cell(line: AlertTabLine) -> Cell:
    ended = f"({line.alert.resolution}) " if line.alert.resolution else ""
    return f"{ended}{brief(line.alert.summary)}", "dim" if line.change else "text"


NumberedStep = tuple[int, PlanStep, bool]
"""One plan step with its number, and whether it is the current one."""


def numbered_steps(plan: Plan) -> tuple[NumberedStep, ...]:
    steps = enumerate(() if plan.bare else plan.steps, start=1)
    return tuple((place, step, place == plan.current) for place, step in steps)


def plan_tab() -> Table[NumberedStep]:
    return Table(
        [
            Column("no", 3, 1, lambda each: (f"{each[0]:>3}", "dim")),
            Column("state", 9, 0, _plan_state),
            Column("plan step", 20, 0, _plan_title, grow=2),
            Column("conf", 4, 3, lambda each: (_value_text(each[1].confidence, "3", "%"), "text")),
            Column("share", 5, 3, lambda each: (_value_text(each[1].requests, "5"), "text")),
            Column("files", 12, 4, lambda each: (brief(", ".join(each[1].files)), "dim"), 1),
            Column("flag", 12, 2, _flag_cell, grow=1),
        ],
        name="plan",
        searches=True,
        nothing="No plan.",
        detail=_plan_detail,
    )


_PLAN_STATES: Mapping[PlanStepState, Cell] = {
    PlanStepState.DONE: ("✓ done", "good"),
    PlanStepState.SKIPPED: ("⊘ skipped", "dim"),
    PlanStepState.OPEN: ("· open", "text"),
}


def _plan_state(each: NumberedStep) -> Cell:
    _, step, current = each
    return ("▶ now", "accent") if current else _PLAN_STATES[step.state]


def _plan_title(each: NumberedStep) -> Cell:
    _, step, current = each
    return brief(step.title), "strong" if current else "text"


def _value_text(value: int | None, width: str, unit: str = "") -> str:
    return "" if value is None else f"{value:>{width}}{unit}"


def _flag_cell(each: NumberedStep) -> Cell:
    flag = brief(each[1].flag)
    return (f"⚑ {flag}", "warn") if flag else ("", "dim")


def _plan_detail(each: NumberedStep) -> str:
    number, step, _ = each
    return paragraphs(
        (
            (f"plan step {number}", step.title),
            ("confidence", _value_text(step.confidence, "", " %")),
            ("share of model requests", _value_text(step.requests, "")),
            ("files to produce", "\n".join(step.files)),
            ("acceptance", "\n".join(step.acceptance)),
            ("finished with a flag", step.flag),
        )
    )


def messages_tab(attempt: int, now: Callable[[], datetime]) -> Table[InterventionState]:
    """Return the table of an attempt's interventions, with author, delivery and outcome."""

    def arrived(each: InterventionState) -> Cell:
        if each.delivered and each.stamped_at is not None:
            step = f" step {each.delivered_step}" if each.attempt == attempt else ""
            return (
                f"» {clock(each.stamped_at, each.issued_at.astimezone(now().tzinfo))}{step}",
                "good",
            )
        return _WAYS[each.status], "warn" if each.needs_approval else "dim"

    return Table(
        [
            time_column("time", 3, lambda each: each.issued_at, now),
            Column("step", 4, 4, lambda each: (f"{each.issued_step or '-':>4}", "dim")),
            Column("action", 12, 0, lambda each: (each.action.value, "strong")),
            Column("by", 12, 1, lambda each: (author_text(each.intervention), "text"), grow=1),
            Column("delivery", 18, 0, arrived),
            Column("outcome", 12, 0, _outcome_cell, grow=2),
            Column("message", 12, 2, _message_cell, grow=3),
        ],
        name="messages",
        searches=True,
        nothing="No interventions yet.",
        detail=intervention_detail,
        follow=True,
    )


_WAYS = {
    InterventionStatus.ISSUED: "… not yet",
    InterventionStatus.HELD: "? needs approval",
    InterventionStatus.APPROVED: "… approved",
    InterventionStatus.REJECTED: "✗ rejected",
    InterventionStatus.EXPIRED: "⊘ too late",
    InterventionStatus.DELIVERED: "» delivered",
}


_OUTCOMES: Mapping[Outcome, Cell] = {
    Outcome.RECOVERED: ("✓", "good"),
    Outcome.NO_EFFECT: ("=", "warn"),
    Outcome.MADE_WORSE: ("✗", "bad"),
}


def _outcome_cell(each: InterventionState) -> Cell:
    if each.outcome is None:
        return "-", "dim"
    sign, ink = _OUTCOMES[each.outcome]
    return f"{sign} {each.outcome}{because(each.reason)}", ink


def _message_cell(each: InterventionState) -> Cell:
    issued = each.intervention
    said = brief(f"{issued.message}{in_brackets(terms_text(issued.terms))}")
    return said or "-", "text"


CheckLine = Acceptance | Feedback
"""A statement about the result: by a check, by a person, or implied."""


def no_check_text(*, over: bool) -> str:
    """Return the text for an attempt without check results, depending on whether it is over."""
    if over:
        return "No acceptance checks were run."
    return "No acceptance checks yet: they run when the worker says it is done."


def checks_tab() -> Table[CheckLine]:
    """Return the table of executed acceptance checks, with their results, then the verdicts."""
    return Table(
        [
            Column("result", 8, 0, _verdict_cell),
            Column("check", 20, 0, _check_cell, grow=1),
            Column("detail", 20, 1, _check_detail, grow=1),
        ],
        name="checks",
        searches=True,
        nothing=no_check_text(over=False),
        detail=lambda check: line(check).detail,
    )


def _verdict_cell(check: CheckLine) -> Cell:
    if isinstance(check, Feedback):
        return ("✓ accept", "good") if check.accepted else ("✗ reject", "warn")
    return ("✓ passed", "good") if check.passed else ("✗ FAILED", "bad")


def _check_cell(check: CheckLine) -> Cell:
    if isinstance(check, Feedback):
        return f"result {verdict_text(check)}", "text"
    return brief(check.check), "text"


def _check_detail(check: CheckLine) -> Cell:
    return brief(check.comment if isinstance(check, Feedback) else check.detail), "dim"


_SEEN = 500
"""Characters drawn of a line: no terminal is wider. The detail has the whole line."""
_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "rename ", "similarity ")


def diff_tab() -> Table[str]:
    """Return the table of a diff's lines; each line's sign says what it is."""
    return Table(
        [Column("+ added, - removed", 20, 0, _diff_line, grow=1)],
        name="diff",
        text=str.lower,
        searches=True,
        nothing="Reading the workspace…",
        detail=plain,
    )


def diff_lines(text: str) -> Sequence[str]:
    """Split a diff into lines at line feeds only: other line ends belong to the file's text."""
    return text.removesuffix("\n").split("\n") if text else ()


def diff_tone(line: str) -> Tone:
    if line.startswith(_HEADS):
        return Tone.DIM
    if line.startswith("@@"):
        return Tone.ACCENT
    return {"+": Tone.GOOD, "-": Tone.BAD}.get(line[:1], Tone.PLAIN)


def _diff_line(line: str) -> Cell:
    return flat(line), tone_ink(diff_tone(line))


def flat(line: str) -> str:
    """Return a line of code, sanitized but with its indentation; its end may be cut."""
    return plain(line[:_SEEN]).replace("\n", " ")
