"""Renders an attempt as a prompt of bounded length for the supervisor's model. Pure.

Everything from the worker, its tools or its files is inside data blocks.
"""

from collections.abc import Iterable

from midwatch_monitor.budget import outlook
from midwatch_monitor.records import Alert, Checkpoint, Plan, Step
from midwatch_monitor.state.intervention import InterventionState
from midwatch_supervisor.decide.context import (
    ConcurrentEdit,
    DecisionContext,
)
from midwatch_supervisor.present.numbers import budget_text, steps_text
from midwatch_supervisor.present.record_text import line
from midwatch_supervisor.present.text_line import in_brackets
from midwatch_tools.data_blocks import DataBlocks, cut, escape

MIN_CHARS = 1000
"""Minimum length of a prompt, and of its setting: the frame alone takes a few hundred."""


def render(context: DecisionContext, max_chars: int, blocks: DataBlocks) -> str:
    """Return the case as a prompt of at most `max_chars` characters (at least `MIN_CHARS`).

    If it is too long, the longest parts lose their middle first, and every cut is marked.
    """
    if max_chars < MIN_CHARS:
        raise ValueError(f"a case needs {MIN_CHARS} characters or more, not {max_chars}")
    head = (
        f"{blocks.head}\n"
        f"Attempt {context.attempt}, last step {context.last_step}.\n"
        f"interventions so far: {len(context.delivered)}{_turned_down(context)}\n"
        f"{_reading_text(context)}{_calibration_line(context)}"
    )
    parts = {name: escape(body) for name, body in _prompt_parts(context, max_chars) if body}
    frame = sum(len(blocks.frame(name, "")) + 1 for name in parts)
    shares = _divide_room(tuple(map(len, parts.values())), max_chars - len(head) - frame)
    shown = [
        blocks.frame(name, cut(body, share))
        for (name, body), share in zip(parts.items(), shares, strict=True)
    ]
    return head + "\n".join(shown)


def describe_steps(steps: Iterable[Step], max_chars: int) -> str:
    """Describe steps, each in at most `max_chars` characters."""
    return "\n".join(cut(_step_text(step), max_chars) for step in steps)


def _prompt_parts(context: DecisionContext, max_chars: int) -> tuple[tuple[str, str], ...]:
    # Steps get half of it, in equal shares, so that one long output leaves room for the others.
    each = max(200, max_chars // 2 // max(1, len(context.steps)))
    return (
        ("task", f"{context.title}\n{context.goal}"),
        ("petition", context.request),
        ("worker", f"{context.worker}\n{_budget_text(context)}".strip()),
        ("alerts", "\n".join(map(_alert_text, context.firing or context.alerts))),
        ("interventions of earlier attempts", "\n".join(map(_past_line, context.before))),
        ("interventions", "\n".join(map(_past_line, context.delivered))),
        ("rivals", "\n".join(map(_concurrent_edit, context.concurrent))),
        ("plan", _plan_text(context.plan)),
        ("plan check", line(context.plan_check).text if context.plan_check else ""),
        ("completions", "\n".join(line(each).text for each in context.completions)),
        (
            "analyses",
            "\n".join(
                f"after step {each.step}: {line(each.analysis).text}" for each in context.analyses
            ),
        ),
        ("checkpoints", describe_steps(context.checkpoints, each)),
        ("diff", context.diff),
        ("steps", describe_steps(context.steps, each)),
    )


def _reading_text(context: DecisionContext) -> str:
    """Return the table's reading. Only numbers and a known word, so it needs no data block."""
    steps = in_brackets(steps_text(context.reading.steps))
    return f"first reading of the signs, by rules: {context.reading.cause}{steps}\n"


def _turned_down(context: DecisionContext) -> str:
    """Describe rejected actions, so that the model does not propose them again."""
    names = ", ".join(sorted(action.value for action in context.rejected))
    return f", turned down: {len(context.rejected)} ({names})" if names else ""


def _budget_text(context: DecisionContext) -> str:
    """Describe how much of the budget is used, and whether it lasts at the rate so far."""
    words, ahead = budget_text(context.budget), outlook(context.budget, context.done)
    if ahead is None or ahead.done is None:
        return words
    verdict = "enough" if ahead.enough else "not enough"
    rate = f"about {ahead.done:.0f} % done; at this rate the {ahead.resource} are {verdict}"
    return f"{words}. {rate}" if words else rate


def _calibration_line(context: DecisionContext) -> str:
    """Rate the last stated confidence. Numbers only, so it needs no data block."""
    stated = [step.checkpoint.confidence for step in context.checkpoints if step.checkpoint]
    if context.calibration is None or not stated:
        return ""
    return (
        f"stated confidence {stated[-1]} %; attempts of this model that said so succeeded about "
        f"{context.calibration.percent(stated[-1])} % of the time "
        f"({context.calibration.attempts} finished attempts)\n"
    )


def _divide_room(lengths: tuple[int, ...], room: int) -> tuple[int, ...]:
    """Divide `room` among texts: short ones get all they need, long ones equal shares."""
    shares = [0] * len(lengths)
    left = max(0, room)
    for rank, index in enumerate(sorted(range(len(lengths)), key=lambda at: lengths[at])):
        shares[index] = min(lengths[index], left // (len(lengths) - rank))
        left -= shares[index]
    return tuple(shares)


def _alert_text(alert: Alert) -> str:
    about = f" about {_on_one_line(alert.key.subject)}" if alert.key.subject else ""
    steps = in_brackets(steps_text(alert.evidence))
    return f"{alert.severity} {alert.key.rule}{about}: {_on_one_line(alert.summary)}{steps}"


def _past_line(past: InterventionState) -> str:
    issued = past.intervention
    said = f": {_on_one_line(issued.message)}" if issued.message else ""
    why = f" ({_on_one_line(past.reason)})" if past.reason else ""
    return f"{past.action} by {issued.by}, outcome {past.outcome or 'not known yet'}{why}{said}"


def _concurrent_edit(edit: ConcurrentEdit) -> str:
    turn = "it began first" if edit.elder else "this attempt began first"
    return f"task {_on_one_line(edit.task)} works on {_on_one_line(edit.path)} too; {turn}"


def _plan_text(plan: Plan) -> str:
    return "\n".join(
        f"{number}. [{step.state}] {_on_one_line(step.title)}"
        + (f" (flag: {_on_one_line(step.flag)})" if step.flag else "")
        for number, step in enumerate(plan.steps, start=1)
    )


def _step_text(step: Step) -> str:
    verdict = {True: ", ok", False: ", failed", None: ""}[step.ok]
    code = "" if step.exit_code is None else f", exit code {step.exit_code}"
    edits = ", ".join(edit.path for edit in step.edits)
    lines = [f"step {step.number}: {step.tool or step.kind}{verdict}{code}"]
    if step.checkpoint is not None:
        lines.append(_checkpoint_text(step.checkpoint))
    for name, text in (
        ("args", step.args),
        ("changed", edits),
        ("text", step.text),
        ("output", step.output),
    ):
        if text:
            lines.append(f"  {name}: {text}")
    return "\n".join(lines)


def _checkpoint_text(told: Checkpoint) -> str:
    blockers = "; ".join(told.blockers) or "none"
    notes = f", notes: {_on_one_line(told.notes)}" if told.notes else ""
    return (
        f"  plan step {told.plan_step}, progress {told.progress_percent} %, confidence "
        f"{told.confidence} %, {told.decision}, blockers: {_on_one_line(blockers)}{notes}"
    )


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
