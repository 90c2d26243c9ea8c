"""Texts about a row: a few words on the reason for its position, and the full preview."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from textwrap import wrap
from typing import ClassVar, NamedTuple

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from midwatch_monitor.records import Activity, Alert, CheckpointDecision, Lifecycle, Severity
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AlertStatus
from midwatch_monitor.state.intervention import InterventionState
from midwatch_supervisor.present.intervention_text import (
    action_text,
    author_text,
    proposal_text,
    request_text,
)
from midwatch_supervisor.present.numbers import budget_text, steps_text
from midwatch_supervisor.present.text_line import (
    SEVERITY_SIGNS,
    Tone,
    because,
    blocker_words,
    one_line,
    plain,
)
from midwatch_supervisor.present.waiting import Wait, attempt_waits_for
from midwatch_supervisor.tui.operator_command import offers
from midwatch_supervisor.tui.state.attention import waiting_attempt
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import EqualCheckpoints, Need, Row, Trend, trend
from midwatch_supervisor.tui.widgets.palette import (
    Cell,
    Ink,
    on_theme_change,
    palette,
    palette_of,
    palette_on,
    tone_ink,
)
from midwatch_supervisor.tui.widgets.scrolling_text import SCROLL_KEYS, ScrollActions
from midwatch_supervisor.tui.widgets.table import clock, fit_text, long_span

PreviewLine = Sequence[Cell]

_NARROW = 90
"""Width in cells below which the two halves are stacked."""
_EVIDENCE = 6
"""Number of evidence steps named for an alert; the attempt's view has all."""
LOW = 40
"""Confidence, in percent, below which the number is drawn as a warning."""


