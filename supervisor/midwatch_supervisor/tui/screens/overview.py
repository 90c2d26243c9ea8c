"""The sums: how many do what, what it cost, what was done about it and what came of that."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from time import monotonic

from rich.text import Text

from midwatch_monitor.records import Actor, Lifecycle, Outcome
from midwatch_supervisor.present.numbers import counted
from midwatch_supervisor.tui.state.board import Board, Totals
from midwatch_supervisor.tui.state.node_list import standing
from midwatch_supervisor.tui.state.row import Need, Row
from midwatch_supervisor.tui.widgets.palette import Palette, palette_of
from midwatch_supervisor.tui.widgets.scrolling_text import ScrollingText

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_HEIGHT = 4
"""Lines of a bar chart."""
_WIDEST = 6
"""Cells of a bar at most."""
_AXIS = 6
"""Cells left of a bar chart."""
_FEW = 1_000
"""Attempts that may be summed at every frame."""
_NODES = (
    ("up", "good"),
    ("doubted", "warn"),
    ("draining", "warn"),
    ("down", "dim"),
    ("lost", "bad"),
)
"""How nodes stand, with the name of the style."""
SPANS = (10, 30, 60, 120, 300, 600, 1800, 3600)
"""Seconds that one bar may stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What the overview says in numbers."""

    needs: Counter[Need] = field(default_factory=Counter[Need])
    """Attempts, and tasks without one."""
    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


def summed(rows: Iterable[Row]) -> Sums:
    """The sums over the lines of the fleet."""
    needs: Counter[Need] = Counter()
    requests = tokens = cost = 0.0
    for row in rows:
        needs[row.need] += 1
        requests += row.state.budget.requests.used
        tokens += row.state.budget.tokens.used
        cost += row.state.budget.cost_usd.used
    return Sums(needs=needs, requests=round(requests), tokens=round(tokens), cost_usd=cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """How often something happened, in spans of time that follow each other."""

    seconds: int = SPANS[0]
    """How long one span is."""
    first: datetime | None = None
    """When the first span begins."""
    values: tuple[int, ...] = ()

    @property
    def length(self) -> str:
        """The span in words."""
        if self.seconds < 60:
            return f"{self.seconds} seconds"
        if self.seconds == 3600:
            return "hour"
        return "minute" if self.seconds == 60 else f"{self.seconds // 60} minutes"


def bars(times: Mapping[datetime, Counter[str]], what: str, *, most: int) -> Bars:
    """What happened from the first time to the last, in `most` bars at most."""
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


def drawn(values: Sequence[int], *, height: int = _HEIGHT, width: int = 1) -> list[str]:
    """Values as columns of blocks, the top line first; the largest fills the height.

    Empty if nothing happened. A value above 0 is never invisible.
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
    """The recovery rate in words, with the counts that it is made of."""
    judged, share = totals.outcomes.total(), totals.recovery_rate
    if share is None:
        return "no intervention has been judged yet"
    recovered = totals.outcomes[Outcome.RECOVERED]
    rest = ", ".join(
        f"{totals.outcomes[outcome]} {outcome}"
        for outcome in (Outcome.NO_EFFECT, Outcome.MADE_WORSE)
    )
    return f"{share:.0%}: {recovered} of {judged} recovered ({rest})"


def amount(number: int) -> str:
    """A number as people write it: 840, 12.3 k, 1.0 M."""
    if number < 10_000:
        return f"{number:,}"
    units = ((1e3, "k"), (1e6, "M"), (1e9, "G"))
    size, unit = next((each for each in units if round(number / each[0], 1) < 1_000), units[-1])
    return f"{number / size:.1f} {unit}"


def fleet_lines(sums: Sums, tasks: Mapping[Lifecycle, int]) -> list[tuple[str, str, str]]:
    """The counts with their words and the name of their style."""
    needs = sums.needs
    return [
        ("working", str(needs[Need.WORKING]), "good"),
        ("suspect", str(needs[Need.SUSPECT]), "warn"),
        ("stuck", str(needs[Need.STUCK]), "bad"),
        ("waiting", str(needs[Need.ANSWER] + needs[Need.APPROVAL]), "warn"),
        ("queued", str(needs[Need.QUEUED]), "dim"),
        ("completed", str(tasks.get(Lifecycle.COMPLETED, 0)), "good"),
        ("failed", str(tasks.get(Lifecycle.FAILED, 0)), "bad"),
        ("canceled", str(_others(tasks)), "dim"),
    ]


def _others(tasks: Mapping[Lifecycle, int]) -> int:
    return tasks.get(Lifecycle.CANCELED, 0) + tasks.get(Lifecycle.REJECTED, 0)


