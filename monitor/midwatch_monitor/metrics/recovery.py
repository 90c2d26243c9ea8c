"""What interventions did, and how often attempts that succeeded were disturbed."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from midwatch_monitor.metrics.detection import Detection
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.metrics.tasks import Tasks
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
        return self.recovered + self.no_effect + self.made_worse + self.not_judged

    @property
    def rate(self) -> Share:
        """The recovered ones of those that were judged."""
        return Share(hits=self.recovered, of=self.delivered - self.not_judged)


OutcomesByName = tuple[tuple[str, Outcomes], ...]
"""Outcomes by name, in the order of the names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryFigures:
    """What came of the delivered interventions that answered an alert.

    One that answered alerts of several rules counts under each of them, so that the sum over the
    rules may exceed the total; a rate says what followed, not what would have been without it.
    """

    total: Outcomes = Outcomes()
    by_rule: OutcomesByName = ()
    by_action: OutcomesByName = ()
    by_diagnosis: OutcomesByName = ()
    by_actor: OutcomesByName = ()
    unprompted: int = 0
    """Delivered ones that answered no alert: what a person said, or what a worker asked for."""
    refused: int = 0
    """Decisions that were turned down."""


@dataclass(slots=True)
class TrackedIntervention:
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
        self._interventions: dict[int, TrackedIntervention] = {}
        """By journal id: an outcome may stand on a later attempt."""
        self._refused = 0
        self._false_alarms: dict[int, int] = defaultdict(int)
        """Decisions that called it a false alarm, by attempt."""

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Intervention() as issued if not issued.action.of_alerts:
                self._interventions[entry.id] = TrackedIntervention(
                    issued, entry.attempt, entry.task
                )
            case Delivery(state=DeliveryState.DELIVERED) | OutcomeReport() as news:
                self._further(news)
            case Decision() as decision:
                self._refused += bool(decision.refused)
                if decision.diagnosis is Diagnosis.FALSE_ALARM and entry.attempt is not None:
                    self._false_alarms[entry.attempt] += 1
            case _:
                pass

    def _further(self, news: Delivery | OutcomeReport) -> None:
        intervention = self._interventions.get(news.intervention)
        if intervention is None:
            return
        if isinstance(news, Delivery):
            intervention.delivered = True
        else:
            intervention.outcome = news.outcome

    @property
    def interventions(self) -> Iterable[TrackedIntervention]:
        """Every intervention on an attempt, in the order in which they were issued."""
        return self._interventions.values()

    def by_task(self) -> tuple[Counter[int], Counter[int]]:
        """How many interventions reached a task's attempts, and how many of them helped."""
        delivered = Counter(each.task for each in self.interventions if each.delivered)
        return delivered, Counter(each.task for each in self.interventions if each.helped)

    def false_alarms(self, attempt: int) -> int:
        """How often what was found in an attempt was diagnosed as a false alarm."""
        return self._false_alarms.get(attempt, 0)

    def figures(self) -> RecoveryFigures:
        counted = [each for each in self.interventions if each.counts]
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
            unprompted=sum(each.delivered and not each.counts for each in self.interventions),
            refused=self._refused,
        )


def _named(pairs: Iterable[tuple[str, TrackedIntervention]]) -> OutcomesByName:
    groups: dict[str, list[TrackedIntervention]] = defaultdict(list)
    for name, intervention in pairs:
        groups[name].append(intervention)
    return tuple((name, _outcomes(groups[name])) for name in sorted(groups))


def _outcomes(interventions: Iterable[TrackedIntervention]) -> Outcomes:
    counts = Counter(each.outcome for each in interventions)
    return Outcomes(
        recovered=counts[Outcome.RECOVERED],
        no_effect=counts[Outcome.NO_EFFECT],
        made_worse=counts[Outcome.MADE_WORSE],
        not_judged=counts[None],
    )


_NO_ATTEMPTS = Share(hits=0, of=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbanceFigures:
    """Alarms and interventions on attempts that succeeded.

    Whether an attempt would have succeeded by itself, nobody knows of a real run. What is counted
    as *in vain* are attempts that succeeded though no intervention on them was judged to have
    helped: they most likely needed none. Those that an intervention did help may have needed none
    either, so this is a lower bound.
    """

    alarmed: Share = _NO_ATTEMPTS
    """Attempts that succeeded: those with a warning or a critical alert at any time."""
    disturbed: Share = _NO_ATTEMPTS
    """Those on which an intervention that answers an alert was delivered; observing is none."""
    in_vain: Share = _NO_ATTEMPTS
    """Those disturbed, and no intervention helped."""
    false_alarms: Share = _NO_ATTEMPTS
    """Those of which a decision said that the alarm was false."""
    interventions: int = 0
    """Delivered to attempts that succeeded."""
    interventions_in_vain: int = 0
    """Of these, those to the attempts that were disturbed in vain."""


def disturbance(detection: Detection, recovery: Recovery, history: Tasks) -> DisturbanceFigures:
    """What was done to attempts that succeeded."""
    disturbing: dict[int, list[TrackedIntervention]] = defaultdict(list)
    for intervention in recovery.interventions:
        if intervention.disturbs and intervention.attempt is not None:
            disturbing[intervention.attempt].append(intervention)
    well = [
        id
        for task in history.tasks.values()
        for id in task.attempts
        if history.succeeded(id) is True
    ]
    disturbed = [id for id in well if id in disturbing]
    vain = [id for id in disturbed if not any(each.helped for each in disturbing[id])]
    return DisturbanceFigures(
        alarmed=Share(hits=sum(detection.alarmed(id) for id in well), of=len(well)),
        disturbed=Share(hits=len(disturbed), of=len(well)),
        in_vain=Share(hits=len(vain), of=len(well)),
        false_alarms=Share(hits=sum(recovery.false_alarms(id) > 0 for id in well), of=len(well)),
        interventions=sum(len(disturbing[id]) for id in disturbed),
        interventions_in_vain=sum(len(disturbing[id]) for id in vain),
    )
