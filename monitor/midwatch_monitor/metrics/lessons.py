"""Accepted results, the lessons that were given, and whether lessons help."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from statistics import fmean, median
from typing import NamedTuple

from midwatch_monitor.metrics.statistics import (
    Distribution,
    Interval,
    Share,
    difference,
    distribution,
    mean_difference,
)
from midwatch_monitor.records import (
    Birth,
    Entry,
    Group,
    Lesson,
    LessonAct,
    LessonMark,
    Lifecycle,
    Method,
    Origin,
    Recall,
    TaskTransition,
)
from midwatch_monitor.records.verdict import verdict_of

BUCKETS = 10
"""Parts of equal size into which the attempts are cut for the learning curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """The verdicts of one week."""

    begins: date
    """A Monday, in UTC."""
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Attempts that followed one another."""

    first: int
    last: int
    """By journal id, included."""
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceFigures:
    """What the verdicts of one origin say. Verdicts of two origins never stand in one rate."""

    origin: Origin
    accepted: Share
    """Of all attempts on which there is such a verdict."""
    weeks: tuple[Week, ...] = ()
    """Those with a verdict, by when that was given, oldest first."""
    curve: tuple[Bucket, ...] = ()
    """The judged attempts in the order in which they began, in ten parts as equal as can be; the
    first parts are larger by one where they do not divide, and of fewer than ten each is a part.
    """


class _Verdict(NamedTuple):
    at: datetime
    accepted: bool


class Verdicts:
    """Follows verdicts: for each attempt and origin the newest counts, and that alone."""

    def __init__(self) -> None:
        self._newest: dict[Origin, dict[int, _Verdict]] = {origin: {} for origin in Origin}

    def observe(self, entry: Entry) -> None:
        verdict = verdict_of(entry.record)
        if entry.attempt is not None and verdict is not None:
            self._newest[verdict.origin][entry.attempt] = _Verdict(entry.at, verdict.accepted)

    def share(self, attempts: Iterable[int], origin: Origin) -> Share:
        """Of these attempts the accepted ones, of those with a verdict of that origin."""
        verdicts = self._newest[origin]
        return _share([verdicts[attempt] for attempt in attempts if attempt in verdicts])

    def figures(self) -> tuple[AcceptanceFigures, ...]:
        """How it stands, for each origin of which there is a verdict."""
        return tuple(
            _figures(origin, verdicts) for origin, verdicts in self._newest.items() if verdicts
        )


def _figures(origin: Origin, verdicts: Mapping[int, _Verdict]) -> AcceptanceFigures:
    weeks: dict[date, Counter[bool]] = defaultdict(Counter)
    for each in verdicts.values():
        day = each.at.astimezone(UTC).date()
        weeks[day - timedelta(days=day.weekday())][each.accepted] += 1
    return AcceptanceFigures(
        origin=origin,
        accepted=_share(verdicts.values()),
        weeks=tuple(
            Week(begins=monday, accepted=Share(hits=found[True], of=found.total()))
            for monday, found in sorted(weeks.items())
        ),
        curve=tuple(_buckets(verdicts)),
    )


def _share(verdicts: Collection[_Verdict]) -> Share:
    return Share(hits=sum(each.accepted for each in verdicts), of=len(verdicts))


def _buckets(verdicts: Mapping[int, _Verdict]) -> Iterable[Bucket]:
    attempts = sorted(verdicts)
    size, larger = divmod(len(attempts), BUCKETS)
    at = 0
    for number in range(min(BUCKETS, len(attempts))):
        part = attempts[at : at + size + (number < larger)]
        at += len(part)
        accepted = _share([verdicts[attempt] for attempt in part])
        yield Bucket(first=part[0], last=part[-1], accepted=accepted)


MIN_USES = 3
"""Judged uses of a lesson below which nothing is verdicts of its worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonEffect:
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
    effects: tuple[LessonEffect, ...] = ()
    """Of lessons with at least three judged uses; the most useful first."""
    seconds: float | None = None
    """How long it took to find what these attempts were given: the median; `None` of none."""
    longest: float | None = None


