"""Studies thresholds on recorded runs: which ones to choose, and whether they hold on other tasks
and sources.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.records import Event
from midwatch_monitor.replay.tune.choose import Choice, Comparison, choose, compare
from midwatch_monitor.replay.tune.labels import Label, Recordings
from midwatch_monitor.replay.tune.runs import (
    AlarmFigures,
    AlarmMeter,
    Alarms,
    AlarmTarget,
    RecordedRun,
    alarms_at,
    first_alarms,
    levels,
    measure,
)
from midwatch_monitor.replay.tune.threshold import (
    SEVERITY,
    level_in_force,
    threshold_of,
    tunable_rules,
    with_levels,
)
from midwatch_monitor.traces import Damage, open_trace

MIN_TARGETS = 10
"""With fewer runs out of budget, thresholds are chosen to find unresolved runs instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What thresholds must achieve, and how carefully that is judged."""

    allowed: float
    """Share of resolved runs that may be alarmed, from 0 to 1."""
    folds: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdRow:
    """One threshold of one rule, with the other rules silent."""

    rule: str
    key: str
    threshold: int | None
    """`None` for a rule without one, which either alarms or does not."""
    present: bool
    chosen: bool
    figures: AlarmFigures


class HeldOutCheck(StrEnum):
    """The runs on which chosen thresholds are checked."""

    CHOSEN_ON = "on the runs that they were chosen on"
    """Biased in their favour, but thresholds that are worse here really are worse."""
    OTHER_TASKS = "on tasks that they were not chosen on"
    """Each run is judged by thresholds chosen without its task."""
    OTHER_SOURCES = "on a source that they were not chosen on"
    """Each run is judged by thresholds chosen without its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdTrial:
    """Results of the chosen thresholds compared with the present ones, from real replays."""

    check: HeldOutCheck
    figures: AlarmFigures
    whole: Comparison
    sources: tuple[Comparison, ...]
    """For each source, if there are several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdStudy:
    """All results about thresholds from recorded runs."""

    target: AlarmTarget
    aim: Aim
    runs: int
    rows: tuple[ThresholdRow, ...]
    choices: tuple[Choice, ...]
    before: Rules
    present: AlarmFigures
    agreement: AlarmFigures
    """Figures of agreeing notices, without any rule's own alarms."""
    trials: Mapping[HeldOutCheck, ThresholdTrial]
    """The checks that there are enough tasks and sources for."""
    untried: tuple[str, ...]
    """Sources for which the others have too few target runs to choose thresholds."""


def target_of(labels: Sequence[Label]) -> AlarmTarget:
    """Return what thresholds should find: runs out of budget, if there are enough of them."""
    spent = sum(label.spent for label in labels)
    return AlarmTarget.SPENT if spent >= MIN_TARGETS else AlarmTarget.UNRESOLVED


