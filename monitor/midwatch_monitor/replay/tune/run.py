"""A recorded run as it is tuned on: how it ended, and what the rules had to say."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.replay.tune.labels import Label
from midwatch_monitor.replay.tune.trail import Trail, first_at

Alarms = Sequence[int | None]
"""The step of the first alarm of each of some runs, in their order."""


class Target(StrEnum):
    """What an alarm is to find."""

    SPENT = "out of budget"
    """Runs that ran out of budget, while there is still something to save."""
    UNRESOLVED = "unresolved"
    """Runs that did not do what was wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One recorded run."""

    label: Label
    trail: Trail

    def reached(self, target: Target) -> bool | None:
        """Whether it is one of those to be found; `None` where nobody knows."""
        if target is Target.SPENT:
            return self.label.spent
        return None if self.label.resolved is None else not self.label.resolved


def alarms_at(runs: Sequence[Run], rule: str, level: int | None) -> Alarms:
    """The first alarms of one rule, set to a level; none at all where it is set to none."""
    if level is None:
        return [None] * len(runs)
    return [first_at(run.trail.stairs.get(rule, ()), level) for run in runs]


def levels(runs: Sequence[Run], rule: str) -> list[int]:
    """The levels that a rule reached in any run, from the most eager one on."""
    return sorted({level for run in runs for _, level in run.trail.stairs.get(rule, ())})


def sooner(one: Alarms, other: Alarms) -> Alarms:
    """The first alarms of two rules together."""
    return [
        there if here is None else here if there is None else min(here, there)
        for here, there in zip(one, other, strict=True)
    ]
