"""Chooses each rule's threshold by what it costs and finds over some runs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.replay.tune.runs import (
    MIN_ALARMED,
    AlarmMeter,
    Alarms,
    alarms_at,
    earlier,
    levels,
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
            alarms = earlier(alarms, alarms_at(meter.runs, choice.rule, choice.level))
    others = {rule: each for rule, each in alone.items() if each.verdict is not RuleVerdict.TOO_FEW}
    placed = _Greedy(meter, others, alarms, allowed * meter.resolved)
    return tuple({**alone, **placed.choices(present)}[rule] for rule in present)


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


class _Greedy:
    """Accepts candidates while they add something and the false alarms stay within a limit."""

    def __init__(
        self,
        meter: AlarmMeter,
        candidates: Mapping[str, Choice],
        alarms: Alarms,
        limit: float,
    ) -> None:
        self._meter = meter
        self._left = dict(candidates)
        self._alarms = alarms
        self._limit = limit
        self._taken: dict[str, Choice] = {}

    def choices(self, present: Mapping[str, int | None]) -> dict[str, Choice]:
        """Return the decision about each rule."""
        while (best := self._best_candidate()) is not None:
            choice = self._left.pop(best)
            self._alarms = self._alarms_with(best, choice.level)
            self._taken[best] = choice
        return self._taken | {
            rule: self._remaining_choice(choice, present[rule])
            for rule, choice in self._left.items()
        }

    def _alarms_with(self, rule: str, level: int | None) -> Alarms:
        return earlier(self._alarms, alarms_at(self._meter.runs, rule, level))

    def _best_candidate(self) -> str | None:
        """Return the candidate that adds most; among equals, the cheapest."""
        ranks: list[tuple[int, int, str]] = []
        now = self._meter.count_found(self._alarms)
        for rule, choice in self._left.items():
            if choice.verdict is not RuleVerdict.CHOSEN:
                continue
            union = self._alarms_with(rule, choice.level)
            cost = self._meter.false_alarms(union)
            gain = self._meter.count_found(union) - now
            if gain > 0 and cost <= self._limit:
                ranks.append((-gain, cost, rule))
        return min(ranks)[2] if ranks else None

    def _remaining_choice(self, choice: Choice, now: int | None) -> Choice:
        """Return the choice for a remaining rule: unchanged if that adds no false alarm."""
        union = self._alarms_with(choice.rule, now)
        before = self._meter.false_alarms(self._alarms)
        if now is not None and self._meter.false_alarms(union) == before:
            self._alarms = union
            return Choice(rule=choice.rule, level=now, verdict=RuleVerdict.NO_COST)
        if choice.verdict is not RuleVerdict.CHOSEN:
            return choice
        return Choice(rule=choice.rule, level=None, verdict=RuleVerdict.TOO_DEAR)
