"""The report on what is learned as one-line objects, for programs. Pure."""

from collections.abc import Iterator

from midwatch_monitor.metrics.comparison import ComparisonFigures, SavingFigures, Side
from midwatch_monitor.metrics.reviews import FactFigures
from midwatch_monitor.metrics.usefulness import LessonFigures
from midwatch_monitor.metrics.verdicts import AcceptanceFigures
from midwatch_monitor.metrics.versions import GuidelinesFigures
from midwatch_monitor.replay.tune.figures import Share
from midwatch_monitor.replay.tune.peers import Interval
from midwatch_supervisor.report.fields import Line, rate_fields, rounded, usage_fields
from midwatch_supervisor.report.learning.reading import LearningReading


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
        "lessons": figures.lessons,
        "obsolete": figures.obsolete,
        "insights": figures.insights,
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


def _side(side: Side) -> Line:
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
    return {
        "type": "facts",
        "facts": figures.facts,
        "ended": figures.ended,
        "unreviewed": figures.unreviewed,
        "pending": figures.pending,
        "reviews": {
            "ok": figures.reviews,
            "fallback": figures.fallbacks,
            "skipped": figures.skipped,
        },
        "looked_at": figures.looked_at,
        "modified": figures.modified,
        "removed": figures.removed,
        "missed": figures.missed,
        "conflicts": figures.conflicts,
        "unanswered": figures.unanswered,
        "quiet": figures.quiet,
        "worth": figures.worth.name.lower(),
        **usage_fields(figures.cost),
    }


def _guidelines(figures: GuidelinesFigures) -> Iterator[Line]:
    yield {
        "type": "guidelines",
        "reflections": figures.reflections,
        "skipped": figures.skipped,
        "failed": figures.failed,
        "insights": figures.insights,
        "versions": figures.versions,
        "approved": figures.approved,
        "rejected": figures.rejected,
        "rolled_back": figures.rolled_back,
        "trials": figures.trials,
        "adopted": figures.adopted,
        "gain": rounded(figures.gain),
    }
    for under in figures.under:
        yield {
            "type": "under",
            "guidelines": under.guidelines,
            "version": under.version or None,
            "origin": under.origin.value,
            **_accepted(under.accepted),
        }
