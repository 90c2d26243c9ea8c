"""The fleet: every task and attempt as a line, what needs a person first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from rich.style import Style

from midwatch_monitor.records import Activity, Lifecycle
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.present.waiting import Wait
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.order import Group, Order, by_node, by_task
from midwatch_supervisor.tui.state.row import Need, Row
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.filtered import Filtered
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import (
    HEALTH_SIGNS,
    LIFECYCLE_SIGNS,
    SPLIT_SIGN,
    Palette,
    health_style,
)

_BARS = "▁▂▃▄▅▆▇█"
_BAR = 8
"""Cells of a progress bar."""

GROUPS: Sequence[tuple[str, Group | None]] = (
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
    return f"{'━' * full}{'┄' * (_BAR - full)} {percent:>3}"


def span(seconds: float) -> str:
    """A time span in its largest unit: 5s, 3m, 2h, 4d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def columns(
    now: Callable[[], datetime],
    *,
    group: tuple[str, Group | None] = GROUPS[0],
    several_nodes: bool = False,
    wait: Callable[[Row], Wait | None] = lambda row: None,
) -> list[Column[Row]]:
    """The columns of the fleet; the least important ones have the highest rank.

    What the lines are grouped by stands first and stays, with a sign in its title. The node is
    left out where there is only one. `wait` says what a task that has not begun waits for.
    """
    name, _ = group
    return [
        _first(column) if column.title == name else column
        for column in sorted(_columns(now, wait), key=lambda column: column.title != name)
        if several_nodes or column.title != "node" or name == "node"
    ]


def _first(column: Column[Row]) -> Column[Row]:
    return replace(column, title=f"▾{column.title}", rank=0)


def _columns(now: Callable[[], datetime], wait: Callable[[Row], Wait | None]) -> list[Column[Row]]:
    return [
        Column(title="!", width=1, rank=0, draw=_health_sign),
        Column(title="task", width=14, rank=0, grow=3, draw=_task),
        Column(title="status", width=9, rank=1, draw=_status),
        Column(title="health", width=7, rank=6, draw=_health),
        Column(title="plan", width=5, rank=7, draw=_plan),
        Column(title="progress", width=_BAR + 4, rank=3, draw=_progress),
        Column(title="confidence", width=16, rank=5, draw=_confidence),
        Column(title="idle", width=4, rank=2, draw=_idle(now)),
        Column(title="activity", width=12, rank=4, grow=2, draw=_activity(wait)),
        Column(title="budget", width=6, rank=8, draw=_budget),
        Column(title="alerts", width=6, rank=2, grow=2, draw=_alerts),
        Column(title="worker", width=8, rank=10, grow=1, draw=_worker),
        Column(title="model", width=12, rank=11, grow=1, draw=_model),
        Column(title="node", width=10, rank=9, grow=1, draw=_node),
    ]


def _health_sign(row: Row, colours: Palette) -> Cell:
    if row.need is Need.ANSWER or row.need is Need.APPROVAL:
        return "?", colours.warn
    if row.split:
        return SPLIT_SIGN, colours.dim
    if row.lifecycle is not Lifecycle.WORKING:
        return LIFECYCLE_SIGNS[row.lifecycle], colours.dim
    return HEALTH_SIGNS[row.health], health_style(row.health, colours)


def _task(row: Row, colours: Palette) -> Cell:
    number = f"#{row.number}" if row.number else ""
    style = colours.dim if row.need is Need.OVER else colours.strong
    return one_line(f"{row.name}{number}"), style


_STATUS: Mapping[Lifecycle, str] = {
    Lifecycle.INPUT_REQUIRED: "waits",
    Lifecycle.SUBMITTED: "queued",
}


def _status(row: Row, colours: Palette) -> Cell:
    if row.split:
        return row.standing, colours.text
    return _STATUS.get(row.lifecycle, row.standing), _status_style(row.lifecycle, colours)


def _status_style(lifecycle: Lifecycle, colours: Palette) -> Style:
    match lifecycle:
        case Lifecycle.COMPLETED:
            return colours.good
        case Lifecycle.FAILED:
            return colours.bad
        case Lifecycle.INPUT_REQUIRED:
            return colours.warn
        case _:
            return colours.text


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


