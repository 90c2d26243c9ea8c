"""What Midwatch says to a worker: the protocol, the answers of `reflect`, reminders."""

import re

from midwatch_monitor.config.settings import ReflectSettings
from midwatch_monitor.words import Action, Checkpoint, Course, Intervention, Plan, PlanStepState

PROTOCOL = """\
## Working under watch

You are observed by Midwatch, which can send you messages that begin with `[midwatch`. They come \
from your supervisor or operator: follow them, and say how in your next `reflect`.

- Call `reflect` about every {every} requests, always together with your next work call in the \
same turn, never in a turn of its own. Be honest: a low confidence costs you nothing and gets you \
help; an inflated one gets noticed against the evidence.
- `progress_percent` is progress toward the current plan step only.
- Before you try something again that failed, say what happened, whether the cause is passing or \
permanent, what the root cause is, and what you change. Never repeat an act that failed unchanged.
- `pivot` when the approach is wrong; `escalate` when you need help or a decision.
- Keep the plan true: `set_plan` for what remains, `finish_plan_step` when a plan step is done.
"""

_MARK = re.compile(r"^\[midwatch #(\d+)")


def protocol(settings: ReflectSettings) -> str:
    """The instructions that `Watch` adds to an agent's own."""
    return PROTOCOL.format(every=settings.remind_every or 5)


def answer(checkpoint: Checkpoint, settings: ReflectSettings, *, alone: bool) -> str:
    """What `reflect` replies, by confidence band and decision."""
    lines = [_band(checkpoint.confidence, settings)]
    if checkpoint.decision is Course.PIVOT:
        lines.append(
            "You pivot: write down what the old approach assumed wrongly, set the remaining plan "
            "steps with `set_plan`, and drop what no longer serves."
        )
    elif checkpoint.decision is Course.ESCALATE:
        lines.append(
            "Your call for help is recorded. Until an answer comes, go on with what does not "
            "depend on it; do not guess at what you asked for."
        )
    if checkpoint.blockers:
        lines.append("Name for each blocker what would remove it, and try the cheapest first.")
    if alone:
        lines.append("Next time call `reflect` together with your next work call.")
    return " ".join(lines)


def _band(confidence: int, settings: ReflectSettings) -> str:
    if confidence >= settings.high_confidence:
        return "Recorded. Confidence is high: go on, and verify with a check before you claim it."
    if confidence >= settings.medium_confidence:
        return (
            "Recorded. Confidence is middling: name the assumption that you trust least and test "
            "it before you build on it."
        )
    return (
        "Recorded. Confidence is low: stop changing things. Read the failing output again, state "
        "the root cause, and choose the smallest experiment that could prove you wrong."
    )


def reminder(requests: int) -> str:
    """The nudge to reflect. It carries no number, as no intervention stands behind it."""
    return (
        f"[midwatch] {requests} requests without a checkpoint: call `reflect` now, together with "
        "your next work call."
    )


def spoken(id: int, intervention: Intervention) -> str:
    """An intervention as the worker reads it; the number lets its arrival be proved."""
    text = f"[midwatch #{id} from your {intervention.by}] {intervention.message}"
    if intervention.action is Action.REPLAN:
        text += (
            "\nThe remaining plan steps are now:\n"
            + "\n".join(f"{n}. {title}" for n, title in enumerate(intervention.plan, start=1))
            if intervention.plan
            else "\nWrite new remaining plan steps with `set_plan` before you go on."
        )
    return text


def marked(text: str) -> int | None:
    """The id of the intervention that a message carries, if it is one."""
    match = _MARK.match(text)
    return int(match[1]) if match else None


def outline(plan: Plan) -> str:
    """The plan as lines, with what is done and what is next."""
    signs = {PlanStepState.DONE: "x", PlanStepState.SKIPPED: "-", PlanStepState.OPEN: " "}
    return "\n".join(
        f"[{signs[step.state]}] {number}. {step.title}"
        for number, step in enumerate(plan.steps, start=1)
    )