def wrap_text(text: str, width: int, indent: str = "") -> list[str]:
    """Return a text in lines of at most `width` cells, keeping its own line ends."""
    lines: list[str] = []
    for part in plain(text).splitlines() or [""]:
        for line in wrap(part, max(8, width), initial_indent=indent, subsequent_indent=indent):
            lines += [line] if cell_len(line) <= width else chop_cells(line, width)
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Draws the selected row for a width, at a time."""

    row: Row
    width: int
    now: datetime
    waits: str = ""
    """What a task that has not begun waits for."""
    keys: Mapping[str, str]
    """The key of each action, as people write it."""

    def lines(self) -> list[PreviewLine]:
        stacked = self.width < _NARROW
        left = self.width if stacked else self.width * 11 // 20
        right = self.width - left - 2
        head = self._section_rule(f"{one_line(self.row.label)} ─ WHY", left)
        state = self._state_lines(left)
        if stacked:
            return [head, *state, *self._checkpoints_section(left, titled=True)]
        beside = self._section_rule("CHECKPOINTS, newest first", right + 2, joint="┬─")
        checkpoints = self._checkpoints_section(right)
        return [[*head, *beside], *self._join_columns(state, checkpoints, left)]

    def _join_columns(
        self, one: Sequence[PreviewLine], other: Sequence[PreviewLine], left: int
    ) -> Iterable[PreviewLine]:
        for mine, theirs in zip_longest(one, other, fillvalue=()):
            room = left - sum(cell_len(text) for text, _ in mine)
            yield [*mine, (f"{' ' * max(0, room)}│ ", "dim"), *theirs]

    def _section_rule(self, title: str, width: int, joint: str = "──") -> PreviewLine:
        title = f" {title} "
        filled = "─" * max(0, width - len(joint) - cell_len(title))
        return [(joint, "dim"), (title, "heading"), (filled, "dim")]

    def _text_lines(self, text: str, width: int, ink: Ink, indent: str = " ") -> list[PreviewLine]:
        return [[(line, ink)] for line in wrap_text(text, width, indent)]

    def _state_lines(self, width: int) -> list[PreviewLine]:
        """Return the row's state; what waits for a person precedes alerts and usage."""
        return [
            *self._title_lines(width),
            *self._question_lines(width),
            *self._all_alert_lines(width),
            *self._usage_lines(width),
        ]

    def _title_lines(self, width: int) -> list[PreviewLine]:
        row = self.row
        title = "" if row.title in ("", row.name) else row.title
        if row.attempt is None or self.waits:
            waits = f"queued; waits for {self.waits}" if self.waits else row.status
            return [*self._text_lines(title, width, "dim"), *self._text_lines(waits, width, "text")]
        if row.state.unresolved or row.need <= Need.APPROVAL:
            return self._text_lines(title, width, "dim") if title else []
        said = why(row, None)
        reason = self._text_lines(said.text, width, tone_ink(said.tone))
        return [*self._text_lines(title, width, "dim"), *reason]

    def _all_alert_lines(self, width: int) -> list[PreviewLine]:
        state = self.row.state  # the newest record of an alert that has ended has its last value
        newest = (state.alerts[alert.key] for alert in state.unresolved)
        return [line for alert in newest for line in self._alert_lines(alert, width)]

    def _alert_lines(self, alert: Alert, width: int) -> list[PreviewLine]:
        critical, seen = alert.severity is Severity.CRITICAL, _handled_status(self.row.state, alert)
        ink: Ink = "text" if seen else "bad" if critical else "warn"
        said = f"{SEVERITY_SIGNS[alert.severity]} {alert.summary or alert.key.rule}"
        at = alert.at or alert.since_at
        age = "" if at is None else f"for {long_span((self.now - at).total_seconds())}"
        age = "ended" if self.row.state.over else age
        steps = steps_text(alert.evidence[-_EVIDENCE:])
        grounds = one_line(", ".join(filter(None, (seen, steps, age))))
        room = width - cell_len(said) - cell_len(grounds) - 3
        if room >= 0 and "\n" not in said:
            return [[(f" {one_line(said)}", ink), (f"{' ' * room} {grounds} ", "dim")]]
        return [
            *self._text_lines(one_line(said), width, ink),
            *self._text_lines(grounds, width, "dim", "   "),
        ]

    def _usage_lines(self, width: int) -> list[PreviewLine]:
        if self.row.attempt is None:
            return []
        used = self.row.used
        ink: Ink = "warn" if used is not None and used >= 0.8 else "dim"
        return self._text_lines(f"budget: {budget_text(self.row.state.budget)}", width, ink)

    def _question_lines(self, width: int) -> list[PreviewLine]:
        """Return the waiting proposal, question or request in full, with its keys."""
        row, state = self.row, self.row.state
        if row.need is Need.OVER:
            return []
        if held := state.interventions.held:
            return self._proposal_lines(held[0], len(held), width)
        if state.goes_on:
            return []
        if state.paused:
            by = author_text(state.waits[-1].intervention) if state.waits else ""
            return self._answerable_lines("PAUSED", f"by {by}" if by else "", width)
        if state.parked:
            return self._answerable_lines(
                f"ASKS{self._wait_words()}", state.transition.reason, width
            )
        if (asked := state.asks_beside) is not None:
            said = asked.intervention.message
            return self._answerable_lines(f"ASKS{self._wait_words()}", said, width)
        if state.open_requests:
            said = "\n".join(map(request_text, state.open_requests.values()))
            return self._answerable_lines("ASKS", said, width)
        return []

    def _wait_words(self) -> str:
        since = self.row.state.needed_since
        return f", waiting {long_span((self.now - since).total_seconds())}" if since else ""

    def _proposal_lines(self, held: InterventionState, count: int, width: int) -> list[PreviewLine]:
        issued = held.intervention
        more = f" (1 of {count})" if count > 1 else ""
        act = action_text(issued.action, issued.terms).upper()
        title = f"PROPOSED{more}: {act} by {issued.by}{self._wait_words()}"
        return self._answerable_lines(title, proposal_text(issued), width)

    def _answerable_lines(self, title: str, said: str, width: int) -> list[PreviewLine]:
        # Marked, so that untrusted text cannot look like one of our own lines.
        return [
            *self._text_lines(title, width, "warn"),
            *self._text_lines(said, width, "text", "   "),
            *self._answer_key_lines(width),
        ]

    def _answer_key_lines(self, width: int) -> list[PreviewLine]:
        lines: list[list[Cell]] = [[]]
        used = 0
        for offer in offers(self.row):
            if offer.key not in _ANSWERS or offer.key not in self.keys:
                continue
            key, does = f"   {self.keys[offer.key]}", f" {offer.does}"
            if lines[-1] and used + cell_len(key + does) > width:
                lines.append([])
                used = 0
            lines[-1].extend(((key, "accent"), (does, "text")))
            used += cell_len(key + does)
        return [*lines]

    def _checkpoints_section(self, width: int, *, titled: bool = False) -> list[PreviewLine]:
        if self.row.attempt is None:
            return []
        title = [self._section_rule("CHECKPOINTS, newest first", width)] if titled else []
        said = [
            line
            for each in self.row.checkpoints.newest_first
            for line in self._checkpoint_lines(each, width)
        ]
        return [*title, *(said or self._text_lines("no checkpoints yet", width, "dim"))]

    def _checkpoint_lines(self, each: EqualCheckpoints, width: int) -> list[PreviewLine]:
        said = each.checkpoint
        at = clock(each.last_at, self.now)
        course = fit_text(f"{said.decision}{repetition_text(each)}", max(0, width - len(at) - 13))
        head: PreviewLine = [
            (f"{at} ", "dim"),
            (f"{said.progress_percent:>3}% ", "text"),
            (f"{said.confidence:>3}% {_change_sign(each)} ", confidence_ink(each)),
            (course.rstrip(), COURSES.get(said.decision, "text")),
        ]
        blockers = [
            line
            for blocker in said.blockers
            for line in self._text_lines(f"✗ {one_line(blocker)}", width, "warn", "  ")
        ]
        notes = self._text_lines(f'"{said.notes}"', width, "text", "  ") if said.notes else []
        return [head, *blockers, *notes]


