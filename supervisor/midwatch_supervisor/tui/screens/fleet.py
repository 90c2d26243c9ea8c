"""The fleet: all tasks and attempts as lines, those that need a person first."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from sys import maxsize

from midwatch_monitor.command_hint import command
from midwatch_monitor.records import Health, Lifecycle
from midwatch_monitor.state.attempt_details import planned
from midwatch_supervisor.present.numbers import plan_text
from midwatch_supervisor.present.text_line import HEALTH_SIGNS, one_line, standing_sign
from midwatch_supervisor.tui.operator_keys import RowChooser
from midwatch_supervisor.tui.screens.preview import trend_ink, why
from midwatch_supervisor.tui.screens.title import NEEDED
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import Need, Row, trend
from midwatch_supervisor.tui.state.row_order import (
    GROUPINGS,
    SORTS,
    FleetLine,
    GroupHeading,
    Order,
    RowStanding,
    may_resort,
)
from midwatch_supervisor.tui.widgets.palette import Cell, Ink, health_ink, status_ink, tone_ink
from midwatch_supervisor.tui.widgets.table import Column, Table, span

_BARS = "▁▂▃▄▅▆▇█"
_BAR = 4
"""Width of a progress bar in cells."""
_TREND = 5
"""Number of confidences drawn."""
_NAME = 20
"""Cells of a long name for which other columns are dropped."""


def sparkline(values: Sequence[int]) -> str:
    return "".join(_BARS[min(7, max(0, value) * 8 // 101)] for value in values)


def bar(percent: int | None) -> str:
    if percent is None:
        return "-"
    full = round(percent / 100 * _BAR)
    return f"{'━' * full}{'┄' * (_BAR - full)} {percent:>3}%"


_SORTED = {"name": "task", "age": "idle", "confidence": "conf", "budget": "budget"}
"""The column that shows what lines are sorted by, for each order."""


def arrange_columns(columns: Sequence[Column[Row]], sort: str) -> list[Column[Row]]:
    """Return the columns, with a sign on the sorted one, which is never dropped."""
    signed = _SORTED.get(sort, "")
    return [
        replace(
            each,
            title=f"{signed}↓",
            rank=0,
            width=max(each.width, len(signed) + 1),
            differs=lambda: True,
        )
        if each.title == signed
        else each
        for each in columns
    ]


def columns(now: Callable[[], datetime], board: FleetBoard) -> list[Column[Row]]:
    """Return the fleet's columns; the least important ones have the highest rank."""

    def idle(row: Row) -> Cell:
        if row.state.last_at is None or row.need is Need.OVER:
            return "-", "dim"
        return span((now() - row.state.last_at).total_seconds()), "text"

    def reason(row: Row) -> Cell:
        said = why(row, board.wait(row))
        return said.text, tone_ink(said.tone)

    def some(field: str) -> Callable[[], bool]:
        return lambda: field in board.filled

    def name_width(_: object) -> int:
        return min(_NAME, board.longest_name)

    return [
        Column("!", 2, 0, _sign_cell),
        Column("run", 3, 0, lambda row: (str(row.run), "dim"), differs=lambda: board.several_runs),
        Column("task", 12, 0, _task_cell, grow=1, needed=name_width, middle=True),
        Column("state", 10, 0, _state_cell),
        Column("plan", 5, 5, _plan_cell, 0, some("plan")),
        Column("progress", _BAR + 5, 1, _progress_cell, 0, some("progress")),
        Column("conf", _TREND + 6, 1, _confidence_cell, 0, some("confidence")),
        Column("why, or latest checkpoint", 25, 0, reason, grow=4),
        Column("idle", 4, 6, idle),
        Column("budget", 6, 4, _budget_cell, 0, some("budget")),
        Column("worker", 8, 8, lambda row: (one_line(row.state.attempt.worker), "dim")),
        Column("model", 20, 9, lambda row: (one_line(row.state.model), "dim"), grow=1),
        Column("node", 10, 7, _node_cell, grow=1, differs=lambda: board.several_nodes),
    ]


