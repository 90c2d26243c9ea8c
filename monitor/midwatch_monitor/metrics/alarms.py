"""Figures about detection, interventions, and alarms on attempts that succeeded. Pure."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from midwatch_monitor.metrics.calibration import success_of
from midwatch_monitor.metrics.statistics import Distribution, Share, distribution
from midwatch_monitor.records import (
    Action,
    Alert,
    AlertKey,
    Decision,
    Diagnosis,
    Entry,
    Outcome,
    Step,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import InterventionState
from midwatch_monitor.state.task import interventions

REMEMBERED = 5_000
"""Steps of an attempt whose requests are remembered; older onsets count from the oldest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionFigures:
    """Model requests from the onset of trouble to its alarm, inclusive: 1 means at once.

    The *onset* is the earliest step that the alarm is based on: the first of its evidence, or the
    step at which its condition began to hold, whichever is earlier. It is where the rule starts
    counting, not what a person would call the first mistake. An alarm is an alert that fires as a
    warning or critical; a notice that rises later counts from its own onset to the rise.
    """

    requests: Distribution = field(default_factory=Distribution)
    rules: tuple[tuple[str, Distribution], ...] = ()
    """Distributions for the rules that raised an alarm, by name."""
    unknown: int = 0
    """Alarms without a known onset.

    Their rule names no step, because it watches a meter, the time or other attempts, or the steps
    do not say which request they came from.
    """


@dataclass(slots=True)
class _AttemptSteps:
    """The requests of an attempt's newest steps, and its current alarms."""

    requests: deque[int] = field(default_factory=lambda: deque[int](maxlen=REMEMBERED))
    last_step: int = 0
    alarming: set[AlertKey] = field(default_factory=set[AlertKey])

    def request(self, step: int) -> int:
        """Return the request of a step, or of the nearest remembered one; 0 if unknown."""
        if not self.requests:
            return 0
        place = len(self.requests) - 1 - (self.last_step - step)
        return self.requests[min(max(place, 0), len(self.requests) - 1)]


class AlarmCounts:
    """Follows steps, alerts and the decisions about them."""

    def __init__(self) -> None:
        self.alarmed: set[int] = set()
        """Attempts that ever had an alarm."""
        self.false_alarms: set[int] = set()
        """Attempts with a decision that called the alarm false."""
        self.refused = 0
        """Number of decisions that were refused."""
        self._attempts: dict[int, _AttemptSteps] = defaultdict(_AttemptSteps)
        self._rules: dict[str, Counter[int]] = defaultdict(Counter[int])
        self._unknown = 0

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Step() as step if entry.attempt is not None:
                steps = self._attempts[entry.attempt]
                steps.requests.append(step.request)
                steps.last_step = step.number
            case Alert() as alert if entry.attempt is not None:
                self._observe_alert(entry.attempt, alert)
            case Decision() as decision:
                self.refused += bool(decision.refused)
                if decision.diagnosis is Diagnosis.FALSE_ALARM and entry.attempt is not None:
                    self.false_alarms.add(entry.attempt)
            case _:
                pass

    def _observe_alert(self, attempt: int, alert: Alert) -> None:
        steps = self._attempts[attempt]
        if not (alert.firing and alert.severity.alarm):
            steps.alarming.discard(alert.key)
            return
        if alert.key in steps.alarming:
            return
        steps.alarming.add(alert.key)
        self.alarmed.add(attempt)
        onset = steps.request(min(alert.since_step, *alert.evidence)) if alert.evidence else 0
        noticed = steps.request(alert.step)
        if onset and noticed:
            self._rules[alert.key.rule][max(0, noticed - onset) + 1] += 1
        else:
            self._unknown += 1

    def figures(self) -> DetectionFigures:
        rules = sorted(self._rules.items())
        return DetectionFigures(
            requests=distribution(sum((counts for _, counts in rules), Counter[int]())),
            rules=tuple((rule, distribution(counts)) for rule, counts in rules),
            unknown=self._unknown,
        )