COURSES: Mapping[CheckpointDecision, Ink] = {
    CheckpointDecision.ESCALATE: "bad",
    CheckpointDecision.PIVOT: "warn",
}
_ANSWERS = frozenset({"approve", "modify", "reject", "guide", "pause"})
"""The keys that answer what is waiting."""


def _change_sign(each: EqualCheckpoints) -> str:
    if each.change is None:
        return " "
    return "↑" if each.change > 0 else "↓" if each.change < 0 else "="


def confidence_ink(each: EqualCheckpoints) -> Ink:
    """Return a confidence's style: low, falling or repeated values are warnings; only a rise is
    good.
    """
    if each.checkpoint.confidence < LOW or each.count > 2 or (each.change or 0) < 0:
        return "warn"
    return "good" if (each.change or 0) > 0 else "text"


def trend_ink(confidences: Sequence[int]) -> Ink:
    """Return the same for a row's last stated confidences."""
    if confidences and confidences[-1] < LOW:
        return "warn"
    inks: Mapping[Trend, Ink] = {Trend.UP: "good", Trend.DOWN: "warn"}
    return inks.get(trend(confidences), "text")


_ACTIVITIES = {
    Activity.MODEL: "calling the model",
    Activity.WAITING: "waiting for a person",
    Activity.RATE_LIMITED: "rate-limited",
    Activity.IDLE: "-",
    Activity.COMMAND: "running a tool",
}

_TIMES = "\N{MULTIPLICATION SIGN}"


class Why(NamedTuple):
    """A sanitized one-line text, with its tone."""

    text: str
    tone: Tone = Tone.PLAIN


def why(row: Row, wait: Wait | None) -> Why:
    """Return the reason for a row's position; `wait` is what an unstarted task waits for."""
    text, tone = _row_reason(row, wait)
    return Why(one_line(text), tone)


def _row_reason(row: Row, wait: Wait | None) -> Why:
    state = row.state
    if row.adrift and row.lifecycle is Lifecycle.WORKING:
        return Why("needs a node", Tone.WARN)
    if wait is not None:
        return Why(wait.short, Tone.WARN if wait.vain else Tone.DIM)
    if row.need is Need.OVER:
        return _end_reason(row)
    if row.need is Need.STUCK:
        return _alerts_reason(row, waiting_attempt(row).what, Tone.BAD)
    if row.need < Need.STUCK or state.open_requests:
        return Why(waiting_attempt(row).what, Tone.WARN)
    if state.outage is not None:
        return Why(f"waits for {attempt_waits_for(state)}", Tone.WARN)
    if state.firing:
        said = "; ".join(each.summary or each.key.rule for each in state.firing)
        return _alerts_reason(row, said, Tone.WARN)
    newest = row.checkpoints.newest
    if newest is not None:
        return _report_reason(newest)
    return Why(state.doing or _ACTIVITIES[state.activity], Tone.DIM)


