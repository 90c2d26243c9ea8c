"""The report on what is learned as one-line objects, for programs. Pure."""

from collections.abc import Iterator

from midwatch_monitor.metrics.knowledge import FactFigures, GuidelinesFigures
from midwatch_monitor.metrics.lessons import (
    AcceptanceFigures,
    ComparedGroup,
    ComparisonFigures,
    LessonFigures,
    SavingFigures,
)
from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_supervisor.report.reading import LearningReading
from midwatch_supervisor.report.run_lines import Line, integers, rate_fields, rounded, usage_fields


def learning_lines(reading: LearningReading) -> Iterator[Line]:
    """One object for each figure; nothing where nothing was judged and nothing was learned."""
    figures = reading.figures
    if not figures:
        return
    for each in figures.acceptance:
        yield from _acceptance(each)
    yield from _lessons(figures.lessons, reading)
    yield from (_comparison(each) for each in figures.comparisons)
    for effort in figures.efforts:
        yield {
            "type": "effort",
            "cohort": effort.cohort.value,
            "tasks": effort.tasks,
            "attempts": rounded(effort.attempts),
            "tokens": round(effort.tokens),
        }
    yield from (_saving(each) for each in figures.savings)
    yield _facts(figures.facts)
    yield from _guidelines(figures.guidelines)
    for role, usage in figures.spending.roles:
        share = rounded(figures.spending.share(usage))
        yield {"type": "spending", "role": role, **usage_fields(usage), "share": share}


def _acceptance(figures: AcceptanceFigures) -> Iterator[Line]:
    origin = {"origin": figures.origin.value}
    yield {"type": "acceptance", **origin, **_accepted(figures.accepted)}
    for week in figures.weeks:
        begins = week.begins.isoformat()
        yield {"type": "week", **origin, "begins": begins, **_accepted(week.accepted)}
    for number, part in enumerate(figures.curve, 1):
        span = {"part": number, "first": part.first, "last": part.last}
        yield {"type": "curve", **origin, **span, **_accepted(part.accepted)}


def _accepted(share: Share) -> Line:
    return {"judged": share.of, "accepted": share.hits, **rate_fields(share)}


def _lessons(figures: LessonFigures, reading: LearningReading) -> Iterator[Line]:
    yield {
        "type": "lessons",
        **integers(figures, "lessons", "obsolete", "insights"),
        "attempts": figures.recalls,
        "attempts_given": figures.given,
        "uses": figures.uses,
        "methods": {method.value: count for method, count in figures.methods},
        "ratings": {str(rating): count for rating, count in figures.ratings.counts},
        "seconds": {"median": rounded(figures.seconds), "max": rounded(figures.longest)},
    }
    for name, count in figures.classes:
        yield {"type": "failure_class", "failure_class": name, "lessons": count}
    for effect in figures.effects:
        known = reading.lessons.get(effect.lesson)
        yield {
            "type": "effect",
            "lesson": effect.lesson,
            "text": known.lesson.text if known else None,
            "origin": effect.origin.value,
            **_accepted(effect.accepted),
        }


def _comparison(figures: ComparisonFigures) -> Line:
    return {
        "type": "comparison",
        "origin": figures.origin.value,
        "treatment": _side(figures.treatment),
        "control": _side(figures.control),
        **_difference(figures.difference),
        "answer": figures.answer.name.lower(),
    }


def _side(side: ComparedGroup) -> Line:
    return {"tasks": side.tasks, **_accepted(side.accepted)}


def _difference(spread: Interval | None) -> Line:
    if spread is None:
        return {"difference_low": None, "difference_high": None}
    return {"difference_low": rounded(spread.low), "difference_high": rounded(spread.high)}


def _saving(figures: SavingFigures) -> Line:
    return {
        "type": "saving",
        "what": figures.what,
        "difference": rounded(figures.difference),
        **_difference(figures.interval),
        "answer": figures.answer.name.lower(),
    }


def _facts(figures: FactFigures) -> Line:
    reviews = {"ok": figures.reviews, "fallback": figures.fallbacks, "skipped": figures.skipped}
    return {
        "type": "facts",
        **integers(figures, "facts", "ended", "unreviewed", "pending"),
        "reviews": reviews,
        **integers(figures, "looked_at", "modified", "removed", "missed", "conflicts"),
        **integers(figures, "unanswered", "quiet"),
        "worth": figures.worth.name.lower(),
        **usage_fields(figures.cost),
    }


def _guidelines(figures: GuidelinesFigures) -> Iterator[Line]:
    yield {
        "type": "guidelines",
        **integers(figures, "reflections", "skipped", "failed", "insights", "versions"),
        **integers(figures, "approved", "rejected", "rolled_back"),
    }
    for under in figures.under:
        yield {
            "type": "under",
            "guidelines": under.guidelines,
            "version": under.version or None,
            "origin": under.origin.value,
            **_accepted(under.accepted),
        }
