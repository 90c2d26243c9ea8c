"""The table of all rules: under each name of the configuration, what detects it."""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.rules.allowance import BudgetBurnDetector, StepsOnPlanStepDetector
from midwatch_monitor.rules.detector import Answer, Clear, Detector, Moved, Seen
from midwatch_monitor.rules.edits import RepeatedEditsDetector, RevertChurnDetector
from midwatch_monitor.rules.failing import (
    BlockedEnvironmentDetector,
    ErrorStreakDetector,
    SameFailureDetector,
)
from midwatch_monitor.rules.loops import (
    CycleDetector,
    RedundantStepsDetector,
    RepeatedCallDetector,
)
from midwatch_monitor.rules.reports import (
    MissedCheckpointDetector,
    MonologueDetector,
    UnsupportedClaimDetector,
    declining_confidence,
    explicit_escalation,
    low_confidence,
    multiple_blockers,
    stalled_progress,
)
from midwatch_monitor.rules.tuning import rule_settings

DETECTORS: Mapping[str, Callable[[Rules], Detector]] = MappingProxyType(
    {
        "explicit_escalation": lambda rules: explicit_escalation(rules.explicit_escalation),
        "low_confidence": lambda rules: low_confidence(rules.low_confidence),
        "declining_confidence": lambda rules: declining_confidence(rules.declining_confidence),
        "multiple_blockers": lambda rules: multiple_blockers(rules.multiple_blockers),
        "stalled_progress": lambda rules: stalled_progress(rules.stalled_progress),
        "repeated_edits": lambda rules: RepeatedEditsDetector(rules.repeated_edits),
        "missed_checkpoint": lambda rules: MissedCheckpointDetector(rules.missed_checkpoint),
        "redundant_steps": lambda rules: RedundantStepsDetector(rules.redundant_steps),
        "repeated_call": lambda rules: RepeatedCallDetector(rules.repeated_call),
        "cycle": lambda rules: CycleDetector(rules.cycle),
        "error_streak": lambda rules: ErrorStreakDetector(rules.error_streak),
        "same_failure": lambda rules: SameFailureDetector(rules.same_failure),
        "revert_churn": lambda rules: RevertChurnDetector(rules.revert_churn),
        "blocked_environment": lambda rules: BlockedEnvironmentDetector(rules.blocked_environment),
        "monologue": lambda rules: MonologueDetector(rules.monologue),
        "budget_burn": lambda rules: BudgetBurnDetector(rules.budget_burn),
        "steps_on_plan_step": lambda rules: StepsOnPlanStepDetector(rules.steps_on_plan_step),
        "unsupported_claim": lambda rules: UnsupportedClaimDetector(rules.unsupported_claim),
    }
)


class Evidence(Enum):
    """What a rule looks at. Two rules that look at the same thing do not confirm each other."""

    REPORT = "report"
    REPETITION = "repetition"
    EDITS = "edits"
    FAILURE = "failure"
    SURROUNDINGS = "surroundings"
    SPEECH = "speech"
    ALLOWANCE = "allowance"
    TIME = "time"
    NEIGHBOURS = "neighbours"


EVIDENCE: Mapping[str, Evidence] = MappingProxyType(
    {
        "explicit_escalation": Evidence.REPORT,
        "low_confidence": Evidence.REPORT,
        "declining_confidence": Evidence.REPORT,
        "multiple_blockers": Evidence.REPORT,
        "stalled_progress": Evidence.REPORT,
        "missed_checkpoint": Evidence.REPORT,
        "repeated_edits": Evidence.EDITS,
        "redundant_steps": Evidence.REPETITION,
        "repeated_call": Evidence.REPETITION,
        "cycle": Evidence.REPETITION,
        "revert_churn": Evidence.EDITS,
        "error_streak": Evidence.FAILURE,
        "same_failure": Evidence.FAILURE,
        "blocked_environment": Evidence.SURROUNDINGS,
        "monologue": Evidence.SPEECH,
        "unsupported_claim": Evidence.SPEECH,
        "budget_burn": Evidence.ALLOWANCE,
        "steps_on_plan_step": Evidence.ALLOWANCE,
        "silence": Evidence.TIME,
        "workspace_conflict": Evidence.NEIGHBOURS,
    }
)
"""What two notices of different evidence agree on is a warning."""


__all__ = [
    "DETECTORS",
    "EVIDENCE",
    "Answer",
    "Clear",
    "Detector",
    "Evidence",
    "Moved",
    "Seen",
    "rule_settings",
]