def study(recorded: Recordings, settings: Settings, aim: Aim) -> ThresholdStudy:
    """Study what each threshold costs and finds over recorded runs, and which ones to choose.

    Every trace is read twice, as a stream. Raises TraceError for one that cannot be read.
    """
    events, every = partial(_events, format=recorded.format), settings.reflect.remind_every
    runs = [
        RecordedRun(label=label, measured=measure(events(path), settings.rules, remind_every=every))
        for path, label in recorded.traces.items()
    ]
    target = target_of([run.label for run in runs])
    meter = AlarmMeter(runs, target, Random(aim.seed))
    chooser = _Chooser(runs=runs, rules=settings.rules, target=target, aim=aim)
    choices = chooser.choices(meter)
    checks, untried = chooser.checks(chooser.rules_of(choices))
    replay = partial(first_alarms, remind_every=every)
    alarms = [
        replay(events(path), [rules[at] or settings.rules for rules in checks.values()])
        for at, path in enumerate(recorded.traces)
    ]
    trials: dict[HeldOutCheck, ThresholdTrial] = {}
    for at, (check, rules) in enumerate(checks.items()):
        judged = [place for place, each in enumerate(rules) if each]
        found = [alarms[place][at] for place in judged]
        trials[check] = _make_trial(check, [runs[place] for place in judged], found, target, aim)
    return ThresholdStudy(
        target=target,
        aim=aim,
        runs=len(runs),
        rows=tuple(_threshold_rows(meter, settings.rules, {c.rule: c.level for c in choices})),
        choices=choices,
        before=settings.rules,
        present=meter.figures([run.measured.present for run in runs]),
        agreement=meter.figures([run.measured.agreed for run in runs]),
        trials=trials,
        untried=untried,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chooser:
    """Chooses thresholds on some of the runs in order to judge them on the others."""

    runs: Sequence[RecordedRun]
    rules: Rules
    target: AlarmTarget
    aim: Aim

    def choices(self, meter: AlarmMeter) -> tuple[Choice, ...]:
        """Return the thresholds chosen on the runs of a meter."""
        tuned = tunable_rules(self.rules)
        present = {rule: level_in_force(settings) for rule, settings in tuned.items()}
        return choose(meter, present, allowed=self.aim.allowed)

    def rules_of(self, choices: Sequence[Choice]) -> Rules:
        """Return the rules with these thresholds."""
        return with_levels(self.rules, {choice.rule: choice.level for choice in choices})

    def checks(
        self, chosen: Rules
    ) -> tuple[dict[HeldOutCheck, Sequence[Rules | None]], tuple[str, ...]]:
        """Return the rules that judge each run in each check, and the sources left untried."""
        checks: dict[HeldOutCheck, Sequence[Rules | None]] = {
            HeldOutCheck.CHOSEN_ON: [chosen] * len(self.runs)
        }
        folds = parts_of(self.runs, lambda label: str(fold_of(label.task, self.aim.folds)))
        if len(folds) > 1:
            checks[HeldOutCheck.OTHER_TASKS] = self._rules_without(folds.values())
        sources = parts_of(self.runs, lambda label: label.source)
        if len(sources) == 1:
            return checks, ()
        targets = {at for at, run in enumerate(self.runs) if run.reaches(self.target)}
        tried = {s: part for s, part in sources.items() if len(targets - {*part}) >= MIN_TARGETS}
        if tried:
            checks[HeldOutCheck.OTHER_SOURCES] = self._rules_without(tried.values())
        return checks, tuple(sorted(sources.keys() - tried.keys()))

    def _rules_without(self, parts: Collection[Sequence[int]]) -> Sequence[Rules | None]:
        """Return for each run the rules chosen on all other parts; `None` for a run in no part."""
        rules: list[Rules | None] = [None] * len(self.runs)
        for part in parts:
            left_out = set(part)
            others = [run for at, run in enumerate(self.runs) if at not in left_out]
            meter = AlarmMeter(others, self.target, Random(self.aim.seed))
            chosen = self.rules_of(self.choices(meter))
            for at in part:
                rules[at] = chosen
        return rules


def fold_of(task: str, folds: int) -> int:
    """Return the fold of a task, from 0; it depends only on the name, so every study agrees."""
    digest = sha256(task.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % folds


def parts_of(runs: Sequence[RecordedRun], key: Callable[[Label], str]) -> dict[str, list[int]]:
    """Return the indexes of the runs whose labels have the same key."""
    parts: dict[str, list[int]] = {}
    for at, run in enumerate(runs):
        parts.setdefault(key(run.label), []).append(at)
    return parts


def _make_trial(
    check: HeldOutCheck, runs: Sequence[RecordedRun], alarms: Alarms, target: AlarmTarget, aim: Aim
) -> ThresholdTrial:
    meter = AlarmMeter(runs, target, Random(aim.seed))
    pair = [run.measured.present for run in runs], alarms
    compared = partial(compare, runs, target, pair, seed=aim.seed)
    sources = sorted({run.label.source for run in runs})
    several = len(sources) > 1 or check is HeldOutCheck.OTHER_SOURCES
    return ThresholdTrial(
        check=check,
        figures=meter.figures(alarms),
        whole=compared(),
        sources=tuple(compared(source=source) for source in sources) if several else (),
    )


def _threshold_rows(
    meter: AlarmMeter, rules: Rules, chosen: Mapping[str, int | None]
) -> Iterator[ThresholdRow]:
    for rule, settings in tunable_rules(rules).items():
        threshold, now = threshold_of(settings), level_in_force(settings)
        every = {*levels(meter.runs, rule), *([] if now is None else [now])}
        for level in sorted(every):
            alarms = alarms_at(meter.runs, rule, level)
            yield ThresholdRow(
                rule=rule,
                key=threshold.key,
                threshold=None if threshold is SEVERITY else threshold.value(level),
                present=level == now,
                chosen=level == chosen[rule],
                figures=meter.figures(alarms),
            )


def _events(path: Path, format: str) -> Iterator[Event]:
    """Yield the events of a trace; damaged lines are skipped, as in a replay."""
    for event in open_trace(path, format):
        if not isinstance(event, Damage):
            yield event