def _sign_cell(row: Row) -> Cell:
    """Return a row's sign: its need of a person, else its health or status."""
    sign = HEALTH_SIGNS[row.health] if _shows_health(row) else standing_sign(row.state)
    if row.called:
        return f"{NEEDED}{sign}", "bad" if row.health is Health.STUCK else "warn"
    if row.rejected:
        return f" {sign}", "warn"
    return f" {sign}", health_ink(row.health) if _shows_health(row) else "dim"


def _shows_health(row: Row) -> bool:
    """Whether its health says more than its status."""
    return row.lifecycle is Lifecycle.WORKING or (row.state.over and bool(row.state.unresolved))


def _state_cell(row: Row) -> Cell:
    """Return its need of a person; else its health, if not good; else its status."""
    if row.need is Need.APPROVAL:
        return "APPROVE", "warn"
    if row.need is Need.ANSWER and not row.state.paused:
        return "ANSWER", "warn"
    unwell = row.need in (Need.STUCK, Need.SUSPECT) or row.health is Health.NOT_JUDGED
    if row.lifecycle is Lifecycle.WORKING and unwell:
        return row.health.value, health_ink(row.health)
    return row.status, status_ink(row.state)


def _task_cell(row: Row) -> Cell:
    return one_line(row.label), "dim" if row.need is Need.OVER else "strong"


def _planned(row: Row) -> tuple[int, int] | None:
    return planned(row.state.plan_step, row.state.plan_steps)


def _plan_cell(row: Row) -> Cell:
    found = _planned(row)
    return plan_text(found), "text" if found else "dim"


def _progress_cell(row: Row) -> Cell:
    progress = row.state.progress
    return bar(progress), "dim" if progress is None else "text"


def _confidence_cell(row: Row) -> Cell:
    confidence = row.state.confidence
    if confidence is None:
        return "-", "dim"
    values = [*row.state.confidences]
    line = f"{sparkline(values[-_TREND:]):<{_TREND}}"
    return f"{confidence:>3} {line} {trend(values)}", trend_ink(values)


def _budget_cell(row: Row) -> Cell:
    used = row.used
    if used is None:
        return "-", "dim"
    return f"{used:>4.0%}", "warn" if used >= 0.8 else "text"


def _node_cell(row: Row) -> Cell:
    return one_line(row.state.node), "warn" if row.adrift else "dim"


def _on_lines(column: Column[Row]) -> Column[FleetLine]:
    def drawn(line: FleetLine) -> Cell:
        return column.draw(line) if isinstance(line, Row) else ("", "text")

    return Column(
        column.title,
        column.width,
        column.rank,
        drawn,
        grow=column.grow,
        differs=column.differs,
        needed=lambda _: column.needed(()),  # the board knows it: there may be many lines
        middle=column.middle,
    )


def _no_task() -> str:
    run, submit, demo = command("run FILE"), command("submit FILE"), command("demo")
    return f"No tasks yet. Start some with `{run}`, `{submit}` (on a fleet) or `{demo}`."


