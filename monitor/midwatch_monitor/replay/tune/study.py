"""Which thresholds to have: recorded runs read twice, for every threshold at
once and under what is proposed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.records import Event
from midwatch_monitor.replay.tune.labels import Label, Recordings
from midwatch_monitor.replay.tune.runs import (
    MIN_ALARMED,
    AlarmFigures,
    AlarmMeter,
    Alarms,
    Run,
    Target,
    alarms_at,
    earlier,
    first_alarms,
    levels,
    measure,
)
from midwatch_monitor.replay.tune.threshold import (
    SEVERITY,
    changed_keys,
    level_in_force,
    threshold_of,
    tunable_rules,
    with_levels,
)
from midwatch_monitor.traces import Damage, open_trace

RULE_PART = 0.5
"""How much of all allowed false alarms one rule may use: several rules must find a place."""


class Verdict(StrEnum):
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
    verdict: Verdict


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
        if choice.verdict is Verdict.TOO_FEW:
            alarms = earlier(alarms, alarms_at(meter.runs, choice.rule, choice.level))
    others = {rule: each for rule, each in alone.items() if each.verdict is not Verdict.TOO_FEW}
    placed = _Greedy(meter, others, alarms, allowed * meter.resolved)
    return tuple({**alone, **placed.choices(present)}[rule] for rule in present)


def _alone(meter: AlarmMeter, rule: str, now: int | None, allowed: float) -> Choice:
    limit = allowed * RULE_PART * meter.resolved
    tried = False
    for level in levels(meter.runs, rule):
        alarms = alarms_at(meter.runs, rule, level)
        if meter.false_alarms(alarms) > limit:
            continue
        if meter.by_length.alarmed(alarms) < MIN_ALARMED:
            break
        tried = True
        lift = meter.by_length.interval(alarms)
        if lift is not None and lift.low > 0:
            return Choice(rule=rule, level=level, verdict=Verdict.CHOSEN)
    if _alarmed(meter, rule, now) < MIN_ALARMED:
        return Choice(rule=rule, level=now, verdict=Verdict.TOO_FEW)
    verdict = Verdict.BY_CHANCE if tried else Verdict.TOO_DEAR
    return Choice(rule=rule, level=None, verdict=verdict)


def _alarmed(meter: AlarmMeter, rule: str, now: int | None) -> int:
    """How many runs a rule alarms as it is, or one that is no alarm at its most eager.

    Runs that have no lift say nothing of what it finds.
    """
    eager = levels(meter.runs, rule)[:1]
    level = eager[0] if now is None and eager else now
    return meter.by_length.alarmed(alarms_at(meter.runs, rule, level))


class _Greedy:
    """Takes in candidates while they add something and the false alarms stay within a limit."""

    def __init__(
        self,
        meter: AlarmMeter,
        candidates: Mapping[str, Choice],
        alarms: Alarms,
        limit: float,
    ) -> None:
        self._yardstick = meter
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
        return earlier(self._alarms, alarms_at(self._yardstick.runs, rule, level))

    def _best(self) -> str | None:
        """The candidate that adds most; of equals the one that costs least."""
        ranks: list[tuple[int, int, str]] = []
        now = self._yardstick.found(self._alarms)
        for rule, choice in self._left.items():
            if choice.verdict is not Verdict.CHOSEN:
                continue
            union = self._with(rule, choice.level)
            cost = self._yardstick.false_alarms(union)
            gain = self._yardstick.found(union) - now
            if gain > 0 and cost <= self._limit:
                ranks.append((-gain, cost, rule))
        return min(ranks)[2] if ranks else None

    def _leftover(self, choice: Choice, now: int | None) -> Choice:
        """It stays as it is where that costs nothing beside the others that do."""
        union = self._with(choice.rule, now)
        before = self._yardstick.false_alarms(self._alarms)
        if now is not None and self._yardstick.false_alarms(union) == before:
            self._alarms = union
            return Choice(rule=choice.rule, level=now, verdict=Verdict.NO_COST)
        if choice.verdict is not Verdict.CHOSEN:
            return choice
        return Choice(rule=choice.rule, level=None, verdict=Verdict.TOO_DEAR)


def fold_of(task: str, folds: int) -> int:
    """The fold of a task, from 0: by its name alone, so that it is the same in every study."""
    digest = sha256(task.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % folds


def parted(runs: Sequence[Run], folds: int) -> list[tuple[int, ...]]:
    """The places of the runs of each fold; folds that got no task are left out."""
    parts: list[list[int]] = [[] for _ in range(folds)]
    for at, run in enumerate(runs):
        parts[fold_of(run.label.task, folds)].append(at)
    return [tuple(part) for part in parts if part]


MIN_TARGETS = 10
"""Runs out of budget below which thresholds are chosen to find unresolved runs instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What is wanted of the thresholds, and how carefully they are judged."""

    allowed: float
    """The share of resolved runs that may be alarmed, from 0 to 1."""
    folds: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One threshold of one rule, the others silent."""

    rule: str
    key: str
    threshold: int | None
    """`None` for a rule that has none, and is an alarm or not."""
    present: bool
    chosen: bool
    figures: AlarmFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Whole configurations, each truly replayed: with hold, cooldown and agreement."""

    present: AlarmFigures
    proposal: AlarmFigures
    """On the runs that it was chosen on: flattering."""
    held_out: AlarmFigures | None
    """Each run under thresholds chosen without its task; `None` if all are in one fold."""
    agreement: AlarmFigures
    """Of notices that agree, without any rule's own alarm."""
    better: bool | None
    """Whether the held-out figures are better than the present ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All that recorded runs say of thresholds."""

    target: Target
    aim: Aim
    runs: int
    rows: tuple[Row, ...]
    choices: tuple[Choice, ...]
    before: Rules
    after: Rules
    scores: Scores


