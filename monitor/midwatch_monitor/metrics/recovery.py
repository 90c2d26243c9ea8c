"""What interventions did."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from midwatch_monitor.records import (
    Action,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Entry,
    Intervention,
    Outcome,
    OutcomeReport,
)
from midwatch_monitor.replay.tune.figures import Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """How some interventions were judged."""

    recovered: int = 0
    no_effect: int = 0
    made_worse: int = 0
    not_judged: int = 0
    """Too new, or the attempt ended in a way that leaves no verdict."""

    @property
    def delivered(self) -> int:
        """All of them."""
        return self.recovered + self.no_effect + self.made_worse + self.not_judged

    @property
    def rate(self) -> Share:
        """The recovered ones of those that were judged."""
        return Share(hits=self.recovered, of=self.delivered - self.not_judged)


Named = tuple[tuple[str, Outcomes], ...]
"""Outcomes by name, in the order of the names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryFigures:
    """What came of the delivered interventions that answered an alert.

    One that answered alerts of several rules counts under each of them, so that the sum over the
    rules may exceed the total; a rate says what followed, not what would have been without it.
    """

    total: Outcomes = Outcomes()
    by_rule: Named = ()
    by_action: Named = ()
    by_diagnosis: Named = ()
    by_actor: Named = ()
    unprompted: int = 0
    """Delivered ones that answered no alert: what a person said, or what a worker asked for."""
    refused: int = 0
    """Decisions that were turned down."""


@dataclass(slots=True)
class Course:
    """One intervention on its way."""

    issued: Intervention
    attempt: int | None
    task: int
    delivered: bool = False
    outcome: Outcome | None = None

    @property
    def counts(self) -> bool:
        """Whether it was delivered and answered an alert."""
        return self.delivered and bool(self.issued.answers)

    @property
    def disturbs(self) -> bool:
        """Whether the worker noticed anything of it."""
        return self.counts and self.issued.action is not Action.OBSERVE

    @property
    def helped(self) -> bool:
        """Whether it was judged to have helped."""
        return self.outcome is Outcome.RECOVERED


class Recovery:
    """Follows interventions, their delivery and their outcomes."""

    def __init__(self) -> None:
        self._courses: dict[int, Course] = {}
        """By journal id: an outcome may stand on a later attempt."""
        self._refused = 0
        self._false_alarms: dict[int, int] = defaultdict(int)
        """Decisions that called it a false alarm, by attempt."""

    def observe(self, entry: Entry) -> None:
        """Take in the next entry of a task."""
        match entry.record:
            case Intervention() as issued if not issued.action.of_alerts:
                self._courses[entry.id] = Course(issued, entry.attempt, entry.task)
            case Delivery(state=DeliveryState.DELIVERED) | OutcomeReport() as news:
                self._further(news)
            case Decision() as decision:
                self._refused += bool(decision.refused)
                if decision.diagnosis is Diagnosis.FALSE_ALARM and entry.attempt is not None:
                    self._false_alarms[entry.attempt] += 1
            case _:
                pass

    def _further(self, news: Delivery | OutcomeReport) -> None:
        course = self._courses.get(news.intervention)
        if course is None:
            return
        if isinstance(news, Delivery):
            course.delivered = True
        else:
            course.outcome = news.outcome

    @property
    def courses(self) -> Iterable[Course]:
        """Every intervention on an attempt, in the order in which they were issued."""
        return self._courses.values()

    def by_task(self) -> tuple[Counter[int], Counter[int]]:
        """How many interventions reached a task's attempts, and how many of them helped."""
        delivered = Counter(each.task for each in self.courses if each.delivered)
        return delivered, Counter(each.task for each in self.courses if each.helped)

    def false_alarms(self, attempt: int) -> int:
        """How often what was found in an attempt was diagnosed as a false alarm."""
        return self._false_alarms.get(attempt, 0)

    def figures(self) -> RecoveryFigures:
        """How it stands."""
        counted = [each for each in self.courses if each.counts]
        return RecoveryFigures(
            total=_outcomes(counted),
            by_rule=_named(
                (rule, each)
                for each in counted
                for rule in {key.rule for key in each.issued.answers}
            ),
            by_action=_named((each.issued.action.value, each) for each in counted),
            by_diagnosis=_named((each.issued.diagnosis.value, each) for each in counted),
            by_actor=_named((each.issued.by.value, each) for each in counted),
            unprompted=sum(each.delivered and not each.counts for each in self.courses),
            refused=self._refused,
        )


def _named(pairs: Iterable[tuple[str, Course]]) -> Named:
    groups: dict[str, list[Course]] = defaultdict(list)
    for name, course in pairs:
        groups[name].append(course)
    return tuple((name, _outcomes(groups[name])) for name in sorted(groups))


def _outcomes(courses: Iterable[Course]) -> Outcomes:
    counts = Counter(each.outcome for each in courses)
    return Outcomes(
        recovered=counts[Outcome.RECOVERED],
        no_effect=counts[Outcome.NO_EFFECT],
        made_worse=counts[Outcome.MADE_WORSE],
        not_judged=counts[None],
    )
