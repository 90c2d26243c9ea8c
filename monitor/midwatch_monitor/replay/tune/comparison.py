"""Whether some alarms are better than others over the same runs, beyond noise. Pure.

Every difference has the 95 % interval of a paired bootstrap by task: tasks are drawn with all their
runs, and each run's change counts. Runs of one task are alike, so they are never drawn separately.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.replay.tune.runs import (
    MIN_ALARMED,
    RESAMPLES,
    Alarms,
    AlarmTarget,
    RecordedRun,
    middle,
)


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
