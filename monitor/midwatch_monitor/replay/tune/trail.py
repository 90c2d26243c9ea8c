"""What the rules had to say over one recorded run: enough to judge any threshold afterwards."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import Change, Event, Judgement, Step
from midwatch_monitor.replay.tune.knob import Knob, hushed, knob_of, probing, tuned
from midwatch_monitor.rules.act import Normaliser

Staircase = tuple[tuple[int, int], ...]
"""The step and the level, whenever a rule's highest level so far rises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """One run under the eye of every rule. Steps are counted from 1."""

    steps: int
    stairs: Mapping[str, Staircase]
    """Of each rule that said anything."""
    agreed: int | None
    """The first step at which notices alone would make an alarm by agreeing."""
    present: int | None
    """The first step with an alarm under the rules as configured."""


def follow(events: Iterable[Event], rules: Rules, *, remind_every: int) -> Trail:
    """Feed a run to the rules. Work is constant for each event, memory by how many levels rose.

    The levels are found without hold, cooldown and agreement; the alarms are found with them.
    """
    watch = _Watch((rules, hushed(rules)), remind_every, probe=probing(rules))
    for event in events:
        watch.observe(event)
    present, agreed = watch.alarms
    stairs = {rule: tuple(steps) for rule, steps in watch.stairs.items()}
    return Trail(steps=watch.steps, stairs=stairs, agreed=agreed, present=present)


def first_alarms(
    events: Iterable[Event], rules: Sequence[Rules], *, remind_every: int
) -> tuple[int | None, ...]:
    """The step of the first alarm of a run under each of several configurations."""
    watch = _Watch(rules, remind_every)
    for event in events:
        watch.observe(event)
        if None not in watch.alarms:
            break
    return tuple(watch.alarms)


def first_at(stairs: Staircase, level: int) -> int | None:
    """The first step at which a level was reached."""
    return next((step for step, reached in stairs if reached >= level), None)


class _Watch:
    """Several judges over one run, for which each step is normalised only once."""

    def __init__(
        self, rules: Sequence[Rules], remind_every: int, *, probe: Rules | None = None
    ) -> None:
        self._normaliser = Normaliser()
        self._judges = [Judge(each) for each in rules]
        self._probe = Judge(probe) if probe else None
        self._knobs: dict[str, Knob] = (
            {name: knob_of(settings) for name, settings in tuned(probe).items()} if probe else {}
        )
        self.steps = 0
        self.alarms: list[int | None] = [None] * len(rules)
        self.stairs: dict[str, list[tuple[int, int]]] = {}
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
            self._climb(self._probe)

    def _climb(self, probe: Judge) -> None:
        for alert in probe.firing:
            rule = alert.key.rule
            level = self._knobs[rule].level(alert.value)
            stairs = self.stairs.setdefault(rule, [])
            if level and (not stairs or level > stairs[-1][1]):
                stairs.append((max(1, self.steps), level))


def _alarming(said: Judgement) -> bool:
    return any(alert.firing and alert.severity.alarm for alert in said.alerts)
