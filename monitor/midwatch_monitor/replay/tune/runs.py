"""Recorded runs for tuning: how they ended, and what the rules found in them."""

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from random import Random
from statistics import median

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.records import Change, Event, Judgement, Step
from midwatch_monitor.replay.tune.labels import Label
from midwatch_monitor.replay.tune.threshold import (
    Threshold,
    eager_rules,
    silent_rules,
    threshold_of,
    tunable_rules,
)
from midwatch_monitor.rules.act import Normaliser
from midwatch_monitor.rules.plain_output import unwrap

Rises = tuple[tuple[int, int], ...]
"""Steps and levels at which a rule's highest level so far rises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run as measured by every rule. Steps are counted from 1."""

    steps: int
    rises: Mapping[str, Rises]
    """For each rule with findings."""
    agreed: int | None
    """The first step at which agreeing notices alone would make an alarm."""
    present: int | None
    """The first step with an alarm under the configured rules."""


def measure(events: Iterable[Event], rules: Rules, *, remind_every: int) -> MeasuredRun:
    """Feed a run to the rules, with constant work for each event.

    Levels are measured without hold, cooldown and agreement, alarms with them.
    """
    watch = _Judges((rules, silent_rules(rules)), remind_every, probe=eager_rules(rules))
    for event in events:
        watch.observe(event)
    present, agreed = watch.alarms
    rises = {rule: tuple(steps) for rule, steps in watch.rises.items()}
    return MeasuredRun(steps=watch.steps, rises=rises, agreed=agreed, present=present)


def first_alarms(
    events: Iterable[Event], rules: Sequence[Rules], *, remind_every: int
) -> tuple[int | None, ...]:
    """Return the step of a run's first alarm under each of several configurations."""
    distinct: list[Rules] = []
    distinct += (each for each in rules if each not in distinct)
    watch = _Judges(distinct, remind_every)
    for event in events:
        watch.observe(event)
        if None not in watch.alarms:
            break
    return tuple(watch.alarms[distinct.index(each)] for each in rules)


def first_at(rises: Rises, level: int) -> int | None:
    """Return the first step at which a level was reached."""
    return next((step for step, reached in rises if reached >= level), None)


class _Judges:
    """Several judges of one run; each step is normalised only once."""

    def __init__(
        self, rules: Sequence[Rules], remind_every: int, *, probe: Rules | None = None
    ) -> None:
        self._normaliser = Normaliser()
        self._judges = [Judge(each) for each in rules]
        self._probe = Judge(probe) if probe else None
        self._thresholds: dict[str, Threshold] = (
            {name: threshold_of(settings) for name, settings in tunable_rules(probe).items()}
            if probe
            else {}
        )
        self.steps = 0
        self.alarms: list[int | None] = [None] * len(rules)
        self.rises: dict[str, list[tuple[int, int]]] = {}
        self.observe(Change(reflect_every=remind_every))

    def observe(self, event: Event) -> None:
        """Feed all judges that have not alarmed yet."""
        act = None
        if isinstance(event, Step):
            self.steps += 1
            event = unwrap(event)
            act = self._normaliser.act(event)
        for at, judge in enumerate(self._judges):
            if self.alarms[at] is None:
                said = judge.observe(event) if act is None else judge.judge(event, act)
                self.alarms[at] = max(1, self.steps) if _has_alarm(said) else None
        if self._probe is not None:
            _ = self._probe.observe(event) if act is None else self._probe.judge(event, act)
            self._note_rises(self._probe)

    def _note_rises(self, probe: Judge) -> None:
        for alert in probe.firing:
            rule = alert.key.rule
            level = self._thresholds[rule].level(alert.value)
            rises = self.rises.setdefault(rule, [])
            if level and (not rises or level > rises[-1][1]):
                rises.append((max(1, self.steps), level))


def _has_alarm(said: Judgement) -> bool:
    return any(alert.firing and alert.severity.alarm for alert in said.alerts)


Alarms = Sequence[int | None]
"""The step of each run's first alarm, in the order of the runs."""


class AlarmTarget(StrEnum):
    """What alarms should find."""

    SPENT = "out of budget"
    """Runs that ran out of budget, early enough to save something."""
    UNRESOLVED = "unresolved"
    """Runs that did not reach their goal."""


