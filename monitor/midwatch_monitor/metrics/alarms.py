"""Figures about detection, interventions, alarms on attempts that succeeded, and retries. Pure."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from midwatch_monitor.metrics.calibration import success_of
from midwatch_monitor.metrics.statistics import Distribution, Share, distribution
from midwatch_monitor.records import (
    Action,
    Alert,
    AlertKey,
    Analysis,
    AnalysisAuthor,
    Cause,
    Decision,
    Diagnosis,
    Entry,
    Outcome,
    Step,
    StepKind,
)
from midwatch_monitor.rules.failure_text import found_nothing_by_exit_code, has_failed
from midwatch_monitor.rules.identity import NO_WORK, command, identify, only_waits, was_refused
from midwatch_monitor.rules.memory import Memory
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import InterventionState
from midwatch_monitor.state.task import TaskState, interventions

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


_NONE = Share(hits=0, of=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbanceFigures:
    """Alarms and interventions on attempts that succeeded.

    In a real run nobody knows whether an attempt would have succeeded by itself. *In vain* counts
    attempts that succeeded although no intervention on them was judged to have helped: they most
    likely needed none. Attempts that an intervention helped may have needed none either, so this is
    a lower bound.
    """

    alarmed: Share = _NONE
    """Share of the successful attempts with a warning or a critical alert at any time."""
    disturbed: Share = _NONE
    """Share with a delivered intervention that answers an alert; observing does not count."""
    in_vain: Share = _NONE
    """Share that was disturbed, without any intervention that helped."""
    false_alarms: Share = _NONE
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


_ACTS = 64
"""Failed acts remembered per attempt, as many as the rules compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryComparison:
    """Shares of retries that succeeded, after an analysis and without one."""

    analysed: Share = _NONE
    unanalysed: Share = _NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryFigures:
    """Figures about retries.

    A retry of an *act* is the same call, as the rules compare calls, after it failed; it succeeds
    if it does not fail again. It is analysed if the worker wrote an analysis between the failure
    and the retry, or in the retry's own turn. A retry of a *task* is a finished attempt after the
    first; it is analysed if the worker wrote an analysis before its first work. Who writes an
    analysis is not random, so a difference between the two shares need not come from it.
    """

    acts: RetryComparison = RetryComparison()
    attempts: RetryComparison = RetryComparison()
    causes: tuple[tuple[Cause, int], ...] = ()
    """Number of the workers' analyses by cause."""
    provider: int = 0
    """Number of Midwatch's own analyses, about retried requests to a model."""
    held_back: int = 0
    """Calls that were refused until the worker explained itself; they are not retries."""


@dataclass(slots=True)
class _Attempt:
    """The failures of one attempt, and its analyses."""

    failures: Memory = field(default_factory=lambda: Memory(_ACTS))
    """By act: the number of analyses at its failure plus one; 0 if it passed last time."""
    analyses: int = 0
    request: int = 0
    """The newest request; 0 while none is known."""
    tries: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    """Retries in this request: the number of analyses at the failure, and whether the retry passed.

    Calls in one turn end in any order, so the analysis may come after the retry.
    """
    began: int | None = None
    """The request of the first work; `None` before it."""
    prepared: bool = False
    """Whether an analysis came before the first work or in the same turn."""

    def close_request(self) -> Counter[tuple[bool, bool]]:
        """Return how many retries of this request were analysed or not, and passed or not."""
        return Counter((self.analyses > before, passed) for before, passed in self.tries)

    def explain(self) -> None:
        """Count an analysis by the worker."""
        self.analyses += 1
        same_turn = self.began is not None and 0 < self.request == self.began
        self.prepared = self.prepared or self.began is None or same_turn


class Retries:
    """Follows acts and analyses."""

    def __init__(self) -> None:
        self._attempts: dict[int, _Attempt] = defaultdict(_Attempt)
        self._retries = Counter[tuple[bool, bool]]()
        """Number of retries, by whether an analysis came before and whether the retry passed."""
        self._causes = Counter[Cause]()
        self._provider = 0
        self._held_back = 0

    def observe(self, entry: Entry) -> None:
        if entry.attempt is None:
            return
        attempt = self._attempts[entry.attempt]
        match entry.record:
            case Step() as step if was_refused(step):
                self._held_back += 1
            case Step() as step:
                self._count_step(attempt, step)
            case Analysis(by=AnalysisAuthor.WATCH):
                self._provider += 1
            case Analysis(cause=cause):
                self._causes[cause] += 1
                attempt.explain()
            case _:
                pass

    def _count_step(self, attempt: _Attempt, step: Step) -> None:
        if step.request != attempt.request or not step.request:
            self._retries.update(attempt.close_request())
            attempt.tries.clear()
            attempt.request = step.request
        if step.kind is not StepKind.TOOL or step.tool in NO_WORK or only_waits(step):
            return
        attempt.began = step.request if attempt.began is None else attempt.began
        fails = has_failed(step)
        line = command(step)
        if fails is None or (fails and found_nothing_by_exit_code(step, line)):
            return
        action = identify(step, line)
        before = attempt.failures.get(action)
        if before:
            attempt.tries.append((before - 1, not fails))
        if fails or before:
            attempt.failures.put(action, attempt.analyses + 1 if fails else 0)

    def figures(self, tasks: Iterable[TaskState]) -> RetryFigures:
        """Return the figures so far."""
        acts = sum(
            (each.close_request() for each in self._attempts.values()), Counter(self._retries)
        )
        again = Counter(
            (self._attempts[each.id].prepared, ok)
            for task in tasks
            for each in list(task.attempts.values())[1:]
            if (ok := success_of(each)) is not None
        )
        return RetryFigures(
            acts=_comparison(acts),
            attempts=_comparison(again),
            causes=tuple(sorted(self._causes.items())),
            provider=self._provider,
            held_back=self._held_back,
        )


def _comparison(retries: Counter[tuple[bool, bool]]) -> RetryComparison:
    analysed, unanalysed = (
        Share(hits=retries[said, True], of=retries[said, True] + retries[said, False])
        for said in (True, False)
    )
    return RetryComparison(analysed=analysed, unanalysed=unanalysed)
