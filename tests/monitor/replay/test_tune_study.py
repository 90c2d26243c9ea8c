"""Which thresholds are chosen, and which are better."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from random import Random

import pytest
import yaml

from midwatch_monitor.config.rules import (
    Cycle,
    DecliningConfidence,
    ExplicitEscalation,
    LowConfidence,
    MultipleBlockers,
    Rules,
    RuleSettings,
    StalledProgress,
)
from midwatch_monitor.config.section import Length
from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.records import Severity
from midwatch_monitor.replay.tune.choose import Choice, Comparison, Difference, RuleVerdict, choose
from midwatch_monitor.replay.tune.labels import Label
from midwatch_monitor.replay.tune.proposal import (
    changes,
    figures_text,
    is_proposed,
    lift_text,
    proposal_text,
    refusals,
    share_text,
    verdict_lines,
)
from midwatch_monitor.replay.tune.runs import (
    AlarmFigures,
    AlarmMeter,
    AlarmTarget,
    MeasuredRun,
    RecordedRun,
    Rises,
)
from midwatch_monitor.replay.tune.study import (
    Aim,
    HeldOutCheck,
    ThresholdRow,
    ThresholdStudy,
    ThresholdTrial,
    fold_of,
    parts_of,
    target_of,
)
from midwatch_monitor.replay.tune.threshold import (
    changed_keys,
    eager_rules,
    level_in_force,
    silent_rules,
    threshold_of,
    tunable_rules,
    with_levels,
)
from midwatch_monitor.rules import DETECTORS

SILENT: Mapping[str, Rises] = {}


_NAMES = count()


def ended_runs(
    many: int,
    rises: Mapping[str, Rises] = SILENT,
    *,
    resolved: bool = True,
    agreed: int | None = None,
) -> list[RecordedRun]:
    """So many runs, each of a task of its own."""
    measured = MeasuredRun(steps=20, rises=rises, agreed=agreed, present=None)
    labels = (Label(path="", task=str(next(_NAMES)), resolved=resolved) for _ in range(many))
    return [RecordedRun(label=label, measured=measured) for label in labels]


resolved_runs = partial(ended_runs, resolved=True)
failed_runs = partial(ended_runs, resolved=False)


CHOSEN, TOO_FEW, TOO_DEAR = RuleVerdict.CHOSEN, RuleVerdict.TOO_FEW, RuleVerdict.TOO_DEAR
A, B = ({rule: ((5, 2),)} for rule in "ab")
BOTH: Mapping[str, Rises] = {**A, **B}
CLEAR = [
    *resolved_runs(40, {"a": ((5, 1),)}),
    *failed_runs(20, {"a": ((5, 1), (6, 2), (7, 3))}),
    *failed_runs(20),
]
"""From the second level on, the rule `a` finds half of what fails and nothing else."""
ALIKE = [
    *resolved_runs(4, {"a": ((5, 3),)}),
    *resolved_runs(96),
    *failed_runs(4, {"a": ((5, 3),)}),
    *failed_runs(96),
]
DEAR = [*resolved_runs(40, {"a": ((5, 3),)}), *failed_runs(40, {"a": ((5, 3),)})]
RIVALS = [
    *resolved_runs(2, A),
    *resolved_runs(2, B),
    *resolved_runs(1, agreed=9),
    *resolved_runs(35),
    *failed_runs(12, A),
    *failed_runs(14, B),
    *failed_runs(20),
]
AGREEING = [
    *resolved_runs(4, agreed=9),
    *resolved_runs(1, A),
    *resolved_runs(35),
    *failed_runs(20, A),
    *failed_runs(20),
]


@pytest.mark.parametrize(
    ("runs", "present", "allowed", "choices"),
    [
        # The most eager threshold that costs little, whatever is in force.
        *((CLEAR, {"a": now}, 0.1, {"a": (2, CHOSEN)}) for now in (None, 1, 3)),
        # A rule of which little is seen stays as it is.
        (
            [*CLEAR, *failed_runs(4, {"b": ((5, 1),)})],
            {"a": 2, "b": 1, "c": 7, "d": None},
            0.1,
            {"a": (2, CHOSEN), "b": (1, TOO_FEW), "c": (7, TOO_FEW), "d": (None, TOO_FEW)},
        ),
        # One that alarms both alike finds nothing, and one that alarms too many is no alarm.
        (ALIKE, {"a": 3}, 0.1, {"a": (None, RuleVerdict.BY_CHANCE)}),
        (DEAR, {"a": 3}, 0.1, {"a": (None, TOO_DEAR)}),
        # One that finds what another does stays as it is.
        (
            [*resolved_runs(40), *failed_runs(20, BOTH), *failed_runs(20)],
            {"a": None, "b": 2},
            0.1,
            {"a": (2, CHOSEN), "b": (2, RuleVerdict.NO_COST)},
        ),
        # Rules are added by what they find until too much is alarmed.
        (RIVALS, {"a": 2, "b": 2}, 0.1, {"a": (None, TOO_DEAR), "b": (2, CHOSEN)}),
        (RIVALS, {"a": 2, "b": 2}, 0.2, {"a": (2, CHOSEN), "b": (2, CHOSEN)}),
        # The alarms of notices that agree count from the start.
        (AGREEING, {"a": 2}, 0.1, {"a": (None, TOO_DEAR)}),
    ],
)
def test_a_threshold_is_chosen_by_what_it_finds_and_what_it_costs(
    runs: list[RecordedRun],
    present: Mapping[str, int | None],
    allowed: float,
    choices: dict[str, tuple[int | None, RuleVerdict]],
) -> None:
    meters = [AlarmMeter(runs, AlarmTarget.UNRESOLVED, Random(1)) for _ in range(2)]
    first, again = (choose(meter, present, allowed=allowed) for meter in meters)
    assert {each.rule: (each.level, each.verdict) for each in first} == choices
    assert again == first  # it depends on the runs and the seed alone


@pytest.mark.parametrize("spent", [9, 10])
def test_runs_out_of_budget_are_the_target_where_there_are_enough(spent: int) -> None:
    target = AlarmTarget.SPENT if spent == 10 else AlarmTarget.UNRESOLVED
    labels = [Label(path="", task="", resolved=False, spent=at < spent) for at in range(20)]
    assert target_of(labels) is target


def test_the_fold_of_a_task_follows_from_its_name_alone() -> None:
    assert [fold_of(f"task-{number}", 5) for number in range(8)] == [2, 3, 1, 0, 1, 2, 3, 4]


def test_runs_of_one_task_are_in_one_part() -> None:
    measured = MeasuredRun(steps=1, rises={}, agreed=None, present=None)
    labels = [Label(path="", task=f"task-{n % 8}", resolved=True) for n in range(24)]
    runs = [RecordedRun(label=label, measured=measured) for label in labels]
    parts = list(parts_of(runs, lambda label: str(fold_of(label.task, 5))).values())
    assert sorted(at for part in parts for at in part) == list(range(24))
    tasks = [{runs[at].label.task for at in part} for part in parts]
    assert sum(map(len, tasks)) == 8


FIGURES = AlarmFigures(
    resolved=Share(hits=1, of=50),
    found=Share(hits=10, of=20),
    unresolved=Share(hits=20, of=50),
    lift=0.25,
    lift_interval=Interval(low=0.1, high=0.4),
    lift_unresolved=0.1,
    delay=0.5,
)

TOLD = (
    "1/50 (2.0 %, 0.4 to 10.5) of the resolved runs alarmed, 10/20 out of budget in time, "
    "lift +0.25 (+0.10 to +0.40)"
)


def difference(before: int, after: int, low: float, high: float, *, of: int = 50) -> Difference:
    return Difference(
        before=Share(hits=before, of=of),
        after=Share(hits=after, of=of),
        tasks=abs(after - before),
        interval=Interval(low=low, high=high),
    )


SAME = difference(1, 1, 0, 0)
MORE_FOUND = Comparison(source=None, resolved=SAME, found=difference(10, 20, 0.1, 0.3))


def trial(
    check: HeldOutCheck = HeldOutCheck.OTHER_TASKS,
    whole: Comparison = MORE_FOUND,
    *sources: Comparison,
) -> ThresholdTrial:
    return ThresholdTrial(check=check, figures=FIGURES, whole=whole, sources=sources)


def study(*choices: Choice, trials: Sequence[ThresholdTrial] = (trial(),)) -> ThresholdStudy:
    row = ThresholdRow(
        rule="cycle", key="warn_after", threshold=2, present=False, chosen=True, figures=FIGURES
    )
    return ThresholdStudy(
        target=AlarmTarget.SPENT,
        aim=Aim(allowed=0.03, folds=5, seed=1),
        runs=100,
        rows=(row, replace(row, threshold=3, present=True, chosen=False)),
        choices=choices,
        before=Rules(
            cycle=Cycle(notice_after=2, warn_after=3, critical_after=5),
            low_confidence=LowConfidence(below=30),
        ),
        present=FIGURES,
        agreement=FIGURES,
        trials={each.check: each for each in trials},
        untried=(),
    )


MORE = Choice(rule="cycle", level=2, verdict=RuleVerdict.CHOSEN)

KEPT = Choice(rule="cycle", level=3, verdict=RuleVerdict.TOO_FEW)

NEVER = Choice(rule="cycle", level=None, verdict=RuleVerdict.TOO_DEAR)

NOTICE = Choice(rule="low_confidence", level=None, verdict=RuleVerdict.BY_CHANCE)


def body(text: str) -> list[str]:
    """What follows the head."""
    _, _, rules = text.partition("\nrules:\n")
    return rules.splitlines()


def test_every_changed_value_says_why() -> None:
    assert body(proposal_text(study(MORE))) == [
        "  cycle:",
        f"    # From here on: {TOLD}.",
        "    warn_after: 2",
        "    # Not measured by itself: keeps its distance from the warning.",
        "    critical_after: 4",
        "    # A notice would come no sooner than the alarm.",
        "    notice_after: 0",
    ]


def test_a_rule_that_is_no_alarm_any_more_says_what_it_did() -> None:
    lines = body(proposal_text(study(NEVER, NOTICE)))
    assert lines[:4] == [
        "  cycle:",
        "    # No alarm: what it adds costs too many false alarms.",
        f"    # As it was: {TOLD}.",
        "    warn_after: 0",
    ]
    assert lines[-2:] == ["    # Never an alarm in these runs.", "    severity: notice"]


@pytest.mark.parametrize("choices", [(MORE,), (NEVER, NOTICE), (KEPT,)])
def test_what_is_written_is_what_changes(choices: tuple[Choice, ...]) -> None:
    studied = study(*choices)
    read = yaml.safe_load(proposal_text(studied))
    assert (read or {"rules": {}})["rules"] == changes(studied)


def test_without_changes_there_is_nothing_to_propose() -> None:
    assert (changes(study(KEPT)), refusals(study(KEPT)), is_proposed(study(KEPT))) == (
        {},
        (),
        False,
    )
    assert proposal_text(study(KEPT)).endswith("# Nothing to change: keep what you have.\n")


def test_what_finds_more_beyond_noise_and_is_nowhere_worse_is_proposed() -> None:
    assert refusals(study(MORE)) == ()
    assert list(verdict_lines(study(MORE))) == [
        "Better than what is configured, beyond noise, on tasks that they were not chosen on:",
        "resolved runs alarmed 2.0 % to 2.0 % of 50 (difference +0.0 to +0.0); out of budget found "
        "20.0 % to 40.0 % of 50 (difference +10.0 to +30.0).",
    ]


def test_fewer_false_alarms_beyond_noise_are_enough_where_as_much_is_found() -> None:
    fewer = replace(
        MORE_FOUND, resolved=difference(8, 2, -0.2, -0.04), found=difference(10, 9, -0.1, 0.05)
    )
    assert refusals(study(MORE, trials=[trial(whole=fewer)])) == ()


NOISE = "within noise: on tasks that they were not chosen on, resolved runs alarmed 2.0 % to 2.0 %"
WORSE = Comparison(source="b", resolved=difference(6, 12, 0.02, 0.22), found=SAME)
LOST = Comparison(source="b", resolved=SAME, found=difference(9, 3, -0.2, -0.02))
UNSURE = Comparison(source=None, resolved=SAME, found=difference(10, 13, -0.02, 0.12))


@pytest.mark.parametrize(
    ("trials", "reason"),
    [
        ([trial(whole=UNSURE)], NOISE),
        # So few tasks change that resampling would only say they are sure.
        (
            [trial(whole=replace(MORE_FOUND, found=difference(10, 14, 0.02, 0.2)))],
            NOISE,
        ),
        ([], "too few tasks: there are no others to judge the thresholds on"),
        (
            [trial(HeldOutCheck.OTHER_TASKS, MORE_FOUND, MORE_FOUND, WORSE)],
            "worse on b, on tasks that they were not chosen on: resolved runs alarmed "
            "12.0 % to 24.0 % of 50 (difference +2.0 to +22.0)",
        ),
        (
            [trial(), trial(HeldOutCheck.OTHER_SOURCES, MORE_FOUND, LOST)],
            "worse on b, on a source that they were not chosen on: out of budget found "
            "18.0 % to 6.0 % of 50 (difference -20.0 to -2.0)",
        ),
        (
            [trial(), trial(HeldOutCheck.CHOSEN_ON, replace(WORSE, source=None))],
            "worse, on the runs that they were chosen on: resolved runs alarmed 12.0 % to 24.0 %",
        ),
        (
            [trial(whole=replace(MORE_FOUND, resolved=difference(1, 3, -0.02, 0.1)))],
            "too many false alarms: 6.0 % of the resolved runs are alarmed on tasks that they were "
            "not chosen on, but only 3 % may be",
        ),
        (
            [trial(whole=replace(MORE_FOUND, found=difference(0, 0, 0, 0)))],
            "nothing is found on tasks that they were not chosen on",
        ),
    ],
)
def test_what_is_not_better_beyond_noise_or_is_worse_somewhere_is_refused_with_the_reason(
    trials: list[ThresholdTrial], reason: str
) -> None:
    refused = study(MORE, trials=trials)
    assert not is_proposed(refused)
    assert refusals(refused)[0].startswith(reason)
    assert yaml.safe_load(proposal_text(refused)) is None
    assert "# Nothing is proposed: keep what you have.\n" in proposal_text(refused)


@pytest.mark.parametrize("interval", [None, Interval(low=-0.1, high=0.4)])
def test_a_proposal_that_may_find_by_chance_is_doubted(interval: Interval | None) -> None:
    unsure = replace(trial(), figures=replace(FIGURES, lift_interval=interval))
    told = list(verdict_lines(study(MORE, trials=[unsure])))
    assert told[-1] == "But they are not shown to find more there than by chance."


def test_figures_are_told_with_their_intervals() -> None:
    assert figures_text(FIGURES, AlarmTarget.SPENT) == TOLD
    assert share_text(Share(hits=0, of=0)) == "0/0 (0.0 %, 0.0 to 100.0)"
    assert lift_text(-0.5, None) == "-0.50"


GRADED = Cycle(notice_after=2, warn_after=3, critical_after=5)

ALONE = Cycle(notice_after=0, warn_after=0, critical_after=5)

NO_ALARM = Cycle(notice_after=2, warn_after=0, critical_after=0)

QUIET = LowConfidence(severity=Severity.NOTICE)


@pytest.mark.parametrize(
    ("settings", "key", "level"),
    [
        (GRADED, "warn_after", 3),
        (ALONE, "critical_after", 5),
        (NO_ALARM, "warn_after", None),
        (LowConfidence(below=30), "below", -30),
        (LowConfidence(below=0), "below", None),
        (QUIET, "below", None),
        (StalledProgress(min_gain=5), "min_gain", -5),
        (DecliningConfidence(drop=20), "drop", 20),
        (MultipleBlockers(count=3), "count", 3),
        (ExplicitEscalation(), "severity", 1),
    ],
)
def test_a_rule_is_an_alarm_from_one_level_on(
    settings: RuleSettings, key: str, level: int | None
) -> None:
    assert (threshold_of(settings).key, level_in_force(settings)) == (key, level)


@pytest.mark.parametrize(
    ("settings", "value", "threshold"),
    [
        (GRADED, 4, 4),
        (GRADED, 3.5, 3),
        (LowConfidence(), 29, 30),
        (LowConfidence(), 0, 1),
        (StalledProgress(), 4, 5),
        (StalledProgress(), -20, 1),
        (DecliningConfidence(), 25, 25),
    ],
)
def test_the_threshold_of_a_value_is_the_last_that_fires(
    settings: RuleSettings, value: float, threshold: int
) -> None:
    found = threshold_of(settings)
    assert found.value(found.level(value)) == threshold


@pytest.mark.parametrize(
    ("settings", "level", "changed"),
    [
        (GRADED, 3, {}),
        (GRADED, 4, {"warn_after": 4, "critical_after": 6}),
        (GRADED, 2, {"warn_after": 2, "critical_after": 4, "notice_after": 0}),
        (GRADED, None, {"warn_after": 0, "critical_after": 0}),
        (ALONE, 7, {"critical_after": 7}),
        (NO_ALARM, 4, {"warn_after": 4}),
        (NO_ALARM, None, {}),
        (LowConfidence(), -20, {"below": 20}),
        (LowConfidence(), None, {"severity": "notice"}),
        (QUIET, -30, {"severity": "warning"}),
        (QUIET, -40, {"severity": "warning", "below": 40}),
        (ExplicitEscalation(), 1, {}),
        (ExplicitEscalation(), None, {"severity": "notice"}),
    ],
)
def test_turning_a_rule_changes_no_more_than_it_must(
    settings: RuleSettings, level: int | None, changed: dict[str, int | str]
) -> None:
    assert changed_keys(settings, level) == changed


def test_what_is_off_or_looks_at_no_steps_is_not_tuned() -> None:
    rules = Rules(cycle=Cycle(enabled=False))
    assert set(tunable_rules(rules)) == set(DETECTORS) - {"cycle"}


def test_a_probe_hears_every_value_and_is_never_an_alarm() -> None:
    own = {"bash": {"warn_after": 9}, "look": {"enabled": False}}
    probe = eager_rules(Rules(cycle=Cycle(hold=Length(steps=3), tools=own)))
    assert (probe.cycle.notice_after, probe.cycle.hold) == (1, Length())
    assert probe.cycle.tools == {"look": {"enabled": False}}
    assert probe.low_confidence.below == 100
    assert [level_in_force(settings) for settings in tunable_rules(probe).values()] == [None] * len(
        DETECTORS
    )


def test_hushed_rules_keep_their_notices_and_turned_ones_are_alarms_from_there_on() -> None:
    hushed = silent_rules(Rules(cycle=GRADED))
    assert (hushed.cycle, hushed.agreement) == (NO_ALARM, True)
    turned = with_levels(Rules(), {"cycle": 9, "low_confidence": None})
    assert (level_in_force(turned.cycle), turned.low_confidence.severity) == (9, Severity.NOTICE)
    assert turned.repeated_call == Rules().repeated_call
