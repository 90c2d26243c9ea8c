"""The lines at the top: the fleet's counts and costs; an attempt's state, health and wait."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from textual.widgets import Static

from midwatch_agents.sandbox import SandboxKind
from midwatch_monitor.records import Health, Lifecycle
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AttemptStatus, planned
from midwatch_supervisor.present.learning_text import verdict_text
from midwatch_supervisor.present.numbers import (
    amount,
    budget_text,
    count_noun,
    paid,
    plan_text,
)
from midwatch_supervisor.present.text_line import (
    HEALTH_SIGNS,
    LIFECYCLE_SIGNS,
    STATUS_SIGNS,
    because,
    brief,
    standing_sign,
)
from midwatch_supervisor.present.waiting import attempt_waits_for
from midwatch_supervisor.tui.state.attention import AttentionQueue
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import Need
from midwatch_supervisor.tui.widgets.palette import (
    Cell,
    Ink,
    health_ink,
    on_theme_change,
    palette_of,
    status_ink,
)
from midwatch_supervisor.tui.widgets.table import span

if TYPE_CHECKING:
    # Not needed for the first frame, and slow to import.
    from midwatch_monitor.metrics.calibration import Calibration
    from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline

NEEDED = "!"
"""Precedes whatever needs a person."""


def title_cells(board: FleetBoard, waiting: int, now: datetime) -> list[Cell]:
    """Return a board's counts, most important first; `waiting` things need a person."""
    totals, needs = board.totals, board.totals.needs
    working, failed = needs[Need.WORKING], totals.tasks[Lifecycle.FAILED]
    parts: list[Cell] = [
        ("Midwatch", "strong"),
        (_runs_text(board, now), "dim"),
        (f"{NEEDED} {waiting} need{'s' * (waiting == 1)} you", "warn" if waiting else "dim"),
        *_health_cells(Health.STUCK, needs[Need.STUCK]),
        *_health_cells(Health.SUSPECT, needs[Need.SUSPECT]),
        (f"{HEALTH_SIGNS[Health.OK]} {working} working", "good" if working else "dim"),
        (f"{LIFECYCLE_SIGNS[Lifecycle.COMPLETED]} {totals.completed}/{len(board.tasks)}", "text"),
        *_count_cells(STATUS_SIGNS[AttemptStatus.ENDED], len(totals.ended), "ended", "text"),
        *_count_cells(LIFECYCLE_SIGNS[Lifecycle.FAILED], failed, "failed", "bad"),
        (count_noun(totals.used.requests, "request"), "text"),
        (paid(totals.used.cost_usd), "text"),
        (f"{amount(totals.used.tokens)} tokens", "text"),
    ]
    return [(f"{text}  ", ink) for text, ink in parts if text]


def _count_cells(sign: str, count: int, what: str, ink: Ink) -> list[Cell]:
    """Return how many there are; empty for none."""
    return [(f"{sign} {count} {what}", ink)] if count else []


def _health_cells(health: Health, count: int) -> list[Cell]:
    return _count_cells(HEALTH_SIGNS[health], count, health.value, health_ink(health))


def _runs_text(board: FleetBoard, now: datetime) -> str:
    """Return which run it is, and its duration."""
    if not board.runs:
        return ""
    since = min(run.started_at for run in board.runs.values())
    ids = list(board.runs)
    which = f"run {ids[0]}" if len(ids) == 1 else f"{len(ids)} runs"
    working = any(count for need, count in board.totals.needs.items() if need is not Need.OVER)
    until = now if working else board.ended_at or board.last_at or now
    return f"{which}, {span((until - since).total_seconds())}"


