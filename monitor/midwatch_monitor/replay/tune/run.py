"""A recorded run for tuning: how it ended, and what the rules found in it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
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

Rises = tuple[tuple[int, int], ...]
"""The step and the level, whenever a rule's highest level so far rises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run under the eye of every rule. Steps are counted from 1."""

    steps: int
    rises: Mapping[str, Rises]
    """Of each rule that said anything."""
    agreed: int | None
    """The first step at which notices alone would make an alarm by agreeing."""
    present: int | None
    """The first step with an alarm under the rules as configured."""


def measure(events: Iterable[Event], rules: Rules, *, remind_every: int) -> MeasuredRun:
    """Feed a run to the rules. Work is constant for each event, memory by how many levels rose.

    The levels are found without hold, cooldown and agreement; the alarms are found with them.
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
    """The step of the first alarm of a run under each of several configurations."""
    watch = _Judges(rules, remind_every)
    for event in events:
        watch.observe(event)
        if None not in watch.alarms:
            break
    return tuple(watch.alarms)


def first_at(rises: Rises, level: int) -> int | None:
    """The first step at which a level was reached."""
    return next((step for step, reached in rises if reached >= level), None)


class _Judges:
    """Several judges over one run, for which each step is normalised only once."""

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
        """Feed all judges that still have something to say."""
        act = None
        if isinstance(event, Step):
            self.steps += 1
            act = self._normaliser.act(event)
        for at, judge in enumerate(self._judges):
            if self.alarms[at] is None:
                said = judge.observe(event) if act is None else judge.judge(event, act)
                self.alarms[at] = max(1, self.steps) if _alarming(said) else None
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


def _alarming(said: Judgement) -> bool:
    return any(alert.firing and alert.severity.alarm for alert in said.alerts)


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
    measured: MeasuredRun

    def reached(self, target: Target) -> bool | None:
        """Whether it is one of those to be found; `None` where nobody knows."""
        if target is Target.SPENT:
            return self.label.spent
        return None if self.label.resolved is None else not self.label.resolved


def alarms_at(runs: Sequence[Run], rule: str, level: int | None) -> Alarms:
    """The first alarms of one rule, set to a level; none at all where it is set to none."""
    if level is None:
        return [None] * len(runs)
    return [first_at(run.measured.rises.get(rule, ()), level) for run in runs]


def levels(runs: Sequence[Run], rule: str) -> list[int]:
    """The levels that a rule reached in any run, from the most eager one on."""
    return sorted({level for run in runs for _, level in run.measured.rises.get(rule, ())})


def earlier(one: Alarms, other: Alarms) -> Alarms:
    """The first alarms of two rules together."""
    return [
        there if here is None else here if there is None else min(here, there)
        for here, there in zip(one, other, strict=True)
    ]
