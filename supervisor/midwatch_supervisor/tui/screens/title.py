"""The line at the top: who needs a person, how many work, what it has cost. Pure but its widget."""

from collections.abc import Callable
from datetime import datetime

from rich.style import Style
from rich.text import Text
from textual.widgets import Static

from midwatch_monitor.records import Health, Lifecycle
from midwatch_supervisor.present.numbers import amount, counted, dollars
from midwatch_supervisor.present.signs import HEALTH_SIGNS, LIFECYCLE_SIGNS
from midwatch_supervisor.tui.state.attention import Queue
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.row import Need
from midwatch_supervisor.tui.widgets.palette import (
    Palette,
    health_style,
    on_theme_change,
    palette_of,
)
from midwatch_supervisor.tui.widgets.table import span

NEEDED = "!"
"""Before whatever needs a person."""

Part = tuple[str, Style]


def title_text(board: Board, waiting: int, now: datetime, colours: Palette) -> Text:
    """The counts of a board; `waiting` things need a person. What is needed most stands first."""
    totals, needs = board.totals, board.totals.needs
    parts: list[Part] = [
        ("Midwatch", colours.strong),
        (_runs(board, now), colours.dim),
        (_waiting(waiting), colours.warn if waiting else colours.dim),
        *_health(Health.STUCK, needs[Need.STUCK], colours),
        *_health(Health.SUSPECT, needs[Need.SUSPECT], colours),
        *_health(Health.OK, needs[Need.WORKING], colours),
        (_done(board), colours.text),
        *_failed(totals.tasks[Lifecycle.FAILED], colours),
        (counted(round(totals.requests), "request"), colours.text),
        (f"${dollars(totals.cost_usd)}", colours.text),
        (f"{amount(totals.tokens)} tokens", colours.text),
    ]
    return Text.assemble(*((f"{text}  ", style) for text, style in parts), no_wrap=True)


def _waiting(count: int) -> str:
    return f"{NEEDED} {count} need{'s' if count == 1 else ''} you"


def _health(health: Health, count: int, colours: Palette) -> list[Part]:
    """How many attempts fare so; nothing for none, unless all is well."""
    what = "working" if health is Health.OK else health.value
    if not count:
        return [(f"{HEALTH_SIGNS[health]} 0 {what}", colours.dim)] if health is Health.OK else []
    return [(f"{HEALTH_SIGNS[health]} {count} {what}", health_style(health, colours))]


def _done(board: Board) -> str:
    done = board.totals.tasks[Lifecycle.COMPLETED]
    return f"{LIFECYCLE_SIGNS[Lifecycle.COMPLETED]} {done}/{len(board.tasks)}"


def _failed(count: int, colours: Palette) -> list[Part]:
    sign = LIFECYCLE_SIGNS[Lifecycle.FAILED]
    return [(f"{sign} {count} failed", colours.bad)] if count else []


def _runs(board: Board, now: datetime) -> str:
    """Which run it is, and for how long it has gone on."""
    if not board.runs:
        return ""
    since = min(run.started_at for run in board.runs.values())
    ids = list(board.runs)
    which = f"run {ids[0]}" if len(ids) == 1 else f"{len(ids)} runs"
    working = any(count for need, count in board.totals.needs.items() if need is not Need.OVER)
    until = now if working else board.last_at or now
    return f"{which}, {span((until - since).total_seconds())}"


class TitleLine(Static):
    """One line; what does not fit is cut at its end, and stands in the overview."""

    DEFAULT_CSS = """
    TitleLine {
        height: 1; padding: 0 1; background: $panel; color: $foreground;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self, board: Board, queue: Queue, now: Callable[[], datetime]) -> None:
        self._board, self._queue, self._now = board, queue, now
        self._mark = ""
        self._shown: Text | None = None
        super().__init__(markup=False)

    def on_mount(self) -> None:
        self.refresh_board()
        on_theme_change(self, self.refresh_board)

    def mark(self, text: str) -> None:
        """Say something small before the rest, where it is not cut; nothing if empty."""
        self._mark = text

    def refresh_board(self) -> None:
        """Show the counts as they are now."""
        colours = palette_of(self)
        text = title_text(self._board, self._queue.count, self._now(), colours)
        mark = self._board.progress or self._mark
        if mark:
            text = Text.assemble((f"({mark}) ", colours.warn), text)
        if text != self._shown:
            self._shown = text
            self.update(text, layout=False)
