"""Which threshold each rule is to have, by what it costs and finds over some runs. Pure."""

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
"""How much of all allowed false alarms one rule may use: several rules must find a place."""


class RuleVerdict(StrEnum):
    """What became of a rule, and why."""

    CHOSEN = "chosen"
    TOO_FEW = "kept: too little data"
    """It alarmed so few runs that nothing can be said."""
    NO_COST = "kept: not shown to find what the others do not, but costs nothing beside them"
    BY_CHANCE = "no alarm: within its part of the false alarms it is not shown to find anything"
    TOO_DEAR = "no alarm: what it adds costs too many false alarms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The level from which on a rule shall be an alarm; `None` is never."""

    rule: str
    level: int | None
    verdict: RuleVerdict


def choose(
    meter: AlarmMeter, present: Mapping[str, int | None], *, allowed: float
) -> tuple[Choice, ...]:
    """A level for each rule, so that at most the allowed share of resolved runs is alarmed.

    First each rule by itself: the most eager level within its part that finds something beyond
    chance. Of these, the one that adds most to what is found so far, again and again. Rules of
    which nothing can be said stay as they are, and their alarms count from the start, as do those
    of notices that agree. All others stay as they are too if that adds no false alarm.
    """
    alone = {rule: _alone(meter, rule, now, allowed) for rule, now in present.items()}
    alarms: Alarms = [run.measured.agreed for run in meter.runs]
    for choice in alone.values():
        if choice.verdict is RuleVerdict.TOO_FEW:
            alarms = earlier(alarms, alarms_at(meter.runs, choice.rule, choice.level))
    others = {rule: each for rule, each in alone.items() if each.verdict is not RuleVerdict.TOO_FEW}
    placed = _Greedy(meter, others, alarms, allowed * meter.resolved)
    return tuple({**alone, **placed.choices(present)}[rule] for rule in present)


def _alone(meter: AlarmMeter, rule: str, now: int | None, allowed: float) -> Choice:
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
    """How many runs a rule alarms as it is, or one that is no alarm at its most eager.

    Runs that have no lift say nothing of what it finds.
    """
    eager = levels(meter.runs, rule)[:1]
    level = eager[0] if now is None and eager else now
    return meter.by_length.count_alarmed(alarms_at(meter.runs, rule, level))


class _Greedy:
    """Takes in candidates while they add something and the false alarms stay within a limit."""

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
        """What becomes of each rule."""
        while (best := self._best()) is not None:
            choice = self._left.pop(best)
            self._alarms = self._with(best, choice.level)
            self._taken[best] = choice
        return self._taken | {
            rule: self._leftover(choice, present[rule]) for rule, choice in self._left.items()
        }

    def _with(self, rule: str, level: int | None) -> Alarms:
        return earlier(self._alarms, alarms_at(self._meter.runs, rule, level))

    def _best(self) -> str | None:
        """The candidate that adds most; of equals the one that costs least."""
        ranks: list[tuple[int, int, str]] = []
        now = self._meter.count_found(self._alarms)
        for rule, choice in self._left.items():
            if choice.verdict is not RuleVerdict.CHOSEN:
                continue
            union = self._with(rule, choice.level)
            cost = self._meter.false_alarms(union)
            gain = self._meter.count_found(union) - now
            if gain > 0 and cost <= self._limit:
                ranks.append((-gain, cost, rule))
        return min(ranks)[2] if ranks else None

    def _leftover(self, choice: Choice, now: int | None) -> Choice:
        """It stays as it is where that costs nothing beside the others that do."""
        union = self._with(choice.rule, now)
        before = self._meter.false_alarms(self._alarms)
        if now is not None and self._meter.false_alarms(union) == before:
            self._alarms = union
            return Choice(rule=choice.rule, level=now, verdict=RuleVerdict.NO_COST)
        if choice.verdict is not RuleVerdict.CHOSEN:
            return choice
        return Choice(rule=choice.rule, level=None, verdict=RuleVerdict.TOO_DEAR)
