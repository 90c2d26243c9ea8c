"""The fleet: every task and attempt as a line, what needs a person first."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from midwatch_monitor.records import Health, Lifecycle
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.present.signs import HEALTH_SIGNS, standing_sign
from midwatch_supervisor.present.waiting import Wait
from midwatch_supervisor.tui.screens.title import NEEDED
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.checkpoint_history import trend
from midwatch_supervisor.tui.state.preview_lines import trend_style
from midwatch_supervisor.tui.state.row import Need, Row
from midwatch_supervisor.tui.state.row_order import Group, Order, by_node, by_task
from midwatch_supervisor.tui.state.why import why
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette, health_style, status_style, tone_style
from midwatch_supervisor.tui.widgets.table import Column, Table, span

_BARS = "▁▂▃▄▅▆▇█"
_BAR = 4
"""Cells of a progress bar."""
_TREND = 5
"""Confidences that are drawn."""

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
    return f"{'━' * full}{'┄' * (_BAR - full)} {percent:>3}%"


def arranged(
    columns: Sequence[Column[Row]], group: str, *, several_nodes: bool
) -> list[Column[Row]]:
    """The columns with what the lines are grouped by first, which stays and has a sign.

    The node is left out where there is only one.
    """
    return [
        replace(column, title=f"▾{group}", rank=0) if column.title == group else column
        for column in sorted(columns, key=lambda column: column.title != group)
        if several_nodes or column.title != "node" or group == "node"
    ]


def columns(
    now: Callable[[], datetime], wait: Callable[[Row], Wait | None] = lambda row: None
) -> list[Column[Row]]:
    """The columns of the fleet; the least important ones have the highest rank.

    `wait` says what a task that has not begun waits for.
    """

    def idle(row: Row, colours: Palette) -> Cell:
        if row.state.last_at is None or row.need is Need.OVER:
            return "-", colours.dim
        return span((now() - row.state.last_at).total_seconds()), colours.text

    def reason(row: Row, colours: Palette) -> Cell:
        said = why(row, wait(row) if row.attempt is None else None)
        return said.text, tone_style(said.tone, colours)

    return [
        Column("!", 2, 0, _sign),
        Column("task", 12, 0, _task, grow=1),
        Column("state", 10, 0, _state),
        Column("step", 5, 5, _plan),
        Column("progress", _BAR + 5, 1, _progress),
        Column("conf", _TREND + 6, 1, _confidence),
        Column("why, or latest checkpoint", 28, 0, reason, grow=4),
        Column("idle", 4, 6, idle),
        Column("budget", 6, 4, _budget),
        Column("worker", 8, 8, lambda row, c: (one_line(row.state.attempt.worker), c.dim)),
        Column("model", 12, 9, lambda row, c: (one_line(row.state.model), c.dim), grow=1),
        Column("node", 10, 7, _node, grow=1),
    ]


def _sign(row: Row, colours: Palette) -> Cell:
    """Whether it needs a person, then how it fares, or where it stands."""
    sign = HEALTH_SIGNS[row.health] if _fares(row) else standing_sign(row.state)
    if row.called:
        return f"{NEEDED}{sign}", colours.bad if row.health is Health.STUCK else colours.warn
    if row.rejected:
        return f" {sign}", colours.warn
    return f" {sign}", health_style(row.health, colours) if _fares(row) else colours.dim


def _fares(row: Row) -> bool:
    """Whether its health says more than where it stands."""
    return row.lifecycle is Lifecycle.WORKING or (row.state.over and bool(row.state.unresolved))


def _state(row: Row, colours: Palette) -> Cell:
    """What it needs of a person; else how it fares, if not well; else where it stands."""
    if row.need is Need.APPROVAL:
        return "APPROVE", colours.warn
    if row.need is Need.ANSWER and not row.state.paused:
        return "ANSWER", colours.warn
    unwell = row.need in (Need.STUCK, Need.SUSPECT) or row.health is Health.NOT_JUDGED
    if row.lifecycle is Lifecycle.WORKING and unwell:
        return row.health.value, health_style(row.health, colours)
    return row.status, status_style(row.state, colours)


def _task(row: Row, colours: Palette) -> Cell:
    return one_line(row.label), colours.dim if row.need is Need.OVER else colours.strong


def _plan(row: Row, colours: Palette) -> Cell:
    steps = row.state.plan_steps
    if not steps:
        return "-", colours.dim
    return f"{min(row.state.plan_step, steps)}/{steps}", colours.text


def _progress(row: Row, colours: Palette) -> Cell:
    progress = row.state.progress
    return bar(progress), colours.dim if progress is None else colours.text


def _confidence(row: Row, colours: Palette) -> Cell:
    confidence = row.state.confidence
    if confidence is None:
        return "-", colours.dim
    values = [*row.state.confidences]
    line = f"{sparkline(values[-_TREND:]):<{_TREND}}"
    return f"{confidence:>3} {line} {trend(values)}", trend_style(values, colours)


def _budget(row: Row, colours: Palette) -> Cell:
    used = row.used
    if used is None:
        return "-", colours.dim
    return f"{used:>4.0%}", colours.warn if used >= 0.8 else colours.text


def _node(row: Row, colours: Palette) -> Cell:
    return one_line(row.state.node), colours.warn if row.adrift else colours.dim


class FleetPane(Table[Row]):
    """The fleet as a table, with its filter."""

    def __init__(self, board: Board, now: Callable[[], datetime]) -> None:
        self._all_columns = columns(now, board.wait)
        self._several = False
        super().__init__(
            arranged(self._all_columns, GROUPS[0][0], several_nodes=False),
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
        self.list.focus()

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
        before, at = self.current, self.list.cursor
        if self._several is not self._board.several_nodes and self.list.is_mounted:
            self._several = self._board.several_nodes
            self._lay_out()
        self._order.filter(self.wanted)
        changed, gone = self._board.take_moved()
        if changed or gone:
            self._order.move(changed, gone=gone)
        rows = self._order.rows
        stays = self._settled or self.list.picked
        self.show(rows, cursor=_place(rows, before, at) if stays else 0)

    def settle(self) -> None:
        """The history is read: from now on the cursor stays on its row, until then on the top."""
        self._settled = True

    def _lay_out(self) -> None:
        self.use(arranged(self._all_columns, self.grouped_by, several_nodes=self._several))

    def regroup(self) -> None:
        """Group by the next thing."""
        before = self.current
        self._group = (self._group + 1) % len(GROUPS)
        self._order.group(GROUPS[self._group][1])
        self._lay_out()
        self.show(self._order.rows, cursor=_place(self._order.rows, before, self.list.cursor))


def _place(rows: Sequence[Row], row: Row | None, before: int) -> int | None:
    """Where a row is now that was at a place before; `None` if it is not shown."""
    if row is not None and before < len(rows) and rows[before] is row:
        return before
    return rows.index(row) if row in rows else None