IN_TIME = 0.8
"""A run out of budget counts as found if it was alarmed within this share of its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    label: Label
    measured: MeasuredRun

    def reaches(self, target: AlarmTarget) -> bool | None:
        """Whether alarms should find the run; `None` if unknown."""
        if target is AlarmTarget.SPENT:
            return self.label.spent
        return None if self.label.resolved is None else not self.label.resolved

    def in_time(self, step: int | None, target: AlarmTarget) -> bool:
        """Whether an alarm at a step comes early enough to save something."""
        if step is None:
            return False
        return target is not AlarmTarget.SPENT or step <= IN_TIME * self.measured.steps


def alarms_at(runs: Sequence[RecordedRun], rule: str, level: int | None) -> Alarms:
    """Return the first alarms of one rule at a level; none if the level is `None`."""
    if level is None:
        return [None] * len(runs)
    return [first_at(run.measured.rises.get(rule, ()), level) for run in runs]


def levels(runs: Sequence[RecordedRun], rule: str) -> list[int]:
    """Return the levels that a rule reached in any run, lowest first."""
    return sorted({level for run in runs for _, level in run.measured.rises.get(rule, ())})


def earlier(one: Alarms, other: Alarms) -> Alarms:
    """Return the first alarms of two rules together."""
    return [
        there if here is None else here if there is None else min(here, there)
        for here, there in zip(one, other, strict=True)
    ]


MIN_ALARMED = 5
"""Fewer alarms are not judged: resampling only a few would look certain."""
RESAMPLES = 500
"""Bootstrap resamples of the tasks: about a dozen lie beyond each end of a 95 % interval."""


def middle(resampled: Sequence[float]) -> Interval:
    """Return the interval that contains the middle 95 % of some figures."""
    ordered, edge = sorted(resampled), len(resampled) // 40
    return Interval(low=ordered[edge], high=ordered[-1 - edge])


@dataclass(frozen=True, slots=True)
class _Sample:
    """How often each run was drawn, and the resulting shares."""

    weights: Sequence[int]
    shares: Sequence[float]


class RunsByLength:
    """The runs of each source, ordered by length.

    The *lift* of an alarm is whether its run is a target (1 or 0), minus the share of targets among
    the runs of the same source that were still going at that step: it takes no rule to know that
    long runs fail more often. Sources without any target run are left out.
    """

    def __init__(self, runs: Sequence[RecordedRun], target: AlarmTarget) -> None:
        sources: dict[str, list[tuple[int, int]]] = defaultdict(list)
        reached = [run.reaches(target) for run in runs]
        hopeful = {run.label.source for run, hit in zip(runs, reached, strict=True) if hit}
        for at, (run, hit) in enumerate(zip(runs, reached, strict=True)):
            if hit is not None and run.label.source in hopeful:
                sources[run.label.source].append((run.measured.steps, at))
        self._hits = [bool(hit) for hit in reached]
        self._sources = [run.label.source for run in runs]
        self._tasks = [run.label.task for run in runs]
        self._order: list[int] = []
        self._segments: dict[str, tuple[int, list[int]]] = {}
        for source, members in sources.items():
            members.sort()
            self._segments[source] = (len(self._order), [steps for steps, _ in members])
            self._order += [at for _, at in members]
        self._known = frozenset(self._order)
        self._whole = self._sample([1] * len(runs))
        self._draws: list[_Sample] = []

    def draw(self, random: Random) -> None:
        """Resample the tasks, each with all its runs, for `interval`."""
        tasks: dict[str, list[int]] = defaultdict(list)
        for at in self._order:
            tasks[self._tasks[at]].append(at)
        for _ in range(RESAMPLES if tasks else 0):
            drawn = random.choices(list(tasks.values()), k=len(tasks))
            times_drawn = Counter(chain.from_iterable(drawn))
            self._draws.append(self._sample([times_drawn[at] for at in range(len(self._hits))]))

    def count_alarmed(self, alarms: Alarms) -> int:
        """Return how many alarmed runs have a lift."""
        return len(self._alarm_ranks(alarms))

    def lift(self, alarms: Alarms) -> float | None:
        """Return the mean lift of the alarms; `None` without any."""
        return self._mean_gain(self._alarm_ranks(alarms), self._whole)

    def interval(self, alarms: Alarms) -> Interval | None:
        """Return the lift's interval by resampling; `None` with fewer than `MIN_ALARMED` alarms."""
        places = self._alarm_ranks(alarms)
        if len(places) < MIN_ALARMED:
            return None
        means = [self._mean_gain(places, draw) for draw in self._draws]
        known = [mean for mean in means if mean is not None]
        return middle(known) if known else None

    def _alarm_ranks(self, alarms: Alarms) -> list[tuple[int, int]]:
        """Return each alarmed run with its rank among the runs of its source at that step."""
        places: list[tuple[int, int]] = []
        for at, step in enumerate(alarms):
            if step is not None and at in self._known:
                offset, lengths = self._segments[self._sources[at]]
                places.append((at, offset + bisect_left(lengths, step)))
        return places

    def _sample(self, weights: Sequence[int]) -> _Sample:
        shares = array("d", bytes(8 * len(self._order)))
        for offset, lengths in self._segments.values():
            going = hits = 0
            for place in reversed(range(offset, offset + len(lengths))):
                at = self._order[place]
                going += weights[at]
                hits += weights[at] * self._hits[at]
                shares[place] = hits / going if going else 0.0
        return _Sample(array("I", weights), shares)

    def _mean_gain(self, places: Sequence[tuple[int, int]], sample: _Sample) -> float | None:
        total = gained = 0.0
        for at, place in places:
            weight = sample.weights[at]
            if weight:
                total += weight
                gained += weight * (self._hits[at] - sample.shares[place])
        return gained / total if total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmFigures:
    """What a set of first alarms cost and found."""

    resolved: Share
    """Resolved runs alarmed: false alarms, as a user sees them."""
    found: Share
    """Target runs alarmed; for runs out of budget, only if in time."""
    unresolved: Share
    """Unresolved runs alarmed, at any step."""
    lift: float | None
    """How much more likely the target is than among runs of equal length; `None` without alarms."""
    lift_interval: Interval | None
    lift_unresolved: float | None
    delay: float | None
    """Position of the first alarm as a share of the run: the median over alarmed target runs."""


