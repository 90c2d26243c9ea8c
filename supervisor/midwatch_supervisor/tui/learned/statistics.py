"""Statistics of learning: verdicts by origin, lessons, failure classes, facts, failures."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from rich.text import Text

from midwatch_monitor.metrics.learning import LearningFigures
from midwatch_monitor.metrics.lessons import AcceptanceFigures, LessonFigures
from midwatch_monitor.metrics.statistics import Share
from midwatch_supervisor.present.learning_text import verdict_text
from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.text_line import because, brief
from midwatch_supervisor.tui.state.learning import LearningCounts
from midwatch_supervisor.tui.widgets.palette import Palette, on_theme_change, palette_of
from midwatch_supervisor.tui.widgets.scrolling_text import ScrollingText
from midwatch_supervisor.tui.widgets.table import clock

_EIGHTHS = "▁▂▃▄▅▆▇█"
_CLASSES = 8
"""Number of failure classes shown."""
_VERDICTS = 12
"""Number of verdicts shown with their comments."""
EMPTY = (
    "No verdicts yet. When an attempt has ended, accept or reject its result in the fleet or in\n"
    "its view (A and R, unless changed), or with `midwatch feedback`."
)


def percent(share: Share) -> str:
    return f"{share.hits / share.of:>4.0%}  {share.hits} of {share.of}" if share.of else "   -"


def curve(figures: AcceptanceFigures) -> str:
    """Return the learning curve as one block character for each part, oldest first."""
    return "".join(
        _EIGHTHS[min(7, each.accepted.hits * 8 // each.accepted.of)] for each in figures.curve
    )


def bar(number: int, most: int, width: int = 20) -> str:
    """Return a number as a bar relative to the largest one."""
    return "█" * max(1, number * width // most) if number else ""


def statistics_text(
    counts: LearningCounts, figures: LearningFigures, colours: Palette, now: datetime
) -> Text:
    """Return the statistics, with a heading for each part that has any."""
    if not figures and not counts.failed:
        return Text(EMPTY)
    text = Text(no_wrap=True, overflow="ellipsis")
    for title, lines in _statistics_sections(counts, figures, now):
        text.append(f"{title}\n", colours.heading)
        for line in lines:
            text.append(f"  {line}\n", colours.text)
        text.append("\n")
    return text


def _statistics_sections(
    counts: LearningCounts, figures: LearningFigures, now: datetime
) -> Iterator[tuple[str, Iterable[str]]]:
    told = [
        f"{each.origin.value:<10} {percent(each.accepted):<18} {curve(each)}"
        for each in figures.acceptance
    ]
    yield "Accepted results, by origin of the verdict", told or ["no verdicts yet"]
    yield "Lessons", _lesson_lines(figures)
    if figures.lessons.classes:
        yield "Failure classes", _failure_class_lines(figures.lessons)
    if figures.facts.facts:
        yield "Facts", _fact_lines(figures)
    if counts.failed:
        failed = ", ".join(f"{brief(part)} {count}" for part, count in counts.failed.items())
        title = "Failures of learning; the next run retries what it can"
        yield title, [f"{failed}{because(counts.failure)}"]
    if history := list(counts.history)[-_VERDICTS:]:
        verdicts = (
            f"{clock(each.at, now)} {brief(each.name)} "
            f"{verdict_text(each.verdict)}{because(each.verdict.comment)}"
            for each in reversed(history)
        )
        yield "Verdicts, newest first", verdicts


def _lesson_lines(figures: LearningFigures) -> Iterator[str]:
    lessons = figures.lessons
    yield f"drawn      {count_noun(lessons.lessons, 'lesson')}; {lessons.obsolete} obsolete"
    attempts = count_noun(lessons.given, "attempt")
    yield f"given      {count_noun(lessons.uses, 'time')}, to {attempts}"
    if lessons.methods:
        found = ", ".join(f"{method.value} {count}" for method, count in lessons.methods)
        yield f"found by   {found}"
    for effect in lessons.effects[:3]:
        rate = percent(effect.accepted).strip()
        yield f"useful     lesson {effect.lesson}: {rate} ({effect.origin})"
    for each in figures.comparisons:
        with_them, without = percent(each.treatment), percent(each.control)
        sides = f"with lessons {with_them.strip()}, without {without.strip()}"
        yield f"accepted   {sides} ({each.origin}): {each.answer}"


def _fact_lines(figures: LearningFigures) -> Iterator[str]:
    facts = figures.facts
    changed = (
        (facts.modified, "reworded"),
        (facts.removed, "removed"),
        (facts.missed, "added"),
        (facts.conflicts, "in conflict"),
    )
    said = ", ".join(f"{number} {word}" for number, word in changed if number)
    yield f"known      {facts.facts}; {facts.unreviewed} unreviewed, {facts.pending} pending"
    yield f"reviews    {facts.reviews} succeeded, {facts.fallbacks} failed, {facts.skipped} skipped"
    yield f"changed    {said or 'nothing'}"


def _failure_class_lines(lessons: LessonFigures) -> Iterable[str]:
    most = lessons.classes[0][1]
    for name, count in lessons.classes[:_CLASSES]:
        yield f"{brief(name):<20} {count:>5} {bar(count, most)}"
    rest = sum(count for _, count in lessons.classes[_CLASSES:])
    if rest:
        yield f"{'others':<20} {rest:>5} {bar(rest, max(most, rest))}"


class StatisticsPart(ScrollingText):
    def __init__(self, counts: LearningCounts, now: Callable[[], datetime]) -> None:
        super().__init__(id="statistics")
        self._figures: LearningFigures | None = None
        self._counts = counts
        self._now = now
        self._summed = -1

    def on_mount(self) -> None:
        on_theme_change(self, self.recolour)

    def refresh_board(self) -> None:
        """Compute the statistics again, if anything has changed. Called only while shown."""
        if self._summed != self._counts.grown:
            self._summed = self._counts.grown
            self._figures = self._counts.figures()
            self.recolour()

    def recolour(self) -> None:
        if self._figures is not None:
            colours = palette_of(self)
            self.show_text(statistics_text(self._counts, self._figures, colours, self._now()))