def target_of(labels: Sequence[Label]) -> Target:
    """What thresholds are chosen to find: runs out of budget, if there are enough of them."""
    spent = sum(label.spent for label in labels)
    return Target.SPENT if spent >= MIN_TARGETS else Target.UNRESOLVED


def study(recorded: Recordings, settings: Settings, aim: Aim) -> Study:
    """What each threshold cost and found over recorded runs, and which ones to have.

    Every trace is read twice, as a stream. Raises TraceError for one that cannot be read.
    """
    events, every = partial(_events, format=recorded.format), settings.reflect.remind_every
    runs = [
        Run(label=label, measured=measure(events(path), settings.rules, remind_every=every))
        for path, label in recorded.traces.items()
    ]
    target = target_of([run.label for run in runs])
    meter = AlarmMeter(runs, target, Random(aim.seed))
    present = {rule: level_in_force(each) for rule, each in tunable_rules(settings.rules).items()}
    choices = choose(meter, present, allowed=aim.allowed)
    after = _chosen(settings.rules, choices)
    unseen = _held_out_rules(runs, settings.rules, target, aim)
    alarms = [
        first_alarms(events(path), (after, rules), remind_every=every)
        for path, rules in zip(recorded.traces, unseen or [after] * len(runs), strict=True)
    ]
    return Study(
        target=target,
        aim=aim,
        runs=len(runs),
        rows=tuple(_rows(meter, settings.rules, {c.rule: c.level for c in choices})),
        choices=choices,
        before=settings.rules,
        after=after,
        scores=_scores(meter, alarms, aim, held_out=unseen is not None),
    )


def _scores(meter: AlarmMeter, alarms: Sequence[Alarms], aim: Aim, *, held_out: bool) -> Scores:
    present = meter.figures([run.measured.present for run in meter.runs])
    unseen = meter.figures([found[1] for found in alarms]) if held_out else None
    return Scores(
        present=present,
        proposal=meter.figures([found[0] for found in alarms]),
        held_out=unseen,
        agreement=meter.figures([run.measured.agreed for run in meter.runs]),
        better=None if unseen is None else better(unseen, present, allowed=aim.allowed),
    )


def better(one: AlarmFigures, other: AlarmFigures, *, allowed: float) -> bool:
    """Whether one configuration is to be preferred: fewer false alarms beyond the allowed ones,
    then more found, then fewer false alarms. What finds nothing is never better.
    """
    return one.found.hits > 0 and _rank(one, allowed) < _rank(other, allowed)


def _rank(figures: AlarmFigures, allowed: float) -> tuple[float, int, int]:
    excess = max(0.0, figures.resolved.rate - allowed)
    return (excess, -figures.found.hits, figures.resolved.hits)


def _held_out_rules(
    runs: Sequence[Run], rules: Rules, target: Target, aim: Aim
) -> list[Rules] | None:
    """For each run the rules that follow from the other folds."""
    parts = parted(runs, aim.folds)
    if len(parts) < 2:
        return None
    present = {rule: level_in_force(each) for rule, each in tunable_rules(rules).items()}
    unseen = [rules] * len(runs)
    for part in parts:
        left_out = set(part)
        others = [run for at, run in enumerate(runs) if at not in left_out]
        meter = AlarmMeter(others, target, Random(aim.seed))
        chosen = _chosen(rules, choose(meter, present, allowed=aim.allowed))
        for at in part:
            unseen[at] = chosen
    return unseen


def _chosen(rules: Rules, choices: Sequence[Choice]) -> Rules:
    return with_levels(rules, {choice.rule: choice.level for choice in choices})


def _rows(meter: AlarmMeter, rules: Rules, chosen: Mapping[str, int | None]) -> Iterator[Row]:
    for rule, settings in tunable_rules(rules).items():
        threshold, now = threshold_of(settings), level_in_force(settings)
        every = {*levels(meter.runs, rule), *([] if now is None else [now])}
        for level in sorted(every):
            alarms = alarms_at(meter.runs, rule, level)
            yield Row(
                rule=rule,
                key=threshold.key,
                threshold=None if threshold is SEVERITY else threshold.value(level),
                present=level == now,
                chosen=level == chosen[rule],
                figures=meter.figures(alarms),
            )


