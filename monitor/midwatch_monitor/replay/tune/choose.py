"""Chooses thresholds by what they cost and find, and tells a gain from noise. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.replay.tune.runs import (
    MIN_ALARMED,
    RESAMPLES,
    AlarmMeter,
    Alarms,
    AlarmTarget,
    RecordedRun,
    alarms_at,
    earlier,
    levels,
    middle,
)

RULE_PART = 0.5
"""Share of all allowed false alarms that one rule may use, which leaves room for several rules."""


class RuleVerdict(StrEnum):
    """The decision about a rule, with its reason."""

    CHOSEN = "chosen"
    TOO_FEW = "kept: too little data"
    """It alarmed too few runs to be judged."""
    NO_COST = "kept: not shown to find more than the others, but it adds no false alarm"
    BY_CHANCE = "no alarm: with its share of the false alarms, it is not shown to find anything"
    TOO_DEAR = "no alarm: what it adds costs too many false alarms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The level at which a rule is to alarm; `None` for never."""

    rule: str
    level: int | None
    verdict: RuleVerdict


def choose(
    meter: AlarmMeter, present: Mapping[str, int | None], *, allowed: float
) -> tuple[Choice, ...]:
    """Choose a level for each rule so that at most the allowed share of resolved runs is alarmed.

    First, each rule by itself gets the lowest level within its share that finds more than chance.
    Then the rule that adds most to what is found so far is accepted, repeatedly. Rules that cannot
    be judged are unchanged, and their alarms count from the start, as do those of agreeing notices.
    The remaining rules are also unchanged if that adds no false alarm.
    """
    alone = {rule: _choose_alone(meter, rule, now, allowed) for rule, now in present.items()}
    alarms: Alarms = [run.measured.agreed for run in meter.runs]
    for choice in alone.values():
        if choice.verdict is RuleVerdict.TOO_FEW:
            alarms = _alarms_with(meter, alarms, choice.rule, choice.level)
    decided = dict(alone)
    left = {rule: each for rule, each in alone.items() if each.verdict is not RuleVerdict.TOO_FEW}
    while best := _best_candidate(meter, left, alarms, allowed * meter.resolved):
        alarms = _alarms_with(meter, alarms, best, left.pop(best).level)
    for rule, choice in left.items():
        union = _alarms_with(meter, alarms, rule, now := present[rule])
        if now is not None and meter.false_alarms(union) == meter.false_alarms(alarms):
            alarms = union
            decided[rule] = Choice(rule=rule, level=now, verdict=RuleVerdict.NO_COST)
        elif choice.verdict is RuleVerdict.CHOSEN:
            decided[rule] = Choice(rule=rule, level=None, verdict=RuleVerdict.TOO_DEAR)
    return tuple(decided[rule] for rule in present)


def _choose_alone(meter: AlarmMeter, rule: str, now: int | None, allowed: float) -> Choice:
    limit = allowed * RULE_PART * meter.resolved
    tried = False
    for level in levels(meter.runs, rule):
        alarms = alarms_at(meter.runs, rule, level)
        if meter.false_alarms(alarms) > limit:
            continue
        if meter.by_length.count_alarmed(alarms) < MIN_ALARMED:
            break
        tried = True
        lift = meter.by_length.interval(alarms)
        if lift is not None and lift.low > 0:
            return Choice(rule=rule, level=level, verdict=RuleVerdict.CHOSEN)
    if _count_alarmed(meter, rule, now) < MIN_ALARMED:
        return Choice(rule=rule, level=now, verdict=RuleVerdict.TOO_FEW)
    verdict = RuleVerdict.BY_CHANCE if tried else RuleVerdict.TOO_DEAR
    return Choice(rule=rule, level=None, verdict=verdict)


def _count_alarmed(meter: AlarmMeter, rule: str, now: int | None) -> int:
    """Count the runs alarmed by a rule as configured or, if it never alarms, at its lowest level.

    Runs without a lift do not count.
    """
    eager = levels(meter.runs, rule)[:1]
    level = eager[0] if now is None and eager else now
    return meter.by_length.count_alarmed(alarms_at(meter.runs, rule, level))


