"""The checkpoints of all attempts as they come: what the workers say of themselves."""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import takewhile

from midwatch_monitor.records import Course
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.tui.state.board import STREAM, Board, Report
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette
from midwatch_supervisor.tui.widgets.table import Column, Table, clock, matches

_LOW = 40
"""Under this confidence a number is drawn as a warning."""


def columns(now: Callable[[], datetime]) -> list[Column[Report]]:
    """The columns of the stream; times are told in the zone of `now`."""
    return [
        Column("time", 8, 1, lambda report, c: (clock(report.at, now().tzinfo), c.dim)),
        Column("attempt", 14, 0, _attempt, grow=1),
        Column("plan", 5, 6, _plan),
        Column(
            "prog", 4, 2, lambda report, c: (f"{report.checkpoint.progress_percent:>3}%", c.text)
        ),
        Column("conf", 4, 0, _confidence),
        Column("±", 4, 3, _change),
        Column("decision", 8, 2, _decision),
        Column("blockers", 12, 4, _blockers, grow=2),
        Column(
            "notes", 12, 5, lambda report, c: (one_line(report.checkpoint.notes) or "-", c.text), 4
        ),
    ]


def _attempt(report: Report, colours: Palette) -> Cell:
    return one_line(f"{report.row.name}#{report.row.number}"), colours.strong


def _plan(report: Report, colours: Palette) -> Cell:
    steps, step = report.row.state.plan_steps, report.checkpoint.plan_step
    return f"{step}/{steps}" if steps else str(step), colours.text


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
    return report.checkpoint.decision.value, style.get(report.checkpoint.decision, colours.dim)


def _blockers(report: Report, colours: Palette) -> Cell:
    blockers = report.checkpoint.blockers
    if not blockers:
        return "-", colours.dim
    return one_line(f"{len(blockers)}: {'; '.join(blockers)}"), colours.warn


def text(report: Report) -> str:
    """What a filter looks at."""
    said = report.checkpoint
    return " ".join(
        (
            report.row.name,
            report.row.state.attempt.worker,
            said.decision,
            *said.blockers,
            said.notes,
        )
    )


def since(reports: Sequence[Report], last: Report | None) -> list[Report]:
    """What came after `last`, oldest first; everything if it is not there any more."""
    new = list(takewhile(lambda report: report is not last, reversed(reports)))
    new.reverse()
    return new


class CheckpointsPane(Table[Report]):
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
        self._filtered_by = ""
        self._reports: list[Report] = []

    @property
    def chosen(self) -> Row | None:
        """The attempt of the cursor's checkpoint."""
        return self.current.row if self.current else None

    def refresh_board(self) -> None:
        """Add what is new; only another filter looks at everything again."""
        wanted, reports = self.wanted, self._reports
        if wanted != self._filtered_by:
            self._last, self._filtered_by = None, wanted
            reports.clear()
        new = since(self._board.reports, self._last)
        if new:
            self._last = new[-1]
        reports += [report for report in new if matches(text(report), wanted)] if wanted else new
        gone = max(0, len(reports) - STREAM)
        at_end = self.list.cursor >= self.list.count - 1
        del reports[:gone]
        # Where lines have left at the top, the cursor stays on its line, or at the end.
        place = len(reports) - 1 if at_end else self.list.cursor - gone
        self.show(reports, cursor=place if gone else None)
