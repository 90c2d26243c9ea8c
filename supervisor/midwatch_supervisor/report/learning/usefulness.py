"""Which lessons there are, how they are used, and what came of it. Pure."""

from collections.abc import Mapping

from midwatch_monitor.metrics.usefulness import MIN_USES, Effect, LessonFigures
from midwatch_monitor.records import KnownLesson
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.report.learning.bars import NAMES, count_bar
from midwatch_supervisor.report.saying import of, rate
from midwatch_supervisor.report.section import Chart, Section, Table

MAX_LESSONS = 50
"""Lessons whose effect is listed; the most and the least useful. `--json` has them all."""
_TEXT = 70


def lessons(figures: LessonFigures, known: Mapping[int, KnownLesson]) -> Section:
    """Lessons, their failure classes, and how often they were given."""
    explained = [
        "Failure classes are those of lessons from one rejected or failed attempt.",
        f"What a lesson did is told from {MIN_USES} judged uses on, each origin of verdicts by "
        "itself. A lesson is given where it fits, not by lot: hard tasks are given more of them, "
        "so compare lessons with each other, not with attempts without any.",
    ]
    if not (figures.lessons or figures.recalls):
        return Section(title="Lessons", explained=tuple(explained), nothing="No lesson yet.")
    tables = [_counts(figures)]
    if figures.effects:
        tables.append(_effects(figures.effects, known))
        if len(figures.effects) > MAX_LESSONS:
            explained.append(f"Of {len(figures.effects)} lines {MAX_LESSONS} are listed.")
    classes = Chart(
        title="lessons by failure class",
        series=("lessons",),
        bars=tuple(count_bar(name, count) for name, count in figures.classes),
    )
    methods = Chart(
        title="lessons given, by why they were found",
        series=("uses",),
        bars=tuple(count_bar(method, count) for method, count in figures.methods),
    )
    return Section(
        title="Lessons",
        explained=tuple(explained),
        charts=tuple(chart for chart in (classes, methods) if chart.bars),
        tables=tuple(tables),
    )


def _counts(figures: LessonFigures) -> Table:
    median = figures.ratings.median
    rows = [
        ("lessons", str(figures.lessons)),
        ("of these retired or archived", str(figures.obsolete)),
        ("of these from a look back", str(figures.insights)),
        ("attempts that were given something, or compared", str(figures.recalls)),
        ("of these given a lesson", str(figures.given)),
        ("lessons given in all", str(figures.uses)),
        ("lessons rated by a person", str(figures.ratings.of)),
    ]
    if median is not None:
        rows.append(("median rating, from 1 to 5", f"{median:g}"))
    if figures.seconds is not None and figures.longest is not None:
        rows.append(("seconds to find them, median", f"{figures.seconds:.3f}"))
        rows.append(("seconds to find them, longest", f"{figures.longest:.3f}"))
    return Table(heads=("", "count"), rows=tuple(rows))


def _effects(effects: tuple[Effect, ...], known: Mapping[int, KnownLesson]) -> Table:
    half = MAX_LESSONS // 2
    listed = effects if len(effects) <= MAX_LESSONS else (*effects[:half], *effects[-half:])
    return Table(
        heads=("lesson", "verdicts", "accepted", "rate (95 % interval)", "text"),
        rows=tuple(
            (
                str(effect.lesson),
                NAMES[effect.origin],
                of(effect.accepted),
                rate(effect.accepted),
                _text(known.get(effect.lesson)),
            )
            for effect in listed
        ),
        words=(0, 1, 4),
    )


def _text(known: KnownLesson | None) -> str:
    return "-" if known is None else brief(known.lesson.text, _TEXT)