_ACTIVITIES: Mapping[Activity, str] = {
    Activity.MODEL: "asks the model",
    Activity.WAITING: "waits for a person",
    Activity.RATE_LIMITED: "rate-limited",
    Activity.IDLE: "-",
    Activity.COMMAND: "runs a tool",
}


def _activity(wait: Callable[[Row], Wait | None]) -> Callable[[Row, Palette], Cell]:
    def activity(row: Row, colours: Palette) -> Cell:
        if row.adrift and row.lifecycle is Lifecycle.WORKING:
            return "needs a node", colours.warn
        waits = wait(row) if row.attempt is None else None
        if waits is not None:
            return one_line(waits.short), colours.warn if waits.vain else colours.dim
        return one_line(row.doing) or _ACTIVITIES[row.activity], colours.dim

    return activity


def _budget(row: Row, colours: Palette) -> Cell:
    used = row.used
    if used is None:
        return "-", colours.dim
    return f"{used:>4.0%}", colours.warn if used >= 0.8 else colours.text


def _alerts(row: Row, colours: Palette) -> Cell:
    if not row.firing:
        return "-", colours.dim
    rules = ", ".join(dict.fromkeys(key.rule for key in row.firing))
    style: Style = health_style(row.health, colours)
    return f"{len(row.firing)} {rules}", style


def _worker(row: Row, colours: Palette) -> Cell:
    return one_line(row.worker), colours.dim


def _model(row: Row, colours: Palette) -> Cell:
    return one_line(row.model), colours.dim


def _node(row: Row, colours: Palette) -> Cell:
    return one_line(row.node), colours.warn if row.adrift else colours.dim


class FleetPane(Filtered[Row]):
    """The fleet as a table, with its filter."""

    def __init__(self, board: Board, now: Callable[[], datetime]) -> None:
        self._layouts = {
            several: [
                columns(now, group=group, several_nodes=several, wait=board.wait)
                for group in GROUPS
            ]
            for several in (False, True)
        }
        self._several = False
        super().__init__(
            self._layouts[False][0],
            name="fleet",
            hint="task, worker, model, node, status, health or rule",
            nothing=(
                "There is no task here yet: `midwatch run FILE`, `midwatch submit FILE` to a "
                "fleet, or `midwatch demo` brings some.\n"
                "If a filter is set: no line holds its words; escape drops it."
            ),
        )
        self._board = board
        self._group = 0
        self._settled = False
        self._order = Order()

    def on_mount(self) -> None:
        """The keys go to the table at first."""
        self.roll.focus()

    @property
    def grouped_by(self) -> str:
        """What the lines are grouped by now."""
        return GROUPS[self._group][0]

    @property
    def chosen(self) -> Row | None:
        """The row of the cursor."""
        return self.current

    def refresh_board(self) -> None:
        """Show the board as it is now; the cursor stays on its row."""
        before, at = self.current, self.roll.cursor
        if self._several is not self._board.several_nodes and self._table.is_mounted:
            self._several = self._board.several_nodes
            self._lay_out()
        self._order.filter(self.wanted)
        changed, gone = self._board.take_moved()
        if changed or gone:
            self._order.move(changed, gone=gone)
        self.lines = self._order.rows
        self.show(self._place(before, at) if self._settled else 0)

    def settle(self) -> None:
        """The history is read: from now on the cursor stays on its row, until then on the top."""
        self._settled = True

    def _place(self, row: Row | None, at: int) -> int | None:
        """Where a row is now that was at a place before; `None` if it is not shown."""
        if row is None or (at < len(self.lines) and self.lines[at] is row):
            return None if row is None else at
        try:
            return self.lines.index(row)
        except ValueError:
            return None

    def _lay_out(self) -> None:
        self._table.use(self._layouts[self._several][self._group])

    def regroup(self) -> None:
        """Group by the next thing."""
        before = self.current
        self._group = (self._group + 1) % len(GROUPS)
        self._order.group(GROUPS[self._group][1])
        self._lay_out()
        self.lines = self._order.rows
        self.show(self._place(before, self.roll.cursor))
