"""The overview: counts by status, costs, interventions and their outcomes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.style import Style
from rich.text import Text

from midwatch_monitor.records import Actor, Lifecycle, Outcome
from midwatch_supervisor.present.numbers import count_noun, usage_text
from midwatch_supervisor.present.text_line import one_line
from midwatch_supervisor.tui.operator_keys import RowChooser
from midwatch_supervisor.tui.state.board import FleetBoard, Totals
from midwatch_supervisor.tui.state.node_list import NodeList, node_word
from midwatch_supervisor.tui.state.row import Need
from midwatch_supervisor.tui.widgets.palette import Ink, Palette, on_theme_change, palette_of
from midwatch_supervisor.tui.widgets.scrolling_text import ScrollingText
from midwatch_supervisor.tui.widgets.table import clock

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_HEIGHT = 4
"""Height of a bar chart, in lines."""
_WIDEST = 6
"""Maximum width of a bar, in cells."""
_AXIS = 6
"""Cells to the left of a bar chart."""
_NODES: Sequence[tuple[str, Ink]] = (
    ("up", "good"),
    ("doubted", "warn"),
    ("draining", "warn"),
    ("down", "dim"),
    ("lost", "bad"),
)
"""Nodes' states, with their styles."""
SPANS = (10, 30, 60, 120, 300, 600, 1800, 3600)
"""Possible durations of one bar, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """How often something happened, in consecutive spans of time."""

    seconds: int = SPANS[0]
    """The duration of one span."""
    first: datetime | None = None
    """The beginning of the first span."""
    values: tuple[int, ...] = ()

    @property
    def length(self) -> str:
        """The duration of one span, in words."""
        if self.seconds < 60:
            return f"{self.seconds} seconds"
        if self.seconds == 3600:
            return "hour"
        return "minute" if self.seconds == 60 else f"{self.seconds // 60} minutes"


def bars(times: Mapping[datetime, Counter[str]], what: str, *, most: int) -> Bars:
    """Return the events from the first time to the last, in at most `most` bars."""
    if not times:
        return Bars()
    first, last = min(times), max(times)
    whole = (last - first).total_seconds()
    seconds = next((span for span in SPANS if whole < span * most), SPANS[-1])
    values = [0] * (int(whole // seconds) + 1)
    for at, counts in times.items():
        values[int((at - first).total_seconds() // seconds)] += counts[what]
    gone = max(0, len(values) - most)
    begin = first + timedelta(seconds=gone * seconds)
    return Bars(seconds=seconds, first=begin, values=tuple(values[gone:]))


def draw_bars(values: Sequence[int], *, height: int = _HEIGHT, width: int = 1) -> list[str]:
    """Return values as columns of blocks, the top line first; the largest fills the height.

    Empty if nothing happened. Values above 0 are always visible.
    """
    most = max(values, default=0)
    if not most:
        return []
    eighths = [-(-value * height * 8 // most) for value in values]
    return [
        "".join(width * _EIGHTHS[max(0, min(8, each - 8 * line))] for each in eighths)
        for line in reversed(range(height))
    ]


def rate(totals: Totals) -> str:
    """Return the recovery rate in words, with its counts."""
    judged, share = totals.outcomes.total(), totals.recovery_rate
    if share is None:
        return "no intervention has been judged yet"
    recovered = totals.outcomes[Outcome.RECOVERED]
    rest = ", ".join(
        f"{totals.outcomes[outcome]} {outcome}"
        for outcome in (Outcome.NO_EFFECT, Outcome.MADE_WORSE)
    )
    return f"{share:.0%}: {recovered} of {judged} recovered ({rest})"


def fleet_lines(board: FleetBoard) -> list[tuple[str, str, Ink]]:
    totals = board.totals
    needs, tasks = totals.needs, totals.tasks
    canceled = tasks[Lifecycle.CANCELED] + tasks[Lifecycle.REJECTED]
    idle = sum(row.need is Need.QUEUED and row.state.idle for row in board.all_rows())
    return [
        ("working", str(needs[Need.WORKING]), "good"),
        ("suspect", str(needs[Need.SUSPECT]), "warn"),
        ("stuck", str(needs[Need.STUCK]), "bad"),
        ("waiting", str(needs[Need.ANSWER] + needs[Need.APPROVAL]), "warn"),
        ("queued", str(needs[Need.QUEUED] - idle), "dim"),
        *([("idle", str(idle), "dim")] if idle else []),
        ("completed", str(totals.completed), "good"),
        *([("ended", str(len(totals.ended)), "dim")] if totals.ended else []),
        ("failed", str(tasks[Lifecycle.FAILED]), "bad"),
        ("canceled", str(canceled), "dim"),
    ]


def overview_text(
    board: FleetBoard,
    colours: Palette,
    *,
    width: int,
    now: datetime,
    about: Sequence[str] = (),
) -> Text:
    """Return the whole overview for a width; `about` is the constant part."""
    totals, counts = board.totals, fleet_lines(board)
    text = Text(no_wrap=True, overflow="ellipsis")
    if board.progress:
        text.append(f"{board.progress} So far:\n\n", colours.warn)
    text.append("Fleet\n", colours.heading)
    per_line = max(1, width // 18)
    for place, (word, count, style) in enumerate(counts, start=1):
        text.append(f"  {count:>5}", colours[style] if count != "0" else colours.dim)
        text.append(f" {word:<10}", colours.text)
        if place % per_line == 0 or place == len(counts):
            text.append("\n")
    text.append("\n")
    _add_nodes(text, board.node_list, colours)
    text.append("Used by workers so far\n", colours.heading)
    used = totals.used
    words = usage_text(requests=used.requests, tokens=used.tokens, cost_usd=used.cost_usd)
    text.append(f"  {words}\n\n")
    text.append("Supervision\n", colours.heading)
    decided = ", ".join(f"{actor} {totals.acts[actor]}" for actor in Actor)
    text.append(f"  alerts fired     {totals.alerts}\n")
    text.append(f"  interventions    {totals.interventions} delivered\n")
    text.append(f"  decided by       {decided}\n")
    text.append(f"  recovery         {rate(totals)}\n\n")
    for what, style in (("alerts", colours.bad), ("interventions", colours.accent)):
        found = bars(totals.times, what, most=max(1, width - _AXIS - 2))
        text.append(f"{what.capitalize()} per {found.length}\n", colours.heading)
        _add_chart(text, found, width - _AXIS - 2, style, colours, now)
    if about:
        text.append("Watching\n", colours.heading)
        text.append("".join(f"  {one_line(line)}\n" for line in about), colours.text)
    return text


def _add_nodes(text: Text, nodes: NodeList, colours: Palette) -> None:
    """Add the nodes, if there are any."""
    if not nodes.nodes:
        return
    text.append("Nodes\n", colours.heading)
    counts = Counter(map(node_word, nodes.nodes.values()))
    for word, style in _NODES:
        if counts[word] or word in ("up", "lost"):
            text.append(f"  {counts[word]:>5}", colours[style if counts[word] else "dim"])
            text.append(f" {word}", colours.text)
    busy = sum(each.busy for each in nodes.at_work)
    slots = sum(each.slots for each in nodes.at_work)
    text.append(f"   {busy} of {count_noun(slots, 'slot')} in use\n\n", colours.text)


def _add_chart(
    text: Text, found: Bars, room: int, style: Style, colours: Palette, now: datetime
) -> None:
    width = min(_WIDEST, max(1, room) // max(1, len(found.values)))
    lines = draw_bars(found.values, width=width)
    if not lines:
        text.append("  none\n\n", colours.dim)
        return
    for number, line in enumerate(lines):
        mark = {0: str(max(found.values)), len(lines) - 1: "0"}.get(number, "")
        text.append(f"{mark:>{_AXIS - 1}} ", colours.dim)
        text.append(f"{line}\n", style)
    text.append(f"{'':{_AXIS}}{axis(found, now, width=width)}\n\n", colours.dim)


def axis(found: Bars, now: datetime, *, width: int = 1) -> str:
    """Return when the first and the last bar began, for bars of a width in cells."""
    if found.first is None:
        return ""
    last = found.first + timedelta(seconds=found.seconds * (len(found.values) - 1))
    ends = [clock(found.first, now), clock(last, now)]
    room = len(found.values) * width - len(ends[0])
    return f"{ends[0]}{ends[1]:>{room}}" if room > len(ends[1]) else " to ".join(ends)


class OverviewPane(ScrollingText, RowChooser):
    def __init__(
        self, board: FleetBoard, now: Callable[[], datetime], about: Sequence[str]
    ) -> None:
        super().__init__(id="overview-pane")
        self._board = board
        self._now = now
        self._about = about
        self._drawn: tuple[Text, Palette] | None = None

    def close_filter(self) -> bool:
        return False

    def on_mount(self) -> None:
        on_theme_change(self, self.refresh_board)

    def on_resize(self) -> None:
        self.refresh_board()

    def refresh_board(self) -> None:
        colours = palette_of(self)
        width = max(20, self.scrollable_content_region.width)
        text = overview_text(self._board, colours, width=width, now=self._now(), about=self._about)
        if (text, colours) != self._drawn:  # an update lays out the whole screen again
            self._drawn = (text, colours)
            self.show_text(text)
