"""The one threshold of each rule that is tuned, and what changing it takes."""

import pytest

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
from midwatch_monitor.records import Severity
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

GRADED = Cycle(notice_after=2, warn_after=3, critical_after=5)
ALONE = Cycle(notice_after=0, warn_after=0, critical_after=5)
NEVER = Cycle(notice_after=2, warn_after=0, critical_after=0)
QUIET = LowConfidence(severity=Severity.NOTICE)


@pytest.mark.parametrize(
    ("settings", "key", "level"),
    [
        (GRADED, "warn_after", 3),
        (ALONE, "critical_after", 5),
        (NEVER, "warn_after", None),
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


def test_a_lower_confidence_is_a_higher_level() -> None:
    threshold = threshold_of(LowConfidence())
    assert threshold.level(20) > threshold.level(29) > threshold.level(30)


@pytest.mark.parametrize(
    ("settings", "level", "changed"),
    [
        (GRADED, 3, {}),
        (GRADED, 4, {"warn_after": 4, "critical_after": 6}),
        (GRADED, 2, {"warn_after": 2, "critical_after": 4, "notice_after": 0}),
        (GRADED, None, {"warn_after": 0, "critical_after": 0}),
        (ALONE, 7, {"critical_after": 7}),
        (NEVER, 4, {"warn_after": 4}),
        (NEVER, None, {}),
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


def test_rules_turned_to_levels_are_alarms_from_there_on() -> None:
    rules = with_levels(Rules(), {"cycle": 9, "low_confidence": None})
    assert level_in_force(rules.cycle) == 9
    assert rules.low_confidence.severity is Severity.NOTICE
    assert rules.repeated_call == Rules().repeated_call


def test_rules_that_stay_as_they_are_are_the_same() -> None:
    rules = Rules()
    levels = {rule: level_in_force(settings) for rule, settings in tunable_rules(rules).items()}
    assert with_levels(rules, levels) is rules


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


def test_hushed_rules_keep_their_notices() -> None:
    rules = silent_rules(Rules(cycle=GRADED))
    assert rules.cycle == NEVER
    assert rules.agreement