class TitleLine(Static):
    """One line, cut at its end if it is too long; the overview has everything."""

    DEFAULT_CSS = """
    TitleLine {
        height: 1; padding: 0 1; background: $panel; color: $foreground;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(
        self, board: FleetBoard, queue: AttentionQueue, now: Callable[[], datetime]
    ) -> None:
        self._board, self._queue, self._now = board, queue, now
        self._mark = ""
        super().__init__(markup=False)

    def on_mount(self) -> None:
        self.refresh_board()
        on_theme_change(self, self.refresh_board)

    def mark(self, text: str) -> None:
        """Show a short text before the rest, where it is never cut; nothing if empty."""
        self._mark = text

    def refresh_board(self) -> None:
        cells = title_cells(self._board, self._queue.count, self._now())
        if mark := self._board.progress or self._mark:
            cells.insert(0, (f"({mark}) ", "warn"))
        self.update(palette_of(self).assemble(cells), layout=False)


def header(
    timeline: "AttemptTimeline",
    now: datetime,
    calibration: "Calibration | None" = None,
    *,
    adrift: bool = False,
) -> tuple[list[Cell], list[Cell]]:
    """Return the two lines, most important first, because a narrow terminal cuts their ends.

    An `adrift` attempt has lost its node, and no other continues it yet.
    """
    state, attempt = timeline.state, timeline.attempt
    title, before = brief(timeline.task.title), brief(attempt.model)
    was = f" (before: {before})" if before and attempt.model != state.model else ""
    idle = span((now - (timeline.last_at or now)).total_seconds())
    first: list[Cell] = [
        (f"{brief(timeline.task.name)}#{attempt.number}  ", "strong"),
        *_state_parts(state, adrift=adrift),
        (f"  {_progress_text(state, calibration)}", "text"),
        (f"  {brief(attempt.worker)}", "dim"),
        (f" with {brief(state.model)}{was}" if state.model else "", "dim"),
        ("  no sandbox" if state.sandbox == SandboxKind.NONE else "", "warn"),
        (f" on {brief(state.node)}" if state.node else "", "dim"),
        (f"  {title}" if title and title != timeline.task.name else "", "dim"),
    ]
    second: list[Cell] = [
        *_wait_parts(state, adrift=adrift),
        *_verdict_cells(timeline),
        ("" if timeline.last_at is None or state.over else f"idle {idle}  ", "text"),
        (f"used: {budget_text(state.budget)}", "dim"),
    ]
    return first, second


def _state_parts(state: AttemptState, *, adrift: bool) -> list[Cell]:
    parts: list[Cell] = [(f"{standing_sign(state)} {state.status}", status_ink(state))]
    if state.lifecycle is Lifecycle.WORKING or (state.over and state.unresolved):
        health = Health.UNKNOWN if adrift else state.health
        parts.append((f"  {HEALTH_SIGNS[health]} {health.value}", health_ink(health)))
    return parts


def _progress_text(state: AttemptState, calibration: "Calibration | None") -> str:
    parts = [f"step {state.last_step}"]
    if found := planned(state.plan_step, state.plan_steps):
        parts.append(f"plan {plan_text(found)}")
    if state.progress is not None:
        parts.append(f"progress {state.progress}%")
    if (stated := state.confidence) is not None:
        known = "" if calibration is None else f" (worth {calibration.percent(stated)}% so far)"
        known = known if state.confidence_counts else " (worthless)"
        parts.append(f"confidence {stated}%{known}")
    return "  ".join(parts)


def _wait_parts(state: AttemptState, *, adrift: bool) -> tuple[Cell, ...]:
    """Return what it waits for, else the reason for its state."""
    if adrift and state.lifecycle is Lifecycle.WORKING:
        return ((f"waits for a node: {brief(state.node)} is gone  ", "warn"),)
    if waits := attempt_waits_for(state):
        return ((f"waits for {brief(waits)}  ", "warn"),)
    reason = brief(state.transition.reason)
    return ((f"{reason}  ", "text"),) if reason else ()


def _verdict_cells(timeline: "AttemptTimeline") -> tuple[Cell, ...]:
    """Return the newest verdict on its result, if there is one."""
    if not timeline.verdicts:
        return ()
    newest = timeline.verdicts[-1]
    said = f"result {verdict_text(newest)}{because(newest.comment)}  "
    return (((f"✓ {said}", "good") if newest.accepted else (f"✗ {said}", "warn")),)
