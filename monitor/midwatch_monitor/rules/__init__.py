"""All rules: the detector of each rule, by its name in the configuration."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from midwatch_monitor.rules import (
    budget_use,
    edits,
    loops,
    repeated_failures,
    reports,
)
from midwatch_monitor.rules.detector import Clear, Detector, EvidenceKind, Moved, RuleAnswer, Seen
from midwatch_monitor.rules.overrides import rule_settings

_ALL: tuple[type[Detector], ...] = (
    reports.ExplicitEscalationDetector,
    reports.LowConfidenceDetector,
    reports.DecliningConfidenceDetector,
    reports.MultipleBlockersDetector,
    reports.StalledProgressDetector,
    edits.RepeatedEditsDetector,
    reports.MissedCheckpointDetector,
    loops.RedundantStepsDetector,
    loops.FruitlessStepsDetector,
    loops.RepeatedCallDetector,
    loops.CycleDetector,
    repeated_failures.ErrorStreakDetector,
    repeated_failures.SameFailureDetector,
    edits.RevertChurnDetector,
    repeated_failures.BlockedEnvironmentDetector,
    reports.MonologueDetector,
    budget_use.BudgetBurnDetector,
    budget_use.StepsOnPlanStepDetector,
    reports.UnsupportedClaimDetector,
)

DETECTORS: Mapping[str, Callable[[Any], Detector]] = MappingProxyType(
    {each.rule: each for each in _ALL}
)
"""Detector constructors; each takes the settings of its rule."""

EVIDENCE: Mapping[str, EvidenceKind] = MappingProxyType(
    {each.rule: each.evidence for each in _ALL}
    | {"silence": EvidenceKind.TIME, "workspace_conflict": EvidenceKind.CONCURRENT}
)
"""What each rule looks at; two notices with different evidence make a warning."""


__all__ = [
    "DETECTORS",
    "EVIDENCE",
    "Clear",
    "Detector",
    "EvidenceKind",
    "Moved",
    "RuleAnswer",
    "Seen",
    "rule_settings",
]