def _alarms_with(meter: AlarmMeter, alarms: Alarms, rule: str, level: int | None) -> Alarms:
    return earlier(alarms, alarms_at(meter.runs, rule, level))


def _best_candidate(
    meter: AlarmMeter, left: Mapping[str, Choice], alarms: Alarms, limit: float
) -> str | None:
    """Return the candidate that adds most, and of several the cheapest; `None` if none adds any.

    No more than `limit` resolved runs may be alarmed.
    """
    ranks: list[tuple[int, int, str]] = []
    for rule, choice in left.items():
        if choice.verdict is RuleVerdict.CHOSEN:
            union = _alarms_with(meter, alarms, rule, choice.level)
            gain = meter.count_found(union) - meter.count_found(alarms)
            if gain > 0 and (cost := meter.false_alarms(union)) <= limit:
                ranks.append((-gain, cost, rule))
    return min(ranks)[2] if ranks else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The change of a share over the same runs."""

    before: Share
    after: Share
    tasks: int
    """Number of tasks in which it changes."""
    interval: Interval | None
    """Interval of the rate after minus the rate before; `None` with fewer than two tasks."""

    @property
    def rises(self) -> bool:
        """Whether it rises by more than noise."""
        return self.interval is not None and self.interval.low > 0

    @property
    def falls(self) -> bool:
        """Whether it falls by more than noise."""
        return self.interval is not None and self.interval.high < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The changes in one source, or in all of them together."""

    source: str | None
    """`None` for all together."""
    resolved: Difference
    """Share of resolved runs alarmed."""
    found: Difference
    """Share of target runs found."""

    @property
    def worse(self) -> bool:
        """Whether more alarms are false or less is found, beyond noise."""
        return self.resolved.rises or self.found.falls

    @property
    def better(self) -> bool:
        """Whether more is found or fewer alarms are false, beyond noise, and nothing is worse."""
        gains = ((self.found, self.found.rises), (self.resolved, self.resolved.falls))
        sure = any(gained and change.tasks >= MIN_ALARMED for change, gained in gains)
        return sure and not self.worse


def compare(
    runs: Sequence[RecordedRun],
    target: AlarmTarget,
    alarms: tuple[Alarms, Alarms],
    *,
    seed: int,
    source: str | None = None,
) -> Comparison:
    """Compare the first alarms before and after, over the runs of one source or of all."""
    resolved: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    found: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for run, before, after in zip(runs, *alarms, strict=True):
        if source is not None and run.label.source != source:
            continue
        if run.label.resolved:
            resolved[run.label.task].append((before is not None, after is not None))
        if run.reaches(target):
            pair = run.in_time(before, target), run.in_time(after, target)
            found[run.label.task].append(pair)
    first, second = (_difference(list(each.values()), seed) for each in (resolved, found))
    return Comparison(source=source, resolved=first, found=second)


def _difference(tasks: Sequence[Sequence[tuple[bool, bool]]], seed: int) -> Difference:
    """Return the difference of a share, from each run's state before and after."""
    sums = [(sum(a - b for b, a in task), len(task)) for task in tasks]
    before, after = (sum(pair[at] for task in tasks for pair in task) for at in (0, 1))
    size = sum(of for _, of in sums)
    return Difference(
        before=Share(hits=before, of=size),
        after=Share(hits=after, of=size),
        tasks=sum(any(b != a for b, a in task) for task in tasks),
        interval=_interval(sums, Random(seed)),
    )


def _interval(sums: Sequence[tuple[int, int]], random: Random) -> Interval | None:
    """Return the interval of the rate's change from resampled tasks."""
    if len(sums) < 2:
        return None
    if not any(change for change, _ in sums):
        return Interval(low=0.0, high=0.0)
    rates: list[float] = []
    for _ in range(RESAMPLES):
        changes, sizes = zip(*random.choices(sums, k=len(sums)), strict=True)
        rates.append(sum(changes) / sum(sizes))
    return middle(rates)
