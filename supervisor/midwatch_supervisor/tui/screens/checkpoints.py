"""The checkpoints of all attempts as they come: what the workers say of themselves."""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import takewhile

from midwatch_monitor.records import Course
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.tui.state.board import STREAM, Board, Report
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.filtered import Filtered, holds
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette

_LOW = 40
"""Under this confidence a number is drawn as a warning."""


def columns(now: Callable[[], datetime]) -> list[Column[Report]]:
    """The columns of the stream; times are told in the zone of `now`."""
    return [
        Column(title="time", width=8, rank=1, draw=_time(now)),
        Column(title="attempt", width=14, rank=0, grow=1, draw=_attempt),
        Column(title="plan", width=5, rank=6, draw=_plan),
        Column(title="prog", width=4, rank=2, draw=_progress),
        Column(title="conf", width=4, rank=0, draw=_confidence),
        Column(title="±", width=4, rank=3, draw=_change),
        Column(title="decision", width=8, rank=2, draw=_decision),
        Column(title="blockers", width=12, rank=4, grow=2, draw=_blockers),
        Column(title="notes", width=12, rank=5, grow=4, draw=_notes),
    ]


def _time(now: Callable[[], datetime]) -> Callable[[Report, Palette], Cell]:
    def time(report: Report, colours: Palette) -> Cell:
        return f"{report.at.astimezone(now().tzinfo):%H:%M:%S}", colours.dim

    return time


def _attempt(report: Report, colours: Palette) -> Cell:
    return one_line(f"{report.row.name}#{report.row.number}"), colours.strong


def _plan(report: Report, colours: Palette) -> Cell:
    steps = report.row.plan_steps
    step = report.checkpoint.plan_step
    return f"{step}/{steps}" if steps else str(step), colours.text


def _progress(report: Report, colours: Palette) -> Cell:
    return f"{report.checkpoint.progress_percent:>3}%", colours.text


def _confidence(report: Report, colours: Palette) -> Cell:
    stated = report.checkpoint.confidence
    return f"{stated:>3}%", colours.warn if stated < _LOW else colours.accent


def _change(report: Report, colours: Palette) -> Cell:
    change = report.change
    if change is None:
        return "   -", colours.dim
    return f"{change:>+4}" if change else "   =", colours.warn if change < 0 else colours.good


def _decision(report: Report, colours: Palette) -> Cell:
    style = {Course.ESCALATE: colours.bad, Course.PIVOT: colours.warn}
    course = report.checkpoint.decision
    return course.value, style.get(course, colours.dim)


def _blockers(report: Report, colours: Palette) -> Cell:
    blockers = report.checkpoint.blockers
    if not blockers:
        return "-", colours.dim
    return one_line(f"{len(blockers)}: {'; '.join(blockers)}"), colours.warn


def _notes(report: Report, colours: Palette) -> Cell:
    return one_line(report.checkpoint.notes) or "-", colours.text


def text(report: Report) -> str:
    """What a filter looks at."""
    said = report.checkpoint
    parts = (report.row.name, report.row.worker, said.decision, *said.blockers, said.notes)
    return " ".join(parts)


def since(reports: Sequence[Report], last: Report | None) -> list[Report]:
    """What came after `last`, oldest first; everything if it is not there any more."""
    new = list(takewhile(lambda report: report is not last, reversed(reports)))
    new.reverse()
    return new


class CheckpointsPane(Filtered[Report]):
    """The stream; the cursor follows its end once it stands there."""

    def __init__(self, board: Board, now: Callable[[], datetime]) -> None:
        super().__init__(
            columns(now),
            name="checkpoints",
            hint="task, worker, decision, blocker or note",
            nothing="No checkpoint yet, or none that the filter lets through.",
            follow=True,
        )
        self._board = board
        self._last: Report | None = None
        self._shown_for = ""

    @property
    def chosen(self) -> Row | None:
        """The attempt of the cursor's checkpoint."""
        return self.current.row if self.current else None

    def refresh_board(self) -> None:
        """Add what is new; only another filter looks at everything again."""
        wanted = self.wanted
        if wanted != self._shown_for:
            self._last, self._shown_for = None, wanted
            self.lines.clear()
        new = since(self._board.reports, self._last)
        if new:
            self._last = new[-1]
        self.lines += [report for report in new if holds(text(report), wanted)] if wanted else new
        self._show_the_end()

    def _show_the_end(self) -> None:
        gone = max(0, len(self.lines) - STREAM)
        if not gone:
            self.show()
            return
        at_end = self.roll.cursor >= self.roll.count - 1
        del self.lines[:gone]
        # Lines have left at the top: the cursor stays on its line, or at the end.
        self.show(len(self.lines) - 1 if at_end else self.roll.cursor - gone)
