"""The thresholds of the rules. Every number is range-checked, and none is defined elsewhere."""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from midwatch_monitor.config.section import (
    Count,
    Duration,
    Length,
    Percent,
    Refusal,
    Section,
    Span,
    Window,
    nearest_to,
)
from midwatch_monitor.records import Severity


class RuleSettings(Section):
    """Settings of every rule."""

    enabled: bool = True
    """Whether the rule judges anything: a disabled rule receives nothing."""
    hold: Span = Length()
    """How long the condition must last before the alert fires: steps (2) or time (30s)."""
    cooldown: Span = Length(steps=5, text="5")
    """How long a resolved alert stays quiet before it may fire again: steps or time."""
    workers: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    """Other thresholds for some workers: `{worker name: {key: value}}`."""
    tools: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    """Other thresholds for the steps of some tools: `{tool name: {key: value}}`."""

    @model_validator(mode="after")
    def _only_what_tools_may_change(self) -> Self:
        """Refuse a key that has no meaning for the steps of one tool."""
        for tool, changes in self.tools.items():
            for key in changes:
                if key not in self._of_tools():
                    wanted = ", ".join(sorted(self._of_tools()))
                    raise Refusal(f"tools.{tool}.{key}: only {wanted} can be set for a tool")
            type(self).model_validate(changes)
        return self

    @classmethod
    def _of_tools(cls) -> frozenset[str]:
        return frozenset({"enabled"})


class Graded(RuleSettings):
    """A rule that counts, with a threshold for each severity."""

    notice_after: Count = 0
    """Notice from this count on; 0 is off."""
    warn_after: Count = 0
    """Warning from this count on; 0 is off."""
    critical_after: Count = 0
    """Critical from this count on; 0 is off."""

    @classmethod
    def _of_tools(cls) -> frozenset[str]:
        return frozenset({"enabled", "notice_after", "warn_after", "critical_after"})

    @property
    def lowest(self) -> int:
        """The lowest enabled threshold; unreachable if there is none."""
        off = 1 << 62
        return min(self.notice_after or off, self.warn_after or off, self.critical_after or off)

    def unreachable(self, usual: "Graded") -> Iterator[Refusal]:
        """Return thresholds that can never be reached, if they are not the defaults."""
        names = ("notice_after", "warn_after", "critical_after")
        on = {name: value for name in names if (value := getattr(self, name))}
        window = getattr(self, "window", None)
        if window and on and self.lowest > window:
            yield Refusal(f"must be at least {self.lowest}, or no threshold is met", at=("window",))
            return
        for at, (name, value) in enumerate(on.items()):
            if value == getattr(usual, name):
                continue
            if window and value > window:
                yield Refusal(f"must be at most the `window`, {window}; is {value}", at=(name,))
            above = next((each for each in list(on)[at + 1 :] if on[each] < value), None)
            if above is not None:
                yield Refusal(f"must be at most `{above}`, {on[above]}; is {value}", at=(name,))

    def grade(self, count: float) -> Severity | None:
        """Return the severity for a count, or `None` below every threshold."""
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
    """Fires below this percentage, not at it."""
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
    """Fires at this many blockers."""
    severity: Severity = Severity.WARNING
    """The severity of its alert."""


class StalledProgress(RuleSettings):
    """Progress does not increase over a window of checkpoints of one plan step."""

    window: Window = 3
    """How many checkpoints are compared, the first with the last."""
    min_gain: Annotated[int, Field(ge=1, le=100)] = 5
    """A gain of fewer points than this is a stall. 1 means no gain at all."""
    severity: Severity = Severity.CRITICAL
    """The severity of its alert."""


class RepeatedEdits(Graded):
    """One file changes again and again, and no check confirms it.

    Edits are observed by content hashes. A check confirms them if it passes or fails in fewer
    places. Edits before a check that failed in another way count only for the notice.
    """

    notice_after: Count = 8
    """Notice from this many edits of one file on; 0 is off."""
    warn_after: Count = 16
    """Warning from this many on, without a check in between or with one that fails the same way; 0
    is off.
    """
    return_weight: Annotated[int, Field(ge=1, le=10)] = 2
    """How much a return to an earlier content counts; 1 counts it like any other edit."""
    movement_resets: bool = True
    """Whether checks confirm edits at all; if not, every edit counts."""