def acts(totals: Totals) -> str:
    """Who decided how often."""
    return ", ".join(f"{actor} {totals.acts[actor]}" for actor in Actor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The text of the overview for a width, from a board."""

    board: Board
    sums: Sums
    colours: Palette
    width: int
    zone: tzinfo | None = None

    def text(self) -> Text:
        """All of it."""
        text = Text(no_wrap=True, overflow="ellipsis")
        self._fleet(text)
        self._nodes(text)
        self._spent(text)
        self._done(text)
        for what in ("alerts", "interventions"):
            self._chart(text, what)
        return text

    def _title(self, text: Text, title: str) -> None:
        text.append(f"{title}\n", self.colours.heading)

    def _fleet(self, text: Text) -> None:
        self._title(text, "Fleet")
        lines = fleet_lines(self.sums, self.board.lifecycles())
        per_line = max(1, self.width // 18)
        for place, (word, count, style) in enumerate(lines):
            found = getattr(self.colours, style) if count != "0" else self.colours.dim
            text.append(f"  {count:>5}", found)
            text.append(f" {word:<10}", self.colours.text)
            if place % per_line == per_line - 1 or place == len(lines) - 1:
                text.append("\n")
        text.append("\n")

    def _nodes(self, text: Text) -> None:
        """What there is to work on; nothing where the work is done in one place."""
        nodes = self.board.node_list.nodes.values()
        if not nodes:
            return
        self._title(text, "Nodes")
        counts = Counter(standing(each) for each in nodes)
        for word, style in _NODES:
            if counts[word] or word in ("up", "lost"):
                found = getattr(self.colours, style) if counts[word] else self.colours.dim
                text.append(f"  {counts[word]:>5}", found)
                text.append(f" {word}", self.colours.text)
        there = self.board.node_list.at_work
        busy, slots = sum(each.busy for each in there), sum(each.slots for each in there)
        text.append(f"   {busy} of {counted(slots, 'slot')} in use\n\n", self.colours.text)

    def _spent(self, text: Text) -> None:
        sums = self.sums
        self._title(text, "Spent so far, by the workers")
        text.append(f"  {sums.requests:,} requests   {amount(sums.tokens)} tokens")
        text.append(f"   $ {sums.cost_usd:,.2f}\n\n")

    def _done(self, text: Text) -> None:
        totals = self.board.totals
        self._title(text, "Supervision")
        text.append(f"  alerts fired     {totals.alerts}\n")
        text.append(f"  interventions    {totals.interventions} delivered\n")
        text.append(f"  decided by       {acts(totals)}\n")
        text.append(f"  recovery         {rate(totals)}\n\n")

    def _chart(self, text: Text, what: str) -> None:
        room = max(1, self.width - _AXIS - 2)
        found = bars(self.board.totals.times, what, most=room)
        wide = min(_WIDEST, room // max(1, len(found.values)))
        self._title(text, f"{what.capitalize()} per {found.length}")
        lines = drawn(found.values, width=wide)
        if not lines:
            text.append("  none\n\n", self.colours.dim)
            return
        style = self.colours.bad if what == "alerts" else self.colours.accent
        for number, line in enumerate(lines):
            mark = {0: max(found.values), len(lines) - 1: 0}.get(number)
            text.append(f"{'' if mark is None else mark:>{_AXIS - 1}} ", self.colours.dim)
            text.append(f"{line}\n", style)
        text.append(f"{'':{_AXIS}}{axis(found, self.zone, width=wide)}\n\n", self.colours.dim)


def axis(found: Bars, zone: tzinfo | None, *, width: int = 1) -> str:
    """When the first bar and the last one began, where bars have a width in cells."""
    if found.first is None:
        return ""
    last = found.first + timedelta(seconds=found.seconds * (len(found.values) - 1))
    ends = [f"{at.astimezone(zone):%H:%M:%S}" for at in (found.first, last)]
    room = len(found.values) * width - len(ends[0])
    return f"{ends[0]}{ends[1]:>{room}}" if room > len(ends[1]) else " to ".join(ends)


class OverviewPane(ScrollingText):
    """The overview; of a large fleet it is summed anew once a second at most."""

    def __init__(self, board: Board, now: Callable[[], datetime]) -> None:
        super().__init__(id="overview-pane")
        self._board = board
        self._now = now
        self._drawn_at = 0.0
        self._drawn: tuple[Text, Palette] | None = None

    def on_resize(self) -> None:
        self._draw()

    def refresh_board(self) -> None:
        """Show the board as it is now."""
        now = monotonic()
        if len(self._board.rows) <= _FEW or now - self._drawn_at >= 1:
            self._drawn_at = now
            self._draw()

    def _draw(self) -> None:
        colours = palette_of(self)
        sums = summed(self._board.all_rows())
        zone = self._now().tzinfo
        width = max(20, self.scrollable_content_region.width)
        text = Overview(
            board=self._board, sums=sums, colours=colours, width=width, zone=zone
        ).text()
        if (text, colours) != self._drawn:  # an update lays the whole screen out again
            self._drawn = (text, colours)
            self.show_text(text)
