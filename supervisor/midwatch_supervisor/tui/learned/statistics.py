"""What learning comes to: verdicts by origin, classes of failure, what was given, what failed."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, tzinfo
from time import monotonic

from rich.text import Text
from textual import work

from midwatch_monitor.metrics.learning import LearningFigures
from midwatch_monitor.metrics.lessons import AcceptanceFigures, LessonFigures
from midwatch_monitor.metrics.statistics import Share
from midwatch_supervisor.present.learning_text import verdict_text
from midwatch_supervisor.present.numbers import counted
from midwatch_supervisor.present.text_line import because, brief
from midwatch_supervisor.tui.state.learning import LearningCounts
from midwatch_supervisor.tui.widgets.palette import Palette, on_theme_change, palette_of
from midwatch_supervisor.tui.widgets.scrolling_text import ScrollingText

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
        self,
        counts: LearningCounts,
        figures: LearningFigures,
        colours: Palette,
        zone: tzinfo | None,
    ) -> None:
        self._counts = counts
        self._figures = figures
        self._colours = colours
        self._zone = zone
        self._text = Text(no_wrap=True, overflow="ellipsis")

    def text(self) -> Text:
        """All of it."""
        if not self._figures and not self._counts.failed:
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
        failed = self._counts.failed
        if not failed:
            return
        self._title("What failed; the next run tries again what can be made up for")
        told = ", ".join(f"{brief(part)} {count}" for part, count in failed.items())
        self._lines([f"{told}{because(self._counts.failure)}"])

    def _history(self) -> None:
        history = list(self._counts.history)[-_VERDICTS:]
        if not history:
            return
        self._title("Verdicts, the newest first")
        self._lines(
            f"{each.at.astimezone(self._zone):%H:%M:%S} {brief(each.name)} "
            f"{verdict_text(each.verdict)}{because(each.verdict.comment)}"
            for each in reversed(history)
        )


def _classes(lessons: LessonFigures) -> Iterable[str]:
    most = lessons.classes[0][1]
    for name, count in lessons.classes[:_CLASSES]:
        yield f"{brief(name):<20} {count:>5} {bar(count, most)}"
    rest = sum(count for _, count in lessons.classes[_CLASSES:])
    if rest:
        yield f"{'others':<20} {rest:>5} {bar(rest, max(most, rest))}"


class StatisticsPart(ScrollingText):
    """The statistics as a text that scrolls."""

    def __init__(self, counts: LearningCounts, now: Callable[[], datetime]) -> None:
        super().__init__(id="statistics")
        self._figures: LearningFigures | None = None
        self._counts = counts
        self._now = now
        self._summed = -1
        self._summed_at = 0.0
        self._summing = False

    def on_mount(self) -> None:
        on_theme_change(self, self.recolour)

    def refresh_board(self) -> None:
        """Sum up anew, if anything has changed. Only called while it is seen."""
        early = self._summed >= 0 and monotonic() - self._summed_at < _PAUSE
        if self._summing or early or self._summed == self._counts.grown:
            return
        self._summing, self._summed = True, self._counts.grown
        self._sum()

    @work(group="figures")
    async def _sum(self) -> None:
        self._figures = await asyncio.to_thread(self._counts.figures)
        self._summing, self._summed_at = False, monotonic()
        self.recolour()

    def recolour(self) -> None:
        """Show what was summed up, in the colours of the present theme."""
        if self._figures is not None:
            zone = self._now().tzinfo
            self.show_text(Statistics(self._counts, self._figures, palette_of(self), zone).text())