def _events(path: Path, format: str) -> Iterator[Event]:
    """The events of a trace; lines that are damaged are passed over, as in a replay."""
    for event in open_trace(path, format):
        if not isinstance(event, Damage):
            yield event


def changes(study: Study) -> dict[str, dict[str, int | str]]:
    """The keys of each rule that the proposal changes; rules without any are left out."""
    rules = tunable_rules(study.before)
    found = {each.rule: changed_keys(rules[each.rule], each.level) for each in study.choices}
    return {rule: keys for rule, keys in found.items() if keys}


def proposal_text(study: Study) -> str:
    """The proposal as a configuration file that holds only what it changes.

    What is configured now stays below it: it is given after the file in force.
    """
    lines = [f"# {line}" for line in _head(study)]
    changed = changes(study)
    if not changed:
        return "\n".join((*lines, "# Nothing to change.", ""))
    lines.append("rules:")
    for choice in study.choices:
        if choice.rule in changed:
            lines += _rule(study, choice, changed[choice.rule])
    return "\n".join((*lines, ""))


def verdict_text(study: Study) -> str:
    """Whether to take the proposal, by what it did on tasks that it was not chosen on."""
    if not changes(study):
        return "Nothing to change: keep what you have."
    held_out = study.scores.held_out
    if held_out is None:
        return "There are too few tasks to judge it on others than it was chosen on."
    if study.scores.better:
        sure = held_out.lift_interval is not None and held_out.lift_interval.low > 0
        doubt = "" if sure else " But there it is not shown to find more than chance does."
        return f"Better than what is configured, on tasks that it was not chosen on.{doubt}"
    return "Not better than what is configured, on tasks not chosen on: keep what you have."


def figures_text(figures: AlarmFigures, target: Target) -> str:
    """What alarms cost and found, in a line."""
    parts = [f"{share_text(figures.resolved)} of the resolved runs alarmed"]
    when = " in time" if target is Target.SPENT else ""
    parts.append(f"{_of(figures.found)} {target}{when}")
    if figures.lift is not None:
        parts.append(f"lift {lift_text(figures.lift, figures.lift_interval)}")
    return ", ".join(parts)


def share_text(share: Share) -> str:
    """So many of so many, in percent, with the 95 % interval."""
    low, high = (f"{100 * end:.1f}" for end in (share.interval.low, share.interval.high))
    return f"{_of(share)} ({100 * share.rate:.1f} %, {low} to {high})"


def lift_text(lift: float, interval: Interval | None) -> str:
    """A lift with its 95 % interval, where there is one."""
    ends = f" ({interval.low:+.2f} to {interval.high:+.2f})" if interval else ""
    return f"{lift:+.2f}{ends}"


def score_lines(study: Study) -> Iterator[tuple[str, AlarmFigures]]:
    """The whole configurations that are compared, by name."""
    scores = study.scores
    yield "agreement of notices alone", scores.agreement
    yield "as configured", scores.present
    yield "as proposed, on the runs it was chosen on", scores.proposal
    if scores.held_out is not None:
        yield "chosen the same way without the task judged", scores.held_out


def _head(study: Study) -> Iterator[str]:
    allowed = f"{100 * study.aim.allowed:g} % of the resolved ones may be alarmed"
    yield f"Proposed by `midwatch tune` from {study.runs} recorded runs; {allowed}."
    yield "It holds only what changes: give it after the configuration in force."
    for name, figures in score_lines(study):
        yield f"{name}: {figures_text(figures, study.target)}"
    yield verdict_text(study)


def _rule(study: Study, choice: Choice, keys: dict[str, int | str]) -> Iterator[str]:
    """One rule; every changed value has a line that says why."""
    row = _row(study, choice)
    reason = "Never an alarm in these runs."
    if row is not None:
        at = "As it was" if choice.level is None else "From here on"
        reason = f"{at}: {figures_text(row.figures, study.target)}."
    yield f"  {choice.rule}:"
    if choice.level is None:
        yield f"    # {choice.verdict.value[0].upper()}{choice.verdict.value[1:]}."
    for key, value in keys.items():
        yield f"    # {_why(key, keys, reason)}"
        yield f"    {key}: {value}"


def _why(key: str, keys: dict[str, int | str], reason: str) -> str:
    if key == "notice_after":
        return "A notice would come no sooner than the alarm."
    if key == "critical_after" and "warn_after" in keys and keys[key]:
        return "Not measured by itself: keeps its distance from the warning."
    return reason


def _row(study: Study, choice: Choice) -> Row | None:
    """The threshold that is chosen; of a rule that is no alarm any more, the one it had."""
    for row in study.rows:
        if row.rule == choice.rule and (row.present if choice.level is None else row.chosen):
            return row
    return None


def _of(share: Share) -> str:
    return f"{share.hits}/{share.of}"
