"""The two lines above an attempt: what it is, how it fares, what it waits for. Pure."""

from datetime import datetime

from rich.style import Style
from rich.text import Text

from midwatch_agents.sandbox import Walls
from midwatch_monitor.metrics.calibration import Calibration
from midwatch_monitor.records import Health, Lifecycle
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.decide.dossier import spent_words
from midwatch_supervisor.present.learning_text import verdict_words
from midwatch_supervisor.present.signs import HEALTH_SIGNS, LIFECYCLE_SIGNS, SPLIT_SIGN
from midwatch_supervisor.present.text_line import because, brief
from midwatch_supervisor.present.waiting import attempt_waits_for
from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline
from midwatch_supervisor.tui.widgets.palette import Palette, health_style
from midwatch_supervisor.tui.widgets.table import span


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
    account, attempt = timeline.account, timeline.attempt
    title = brief(timeline.task.title)
    first = Text.assemble(
        (f"{brief(timeline.task.name)}#{attempt.number}  ", colours.strong),
        *_standing(account, colours, adrift=adrift),
        (f"  {_progress(account, calibration)}", colours.text),
        (f"  {brief(attempt.worker)}", colours.dim),
        (_model(account), colours.dim),
        ("  no sandbox" if account.sandbox == Walls.NONE else "", colours.warn),
        (f" on {brief(account.node)}" if account.node else "", colours.dim),
        (f"  {title}" if title and title != timeline.task.name else "", colours.dim),
    )
    second = Text.assemble(
        *_asked(account, colours, adrift=adrift),
        *_judged(timeline, colours),
        (_idle(timeline, now), colours.text),
        (f"used: {spent_words(account.budget)}", colours.dim),
    )
    return first, second


def _standing(account: AttemptState, colours: Palette, *, adrift: bool) -> list[tuple[str, Style]]:
    if account.split:
        return [(f"{SPLIT_SIGN} {account.status}", colours.text)]
    lifecycle = account.lifecycle
    style = {
        Lifecycle.INPUT_REQUIRED: colours.warn,
        Lifecycle.COMPLETED: colours.good,
        Lifecycle.FAILED: colours.bad,
    }.get(lifecycle, colours.text)
    parts: list[tuple[str, Style]] = [(f"{LIFECYCLE_SIGNS[lifecycle]} {lifecycle.value}", style)]
    if lifecycle is Lifecycle.WORKING:
        health: Health = Health.UNKNOWN if adrift else account.health
        parts.append((f"  {HEALTH_SIGNS[health]} {health.value}", health_style(health, colours)))
    return parts


def _progress(account: AttemptState, calibration: Calibration | None) -> str:
    parts = [f"step {account.last_step}"]
    count = len(account.plan.steps)
    if count:
        parts.append(f"  plan {min(account.plan.current, count)}/{count}")
    told = account.checkpoint
    if told is not None:
        parts.append(f"  progress {told.progress_percent}%  confidence {told.confidence}%")
        if calibration is not None:
            parts.append(f" → {calibration.percent(told.confidence)}% cal.")
    return "".join(parts)


def _model(account: AttemptState) -> str:
    """The model in force, and the one that it was switched from."""
    if not account.model:
        return ""
    before = account.attempt.model
    was = f" (before: {brief(before)})" if before and before != account.model else ""
    return f" with {brief(account.model)}{was}"


def _asked(account: AttemptState, colours: Palette, *, adrift: bool) -> list[tuple[str, Style]]:
    """What it waits for, else why it is where it is."""
    if adrift and account.lifecycle is Lifecycle.WORKING:
        waits = f"waits for a node: {brief(account.node)} is gone"
        return [(waits, colours.warn), ("  ", colours.text)]
    if waits := attempt_waits_for(account):
        return [(f"waits for {brief(waits)}", colours.warn), ("  ", colours.text)]
    if account.transition.reason:
        return [(brief(account.transition.reason), colours.text), ("  ", colours.text)]
    return []


def _judged(timeline: AttemptTimeline, colours: Palette) -> list[tuple[str, Style]]:
    """The newest verdict on its result, if anybody spoke one."""
    if not timeline.verdicts:
        return []
    newest = timeline.verdicts[-1]
    sign, style = ("✓", colours.good) if newest.accepted else ("✗", colours.warn)
    said = f"{sign} result {verdict_words(newest)}{because(newest.comment)}"
    return [(said, style), ("  ", colours.text)]


def _idle(timeline: AttemptTimeline, now: datetime) -> str:
    if timeline.last_at is None or timeline.account.lifecycle.over:
        return ""
    return f"idle {span((now - timeline.last_at).total_seconds())}  "
