"""The threshold at which a rule becomes an alarm, and how to change it. Pure.

A threshold is compared with a *level* that a rule measured: a higher level is a worse sign, and a
rule set to a level alarms at that level and above. For a rule that counts, the level is the count.
If smaller values are worse, the level is the threshold that just fires, negated. Windows, weights
and slack are not changed, nor are thresholds for single workers or tools.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from types import MappingProxyType

from midwatch_monitor.config.rules import (
    DecliningConfidence,
    Graded,
    LowConfidence,
    MultipleBlockers,
    Rules,
    RuleSettings,
    StalledProgress,
)
from midwatch_monitor.config.section import Length
from midwatch_monitor.records import Severity
from midwatch_monitor.rules import DETECTORS, rule_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A key of a rule, with the value at which the rule finds the most."""

    key: str
    eager: int
    falling: bool = False
    """Whether the rule fires below the threshold instead of at or above it."""

    def level(self, measured: float) -> int:
        """Return the highest level that a measured value reaches."""
        return -max(1, floor(measured) + 1) if self.falling else floor(measured)

    def value(self, level: int) -> int:
        """Return the configuration value of a level."""
        return -level if self.falling else level


_THRESHOLDS: Mapping[type[RuleSettings], Threshold] = MappingProxyType(
    {
        LowConfidence: Threshold(key="below", eager=100, falling=True),
        DecliningConfidence: Threshold(key="drop", eager=1),
        MultipleBlockers: Threshold(key="count", eager=1),
        StalledProgress: Threshold(key="min_gain", eager=100, falling=True),
    }
)
SEVERITY = Threshold(key="severity", eager=1)
"""For a rule without a threshold: its severity makes it an alarm (level 1) or a notice."""


def threshold_of(settings: RuleSettings) -> Threshold:
    """Return the threshold to tune; for a rule that counts, the lowest one that alarms."""
    if isinstance(settings, Graded):
        alone = settings.critical_after and not settings.warn_after
        return Threshold(key="critical_after" if alone else "warn_after", eager=1)
    return _THRESHOLDS.get(type(settings), SEVERITY)


def tunable_rules(rules: Rules) -> dict[str, RuleSettings]:
    """Return the rules to tune: those that are enabled and look at steps."""
    return {
        name: settings
        for name, settings in rule_settings(rules).items()
        if settings.enabled and name in DETECTORS
    }


def level_in_force(settings: RuleSettings) -> int | None:
    """Return the level at which a rule alarms as configured; `None` if it never does."""
    if isinstance(settings, Graded):
        return min((each for each in _alarm_thresholds(settings).values() if each), default=None)
    threshold = threshold_of(settings)
    if not getattr(settings, "severity", Severity.WARNING).alarm:
        return None
    if threshold is SEVERITY:
        return 1
    value: int = getattr(settings, threshold.key)
    return (-value if threshold.falling else value) or None


def changed_keys(settings: RuleSettings, level: int | None) -> dict[str, int | str]:
    """Return the changed keys that make a rule alarm at a level and above, or never.

    For a rule that counts, the higher threshold keeps its distance from the lower one, and a notice
    that would come no earlier than the alarm is disabled.
    """
    if isinstance(settings, Graded):
        return _with_threshold(settings, level)
    now = level_in_force(settings)
    if level == now:
        return {}
    if level is None:
        return {"severity": Severity.NOTICE.value}
    threshold = threshold_of(settings)
    changed: dict[str, int | str] = {} if now else {"severity": Severity.WARNING.value}
    value = threshold.value(level)
    if threshold is not SEVERITY and getattr(settings, threshold.key) != value:
        changed[threshold.key] = value
    return changed


def with_levels(rules: Rules, levels: Mapping[str, int | None]) -> Rules:
    """Return the rules with some of them set to other levels."""
    changed: dict[str, RuleSettings] = {}
    for name, settings in rule_settings(rules).items():
        keys = changed_keys(settings, levels[name]) if name in levels else {}
        if keys:
            changed[name] = type(settings).model_validate({**settings.model_dump(), **keys})
    return rules.model_copy(update=changed) if changed else rules


def eager_rules(rules: Rules) -> Rules:
    """Return rules so sensitive that every value is a finding, none of them an alarm."""
    changed = {
        name: settings.model_copy(
            update={
                "hold": Length(),
                "cooldown": Length(),
                "tools": _disabled_tools(settings),
                **_eager_values(settings),
            }
        )
        for name, settings in tunable_rules(rules).items()
    }
    return rules.model_copy(update={**changed, "agreement": False})


def silent_rules(rules: Rules) -> Rules:
    """Return the rules without alarms, except those from agreeing notices.

    Alarms from the thresholds of single tools also remain, because tuning does not change them.
    """
    return with_levels(rules, dict.fromkeys(tunable_rules(rules)))


def _eager_values(settings: RuleSettings) -> dict[str, object]:
    if isinstance(settings, Graded):
        return {"notice_after": 1, "warn_after": 0, "critical_after": 0}
    threshold = threshold_of(settings)
    keys: dict[str, object] = {"severity": Severity.NOTICE}
    return keys if threshold is SEVERITY else {**keys, threshold.key: threshold.eager}


def _disabled_tools(settings: RuleSettings) -> dict[str, dict[str, object]]:
    """Return the tools that are disabled for a rule, without their own thresholds."""
    return {
        tool: {"enabled": False}
        for tool, own in settings.tools.items()
        if own.get("enabled") is False
    }


def _alarm_thresholds(settings: Graded) -> dict[str, int]:
    return {"warn_after": settings.warn_after, "critical_after": settings.critical_after}


def _with_threshold(settings: Graded, level: int | None) -> dict[str, int | str]:
    before = _alarm_thresholds(settings)
    now = level_in_force(settings)
    if level == now:
        return {}
    if level is None:
        return {key: 0 for key, threshold in before.items() if threshold}
    if now is None:
        changed: dict[str, int | str] = {"warn_after": level}
    else:
        changed = {key: each + level - now for key, each in before.items() if each}
    if settings.notice_after >= level:
        changed["notice_after"] = 0
    return changed
