"""The fleet: every task and attempt as a line, what needs a person first."""

from collections.abc import Callable, Sequence
from datetime import datetime

from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from midwatch_monitor.words import Activity, Lifecycle
from midwatch_supervisor.tui.board import Board, arranged, by_node, by_task
from midwatch_supervisor.tui.columns import Column
from midwatch_supervisor.tui.palette import (
    HEALTH_SIGNS,
    LIFECYCLE_SIGNS,
    Palette,
    health_style,
)
from midwatch_supervisor.tui.plain import one_line
from midwatch_supervisor.tui.roll import Cell, Roll
from midwatch_supervisor.tui.row import Need, Row
from midwatch_supervisor.tui.ruled import Ruled

_BARS = "▁▂▃▄▅▆▇█"
_BAR = 8
"""Cells of a progress bar."""

GROUPS: Sequence[tuple[str, Callable[[Row], str] | None]] = (
    ("need", None),
    ("task", by_task),
    ("node", by_node),
)
"""What lines are grouped by, in the order of the key that changes it."""


def sparkline(values: Sequence[int]) -> str:
    """Percentages as one block character each."""
    return "".join(_BARS[min(7, max(0, value) * 8 // 101)] for value in values)


def bar(percent: int | None) -> str:
    """A percentage as a bar and a number."""
    if percent is None:
        return "-"
    full = round(percent / 100 * _BAR)
    return f"{'█' * full}{'░' * (_BAR - full)} {percent:>3}"


def span(seconds: float) -> str:
    """A time span in its two largest letters: 5s, 3m, 2h, 4d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def columns(now: Callable[[], datetime]) -> list[Column[Row]]:
    """The columns of the fleet; the least important ones have the highest rank."""
    return [
        Column(title="!", width=1, rank=0, draw=_health_sign),
        Column(title="task", width=14, rank=0, grow=3, draw=_task),
        Column(title="status", width=9, rank=1, draw=_status),
        Column(title="health", width=7, rank=6, draw=_health),
        Column(title="plan", width=5, rank=5, draw=_plan),
        Column(title="progress", width=_BAR + 4, rank=3, draw=_progress),
        Column(title="confidence", width=16, rank=4, draw=_confidence),
        Column(title="idle", width=4, rank=2, draw=_idle(now)),
        Column(title="activity", width=12, rank=7, grow=2, draw=_activity),
        Column(title="budget", width=6, rank=8, draw=_budget),
        Column(title="alerts", width=6, rank=3, grow=2, draw=_alerts),
        Column(title="worker", width=8, rank=9, grow=1, draw=_worker),
        Column(title="model", width=12, rank=10, grow=1, draw=_model),
        Column(title="node", width=8, rank=11, draw=_node),
    ]


def _health_sign(row: Row, colours: Palette) -> Cell:
    if row.need is Need.ANSWER or row.need is Need.APPROVAL:
        return "?", colours.warn
    if row.lifecycle is not Lifecycle.WORKING:
        return LIFECYCLE_SIGNS[row.lifecycle], colours.dim
    return HEALTH_SIGNS[row.health], health_style(row.health, colours)


def _task(row: Row, colours: Palette) -> Cell:
    number = f"#{row.number}" if row.number else ""
    style = colours.dim if row.need is Need.OVER else colours.strong
    return one_line(f"{row.name}{number}"), style


def _status(row: Row, colours: Palette) -> Cell:
    words = {Lifecycle.INPUT_REQUIRED: "waits", Lifecycle.SUBMITTED: "queued"}
    style = {
        Lifecycle.COMPLETED: colours.good,
        Lifecycle.FAILED: colours.bad,
        Lifecycle.INPUT_REQUIRED: colours.warn,
    }.get(row.lifecycle, colours.text)
    return words.get(row.lifecycle, row.lifecycle.value), style


def _health(row: Row, colours: Palette) -> Cell:
    if row.lifecycle is not Lifecycle.WORKING:
        return "-", colours.dim
    return row.health.value, health_style(row.health, colours)


def _plan(row: Row, colours: Palette) -> Cell:
    if not row.plan_steps:
        return "-", colours.dim
    return f"{min(row.plan_step, row.plan_steps)}/{row.plan_steps}", colours.text


def _progress(row: Row, colours: Palette) -> Cell:
    return bar(row.progress), colours.text if row.progress is not None else colours.dim


def _confidence(row: Row, colours: Palette) -> Cell:
    if not row.trend:
        return "-", colours.dim
    return f"{row.trend[-1]:>3} {sparkline(row.trend)}", colours.accent


def _idle(now: Callable[[], datetime]) -> Callable[[Row, Palette], Cell]:
    def idle(row: Row, colours: Palette) -> Cell:
        if row.last_at is None or row.need is Need.OVER:
            return "-", colours.dim
        return span((now() - row.last_at).total_seconds()), colours.text

    return idle


def _activity(row: Row, colours: Palette) -> Cell:
    words = {
        Activity.MODEL: "asks the model",
        Activity.WAITING: "waits for a person",
        Activity.RATE_LIMITED: "rate-limited",
        Activity.IDLE: "-",
        Activity.COMMAND: "runs a tool",
    }
    return one_line(row.doing) or words[row.activity], colours.dim


def _budget(row: Row, colours: Palette) -> Cell:
    used = row.used
    if used is None:
        return "-", colours.dim
    return f"{used:>4.0%}", colours.warn if used >= 0.8 else colours.text


def _alerts(row: Row, colours: Palette) -> Cell:
    if not row.firing:
        return "-", colours.dim
    rules = ", ".join(key.rule for key in row.firing)
    style: Style = health_style(row.health, colours)
    return f"{len(row.firing)} {rules}", style


def _worker(row: Row, colours: Palette) -> Cell:
    return one_line(row.worker), colours.dim


def _model(row: Row, colours: Palette) -> Cell:
    return one_line(row.model), colours.dim


def _node(row: Row, colours: Palette) -> Cell:
    return one_line(row.node), colours.dim


class FleetPane(Vertical):
    """The fleet table with its filter."""

    DEFAULT_CSS = """
    FleetPane Input { display: none; height: 3; }
    FleetPane Input.open { display: block; }
    """

    def __init__(self, board: Board, now: Callable[[], datetime], *, id: str) -> None:
        super().__init__(id=id)
        self._board = board
        self._columns = columns(now)
        self._group = 0
        self._filter = Input(placeholder="filter: task, worker, model, status or rule")
        self._table = Ruled(self._columns, self._row, id="fleet")
        self.rows: list[Row] = []
        """The lines as they are shown."""

    def compose(self) -> ComposeResult:
        """The filter above the table."""
        yield self._filter
        yield self._table

    def _row(self, index: int) -> Row:
        return self.rows[index]

    @property
    def roll(self) -> Roll:
        """The list itself."""
        return self._table.roll

    @property
    def grouped_by(self) -> str:
        """What the lines are grouped by now."""
        return GROUPS[self._group][0]

    def on_mount(self) -> None:
        """The keys go to the table at first."""
        self.roll.focus()

    def open_filter(self) -> None:
        """Let the operator type a filter."""
        self._filter.add_class("open")
        self._filter.focus()

    def close_filter(self) -> bool:
        """Drop the filter; answers whether there was one."""
        was_open = self._filter.has_class("open")
        self._filter.remove_class("open")
        self._filter.value = ""
        self.roll.focus()
        return was_open

    @on(Input.Changed)
    def _typed(self) -> None:
        self.refresh_board()

    @on(Input.Submitted)
    def _filtered(self) -> None:
        self.roll.focus()

    @property
    def chosen(self) -> Row | None:
        """The row of the cursor."""
        return self.rows[self.roll.cursor] if self.roll.cursor < len(self.rows) else None

    def refresh_board(self) -> None:
        """Show the board as it is now; the cursor stays on its row."""
        before = self.chosen
        self.rows = arranged(
            self._board.all_rows(),
            wanted=self._filter.value,
            group=GROUPS[self._group][1],
        )
        cursor = next((n for n, row in enumerate(self.rows) if row is before), None)
        self.roll.show(len(self.rows), cursor=cursor)

    def regroup(self) -> None:
        """Group by the next thing."""
        self._group = (self._group + 1) % len(GROUPS)
        self.refresh_board()
