"""What learning comes to: verdicts by origin, classes of failure, what was given, what failed."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from time import monotonic
from typing import ClassVar, cast

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from midwatch_monitor.metrics.learning import LearningFigures
from midwatch_monitor.metrics.lessons import AcceptanceFigures, LessonFigures
from midwatch_monitor.metrics.statistics import Share
from midwatch_supervisor.present.learning_text import counted, verdict_words
from midwatch_supervisor.present.text_line import because, brief
from midwatch_supervisor.tui.keys import ROLL
from midwatch_supervisor.tui.learned.tally import Tally
from midwatch_supervisor.tui.widgets.palette import Palette, palette

_EIGHTHS = "▁▂▃▄▅▆▇█"
_CLASSES = 8
"""Classes of failure that are told."""
_VERDICTS = 12
"""Verdicts that are told with their words."""
_PAUSE = 2.0
"""Seconds between two sums at least."""
EMPTY = (
    "No verdict yet. The result of an attempt is judged when it ends; accept or reject it in the\n"
    "fleet or in its view (A and R, unless changed), or with `midwatch feedback`."
)


def percent(share: Share) -> str:
    """A share with the counts that it is made of."""
    return f"{share.hits / share.of:>4.0%}  {share.hits} of {share.of}" if share.of else "   -"


def curve(figures: AcceptanceFigures) -> str:
    """The learning curve as one block character for each part, the oldest first."""
    return "".join(
        _EIGHTHS[min(7, each.accepted.hits * 8 // each.accepted.of)] for each in figures.curve
    )


def bar(number: int, most: int, width: int = 20) -> str:
    """A number beside the largest one."""
    return "█" * max(1, number * width // most) if number else ""


class Statistics:
    """The text of the statistics."""

    def __init__(
        self, tally: Tally, figures: LearningFigures, colours: Palette, zone: tzinfo | None
    ) -> None:
        self._tally = tally
        self._figures = figures
        self._colours = colours
        self._zone = zone
        self._text = Text(no_wrap=True, overflow="ellipsis")

    def text(self) -> Text:
        """All of it."""
        if not self._figures and not self._tally.failed:
            return Text(EMPTY)
        self._acceptance(self._figures.acceptance)
        self._lessons(self._figures.lessons)
        self._facts()
        self._failures()
        self._history()
        return self._text

    def _title(self, title: str) -> None:
        self._text.append(f"{title}\n", self._colours.heading)

    def _lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._text.append(f"  {line}\n", self._colours.text)
        self._text.append("\n")

    def _acceptance(self, origins: Iterable[AcceptanceFigures]) -> None:
        self._title("Results accepted, by who says so")
        told = [
            f"{each.origin.value:<10} {percent(each.accepted):<18} {curve(each)}"
            for each in origins
        ]
        self._lines(told or ["nobody has said anything yet"])

    def _lessons(self, lessons: LessonFigures) -> None:
        self._title("Lessons")
        drawn = counted(lessons.lessons, "lesson")
        given = counted(lessons.given, "attempt")
        lines = [
            f"drawn      {drawn}; {lessons.obsolete} obsolete",
            f"given      {counted(lessons.uses, 'time')}, to {given}",
        ]
        if lessons.methods:
            found = ", ".join(f"{method.value} {count}" for method, count in lessons.methods)
            lines.append(f"found by   {found}")
        for effect in lessons.effects[:3]:
            rate = percent(effect.accepted).strip()
            lines.append(f"of use     lesson {effect.lesson}: {rate} ({effect.origin})")
        for each in self._figures.comparisons:
            with_them, without = percent(each.treatment.accepted), percent(each.control.accepted)
            sides = f"with them {with_them.strip()}, without {without.strip()}"
            lines.append(f"accepted   {sides} ({each.origin}): {each.answer}")
        self._lines(lines)
        if lessons.classes:
            self._title("Classes of failure")
            self._lines(_classes(lessons))

    def _facts(self) -> None:
        facts = self._figures.facts
        if not facts.facts:
            return
        self._title("Facts")
        changed = (
            (facts.modified, "reworded"),
            (facts.removed, "removed"),
            (facts.missed, "added"),
            (facts.conflicts, "in conflict"),
        )
        said = ", ".join(f"{number} {word}" for number, word in changed if number)
        self._lines(
            (
                f"known      {facts.facts}; {facts.unreviewed} unreviewed, {facts.pending} pending",
                f"reviews    {facts.reviews} worked, {facts.fallbacks} failed, "
                f"{facts.skipped} skipped",
                f"changed    {said or 'nothing'}",
            )
        )

    def _failures(self) -> None:
        failed = self._tally.failed
        if not failed:
            return
        self._title("What failed; the next run tries again what can be made up for")
        told = ", ".join(f"{brief(part)} {count}" for part, count in failed.items())
        self._lines([f"{told}{because(self._tally.failure)}"])

    def _history(self) -> None:
        history = list(self._tally.history)[-_VERDICTS:]
        if not history:
            return
        self._title("Verdicts, the newest first")
        self._lines(
            f"{each.at.astimezone(self._zone):%H:%M:%S} {brief(each.name)} "
            f"{verdict_words(each.verdict)}{because(each.verdict.comment)}"
            for each in reversed(history)
        )


def _classes(lessons: LessonFigures) -> Iterable[str]:
    most = lessons.classes[0][1]
    for name, count in lessons.classes[:_CLASSES]:
        yield f"{brief(name):<20} {count:>5} {bar(count, most)}"
    rest = sum(count for _, count in lessons.classes[_CLASSES:])
    if rest:
        yield f"{'others':<20} {rest:>5} {bar(rest, max(most, rest))}"


class StatisticsPart(VerticalScroll, can_focus=True):
    """The statistics as a text that scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [key.binding for key in ROLL if key.action != "open"]
    DEFAULT_CSS = """
    StatisticsPart { padding: 0 1; scrollbar-size-vertical: 1; }
    StatisticsPart > Static { width: 1fr; height: auto; }
    """

    @dataclass
    class Summed(Message):
        """The figures as they are now."""

        figures: LearningFigures

    def __init__(self, tally: Tally, now: Callable[[], datetime]) -> None:
        super().__init__(id="statistics")
        self._figures: LearningFigures | None = None
        self._tally = tally
        self._now = now
        self._static = Static(markup=False)
        self._summed = -1
        self._summed_at = 0.0
        self._summing = False
        self.said = ""
        """What it says now."""

    def compose(self) -> ComposeResult:
        """One text."""
        yield self._static

    def on_mount(self) -> None:
        """Another theme colours the text anew."""
        theme = cast("App[object]", self.app).theme_changed_signal  # pyright: ignore[reportUnknownMemberType]
        theme.subscribe(self, lambda _: self.recolour())

    def refresh_board(self) -> None:
        """Sum up anew, if anything has changed. Only called while it is seen."""
        early = self._summed >= 0 and monotonic() - self._summed_at < _PAUSE
        if self._summing or early or self._summed == self._tally.grown:
            return
        self._summing, self._summed = True, self._tally.grown
        self._sum()

    @work(group="figures")
    async def _sum(self) -> None:
        self.post_message(self.Summed(await asyncio.to_thread(self._tally.figures)))

    @on(Summed)
    def _show(self, message: Summed) -> None:
        self._summing, self._summed_at = False, monotonic()
        self._figures = message.figures
        self.recolour()

    def recolour(self) -> None:
        """Show what was summed up, in the colours of the present theme."""
        if self._figures is None:
            return
        app = cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]
        colours = palette(app.get_css_variables())
        text = Statistics(self._tally, self._figures, colours, self._now().tzinfo).text()
        self.said = text.plain
        self._static.update(text)

    def action_move(self, lines: int) -> None:
        """Scroll by lines."""
        self.scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll by screenfuls."""
        self.action_move(pages * max(1, self.scrollable_content_region.height - 1))

    def action_first(self) -> None:
        """Scroll to the top."""
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        """Scroll to the end."""
        self.scroll_end(animate=False)