class RedundantSteps(Graded):
    """Steps that repeat earlier results, among the last steps of work."""

    window: Annotated[int, Field(ge=2, le=64)] = 10
    """Number of steps of work that are considered."""
    notice_after: Count = 2
    """Notice from this many on; a repeated success after a change counts half."""
    warn_after: Count = 4
    """Warning from this many on; 0 is off."""
    critical_after: Count = 7
    """Critical from this many on; 0 is off."""


Points = Annotated[int, Field(ge=0, le=100)]
"""Points for one step."""


class FruitlessSteps(Graded):
    """Steps that yield nothing outweigh the others: points are added up over the run."""

    warn_after: Count = 16
    """Warning from this many points on; 0 is off."""
    critical_after: Count = 24
    """Critical from this many points on; the sum rises no further. 0 is off."""
    repeated: Points = 6
    """Points for a step that could not tell anything new; half of them for a partial repeat, for an
    answer without anything new, and for a search without results directly after another such step.
    """
    failed: Points = 2
    """Points for a failed or refused step, for a turn that the harness rejects, and for a look at
    the work of others that shows nothing new.
    """
    edited: Points = 1
    """Points subtracted by an edit, by a step answered only by a receipt, and by a turn of words;
    but not from the fourth such turn in a row on.
    """
    other: Points = 2
    """Points subtracted by any other step."""


class RepeatedCall(Graded):
    """One call gives the same result several times in a row."""

    notice_after: Count = 3
    """Notice at this many in a row; 0 is off."""
    warn_after: Count = 4
    """Warning at this many in a row; 0 is off."""
    critical_after: Count = 6
    """Critical at this many in a row; 0 is off."""


class Cycle(Graded):
    """A sequence of steps is repeated with the same results."""

    max_period: Annotated[int, Field(ge=2, le=64)] = 12
    """The longest sequence that is recognised, in steps of work."""
    notice_after: Count = 2
    """Notice from this many rounds on; 0 is off."""
    warn_after: Count = 3
    """Warning from this many rounds on; 0 is off."""
    critical_after: Count = 5
    """Critical from this many rounds on; 0 is off."""


class ErrorStreak(Graded):
    """Most of the last steps of work failed."""

    window: Annotated[int, Field(ge=2, le=64)] = 8
    """Number of steps of work that are considered."""
    notice_after: Count = 6
    """Notice from this many failed steps on; 0 is off."""
    warn_after: Count = 7
    """Warning from this many failed steps on; 0 is off."""


class SameFailure(Graded):
    """The same failure, or the same answer of a program, persists after several changes."""

    notice_after: Count = 3
    """Notice once it persisted after this many changes; 0 is off."""
    warn_after: Count = 4
    """Warning once it persisted after this many changes; 0 is off."""


class RevertChurn(Graded):
    """Work is undone and redone."""

    window: Annotated[int, Field(ge=2, le=1000)] = 30
    """Number of steps that are considered."""
    notice_after: Count = 4
    """Notice from this many times on; 0 is off."""
    warn_after: Count = 5
    """Warning from this many times on; 0 is off."""


class BlockedEnvironment(Graded):
    """Something the worker cannot fix is in its way: a program, a permission, the network."""

    notice_after: Count = 3
    """Notice once the same obstacle was met this many times; 0 is off."""
    warn_after: Count = 4
    """Warning once the same obstacle was met this many times; 0 is off."""


class Monologue(Graded):
    """Turn after turn without any act."""

    notice_after: Count = 3
    """Notice after this many turns; 0 is off."""
    warn_after: Count = 5
    """Warning after this many turns; 0 is off."""


class BudgetBurn(Graded):
    """At the current rate, the budget runs out before the work is done. Counted in percent of the
    tightest limit.
    """

    notice_after: Count = 75
    """Notice from this percentage on; 0 is off."""
    warn_after: Count = 90
    """Warning from this percentage on; 0 is off."""
    slack: Percent = 10
    """How many points progress may lag behind the used share."""


