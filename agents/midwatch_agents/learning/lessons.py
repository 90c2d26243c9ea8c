"""Chooses the lessons for an attempt, and their number. Pure.

Relevance comes before age. How a lesson was found decides first: the same task, the same tags, the
same kind of work, the same files, the same words. Within each of these, the score decides: how well
it fits, times how often it helped. Harmful lessons come last or are left out, as are those that
share only a single word: no lesson is better than noise.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from midwatch_monitor.config.learning import LessonSettings
from midwatch_monitor.records import Candidate, KnownLesson, LearnedQuery, Method, Recalled
from midwatch_monitor.records.verdict import weight
from midwatch_tools.data_blocks import fold_lines

MOST = 5
"""Largest number of lessons in one prompt, even if more are configured: more would dilute them."""
_ORDER = (Method.TASK, Method.TAGS, Method.KIND, Method.FILES, Method.TEXT)
_JUDGED = 3
"""Judged uses needed before a lesson can count as harmful."""
_HELPFUL = 1 / 3
"""Share of judged uses that must have been accepted."""
_MISLEADING = 1
"""A person's rating at which a lesson is left out."""
_UNRATED = 3
"""The rating, from 1 to 5, assumed for a lesson without one."""
_COMMON = 2
"""Number of shared words needed for a lesson that is only found by words."""
_RECENT = 20
"""Number of recent judged uses that show whether lessons help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """A lesson, how it was found, and how well it fits."""

    known: KnownLesson
    method: Method
    score: float

    @property
    def rank(self) -> tuple[float, ...]:
        """Sort key; the best lesson has the smallest one."""
        lesson = self.known
        return (
            _ORDER.index(self.method),
            -self.score,
            -weight(lesson.lesson.origin),
            -(lesson.rating or _UNRATED),
            -lesson.at.timestamp(),
            -lesson.id,
        )


def choose_lessons(
    candidates: Sequence[Candidate], wanted: LearnedQuery, *, limit: int
) -> tuple[Recalled, ...]:
    """Return the lessons for an attempt, best first: at most `limit`, and never more than five.

    A score is between 0 and 1: how well the lesson fits (1 for the same task; for tags and files
    the share in common; for kind and words the BM25 value relative to the best one), times its
    worth: (accepted uses + 1) / (judged uses + 2), which is a half for an unused one.
    """
    best = max((each.bm25 for each in candidates), default=0.0) or 1.0
    fits = (_best_fit(each, wanted, best) for each in candidates if _is_eligible(each.known))
    ranked = sorted((fit for fit in fits if fit is not None), key=lambda fit: fit.rank)
    by_text: dict[str, _Fit] = {}
    for fit in ranked:
        by_text.setdefault(fold_lines(fit.known.lesson.text), fit)
    return tuple(
        Recalled(lesson=fit.known.id, method=fit.method, score=round(fit.score, 4))
        for fit in list(by_text.values())[: max(0, min(limit, MOST))]
    )


def worth(lesson: KnownLesson) -> float:
    """Return how likely a lesson is to help, from 0 to 1, judging by the outcomes of its uses."""
    return (lesson.helped + 1) / (lesson.helped + lesson.hurt + 2)


def how_many(settings: LessonSettings, known: Sequence[KnownLesson]) -> int:
    """Return how many lessons an attempt gets at most.

    If adaptive, it depends on about 20 judged uses of the lessons given most recently: one more
    than configured if two thirds helped and two more if nine tenths did, up to 5; one fewer if less
    than half did, and only one if less than a quarter did. With fewer than three judged uses, or
    with none configured, the number does not change.
    """
    if not settings.adaptive or not settings.in_prompt:
        return settings.in_prompt
    helped, judged = _recent_help(known)
    if judged < _JUDGED:
        return settings.in_prompt
    return max(1, min(MOST, _adapt_count(settings.in_prompt, helped / judged)))


def _adapt_count(number: int, share: float) -> int:
    if share < 1 / 4:
        return 1
    if share < 1 / 2:
        return number - 1
    return number + (share >= 2 / 3) + (share >= 9 / 10)


def _recent_help(known: Sequence[KnownLesson]) -> tuple[int, int]:
    """Return how many of the most recent judged uses helped, and their number."""
    used = [each for each in known if each.last_used is not None]
    helped = judged = 0
    for each in sorted(used, key=lambda each: (each.last_used, each.id), reverse=True):
        if judged < _RECENT:
            helped, judged = helped + each.helped, judged + each.helped + each.hurt
    return helped, judged


def _is_eligible(known: KnownLesson) -> bool:
    judged = known.helped + known.hurt
    harmful = judged >= _JUDGED and known.helped < judged * _HELPFUL
    return not (known.obsolete or known.rating == _MISLEADING or harmful)


def _best_fit(candidate: Candidate, wanted: LearnedQuery, best: float) -> _Fit | None:
    """Return the best way in which a lesson fits, and how well; `None` if it does not."""
    known, lesson = candidate.known, candidate.known.lesson
    words = candidate.bm25 / best if candidate.words >= _COMMON else 0.0
    tags = {tag.casefold() for tag in lesson.tags}, {tag.casefold() for tag in wanted.tags}
    ways = (
        (Method.TASK, float((known.project, known.task) == (wanted.project, wanted.task))),
        (Method.TAGS, _jaccard(*tags)),
        (Method.KIND, words if wanted.kind and lesson.kind == wanted.kind else 0.0),
        (Method.FILES, _jaccard({*lesson.files}, {*wanted.files})),
        (Method.TEXT, words),
    )
    found = ((method, likeness) for method, likeness in ways if likeness)
    method, likeness = next(found, (None, 0.0))
    return _Fit(known=known, method=method, score=likeness * worth(known)) if method else None


def _jaccard(one: Set[str], other: Set[str]) -> float:
    """Return the share of the union of two sets that is in both, from 0 to 1."""
    return len(one & other) / len(one | other) if one and other else 0.0
