"""What an alarm knows beyond how long a run has lasted. Pure but for the randomness given."""

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from midwatch_monitor.metrics.statistics import Interval
from midwatch_monitor.replay.tune.run import Alarms, Run, Target

MIN_ALARMED = 5
"""Alarmed runs below which nothing is claimed of a lift: resampling a few says they are sure."""
RESAMPLES = 500
"""Bootstrap resamples of the runs: the ends of a 95 % interval then rest on a dozen each."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """How often each run was drawn, and the shares that follow."""

    weights: Sequence[int]
    shares: Sequence[float]


class Peers:
    """The runs of each source in the order of their length.

    The *lift* of an alarm is whether its run reached the target, minus the share among the runs
    of the same source that were still going at that step: long runs fail more often, and to know
    that takes no rule. Sources in which no run reaches the target are left out.
    """

    def __init__(self, runs: Sequence[Run], target: Target) -> None:
        sources: dict[str, list[tuple[int, int]]] = defaultdict(list)
        reached = [run.reached(target) for run in runs]
        hopeful = {run.label.source for run, hit in zip(runs, reached, strict=True) if hit}
        for at, (run, hit) in enumerate(zip(runs, reached, strict=True)):
            if hit is not None and run.label.source in hopeful:
                sources[run.label.source].append((run.trail.steps, at))
        self._hits = [bool(hit) for hit in reached]
        self._sources = [run.label.source for run in runs]
        self._order: list[int] = []
        self._segments: dict[str, tuple[int, list[int]]] = {}
        for source, members in sources.items():
            members.sort()
            self._segments[source] = (len(self._order), [steps for steps, _ in members])
            self._order += [at for _, at in members]
        self._known = frozenset(self._order)
        self._whole = self._sample([1] * len(runs))
        self._draws: list[_Sample] = []

    def draw(self, random: Random, *, times: int = RESAMPLES) -> None:
        """Resample the runs, for `interval`."""
        size = len(self._hits)
        for _ in range(times if self._order else 0):
            drawn = Counter(random.choices(self._order, k=len(self._order)))
            self._draws.append(self._sample([drawn[at] for at in range(size)]))

    def alarmed(self, alarms: Alarms) -> int:
        """How many runs have a lift at all."""
        return len(self._places(alarms))

    def lift(self, alarms: Alarms) -> float | None:
        """The mean lift of the alarms; `None` without any."""
        return self._mean(self._places(alarms), self._whole)

    def interval(self, alarms: Alarms) -> Interval | None:
        """Where the lift lies, by the resamples; `None` for fewer than `MIN_ALARMED` alarms."""
        places = self._places(alarms)
        if len(places) < MIN_ALARMED:
            return None
        means = sorted(
            mean for draw in self._draws if (mean := self._mean(places, draw)) is not None
        )
        if not means:
            return None
        edge = len(means) // 40
        return Interval(low=means[edge], high=means[-1 - edge])

    def _places(self, alarms: Alarms) -> list[tuple[int, int]]:
        """Each alarmed run with its place among its peers at that step."""
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

    def _mean(self, places: Sequence[tuple[int, int]], sample: _Sample) -> float | None:
        total = gained = 0.0
        for at, place in places:
            weight = sample.weights[at]
            if weight:
                total += weight
                gained += weight * (self._hits[at] - sample.shares[place])
        return gained / total if total else None
