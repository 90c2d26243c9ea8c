"""Which lessons there are, how often they were given, and what became of the attempts."""

from collections import Counter
from dataclasses import dataclass, field
from statistics import median

from midwatch_monitor.metrics.distribution import Distribution, distribution
from midwatch_monitor.metrics.verdicts import Verdicts
from midwatch_monitor.records import (
    Birth,
    Entry,
    Lesson,
    LessonAct,
    LessonMark,
    Method,
    Origin,
    Recall,
)
from midwatch_monitor.replay.tune.figures import Share

MIN_USES = 3
"""Judged uses of a lesson below which nothing is said of its worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What became of the attempts that were given one lesson, by the verdicts of one origin."""

    lesson: int
    origin: Origin
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonFigures:
    """Lessons and their use. An attempt counts by the last thing that it was given."""

    lessons: int = 0
    obsolete: int = 0
    """Of those, the ones that were retired or archived."""
    insights: int = 0
    """Of those, the ones that come from a look back at several attempts."""
    classes: tuple[tuple[str, int], ...] = ()
    """Failure classes of the lessons from one rejected or failed attempt, the commonest first."""
    ratings: Distribution = field(default_factory=Distribution)
    """The last rating of each lesson that a person rated."""
    recalls: int = 0
    """Attempts that were given anything, or that are compared."""
    given: int = 0
    """Of those, the ones that were given a lesson."""
    uses: int = 0
    """Lessons given, each counted once in each attempt."""
    methods: tuple[tuple[Method, int], ...] = ()
    """The uses by why the lesson was found."""
    effects: tuple[Effect, ...] = ()
    """Of lessons with at least three judged uses; the most useful first."""
    seconds: float | None = None
    """How long it took to find what these attempts were given: the median; `None` of none."""
    longest: float | None = None


class Usefulness:
    """Follows lessons and what attempts are given."""

    def __init__(self) -> None:
        self._lessons: dict[int, Lesson] = {}
        self._obsolete: dict[int, bool] = {}
        self._ratings: dict[int, int] = {}
        self._recalls: dict[int, Recall] = {}

    def observe(self, entry: Entry) -> None:
        """Take in the next entry of a task."""
        match entry.record:
            case Lesson() as lesson:
                self._lessons[entry.id] = lesson
            case LessonMark(act=LessonAct.RATED) as mark:
                self._ratings[mark.lesson] = mark.rating
            case LessonMark(act=LessonAct.GIVEN):
                pass
            case LessonMark() as mark:
                self._obsolete[mark.lesson] = mark.act is not LessonAct.RESTORED
            case Recall() as recall if entry.attempt is not None:
                self._recalls[entry.attempt] = recall
            case _:
                pass

    def recall(self, attempt: int) -> Recall | None:
        """What an attempt was given; `None` if nothing was, and nothing is compared."""
        return self._recalls.get(attempt)

    def under(self) -> dict[int, list[int]]:
        """The attempts that worked under each version of the guidelines, by its id."""
        found: dict[int, list[int]] = {}
        for attempt, recall in self._recalls.items():
            if recall.guidelines is not None:
                found.setdefault(recall.guidelines, []).append(attempt)
        return found

    def figures(self, verdicts: Verdicts) -> LessonFigures:
        """How it stands."""
        lessons = self._lessons.values()
        classes = Counter(each.failure_class for each in lessons if each.born is Birth.VERDICT)
        uses = self._uses()
        seconds = [recall.seconds for recall in self._recalls.values()]
        return LessonFigures(
            lessons=len(lessons),
            obsolete=sum(self._obsolete.get(id, False) for id in self._lessons),
            insights=sum(each.born is Birth.REFLECTION for each in lessons),
            classes=tuple(sorted(classes.items(), key=lambda item: (-item[1], item[0]))),
            ratings=distribution(Counter(self._ratings.values())),
            recalls=len(self._recalls),
            given=sum(bool(recall.lessons) for recall in self._recalls.values()),
            uses=len(uses),
            methods=_ordered(Counter(uses.values())),
            effects=_effects(uses, verdicts),
            seconds=median(seconds) if seconds else None,
            longest=max(seconds, default=None),
        )

    def _uses(self) -> dict[tuple[int, int], Method]:
        """Why each lesson was given to each attempt."""
        return {
            (used.lesson, attempt): used.method
            for attempt, recall in self._recalls.items()
            for used in recall.lessons
        }


def _ordered(counts: Counter[Method]) -> tuple[tuple[Method, int], ...]:
    return tuple((method, counts[method]) for method in Method if counts[method])


def _effects(uses: dict[tuple[int, int], Method], verdicts: Verdicts) -> tuple[Effect, ...]:
    attempts: dict[int, list[int]] = {}
    for lesson, attempt in uses:
        attempts.setdefault(lesson, []).append(attempt)
    found = [
        Effect(lesson=lesson, origin=origin, accepted=accepted)
        for lesson, given in attempts.items()
        for origin in Origin
        if (accepted := verdicts.share(given, origin)).of >= MIN_USES
    ]
    order = list(Origin)
    found.sort(key=lambda it: (-it.accepted.rate, -it.accepted.of, order.index(it.origin)))
    return tuple(found)
