"""What alarms cost and what they find, over runs whose end is known. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.replay.tune.peers import Peers
from midwatch_monitor.replay.tune.run import Alarms, Run, Target

IN_TIME = 0.8
"""A run that ran out of budget counts as found if it was alarmed in this part of its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a set of first alarms cost and found."""

    resolved: Share
    """Resolved runs alarmed: false alarms, as a user feels them."""
    found: Share
    """Runs of the target alarmed; those out of budget only if they were in time."""
    unresolved: Share
    """Unresolved runs alarmed, at whatever step."""
    lift: float | None
    """How much likelier the target is than among runs of equal length; `None` without alarms."""
    lift_interval: Interval | None
    lift_unresolved: float | None
    delay: float | None
    """The first alarm as a share of the run: the median over alarmed runs of the target."""


class Yardstick:
    """Measures alarms over some runs."""

    def __init__(self, runs: Sequence[Run], target: Target, random: Random) -> None:
        self.runs = runs
        self.target = target
        self.peers = Peers(runs, target)
        self.peers.draw(random)
        self._failing = Peers(runs, Target.UNRESOLVED)
        self.resolved = sum(run.label.resolved is True for run in runs)
        self.targets = sum(run.reached(target) is True for run in runs)

    def false_alarms(self, alarms: Alarms) -> int:
        """How many resolved runs are alarmed."""
        return _count(
            run.label.resolved is True and step is not None for run, step in self._pairs(alarms)
        )

    def found(self, alarms: Alarms) -> int:
        """How many runs of the target are alarmed, and in time."""
        return _count(
            run.reached(self.target) is True and self._in_time(run, step)
            for run, step in self._pairs(alarms)
        )

    def figures(self, alarms: Alarms) -> Figures:
        """All that is said of some alarms."""
        pairs = list(self._pairs(alarms))
        failed = [step for run, step in pairs if run.label.resolved is False]
        delays = [
            step / run.trail.steps
            for run, step in pairs
            if step is not None and run.reached(self.target)
        ]
        return Figures(
            resolved=Share(hits=self.false_alarms(alarms), of=self.resolved),
            found=Share(hits=self.found(alarms), of=self.targets),
            unresolved=Share(hits=_count(step is not None for step in failed), of=len(failed)),
            lift=self.peers.lift(alarms),
            lift_interval=self.peers.interval(alarms),
            lift_unresolved=self._failing.lift(alarms),
            delay=median(delays) if delays else None,
        )

    def _pairs(self, alarms: Alarms) -> Iterable[tuple[Run, int | None]]:
        return zip(self.runs, alarms, strict=True)

    def _in_time(self, run: Run, step: int | None) -> bool:
        if step is None:
            return False
        return self.target is not Target.SPENT or step <= IN_TIME * run.trail.steps


def _count(each: Iterable[bool]) -> int:
    return sum(each)
