"""Figures about accepted results and given lessons, and whether lessons help."""

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
    Entry,
    Group,
    Lesson,
    LessonAct,
    LessonMark,
    LessonOrigin,
    Lifecycle,
    Method,
    Origin,
    Recall,
    TaskTransition,
)
from midwatch_monitor.records.verdict import verdict_of

BUCKETS = 10
"""Number of equal parts that the learning curve divides the attempts into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """The verdicts of one week."""

    begins: date
    """A Monday, in UTC."""
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Consecutive attempts."""

    first: int
    last: int
    """The last attempt, inclusive; like `first`, a journal id."""
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceFigures:
    """The verdicts of one origin. No rate mixes verdicts of two origins."""

    origin: Origin
    accepted: Share
    """Share of the attempts with such a verdict that were accepted."""
    weeks: tuple[Week, ...] = ()
    """The weeks with a verdict, by the time of the verdict, oldest first."""
    curve: tuple[Bucket, ...] = ()
    """The judged attempts in the order in which they began, in ten equal parts.

    If they do not divide evenly, the first parts are larger by one; fewer than ten attempts form
    one part each.
    """


class _Verdict(NamedTuple):
    at: datetime
    accepted: bool


class Verdicts:
    """Follows verdicts. For each attempt and origin only the newest counts."""

    def __init__(self) -> None:
        self._newest: dict[Origin, dict[int, _Verdict]] = {origin: {} for origin in Origin}

    def observe(self, entry: Entry) -> None:
        verdict = verdict_of(entry.record)
        if entry.attempt is not None and verdict is not None:
            self._newest[verdict.origin][entry.attempt] = _Verdict(entry.at, verdict.accepted)

    def share(self, attempts: Iterable[int], origin: Origin) -> Share:
        """Return the share of accepted attempts, out of those with a verdict of this origin."""
        verdicts = self._newest[origin]
        return _accepted_share([verdicts[attempt] for attempt in attempts if attempt in verdicts])

    def figures(self) -> tuple[AcceptanceFigures, ...]:
        """Return the figures of each origin that has a verdict."""
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
        accepted=_accepted_share(verdicts.values()),
        weeks=tuple(
            Week(begins=monday, accepted=Share(hits=found[True], of=found.total()))
            for monday, found in sorted(weeks.items())
        ),
        curve=tuple(_buckets(verdicts)),
    )


def _accepted_share(verdicts: Collection[_Verdict]) -> Share:
    return Share(hits=sum(each.accepted for each in verdicts), of=len(verdicts))


def _buckets(verdicts: Mapping[int, _Verdict]) -> Iterable[Bucket]:
    attempts = sorted(verdicts)
    size, larger = divmod(len(attempts), BUCKETS)
    at = 0
    for number in range(min(BUCKETS, len(attempts))):
        part = attempts[at : at + size + (number < larger)]
        at += len(part)
        accepted = _accepted_share([verdicts[attempt] for attempt in part])
        yield Bucket(first=part[0], last=part[-1], accepted=accepted)


