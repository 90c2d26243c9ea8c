"""The thresholds of the rules. Every number is range-checked, and none lives anywhere else."""

from typing import Annotated, Any, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)

from midwatch_monitor.config.refusal import Refusal, nearest_to
from midwatch_monitor.config.span import Length, Span
from midwatch_monitor.words import Severity

Percent = Annotated[int, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0, le=100_000)]
Window = Annotated[int, Field(ge=2, le=50)]


class Section(BaseModel):
    """A part of the configuration: an unknown key is an error, and nothing changes it later."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        validate_default=True,
        allow_inf_nan=False,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse `below: true`, which Python would count as 1."""
        if isinstance(value, bool) and info.field_name:
            wanted = cls.model_fields[info.field_name].annotation
            if not _takes(wanted, bool) and (_takes(wanted, int) or _takes(wanted, float)):
                raise Refusal(f"must be a number; is {str(value).lower()}")
        return value


def _takes(annotation: object, kind: type) -> bool:
    return annotation is kind or any(_takes(part, kind) for part in get_args(annotation))


class RuleSettings(Section):
    """What every rule has."""

    enabled: bool = True
    """Off means that the rule is not fed at all."""
    hold: Span = Length()
    """How long the condition must last before the alert fires: steps (2) or time (30s)."""
    cooldown: Span = Length(steps=5, text="5")
    """How long a resolved alert stays quiet before it may fire again: steps or time."""
    workers: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    """Other thresholds for some workers: `{worker name: {key: value}}`."""


class Graded(RuleSettings):
    """A rule that counts, with a threshold for each severity."""

    notice_after: Count = 0
    """Notice from this count on; 0 is off."""
    warn_after: Count = 0
    """Warning from this count on; 0 is off."""
    critical_after: Count = 0
    """Critical from this count on; 0 is off."""

    def grade(self, count: float) -> Severity | None:
        """The severity that a count has reached, or `None` below every threshold."""
        for severity, threshold in (
            (Severity.CRITICAL, self.critical_after),
            (Severity.WARNING, self.warn_after),
            (Severity.NOTICE, self.notice_after),
        ):
            if threshold and count >= threshold:
                return severity
        return None


class ExplicitEscalation(RuleSettings):
    """The worker asks for help: a checkpoint with the decision `escalate`."""

    severity: Severity = Severity.CRITICAL
    """The severity of its alert."""


class LowConfidence(RuleSettings):
    """The stated confidence of one checkpoint is low."""

    below: Percent = 30
    """Fires under this percentage, not at it."""
    severity: Severity = Severity.WARNING
    """The severity of its alert."""


class DecliningConfidence(RuleSettings):
    """The stated confidence falls over a window of checkpoints."""

    window: Window = 3
    """How many checkpoints are compared, the first with the last."""
    drop: Annotated[int, Field(ge=1, le=100)] = 20
    """Fires at a drop of this many points."""
    severity: Severity = Severity.WARNING
    """The severity of its alert."""


class MultipleBlockers(RuleSettings):
    """One checkpoint names many blockers."""

    count: Annotated[int, Field(ge=1, le=100)] = 3
    """Fires at this many."""
    severity: Severity = Severity.WARNING
    """The severity of its alert."""


class StalledProgress(RuleSettings):
    """Progress does not grow over a window of checkpoints of one plan step."""

    window: Window = 3
    """How many checkpoints are compared, the first with the last."""
    min_gain: Annotated[int, Field(ge=1, le=100)] = 5
    """A gain of fewer points than this is a stall. 1 means: no gain at all."""
    severity: Severity = Severity.CRITICAL
    """The severity of its alert."""


class RepeatedEdits(Graded):
    """The same file changes again and again, as observed by the hash of its content."""

    notice_after: Count = 5
    """Notice from this many edits of one file on; 0 is off."""
    warn_after: Count = 8
    """Warning from this many edits of one file on; 0 is off."""
    return_weight: Annotated[int, Field(ge=1, le=10)] = 2
    """What an edit back to an earlier content counts; 1 counts it like any other."""
    movement_resets: bool = True
    """Whether a check that passes, or a failure not seen before, starts the count anew."""


class MissedCheckpoint(Graded):
    """The worker has `reflect` and does not use it. Counted in reminder intervals without one."""

    warn_after: Count = 3
    """Warning after this many intervals without a checkpoint; 0 is off."""
    critical_after: Count = 6
    """Critical after this many intervals without a checkpoint; 0 is off."""


class Rules(Section):
    """All rules. The names are the keys of the YAML and of every alert."""

    explicit_escalation: ExplicitEscalation = ExplicitEscalation()
    low_confidence: LowConfidence = LowConfidence()
    declining_confidence: DecliningConfidence = DecliningConfidence()
    multiple_blockers: MultipleBlockers = MultipleBlockers()
    stalled_progress: StalledProgress = StalledProgress()
    repeated_edits: RepeatedEdits = RepeatedEdits()
    missed_checkpoint: MissedCheckpoint = MissedCheckpoint()
    agreement: bool = True
    """Whether two different rules that fire together raise the lower one by a level."""


def _known_rule(name: str) -> str:
    names = [key for key in Rules.model_fields if key != "agreement"]
    if name not in names:
        raise Refusal("there is no such rule", nearest=nearest_to(name, names))
    return name


RuleName = Annotated[str, AfterValidator(_known_rule)]
"""The name of a rule that exists."""
