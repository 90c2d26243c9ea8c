"""What lessons are worth: tasks that were given them beside tasks that were not."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from midwatch_monitor.metrics.interval import difference, mean_difference
from midwatch_monitor.metrics.roster import Enrolled, Roster
from midwatch_monitor.metrics.usefulness import Usefulness
from midwatch_monitor.metrics.verdicts import Verdicts
from midwatch_monitor.records import Group, Lifecycle, Origin, Recall
from midwatch_monitor.replay.tune.figures import Share
from midwatch_monitor.replay.tune.peers import Interval

MIN_TASKS = 10
"""Different tasks in each of two groups below which nothing is said of their difference."""

Same = Callable[[int], Hashable]
"""What is equal for the same task in several runs: lots are drawn for a task once and for all."""


class Answer(StrEnum):
    """What a comparison says."""

    FEW = "not enough to tell: fewer than 10 different tasks in a group"
    OPEN = "not enough to tell: the interval holds 0"
    HIGHER = "higher with lessons"
    LOWER = "lower with lessons"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The first attempts of the tasks of one group."""

    accepted: Share
    tasks: int
    """Different ones among the judged: the same task in two runs is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFigures:
    """Treatment against control, by the verdicts of one origin.

    Only first attempts count: what follows them depends on what became of them. A task in the
    treatment group counts also where no lesson was found for it.
    """

    origin: Origin
    treatment: Side
    control: Side
    difference: Interval | None
    """Of the rates, treatment minus control; `None` where a group is empty."""
    answer: Answer


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
    """What the tasks of one cohort took that are over and were not cancelled."""

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
    answer: Answer


def comparisons(
    roster: Roster, usefulness: Usefulness, verdicts: Verdicts, same: Same
) -> tuple[ComparisonFigures, ...]:
    """Treatment against control, for each origin of which there is a verdict in either."""
    first: dict[Group, list[tuple[int, int]]] = {group: [] for group in Group}
    for task in roster.tasks.values():
        recall = usefulness.recall(task.attempts[0]) if task.attempts else None
        if recall is not None:
            first[recall.group].append((task.task, task.attempts[0]))
    found: list[ComparisonFigures] = []
    for origin in Origin:
        treatment, control = (
            _side(first[group], origin, verdicts, same)
            for group in (Group.TREATMENT, Group.CONTROL)
        )
        if not treatment.accepted.of + control.accepted.of:
            continue
        apart = difference(treatment.accepted, control.accepted)
        answer = _answer(apart, min(treatment.tasks, control.tasks))
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


def _side(first: Sequence[tuple[int, int]], origin: Origin, verdicts: Verdicts, same: Same) -> Side:
    judged = [(task, id) for task, id in first if verdicts.share((id,), origin).of]
    return Side(
        accepted=verdicts.share((attempt for _, attempt in judged), origin),
        tasks=len({same(task) for task, _ in judged}),
    )


def _answer(apart: Interval | None, tasks: int) -> Answer:
    if apart is None or tasks < MIN_TASKS:
        return Answer.FEW
    if apart.low <= 0 <= apart.high:
        return Answer.OPEN
    return Answer.HIGHER if apart.low > 0 else Answer.LOWER


def cohorts(roster: Roster, usefulness: Usefulness) -> dict[Cohort, list[Enrolled]]:
    """The tasks that are over and were not cancelled, by what their first attempt was given."""
    found: dict[Cohort, list[Enrolled]] = defaultdict(list)
    for task in roster.tasks.values():
        state = task.state.lifecycle
        if task.attempts and state.over and state is not Lifecycle.CANCELED:
            found[_cohort(usefulness.recall(task.attempts[0]))].append(task)
    return found


def _cohort(recall: Recall | None) -> Cohort:
    """By what a first attempt was given; without a record of it, that was nothing."""
    match recall:
        case Recall(group=Group.TREATMENT):
            return Cohort.TREATMENT
        case Recall(group=Group.CONTROL):
            return Cohort.CONTROL
        case Recall(lessons=lessons) if lessons:
            return Cohort.GIVEN
        case _:
            return Cohort.BARE


def efforts(
    tasks: Mapping[Cohort, Sequence[Enrolled]], tokens: Callable[[int], int]
) -> tuple[EffortFigures, ...]:
    """What the tasks of each cohort took."""
    return tuple(
        EffortFigures(
            cohort=cohort,
            tasks=len(tasks[cohort]),
            attempts=fmean(len(task.attempts) for task in tasks[cohort]),
            tokens=fmean(tokens(task.task) for task in tasks[cohort]),
        )
        for cohort in Cohort
        if tasks.get(cohort)
    )


def savings(
    tasks: Mapping[Cohort, Sequence[Enrolled]], tokens: Callable[[int], int], same: Same
) -> tuple[SavingFigures, ...]:
    """Treatment minus control of what a task took; nothing where lots were not drawn for both."""
    treatment, control = (tasks.get(each, ()) for each in (Cohort.TREATMENT, Cohort.CONTROL))
    if not (treatment and control):
        return ()
    fewest = min(len({same(task.task) for task in group}) for group in (treatment, control))

    def saving(what: str, took: Callable[[Enrolled], int]) -> SavingFigures:
        with_them, without = ([took(task) for task in group] for group in (treatment, control))
        interval = mean_difference(with_them, without)
        return SavingFigures(
            what=what,
            difference=fmean(with_them) - fmean(without),
            interval=interval,
            answer=_answer(interval, fewest),
        )

    return (
        saving("attempts", lambda task: len(task.attempts)),
        saving("tokens", lambda task: tokens(task.task)),
    )