class StepsOnPlanStep(Graded):
    """Many steps of work on one plan step, or more than its share of the requests.

    If a plan step's share is lower than `notice_after`, the share is the threshold of the notice,
    and twice the share that of the warning. With other thresholds for some tools, the rule ignores
    shares.
    """

    notice_after: Count = 30
    """Notice from this many on, at the latest; 0 is off."""
    warn_after: Count = 60
    """Warning from this many on, at the latest; 0 is off."""
    lowered_to: Annotated[int, Field(ge=1, le=100_000)] = 5
    """The lowest notice threshold that a small share can set."""


class UnsupportedClaim(RuleSettings):
    """The worker says that the tests pass, but the last test run failed."""

    severity: Severity = Severity.WARNING
    """The severity of its alert."""


class MissedCheckpoint(Graded):
    """The worker has `reflect` but does not use it. Counted in reminder intervals without a
    checkpoint.
    """

    warn_after: Count = 3
    """Warning after this many intervals without a checkpoint; 0 is off."""
    critical_after: Count = 6
    """Critical after this many intervals without a checkpoint; 0 is off."""


class Silence(RuleSettings):
    """An attempt at work is silent for too long. Judged by the time and by the current activity."""

    cooldown: Span = Length()
    """How long a resolved alert stays quiet before it may fire again: steps or time."""
    model: Duration = Length(seconds=600.0, text="10m")
    """How long a request to the model may take; 0 never fires."""
    command: Duration = Length(seconds=1800.0, text="30m")
    """How long a command may run, or an attempt without a known activity may be silent."""
    rate_limited: Duration = Length(seconds=3600.0, text="1h")
    """How long a provider may make an attempt wait."""
    idle: Duration = Length(seconds=600.0, text="10m")
    """How long an attempt may be silent if nothing is known to run."""
    unmoved: Duration = Length(seconds=3600.0, text="1h")
    """How long an attempt may work without progress of any kind; a notice."""
    severity: Severity = Severity.WARNING
    """The severity of its alert."""


class WorkspaceConflict(RuleSettings):
    """Two attempts at work change the same file, or plan to, each in its own workspace."""

    severity: Severity = Severity.WARNING
    """The severity of its alerts once both changed it; each attempt has one."""
    planned: Severity = Severity.NOTICE
    """The severity while one of them only plans to: its current plan step names the file."""


class Rules(Section):
    """All rules. The names are the keys of the YAML and of every alert."""

    explicit_escalation: ExplicitEscalation = ExplicitEscalation()
    low_confidence: LowConfidence = LowConfidence()
    declining_confidence: DecliningConfidence = DecliningConfidence()
    multiple_blockers: MultipleBlockers = MultipleBlockers()
    stalled_progress: StalledProgress = StalledProgress()
    repeated_edits: RepeatedEdits = RepeatedEdits()
    missed_checkpoint: MissedCheckpoint = MissedCheckpoint()
    redundant_steps: RedundantSteps = RedundantSteps()
    fruitless_steps: FruitlessSteps = FruitlessSteps()
    repeated_call: RepeatedCall = RepeatedCall()
    cycle: Cycle = Cycle()
    error_streak: ErrorStreak = ErrorStreak()
    same_failure: SameFailure = SameFailure()
    revert_churn: RevertChurn = RevertChurn()
    blocked_environment: BlockedEnvironment = BlockedEnvironment()
    monologue: Monologue = Monologue()
    budget_burn: BudgetBurn = BudgetBurn()
    steps_on_plan_step: StepsOnPlanStep = StepsOnPlanStep()
    unsupported_claim: UnsupportedClaim = UnsupportedClaim()
    silence: Silence = Silence()
    workspace_conflict: WorkspaceConflict = WorkspaceConflict()
    agreement: bool = True
    """Whether two different rules that fire together raise the lower one by a level."""


def _known_rule(name: str) -> str:
    names = [key for key in Rules.model_fields if key != "agreement"]
    if name not in names:
        raise Refusal("there is no such rule", nearest=nearest_to(name, names))
    return name


RuleName = Annotated[str, AfterValidator(_known_rule)]
"""The name of a rule that exists."""
