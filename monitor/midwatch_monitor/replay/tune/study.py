"""Recorded runs read twice: once for every threshold at once, once under what is proposed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.records import Event
from midwatch_monitor.replay.tune.choice import Choice, choose
from midwatch_monitor.replay.tune.figures import Figures, Yardstick
from midwatch_monitor.replay.tune.folds import parted
from midwatch_monitor.replay.tune.knob import SWITCH, knob_of, level_in_force, tuned, with_levels
from midwatch_monitor.replay.tune.labels import Label
from midwatch_monitor.replay.tune.recordings import Recorded
from midwatch_monitor.replay.tune.run import Alarms, Run, Target, alarms_at, levels
from midwatch_monitor.replay.tune.trail import first_alarms, follow
from midwatch_monitor.traces import Damage, open_trace

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
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Whole configurations, each truly replayed: with hold, cooldown and agreement."""

    present: Figures
    proposal: Figures
    """On the runs that it was chosen on: flattering."""
    held_out: Figures | None
    """Each run under thresholds chosen without its task; `None` if all are in one fold."""
    agreement: Figures
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


def study(recorded: Sequence[Recorded], settings: Settings, aim: Aim) -> Study:
    """What each threshold cost and found over recorded runs, and which ones to have.

    Every trace is read twice, as a stream. Raises TraceError for one that cannot be read.
    """
    every = settings.reflect.remind_every
    runs = [
        Run(label=each.label, trail=follow(_events(each), settings.rules, remind_every=every))
        for each in recorded
    ]
    target = target_of([each.label for each in recorded])
    yardstick = Yardstick(runs, target, Random(aim.seed))
    present = {rule: level_in_force(each) for rule, each in tuned(settings.rules).items()}
    choices = choose(yardstick, present, allowed=aim.allowed)
    after = _chosen(settings.rules, choices)
    unseen = _held_out_rules(runs, settings.rules, target, aim)
    alarms = [
        first_alarms(_events(each), (after, rules), remind_every=every)
        for each, rules in zip(recorded, unseen or [after] * len(runs), strict=True)
    ]
    return Study(
        target=target,
        aim=aim,
        runs=len(runs),
        rows=tuple(_rows(yardstick, settings.rules, {c.rule: c.level for c in choices})),
        choices=choices,
        before=settings.rules,
        after=after,
        scores=_scores(yardstick, alarms, aim, held_out=unseen is not None),
    )


def _scores(yardstick: Yardstick, alarms: Sequence[Alarms], aim: Aim, *, held_out: bool) -> Scores:
    present = yardstick.figures([run.trail.present for run in yardstick.runs])
    unseen = yardstick.figures([found[1] for found in alarms]) if held_out else None
    return Scores(
        present=present,
        proposal=yardstick.figures([found[0] for found in alarms]),
        held_out=unseen,
        agreement=yardstick.figures([run.trail.agreed for run in yardstick.runs]),
        better=None if unseen is None else better(unseen, present, allowed=aim.allowed),
    )


def better(one: Figures, other: Figures, *, allowed: float) -> bool:
    """Whether one configuration is to be preferred: fewer false alarms beyond the allowed ones,
    then more found, then fewer false alarms. What finds nothing is never better.
    """
    return one.found.hits > 0 and _rank(one, allowed) < _rank(other, allowed)


def _rank(figures: Figures, allowed: float) -> tuple[float, int, int]:
    excess = max(0.0, figures.resolved.rate - allowed)
    return (excess, -figures.found.hits, figures.resolved.hits)


def _held_out_rules(
    runs: Sequence[Run], rules: Rules, target: Target, aim: Aim
) -> list[Rules] | None:
    """For each run the rules that follow from the other folds."""
    parts = parted(runs, aim.folds)
    if len(parts) < 2:
        return None
    present = {rule: level_in_force(each) for rule, each in tuned(rules).items()}
    unseen = [rules] * len(runs)
    for part in parts:
        left_out = set(part)
        others = [run for at, run in enumerate(runs) if at not in left_out]
        yardstick = Yardstick(others, target, Random(aim.seed))
        chosen = _chosen(rules, choose(yardstick, present, allowed=aim.allowed))
        for at in part:
            unseen[at] = chosen
    return unseen


def _chosen(rules: Rules, choices: Sequence[Choice]) -> Rules:
    return with_levels(rules, {choice.rule: choice.level for choice in choices})


def _rows(yardstick: Yardstick, rules: Rules, chosen: Mapping[str, int | None]) -> Iterator[Row]:
    for rule, settings in tuned(rules).items():
        knob, now = knob_of(settings), level_in_force(settings)
        every = {*levels(yardstick.runs, rule), *([] if now is None else [now])}
        for level in sorted(every):
            alarms = alarms_at(yardstick.runs, rule, level)
            yield Row(
                rule=rule,
                key=knob.key,
                threshold=None if knob is SWITCH else knob.threshold(level),
                present=level == now,
                chosen=level == chosen[rule],
                figures=yardstick.figures(alarms),
            )


def _events(recorded: Recorded) -> Iterator[Event]:
    """The events of a trace; lines that are damaged are passed over, as in a replay."""
    for event in open_trace(recorded.path, recorded.format):
        if not isinstance(event, Damage):
            yield event
