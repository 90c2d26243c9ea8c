"""The one threshold of each rule from which on it is an alarm, and how it is turned. Pure.

A threshold is held against what a rule measured as a *level*: a higher level is a worse sign, and
a rule set to a level alarms at this one and all above. For a rule that counts, the level is the
count. Where a smaller value is the worse sign, it is the threshold that just fires, negated.
Windows, weights and slack are other knobs: they stay as they are, as do the thresholds that single
workers or tools have of their own.
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
class Knob:
    """A key of a rule, with the value at which the rule says most."""

    key: str
    eager: int
    falling: bool = False
    """Whether the rule fires below the threshold, and not from it on."""

    def level(self, value: float) -> int:
        """The highest level that a measured value reaches."""
        return -max(1, floor(value) + 1) if self.falling else floor(value)

    def threshold(self, level: int) -> int:
        """What stands in the configuration for a level."""
        return -level if self.falling else level


_KNOBS: Mapping[type[RuleSettings], Knob] = MappingProxyType(
    {
        LowConfidence: Knob(key="below", eager=100, falling=True),
        DecliningConfidence: Knob(key="drop", eager=1),
        MultipleBlockers: Knob(key="count", eager=1),
        StalledProgress: Knob(key="min_gain", eager=100, falling=True),
    }
)
SWITCH = Knob(key="severity", eager=1)
"""Of a rule that has no threshold: its severity makes it an alarm, level 1, or a notice."""


def knob_of(settings: RuleSettings) -> Knob:
    """What is turned of a rule. Of a rule that counts, its lowest threshold that is an alarm."""
    if isinstance(settings, Graded):
        alone = settings.critical_after and not settings.warn_after
        return Knob(key="critical_after" if alone else "warn_after", eager=1)
    return _KNOBS.get(type(settings), SWITCH)


def tuned(rules: Rules) -> dict[str, RuleSettings]:
    """The rules that are tuned: those that are on, and look at steps."""
    return {
        name: settings
        for name, settings in rule_settings(rules).items()
        if settings.enabled and name in DETECTORS
    }


def level_in_force(settings: RuleSettings) -> int | None:
    """The level from which on a rule is an alarm as configured; `None` if it never is."""
    if isinstance(settings, Graded):
        return min((each for each in _alarms(settings).values() if each), default=None)
    knob = knob_of(settings)
    if not getattr(settings, "severity", Severity.WARNING).alarm:
        return None
    if knob is SWITCH:
        return 1
    threshold: int = getattr(settings, knob.key)
    return (-threshold if knob.falling else threshold) or None


def turned(settings: RuleSettings, level: int | None) -> dict[str, int | str]:
    """The keys that change so that a rule is an alarm from a level on, or never.

    Of a rule that counts, the higher threshold keeps its distance from the lower one, and a
    notice that would come no sooner than the warning is off.
    """
    if isinstance(settings, Graded):
        return _regraded(settings, level)
    now = level_in_force(settings)
    if level == now:
        return {}
    if level is None:
        return {"severity": Severity.NOTICE.value}
    knob = knob_of(settings)
    changed: dict[str, int | str] = {} if now else {"severity": Severity.WARNING.value}
    threshold = knob.threshold(level)
    if knob is not SWITCH and getattr(settings, knob.key) != threshold:
        changed[knob.key] = threshold
    return changed


def with_levels(rules: Rules, levels: Mapping[str, int | None]) -> Rules:
    """The rules, with some of them alarms from other levels on."""
    changed: dict[str, RuleSettings] = {}
    for name, settings in rule_settings(rules).items():
        keys = turned(settings, levels[name]) if name in levels else {}
        if keys:
            changed[name] = type(settings).model_validate({**settings.model_dump(), **keys})
    return rules.model_copy(update=changed) if changed else rules


def probing(rules: Rules) -> Rules:
    """The rules so eager that every value is a finding, and none of them is an alarm."""
    changed = {
        name: settings.model_copy(
            update={
                "hold": Length(),
                "cooldown": Length(),
                "tools": _unheard(settings),
                **_eager(settings),
            }
        )
        for name, settings in tuned(rules).items()
    }
    return rules.model_copy(update={**changed, "agreement": False})


def hushed(rules: Rules) -> Rules:
    """The rules with no alarm left but those that notices make by agreeing.

    And those that single tools have by thresholds of their own, which are not turned either.
    """
    return with_levels(rules, dict.fromkeys(tuned(rules)))


def _eager(settings: RuleSettings) -> dict[str, object]:
    if isinstance(settings, Graded):
        return {"notice_after": 1, "warn_after": 0, "critical_after": 0}
    knob = knob_of(settings)
    keys: dict[str, object] = {"severity": Severity.NOTICE}
    return keys if knob is SWITCH else {**keys, knob.key: knob.eager}


def _unheard(settings: RuleSettings) -> dict[str, dict[str, object]]:
    """The tools of which a rule is told nothing: without their own thresholds."""
    return {
        tool: {"enabled": False}
        for tool, own in settings.tools.items()
        if own.get("enabled") is False
    }


def _alarms(settings: Graded) -> dict[str, int]:
    return {"warn_after": settings.warn_after, "critical_after": settings.critical_after}


def _regraded(settings: Graded, level: int | None) -> dict[str, int | str]:
    before = _alarms(settings)
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
