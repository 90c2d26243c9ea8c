"""A chart of an attempt's confidence and progress by step, with alerts and interventions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.color import Color
from textual.containers import Vertical
from textual.widgets import Static
from textual_plotext import PlotextPlot

from midwatch_monitor.records import Severity
from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline
from midwatch_supervisor.tui.widgets.palette import app_of, on_theme_change

_POINTS = 400
"""Number of checkpoints drawn: more than a wide terminal has columns."""
_NONE = "No checkpoints yet."


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one kind, with a marker that is clear without colour. Positional, as in a table."""

    name: str
    marker: str
    colour: str
    """A variable of the theme."""
    steps: tuple[int, ...]
    values: tuple[int, ...]
    line: bool = False

    @property
    def sign(self) -> str:
        """Its marker as one character, for the legend."""
        return "⠒" if self.marker == "braille" else self.marker


def series(timeline: AttemptTimeline) -> tuple[Series, ...]:
    """Return the chart's series; alerts are at the bottom, delivered interventions at the top."""
    points = timeline.points[-_POINTS:]
    steps = tuple(point.step for point in points)
    shown = range(steps[0] if len(timeline.points) > _POINTS else 0, timeline.state.last_step + 1)

    def marks(name: str, marker: str, colour: str, height: int, found: Iterable[int]) -> Series:
        places = tuple(step for step in found if step in shown)
        return Series(name, marker, colour, places, (height,) * len(places))

    confidence = tuple(point.confidence for point in points)
    progress = tuple(point.progress for point in points)
    every = (
        Series("confidence", "braille", "accent", steps, confidence, line=True),
        Series("progress", "▪", "success", steps, progress, line=True),
        marks("warning", "▲", "warning", 3, _fired_steps(timeline, Severity.WARNING)),
        marks("critical", "■", "error", 3, _fired_steps(timeline, Severity.CRITICAL)),
        marks("delivered", "»", "primary", 97, _delivered_steps(timeline)),
    )
    return tuple(each for each in every if each.steps)


def _fired_steps(timeline: AttemptTimeline, severity: Severity) -> list[int]:
    """Return the steps at which alerts of a severity began to fire."""
    alerts = (each.alert for each in timeline.alerts)
    return [each.step for each in alerts if each.firing and each.severity is severity]


def _delivered_steps(timeline: AttemptTimeline) -> list[int]:
    own = timeline.attempt.id
    found = (each for each in timeline.state.interventions if each.delivered)
    # The restart it began with was delivered before its first step.
    return [(each.delivered_step or 0) if each.attempt == own else 0 for each in found]


def ticks(first: int, last: int) -> tuple[int, ...]:
    """Return the steps labelled below the chart: at most eight whole numbers."""
    stride = max(1, -(-(last - first + 1) // 8))
    return tuple(range(first, last + 1, stride))


class Chart(Vertical):
    """The chart, or why there is none yet."""

    DEFAULT_CSS = """
    Chart { height: 1fr; }
    Chart > .empty { display: none; padding: 1 2; }
    Chart > .legend { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    Chart.bare > .empty { display: block; }
    Chart.bare > PlotextPlot, Chart.bare > .legend { display: none; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, classes="bare")
        self._plot = PlotextPlot()
        self._empty = Static(_NONE, classes="empty", markup=False)
        self._shown: tuple[tuple[Series, ...], int] | None = None

    def compose(self) -> ComposeResult:
        yield self._empty
        yield Static(classes="legend", markup=False)
        yield self._plot

    def on_mount(self) -> None:
        on_theme_change(self, self.redraw)

    def wait_for(self, progress: str) -> None:
        """Show `progress` while the chart is empty; an empty text ends that."""
        self._empty.update(progress or _NONE)

    def show_timeline(self, timeline: AttemptTimeline) -> None:
        """Draw the timeline, unless that is already drawn."""
        shown = series(timeline), timeline.state.last_step
        if shown != self._shown:
            self._shown = shown
            self.redraw()

    def redraw(self) -> None:
        found, last = self._shown or ((), 0)
        self.set_class(not found, "bare")
        canvas: Any = self._plot.plt  # plotext has no types of its own
        canvas.clear_data()
        canvas.ylim(0, 100)
        first = min((min(each.steps) for each in found), default=1)
        canvas.xlim(first - 1, last + 1)
        canvas.yticks((0, 25, 50, 75, 100))
        canvas.xticks(ticks(first, last))
        canvas.xlabel("step")
        for each in found:
            draw = canvas.plot if each.line else canvas.scatter
            draw(each.steps, each.values, marker=each.marker, color=self._series_colour(each).rgb)
        self._plot.refresh()
        self.query_one(".legend", Static).update(self._legend(found), layout=False)

    def _legend(self, found: Sequence[Series]) -> Text:
        # Plotext's own legend breaks if a series has no point within the limits.
        parts = [(f"{each.sign} {each.name}  ", self._series_colour(each).hex) for each in found]
        return Text.assemble(*parts)

    def _series_colour(self, each: Series) -> Color:
        return Color.parse(app_of(self).theme_variables[each.colour])