def _alerts_reason(row: Row, said: str, tone: Tone) -> Why:
    """Return the text of firing alerts; less prominent once a person has seen all of them."""
    if row.state.unseen:
        return Why(said, tone)
    return Why(f"{_handled_status(row.state, row.state.firing[0])}: {said}")


def _handled_status(state: AttemptState, alert: Alert) -> str:
    """Return how a person has handled a firing alert, as in the Alerts tab; empty if nobody has."""
    status = state.alert_status(alert.key)
    return status if status in {AlertStatus.ACKNOWLEDGED, AlertStatus.SILENCED} else ""


def _end_reason(row: Row) -> Why:
    verdict = row.state.verdict
    if row.rejected and verdict is not None:
        return Why(f"not accepted{because(verdict.comment)}", Tone.WARN)
    return Why(row.state.transition.reason or "-", Tone.DIM)


def _report_reason(newest: EqualCheckpoints) -> Why:
    said = newest.checkpoint
    if said.blockers:
        return Why(f"{blocker_words(said.blockers)}{repetition_text(newest)}", Tone.WARN)
    text = f'"{said.notes}"' if said.notes else f"reported: {said.decision}"
    return Why(f"{text}{repetition_text(newest)}", Tone.WARN if newest.count > 2 else Tone.PLAIN)


def repetition_text(said: EqualCheckpoints) -> str:
    """Return how often and for how long the same was reported: ` x8, 2 min`; empty for once."""
    return f" {_TIMES}{said.count}, {long_span(said.seconds)}" if said.count > 1 else ""


class PreviewView(ScrollView, ScrollActions, can_focus=True):  # pyright: ignore[reportIncompatibleMethodOverride] - in Textual itself
    """The preview of the selected row: why it is there, what it asks, alerts, usage, reports.

    It is drawn line by line, as lists are. Tab focuses it; then the list keys scroll it.
    """

    BINDINGS: ClassVar[list[BindingType]] = SCROLL_KEYS
    DEFAULT_CSS = """
    PreviewView { overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(
        self, board: FleetBoard, now: Callable[[], datetime], keys: Mapping[str, str]
    ) -> None:
        """Preview rows of a board; `keys` has the key of each action, as people write it."""
        super().__init__(id="preview")
        self._board = board
        self._now = now
        self._keys = keys
        self._row: Row | None = None
        self._lines: list[PreviewLine] = []
        self._under = Style.null()
        self._colours = palette({})

    def on_mount(self) -> None:
        on_theme_change(self, self.refresh)

    def on_resize(self) -> None:
        self.refresh_board()

    def show_row(self, row: Row | None) -> None:
        if row is not self._row:
            self._row = row
            self.scroll_home(animate=False)
        self.refresh_board()

    def refresh_board(self) -> None:
        row, width = self._row, self.size.width - 1
        if not self.display or width < 1:
            return
        lines = [] if row is None else self._preview_lines(row, width)
        # A stable size, because a change would lay out the whole screen again.
        size = Size(self.size.width, max(len(lines), self.size.height))
        if self.virtual_size != size:
            self.virtual_size = size
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def _preview_lines(self, row: Row, width: int) -> list[PreviewLine]:
        return Preview(
            row=row,
            width=width,
            now=self._now(),
            waits=self._board.turn(row),
            keys=self._keys,
        ).lines()

    @property
    def text(self) -> str:
        """Its text, without colours."""
        return "\n".join("".join(text for text, _ in line) for line in self._lines)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the visible lines; what they share is computed once."""
        self._under = self.rich_style
        self._colours = palette_on(palette_of(self), self._under)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        index = y + round(self.scroll_offset.y)
        cells = self._lines[index] if index < len(self._lines) else ()
        segments = [Segment(text, self._colours[ink]) for text, ink in cells]
        return Strip(segments).adjust_cell_length(self.size.width, self._under)