MIN_USES = 3
"""With fewer judged uses of a lesson, nothing is said about its effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonEffect:
    """Acceptance of the attempts that were given one lesson, by the verdicts of one origin."""

    lesson: int
    origin: Origin
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonFigures:
    """Lessons and their use. An attempt counts by the last recall that was recorded for it."""

    lessons: int = 0
    obsolete: int = 0
    """Lessons that were retired or archived."""
    insights: int = 0
    """Lessons that come from a reflection on several attempts."""
    classes: tuple[tuple[str, int], ...] = ()
    """Failure classes of lessons from one rejected or failed attempt, most frequent first."""
    ratings: Distribution = field(default_factory=Distribution)
    """The last rating of each lesson that a person rated."""
    recalls: int = 0
    """Attempts that were given anything, or that are compared."""
    given: int = 0
    """Of those, the attempts that were given a lesson."""
    uses: int = 0
    """Lessons given, each counted once per attempt."""
    methods: tuple[tuple[Method, int], ...] = ()
    """Uses by the reason why the lesson was found."""
    effects: tuple[LessonEffect, ...] = ()
    """Effects of lessons with at least three judged uses, most useful first."""
    seconds: float | None = None
    """Median time to find what an attempt was given; `None` without attempts."""
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
        """Return what an attempt was given, or `None` if nothing was recorded."""
        return self._recalls.get(attempt)

    def under(self) -> dict[int, list[int]]:
        """Return the attempts that worked under each version of the guidelines, by version id."""
        found: dict[int, list[int]] = {}
        for attempt, recall in self._recalls.items():
            if recall.guidelines is not None:
                found.setdefault(recall.guidelines, []).append(attempt)
        return found

    def figures(self, verdicts: Verdicts) -> LessonFigures:
        lessons = self._lessons.values()
        classes = Counter(
            each.failure_class for each in lessons if each.born is LessonOrigin.VERDICT
        )
        uses = self._uses()
        counts = Counter(uses.values())
        seconds = [recall.seconds for recall in self._recalls.values()]
        return LessonFigures(
            lessons=len(lessons),
            obsolete=sum(self._obsolete.get(id, False) for id in self._lessons),
            insights=sum(each.born is LessonOrigin.REFLECTION for each in lessons),
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
        """Return why each lesson was given to each attempt, by lesson and attempt."""
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
"""With fewer different tasks in either of two groups, nothing is said about their difference."""

Same = Callable[[int], Hashable]
"""Returns an equal key for the same task in several runs: its group is drawn only once."""


class ComparisonResult(StrEnum):
    """The result of a comparison."""

    NONE_GIVEN = "no result: no task was given a lesson"
    FEW = "too few to tell: fewer than 10 different tasks in a group"
    OPEN = "no significant difference: the interval includes 0"
    HIGHER = "higher with lessons"
    LOWER = "lower with lessons"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFigures:
    """Treatment group against control group, by the verdicts of one origin.

    Only first attempts count, because later ones depend on how the first ended. A task of the
    treatment group counts even if no lesson was found for it.
    """

    origin: Origin
    treatment: Share
    """Accepted tasks among the different judged tasks; of several runs, the newest counts."""
    control: Share
    difference: Interval | None
    """Difference of the rates, treatment minus control; `None` if a group is empty."""
    answer: ComparisonResult


class Cohort(StrEnum):
    """Tasks that are reported together."""

    TREATMENT = "treatment"
    CONTROL = "control"
    GIVEN = "given lessons"
    """No comparison was made, and the first attempt was given a lesson."""
    BARE = "given none"
    """No comparison was made, and the first attempt was given no lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortFigures:
    """Effort of the tasks of one cohort that are over and were not canceled."""

    cohort: Cohort
    tasks: int
    attempts: float
    """Mean number of attempts per task."""
    tokens: float
    """Mean number of the workers' tokens per task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingFigures:
    """Difference in effort per task, treatment minus control."""

    what: str
    """`attempts` or `tokens`."""
    difference: float
    interval: Interval | None
    answer: ComparisonResult


@dataclass(slots=True)
class TaskAttempts:
    """The attempts and the lifecycle of one task."""

    id: int
    attempts: list[int] = field(default_factory=list[int])
    """Journal ids in the order in which the attempts began."""
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
    """Return treatment against control, for each origin with a verdict in either group."""
    first: dict[Group, list[TaskAttempts]] = {group: [] for group in Group}
    for task in tasks:
        recall = lesson_use.recall(task.attempts[0]) if task.attempts else None
        if recall is not None:
            first[recall.group].append(task)
    found: list[ComparisonFigures] = []
    for origin in Origin:
        judged = {
            group: _newest_runs(
                (t for t in each if verdicts.share(t.attempts[:1], origin).of), same
            )
            for group, each in first.items()
        }
        treatment, control = (
            verdicts.share((t.attempts[0] for t in judged[group]), origin)
            for group in (Group.TREATMENT, Group.CONTROL)
        )
        apart = difference(treatment, control)
        given = _was_given(judged[Group.TREATMENT], lesson_use)
        answer = _comparison_result(apart, min(treatment.of, control.of), given=given)
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


def _newest_runs(tasks: Iterable[TaskAttempts], same: Same) -> Collection[TaskAttempts]:
    """Return each task once, in its newest run: its group is drawn once for all of its runs."""
    ordered = sorted(tasks, key=lambda task: task.id)
    return {same(task.id): task for task in ordered}.values()


def _was_given(tasks: Iterable[TaskAttempts], lesson_use: LessonUse) -> bool:
    """Return whether the first attempt of any of these tasks was given a lesson."""
    recalls = (lesson_use.recall(task.attempts[0]) for task in tasks)
    return any(recall is not None and recall.lessons for recall in recalls)


def _comparison_result(apart: Interval | None, tasks: int, *, given: bool) -> ComparisonResult:
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
    """Return the tasks that are over and not canceled, by what their first attempt was given."""
    found: dict[Cohort, list[TaskAttempts]] = defaultdict(list)
    for task in tasks:
        if task.attempts and task.lifecycle.over and task.lifecycle is not Lifecycle.CANCELED:
            found[_cohort(lesson_use.recall(task.attempts[0]))].append(task)
    return found


def _cohort(recall: Recall | None) -> Cohort:
    """Return the cohort for what a first attempt was given; no record means that it was nothing."""
    if recall is not None and recall.group is not Group.NONE:
        return Cohort.TREATMENT if recall.group is Group.TREATMENT else Cohort.CONTROL
    return Cohort.GIVEN if recall is not None and recall.lessons else Cohort.BARE


def efforts(
    tasks: Mapping[Cohort, Sequence[TaskAttempts]], tokens: Callable[[int], int]
) -> tuple[EffortFigures, ...]:
    """Return the effort of the tasks of each cohort."""
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
    """Return the savings per task, treatment minus control; empty unless both groups have tasks."""
    treatment, control = (
        _newest_runs(tasks.get(each, ()), same) for each in (Cohort.TREATMENT, Cohort.CONTROL)
    )
    if not (treatment and control):
        return ()
    fewest = min(len(treatment), len(control))
    given = _was_given(treatment, lesson_use)

    def saving(what: str, took: Callable[[TaskAttempts], int]) -> SavingFigures:
        with_them, without = ([took(task) for task in group] for group in (treatment, control))
        interval = mean_difference(with_them, without)
        return SavingFigures(
            what=what,
            difference=fmean(with_them) - fmean(without),
            interval=interval,
            answer=_comparison_result(interval, fewest, given=given),
        )

    return (
        saving("attempts", lambda task: len(task.attempts)),
        saving("tokens", lambda task: tokens(task.id)),
    )