class LessonUse:
    """Follows lessons and what attempts are given."""

    def __init__(self) -> None:
        self._lessons: dict[int, Lesson] = {}
        self._obsolete: dict[int, bool] = {}
        self._ratings: dict[int, int] = {}
        self._recalls: dict[int, Recall] = {}

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Lesson() as lesson:
                self._lessons[entry.id] = lesson
            case LessonMark(act=LessonAct.RATED) as mark:
                self._ratings[mark.lesson] = mark.rating
            case LessonMark(act=LessonAct.GIVEN):
                pass
            case LessonMark() as mark:
                out = mark.act in (LessonAct.RETIRED, LessonAct.ARCHIVED)
                self._obsolete[mark.lesson] = out
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
        lessons = self._lessons.values()
        classes = Counter(each.failure_class for each in lessons if each.born is Birth.VERDICT)
        uses = self._uses()
        counts = Counter(uses.values())
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
            methods=tuple((each, counts[each]) for each in Method if counts[each]),
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


def _effects(uses: dict[tuple[int, int], Method], verdicts: Verdicts) -> tuple[LessonEffect, ...]:
    attempts: dict[int, list[int]] = {}
    for lesson, attempt in uses:
        attempts.setdefault(lesson, []).append(attempt)
    found = [
        LessonEffect(lesson=lesson, origin=origin, accepted=accepted)
        for lesson, given in attempts.items()
        for origin in Origin
        if (accepted := verdicts.share(given, origin)).of >= MIN_USES
    ]
    order = list(Origin)
    found.sort(key=lambda it: (-it.accepted.rate, -it.accepted.of, order.index(it.origin)))
    return tuple(found)


MIN_TASKS = 10
"""Different tasks in each of two groups below which nothing is verdicts of their difference."""

Same = Callable[[int], Hashable]
"""What is equal for the same task in several runs: lots are drawn for a task once and for all."""


class ComparisonResult(StrEnum):
    """What a comparison says."""

    NONE_GIVEN = "nothing to tell: none of them was given a lesson"
    FEW = "not enough to tell: fewer than 10 different tasks in a group"
    OPEN = "not enough to tell: the interval holds 0"
    HIGHER = "higher with lessons"
    LOWER = "lower with lessons"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFigures:
    """Treatment against control, by the verdicts of one origin.

    Only first attempts count: what follows them depends on what became of them. A task in the
    treatment group counts also where no lesson was found for it.
    """

    origin: Origin
    treatment: Share
    """The accepted of the different tasks among the judged: in several runs, the newest counts."""
    control: Share
    difference: Interval | None
    """Of the rates, treatment minus control; `None` where a group is empty."""
    answer: ComparisonResult


class Cohort(StrEnum):
    """Which tasks are told together."""

    TREATMENT = "treatment"
    CONTROL = "control"
    GIVEN = "given lessons"
    """Nothing was compared, and the first attempt was given a lesson."""
    BARE = "given none"
    """Nothing was compared, and the first attempt was given no lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortFigures:
    """What the tasks of one cohort took that are over and were not canceled."""

    cohort: Cohort
    tasks: int
    attempts: float
    """A task, the mean."""
    tokens: float
    """Of its workers a task, the mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingFigures:
    """Treatment minus control, of what a task took."""

    what: str
    """`attempts` or `tokens`."""
    difference: float
    interval: Interval | None
    answer: ComparisonResult


@dataclass(slots=True)
class TaskAttempts:
    """How one task went, in the words of the figures."""

    id: int
    attempts: list[int] = field(default_factory=list[int])
    """In the order in which they began."""
    lifecycle: Lifecycle = Lifecycle.SUBMITTED

    def observe(self, entry: Entry) -> None:
        """Take in the task's next entry."""
        if isinstance(entry.record, TaskTransition):
            self.lifecycle = entry.record.lifecycle
        if entry.attempt is not None and entry.attempt not in self.attempts:
            self.attempts.append(entry.attempt)