class AlarmMeter:
    """Measures alarms over some runs."""

    def __init__(self, runs: Sequence[RecordedRun], target: AlarmTarget, random: Random) -> None:
        self.runs = runs
        self.target = target
        self.by_length = RunsByLength(runs, target)
        self.by_length.draw(random)
        self._failing = RunsByLength(runs, AlarmTarget.UNRESOLVED)
        self.resolved = sum(run.label.resolved is True for run in runs)
        self.targets = sum(run.reaches(target) is True for run in runs)

    def false_alarms(self, alarms: Alarms) -> int:
        """Return how many resolved runs are alarmed."""
        return sum(
            run.label.resolved is True and step is not None
            for run, step in self._runs_with_alarms(alarms)
        )

    def count_found(self, alarms: Alarms) -> int:
        """Return how many target runs are alarmed in time."""
        return sum(
            run.reaches(self.target) is True and run.in_time(step, self.target)
            for run, step in self._runs_with_alarms(alarms)
        )

    def figures(self, alarms: Alarms) -> AlarmFigures:
        """Return all figures of some alarms."""
        pairs = list(self._runs_with_alarms(alarms))
        failed = [step for run, step in pairs if run.label.resolved is False]
        delays = [
            step / run.measured.steps
            for run, step in pairs
            if step is not None and run.reaches(self.target)
        ]
        return AlarmFigures(
            resolved=Share(hits=self.false_alarms(alarms), of=self.resolved),
            found=Share(hits=self.count_found(alarms), of=self.targets),
            unresolved=Share(hits=sum(step is not None for step in failed), of=len(failed)),
            lift=self.by_length.lift(alarms),
            lift_interval=self.by_length.interval(alarms),
            lift_unresolved=self._failing.lift(alarms),
            delay=median(delays) if delays else None,
        )

    def _runs_with_alarms(self, alarms: Alarms) -> Iterable[tuple[RecordedRun, int | None]]:
        return zip(self.runs, alarms, strict=True)
