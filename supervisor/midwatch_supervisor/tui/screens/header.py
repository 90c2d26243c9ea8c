"""The two lines above an attempt: what it is, how it fares, what it waits for. Pure."""

from datetime import datetime

from rich.style import Style
from rich.text import Text

from midwatch_agents.sandbox import SandboxKind
from midwatch_monitor.metrics.calibration import Calibration
from midwatch_monitor.records import Health, Lifecycle
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.present.learning_text import verdict_text
from midwatch_supervisor.present.numbers import budget_text
from midwatch_supervisor.present.signs import HEALTH_SIGNS, standing_sign
from midwatch_supervisor.present.text_line import because, brief
from midwatch_supervisor.present.waiting import attempt_waits_for
from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline
from midwatch_supervisor.tui.widgets.palette import Palette, health_style, status_style
from midwatch_supervisor.tui.widgets.table import span

Part = tuple[str, Style]


def header(
    timeline: AttemptTimeline,
    now: datetime,
    colours: Palette,
    calibration: Calibration | None = None,
    *,
    adrift: bool = False,
) -> tuple[Text, Text]:
    """The two lines. What is most needed stands first, as a narrow terminal cuts the ends.

    `adrift` is an attempt whose node is gone, before another goes on with it.
    """
    state, attempt = timeline.state, timeline.attempt
    title, before = brief(timeline.task.title), brief(attempt.model)
    was = f" (before: {before})" if before and attempt.model != state.model else ""
    idle = span((now - (timeline.last_at or now)).total_seconds())
    first = Text.assemble(
        (f"{brief(timeline.task.name)}#{attempt.number}  ", colours.strong),
        *_standing(state, colours, adrift=adrift),
        (f"  {_progress(state, calibration)}", colours.text),
        (f"  {brief(attempt.worker)}", colours.dim),
        (f" with {brief(state.model)}{was}" if state.model else "", colours.dim),
        ("  no sandbox" if state.sandbox == SandboxKind.NONE else "", colours.warn),
        (f" on {brief(state.node)}" if state.node else "", colours.dim),
        (f"  {title}" if title and title != timeline.task.name else "", colours.dim),
    )
    second = Text.assemble(
        *_asked(state, colours, adrift=adrift),
        *_verdict(timeline, colours),
        ("" if timeline.last_at is None or state.over else f"idle {idle}  ", colours.text),
        (f"used: {budget_text(state.budget)}", colours.dim),
    )
    return first, second


def _standing(state: AttemptState, colours: Palette, *, adrift: bool) -> list[Part]:
    parts = [(f"{standing_sign(state)} {state.status}", status_style(state, colours))]
    if state.lifecycle is Lifecycle.WORKING or (state.over and state.unresolved):
        health = Health.UNKNOWN if adrift else state.health
        parts.append((f"  {HEALTH_SIGNS[health]} {health.value}", health_style(health, colours)))
    return parts


def _progress(state: AttemptState, calibration: Calibration | None) -> str:
    parts = [f"step {state.last_step}"]
    if count := len(state.plan.steps):
        parts.append(f"plan {min(state.plan.current, count)}/{count}")
    if state.progress is not None:
        parts.append(f"progress {state.progress}%")
    if (stated := state.confidence) is not None:
        known = "" if calibration is None else f" (so far worth {calibration.percent(stated)}%)"
        parts.append(f"confidence {stated}%{known}")
    return "  ".join(parts)


def _asked(state: AttemptState, colours: Palette, *, adrift: bool) -> tuple[Part, ...]:
    """What it waits for, else why it is where it is."""
    if adrift and state.lifecycle is Lifecycle.WORKING:
        text, style = f"waits for a node: {brief(state.node)} is gone", colours.warn
    elif waits := attempt_waits_for(state):
        text, style = f"waits for {brief(waits)}", colours.warn
    else:
        text, style = brief(state.transition.reason), colours.text
    return ((text, style), ("  ", colours.text)) if text else ()


def _verdict(timeline: AttemptTimeline, colours: Palette) -> tuple[Part, ...]:
    """The newest verdict on its result, if anybody spoke one."""
    if not timeline.verdicts:
        return ()
    newest = timeline.verdicts[-1]
    sign, style = ("✓", colours.good) if newest.accepted else ("✗", colours.warn)
    said = f"{sign} result {verdict_text(newest)}{because(newest.comment)}"
    return (said, style), ("  ", colours.text)