OUTCOMES = ("recovered", "no_effect", "made_worse", "not_judged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Numbers of interventions by outcome."""

    recovered: int = 0
    no_effect: int = 0
    made_worse: int = 0
    not_judged: int = 0
    """Too new, or the attempt ended in a way that allows no verdict."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers in the order of `OUTCOMES`."""
        return self.recovered, self.no_effect, self.made_worse, self.not_judged

    @property
    def delivered(self) -> int:
        return sum(self.counts)

    @property
    def rate(self) -> Share:
        """Share of the judged interventions that recovered."""
        return Share(hits=self.recovered, of=self.delivered - self.not_judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryFigures:
    """Outcomes of the delivered interventions that answered an alert.

    An intervention that answered alerts of several rules counts under each of them, so the sum over
    the rules may exceed the total. A rate says what followed, not what would have happened without
    the intervention.
    """

    total: Outcomes = Outcomes()
    by: Mapping[str, Mapping[str, Outcomes]] = field(default_factory=dict[str, dict[str, Outcomes]])
    """Outcomes by `rule`, `action`, `diagnosis` and `actor`, each by name."""
    unprompted: int = 0
    """Delivered interventions without an alert: by an operator, or answers to worker requests."""
    refused: int = 0
    """Number of decisions that were refused."""


def recovery(attempts: Iterable[AttemptState], refused: int) -> RecoveryFigures:
    """Return the outcomes of the interventions on some attempts."""
    delivered = [each for each in interventions(attempts) if each.delivered]
    groups = {kind: defaultdict[str, list[InterventionState]](list) for kind in _GROUPS}
    answering = [each for each in delivered if each.intervention.answers]
    for each in answering:
        for kind, names in _group_names(each).items():
            for name in names:
                groups[kind][name].append(each)
    return RecoveryFigures(
        total=_outcomes(answering),
        by={
            kind: {name: _outcomes(found) for name, found in sorted(named.items())}
            for kind, named in groups.items()
            if named
        },
        unprompted=len(delivered) - len(answering),
        refused=refused,
    )


_GROUPS = ("rule", "action", "diagnosis", "actor")


def _group_names(state: InterventionState) -> dict[str, set[str]]:
    """Return the names under which an intervention counts, by group."""
    issued = state.intervention
    return {
        "rule": {key.rule for key in issued.answers},
        "action": {issued.action.value},
        "diagnosis": {issued.diagnosis.value},
        "actor": {issued.by.value},
    }


def _outcomes(found: Iterable[InterventionState]) -> Outcomes:
    counts = Counter(each.outcome for each in found)
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

    In a real run nobody knows whether an attempt would have succeeded by itself. *In vain* counts
    attempts that succeeded although no intervention on them was judged to have helped: they most
    likely needed none. Attempts that an intervention helped may have needed none either, so this is
    a lower bound.
    """

    alarmed: Share = _NO_ATTEMPTS
    """Share of the successful attempts with a warning or a critical alert at any time."""
    disturbed: Share = _NO_ATTEMPTS
    """Share with a delivered intervention that answers an alert; observing does not count."""
    in_vain: Share = _NO_ATTEMPTS
    """Share that was disturbed, without any intervention that helped."""
    false_alarms: Share = _NO_ATTEMPTS
    """Share with a decision that called the alarm false."""
    interventions: int = 0
    """Interventions delivered to attempts that succeeded."""
    interventions_in_vain: int = 0
    """Of these, the ones on attempts that were disturbed in vain."""


def disturbance(attempts: Iterable[AttemptState], alarms: AlarmCounts) -> DisturbanceFigures:
    """Return alarms and interventions on attempts that succeeded."""
    found = {each.id: _interruptions(each) for each in attempts if success_of(each)}
    disturbed = [each for each in found.values() if each]
    vain = [each for each in disturbed if not any(it.outcome is Outcome.RECOVERED for it in each)]

    def share(hits: int) -> Share:
        return Share(hits=hits, of=len(found))

    return DisturbanceFigures(
        alarmed=share(len(alarms.alarmed & found.keys())),
        disturbed=share(len(disturbed)),
        in_vain=share(len(vain)),
        false_alarms=share(len(alarms.false_alarms & found.keys())),
        interventions=sum(map(len, disturbed)),
        interventions_in_vain=sum(map(len, vain)),
    )


def _interruptions(attempt: AttemptState) -> Sequence[InterventionState]:
    """Return the delivered interventions that answer alerts and that the worker noticed."""
    return [
        each
        for each in interventions((attempt,))
        if each.delivered and each.intervention.answers and each.action is not Action.OBSERVE
    ]