def comparisons(
    tasks: Iterable[TaskAttempts], lesson_use: LessonUse, verdicts: Verdicts, same: Same
) -> tuple[ComparisonFigures, ...]:
    """Treatment against control, for each origin of which there is a verdict in either."""
    first: dict[Group, list[TaskAttempts]] = {group: [] for group in Group}
    for task in tasks:
        recall = lesson_use.recall(task.attempts[0]) if task.attempts else None
        if recall is not None:
            first[recall.group].append(task)
    found: list[ComparisonFigures] = []
    for origin in Origin:
        judged = {
            group: _newest((t for t in each if verdicts.share(t.attempts[:1], origin).of), same)
            for group, each in first.items()
        }
        treatment, control = (
            verdicts.share((t.attempts[0] for t in judged[group]), origin)
            for group in (Group.TREATMENT, Group.CONTROL)
        )
        apart = difference(treatment, control)
        given = _given(judged[Group.TREATMENT], lesson_use)
        answer = _answer(apart, min(treatment.of, control.of), given=given)
        if treatment.of + control.of:
            found.append(
                ComparisonFigures(
                    origin=origin,
                    treatment=treatment,
                    control=control,
                    difference=apart,
                    answer=answer,
                )
            )
    return tuple(found)


def _newest(tasks: Iterable[TaskAttempts], same: Same) -> Collection[TaskAttempts]:
    """Each task once, as it went last: one lot is one draw, however often the task was run."""
    ordered = sorted(tasks, key=lambda task: task.id)
    return {same(task.id): task for task in ordered}.values()


def _given(tasks: Iterable[TaskAttempts], lesson_use: LessonUse) -> bool:
    """Whether the first attempt of any of them was given a lesson."""
    recalls = (lesson_use.recall(task.attempts[0]) for task in tasks)
    return any(recall is not None and recall.lessons for recall in recalls)


def _answer(apart: Interval | None, tasks: int, *, given: bool) -> ComparisonResult:
    if not given:
        return ComparisonResult.NONE_GIVEN
    if apart is None or tasks < MIN_TASKS:
        return ComparisonResult.FEW
    if apart.low <= 0 <= apart.high:
        return ComparisonResult.OPEN
    return ComparisonResult.HIGHER if apart.low > 0 else ComparisonResult.LOWER


def cohorts(
    tasks: Iterable[TaskAttempts], lesson_use: LessonUse
) -> dict[Cohort, list[TaskAttempts]]:
    """The tasks that are over and were not canceled, by what their first attempt was given."""
    found: dict[Cohort, list[TaskAttempts]] = defaultdict(list)
    for task in tasks:
        if task.attempts and task.lifecycle.over and task.lifecycle is not Lifecycle.CANCELED:
            found[_cohort(lesson_use.recall(task.attempts[0]))].append(task)
    return found


def _cohort(recall: Recall | None) -> Cohort:
    """By what a first attempt was given; without a record of it, that was nothing."""
    if recall is not None and recall.group is not Group.NONE:
        return Cohort.TREATMENT if recall.group is Group.TREATMENT else Cohort.CONTROL
    return Cohort.GIVEN if recall is not None and recall.lessons else Cohort.BARE


def efforts(
    tasks: Mapping[Cohort, Sequence[TaskAttempts]], tokens: Callable[[int], int]
) -> tuple[EffortFigures, ...]:
    """What the tasks of each cohort took."""
    return tuple(
        EffortFigures(
            cohort=cohort,
            tasks=len(tasks[cohort]),
            attempts=fmean(len(task.attempts) for task in tasks[cohort]),
            tokens=fmean(tokens(task.id) for task in tasks[cohort]),
        )
        for cohort in Cohort
        if tasks.get(cohort)
    )


def savings(
    tasks: Mapping[Cohort, Sequence[TaskAttempts]],
    tokens: Callable[[int], int],
    same: Same,
    lesson_use: LessonUse,
) -> tuple[SavingFigures, ...]:
    """Treatment minus control of what a task took; nothing where lots were not drawn for both."""
    treatment, control = (
        _newest(tasks.get(each, ()), same) for each in (Cohort.TREATMENT, Cohort.CONTROL)
    )
    if not (treatment and control):
        return ()
    fewest = min(len(treatment), len(control))
    given = _given(treatment, lesson_use)

    def saving(what: str, took: Callable[[TaskAttempts], int]) -> SavingFigures:
        with_them, without = ([took(task) for task in group] for group in (treatment, control))
        interval = mean_difference(with_them, without)
        return SavingFigures(
            what=what,
            difference=fmean(with_them) - fmean(without),
            interval=interval,
            answer=_answer(interval, fewest, given=given),
        )

    return (
        saving("attempts", lambda task: len(task.attempts)),
        saving("tokens", lambda task: tokens(task.id)),
    )