class FleetPane(Table[FleetLine], RowChooser):
    """The fleet as a table, with a filter and foldable headings."""

    def __init__(self, board: FleetBoard, now: Callable[[], datetime], nothing: str = "") -> None:
        """Show a board; `nothing` says what to do if there is no task yet."""
        self._all_columns = columns(now, board)
        self.order = Order()
        super().__init__(
            self._arrange_columns(),
            name="fleet",
            hint="task, worker, model, node, status, health or rule",
            nothing=nothing or _no_task(),
            key=lambda line: line.group if isinstance(line, GroupHeading) else id(line),
        )
        self._board = board
        self._now = now
        self._settled = False
        self._placed: FleetLine | None = None
        """The line under the cursor when lines were last shown."""
        self._moved_at = self._sorted_at = now()

    def on_mount(self) -> None:
        self.list.focus()

    @property
    def chosen(self) -> Row | None:
        """The cursor's row; `None` on a heading."""
        return self.current if isinstance(self.current, Row) else None

    @property
    def place(self) -> str:
        """Return the position among the lines; with a filter, the number of matching rows."""
        if not self.wanted:
            return super().place
        return f"{len(self.order.rows):,} of {self.order.count:,} match"

    def refresh_board(self) -> None:
        """Show the board's current state; the cursor stays on its row."""
        self.order.filter(self.wanted)
        changed, gone = self._board.take_moved()
        if changed or gone:
            self.order.move(changed, gone=gone)
        self._resort_if_due()
        self.order.hold(self.chosen if self._keeps_cursor else None)
        self._show_lines()

    @property
    def _keeps_cursor(self) -> bool:
        """Whether the cursor stays on its line, as it does once the history is read."""
        return self._settled or self.list.picked

    def _resort_if_due(self) -> None:
        now = self._now()
        if self.current is not self._placed:
            self._moved_at = now
        if may_resort(now, sorted_at=self._sorted_at, moved_at=self._moved_at):
            self._sorted_at = now
            self.order.resort()

    def _show_lines(self) -> None:
        before, at = self.current, self.list.cursor
        self.order.fit(self.list.size.height or maxsize)
        lines = self.order.lines
        cursor = _line_index(lines, before, at) if self._keeps_cursor else 0
        self.show(lines, cursor=cursor, total=self.order.count)
        self._placed = self.current

    def settle(self) -> None:
        """Keep the cursor on its row, and no longer at the top: the history has been read."""
        self._settled = True

    def _arrange_columns(self) -> list[Column[FleetLine]]:
        return [*map(_on_lines, arrange_columns(self._all_columns, self.order.sort.name))]

    def regroup(self) -> None:
        """Group by the next criterion, and go to the top."""
        place = GROUPINGS.index(self.order.grouping) + 1
        self.order.arrange(grouping=GROUPINGS[place % len(GROUPINGS)])
        self._show_from_top()

    def sort_again(self) -> None:
        """Sort by the next criterion, and go to the top."""
        place = SORTS.index(self.order.sort) + 1
        self.order.arrange(sort=SORTS[place % len(SORTS)])
        self._sorted_at = self._now()
        self.use(self._arrange_columns())
        self._show_from_top()

    def _show_from_top(self) -> None:
        self.order.hold(None)
        self.show(self.order.lines)
        self.list.go(0)
        self._placed = self.current

    def fold(self) -> bool:
        """Fold or unfold the cursor's group; return whether there is one."""
        folded = None if self.current is None else self.order.fold(self.current)
        if folded is not None:
            lines = self.order.lines
            self.show(lines, cursor=_line_index(lines, folded, self.list.cursor))
            self._placed = self.current
        return folded is not None

    def _draw_cells(self, index: int, width: int) -> Sequence[Cell]:
        line = self.items[index]
        if isinstance(line, Row):
            return super()._draw_cells(index, width)
        cells: list[Cell] = [(line.title, "heading")]
        for standing, text in line.details:
            gap = "  " if len(cells) == 1 else ", "
            cells.append((f"{gap}{text}", _standing_ink(standing)))
        return cells


def _standing_ink(standing: RowStanding) -> Ink:
    """Return the style of a state's count; what needs a person also has a colour."""
    if standing.need is Need.STUCK:
        return "bad"
    urgent = standing.need < Need.WORKING or (standing.need is Need.OVER and not standing.calm)
    return "warn" if urgent and not standing.calm else "dim"


def _line_index(lines: Sequence[FleetLine], line: FleetLine | None, before: int) -> int | None:
    """Return the current index of a line that was at index `before`; `None` if it is hidden."""
    if line is None:
        return None
    if before < len(lines) and _is_same_line(lines[before], line):
        return before
    if isinstance(line, Row):
        return lines.index(line) if line in lines else None
    return next((place for place, each in enumerate(lines) if _is_same_line(each, line)), None)


def _is_same_line(one: FleetLine, other: FleetLine) -> bool:
    if isinstance(one, GroupHeading) and isinstance(other, GroupHeading):
        return one.group == other.group
    return one is other
