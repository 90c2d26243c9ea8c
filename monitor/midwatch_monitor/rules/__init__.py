"""The table of all rules: under each name of the configuration, what detects it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from midwatch_monitor.config.rules import Rules, RuleSettings
from midwatch_monitor.rules.detector import Answer, Clear, Detector, Moved
from midwatch_monitor.rules.edits import RepeatedEditsDetector
from midwatch_monitor.rules.presence import MissedCheckpointDetector
from midwatch_monitor.rules.reports import (
    declining_confidence,
    explicit_escalation,
    low_confidence,
    multiple_blockers,
    stalled_progress,
)

DETECTORS: Mapping[str, Callable[[Rules], Detector]] = MappingProxyType(
    {
        "explicit_escalation": lambda rules: explicit_escalation(rules.explicit_escalation),
        "low_confidence": lambda rules: low_confidence(rules.low_confidence),
        "declining_confidence": lambda rules: declining_confidence(rules.declining_confidence),
        "multiple_blockers": lambda rules: multiple_blockers(rules.multiple_blockers),
        "stalled_progress": lambda rules: stalled_progress(rules.stalled_progress),
        "repeated_edits": lambda rules: RepeatedEditsDetector(rules.repeated_edits),
        "missed_checkpoint": lambda rules: MissedCheckpointDetector(rules.missed_checkpoint),
    }
)


def rule_settings(rules: Rules) -> dict[str, RuleSettings]:
    """The settings of every rule under its name, in the order of the configuration."""
    return {
        name: value
        for name in type(rules).model_fields
        if isinstance(value := getattr(rules, name), RuleSettings)
    }


__all__ = ["DETECTORS", "Answer", "Clear", "Detector", "Moved", "rule_settings"]
