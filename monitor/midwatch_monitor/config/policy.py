"""Settings for what is done about alerts: actions, their order, limits, and approval by people."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from midwatch_monitor.config.rules import RuleName
from midwatch_monitor.config.section import Section
from midwatch_monitor.records import Action, Diagnosis, Severity

Share = Annotated[float, Field(ge=0, le=1)]
Decidable = Literal[
    Action.OBSERVE,
    Action.NUDGE,
    Action.REPLAN,
    Action.GRANT_BUDGET,
    Action.SWITCH_MODEL,
    Action.RESTART,
    Action.SPLIT,
    Action.ASK_OPERATOR,
    Action.STOP,
]
"""What a decision can be, in order of increasing force. Other actions are reserved for people."""
Approvable = Literal[
    Action.NUDGE,
    Action.REPLAN,
    Action.GRANT_BUDGET,
    Action.SWITCH_MODEL,
    Action.RESTART,
    Action.SPLIT,
    Action.STOP,
]
"""What can wait for approval: observing affects nobody, and asking a person is itself the question.
"""


class PolicyRow(Section):
    """One row of the policy table. A criterion that is not given matches anything."""

    rule: RuleName | None = None
    """The rule that fired."""
    severity: Severity | None = None
    """The alert's severity."""
    diagnosis: Diagnosis | None = None
    """The cause, as diagnosed by the supervisor."""
    actions: Annotated[tuple[Decidable, ...], Field(min_length=1)]
    """Tried in this order: the next one if the last did not help."""

    def fits(self, rule: str, severity: Severity, diagnosis: Diagnosis) -> bool:
        """Whether the row matches."""
        return (
            self.rule in (None, rule)
            and self.severity in (None, severity)
            and self.diagnosis in (None, diagnosis)
        )


class Unapproved(StrEnum):
    """What happens to an action that nobody approved in time."""

    APPROVE = "approve"
    REJECT = "reject"


class Unanswered(StrEnum):
    """What happens to an attempt whose question nobody answered in time."""

    RESUME = "resume"
    STOP = "stop"


class PersonSettings(Section):
    """How long to wait for a person, and what happens then."""

    timeout_minutes: Annotated[float, Field(ge=0, le=100_000)] = 0.0
    """In minutes; 0 waits without a limit."""
    approval: Unapproved = Unapproved.REJECT
    """What happens to an action that nobody approved in time."""
    question: Unanswered = Unanswered.STOP
    """What happens to an attempt whose question nobody answered in time."""
    hold_after: Annotated[int, Field(ge=0, le=10_000)] = 3
    """An attempt pauses this many model requests after a proposal that is undecided; 0 for never.
    """


class PolicySettings(Section):
    """What may be done, in what order, and how often. It also binds the supervisor agent."""

    ladder: tuple[Decidable, ...] = (
        Action.NUDGE,
        Action.REPLAN,
        Action.SWITCH_MODEL,
        Action.RESTART,
        Action.ASK_OPERATOR,
        Action.STOP,
    )
    """The default order of actions: the next one if the last did not help."""
    rules: dict[RuleName, tuple[Decidable, ...]] = Field(
        default_factory=lambda: {
            "explicit_escalation": (Action.NUDGE, Action.ASK_OPERATOR, Action.STOP),
            "low_confidence": (Action.OBSERVE, Action.NUDGE, Action.ASK_OPERATOR),
            "declining_confidence": (Action.OBSERVE, Action.NUDGE, Action.ASK_OPERATOR),
            "missed_checkpoint": (Action.NUDGE, Action.OBSERVE, Action.ASK_OPERATOR),
            "silence": (Action.RESTART, Action.ASK_OPERATOR, Action.STOP),
            "budget_burn": (Action.NUDGE, Action.GRANT_BUDGET, Action.ASK_OPERATOR),
            "workspace_conflict": (Action.NUDGE, Action.RESTART),
        }
    )
    """Orders for single rules, for any cause: a rule leads only to the actions listed here."""
    table: tuple[PolicyRow, ...] = (
        PolicyRow(
            rule="explicit_escalation",
            diagnosis=Diagnosis.INFEASIBLE,
            actions=(Action.ASK_OPERATOR, Action.STOP),
        ),
        PolicyRow(
            rule="silence",
            diagnosis=Diagnosis.PROVIDER,
            actions=(Action.SWITCH_MODEL, Action.ASK_OPERATOR, Action.STOP),
        ),
        PolicyRow(diagnosis=Diagnosis.FALSE_ALARM, actions=(Action.OBSERVE, Action.ASK_OPERATOR)),
        PolicyRow(
            diagnosis=Diagnosis.PROVIDER,
            actions=(Action.OBSERVE, Action.SWITCH_MODEL, Action.ASK_OPERATOR),
        ),
        PolicyRow(
            diagnosis=Diagnosis.ENVIRONMENT,
            actions=(Action.NUDGE, Action.ASK_OPERATOR, Action.STOP),
        ),
        PolicyRow(
            diagnosis=Diagnosis.MISSING_DEPENDENCY,
            actions=(Action.NUDGE, Action.ASK_OPERATOR, Action.STOP),
        ),
        PolicyRow(diagnosis=Diagnosis.INFEASIBLE, actions=(Action.ASK_OPERATOR, Action.STOP)),
        PolicyRow(
            diagnosis=Diagnosis.NEEDS_SPLIT,
            actions=(Action.REPLAN, Action.SPLIT, Action.ASK_OPERATOR),
        ),
        PolicyRow(
            diagnosis=Diagnosis.WRONG_WORKER,
            actions=(Action.RESTART, Action.ASK_OPERATOR),
        ),
        PolicyRow(
            diagnosis=Diagnosis.BUDGET,
            actions=(Action.NUDGE, Action.GRANT_BUDGET, Action.ASK_OPERATOR),
        ),
    )
    """Orders by rule, severity and diagnosis; the first matching row counts. Rows that name a rule
    precede `rules`, rows that name none come after it and before `ladder`.
    """
    needs_approval: tuple[Approvable, ...] = ()
    """Actions that an operator must approve even in `mode: act`."""
    person: PersonSettings = PersonSettings()
    hand_over_at: Share = 0.5
    """Share of the budget from which a person is called if guidance did not help. Once something
    was tried without success, and the next action could not be judged before this much is used,
    that action is another attempt or, without one, a question to a person. 1 is off.
    """
    max_interventions: Annotated[int, Field(ge=1, le=1000)] = 6
    """Delivered interventions per attempt; afterwards only ask_operator and stop remain."""
    max_task_interventions: Annotated[int, Field(ge=1, le=1000)] = 12
    """Delivered interventions per task, over all its attempts; afterwards the same."""
    max_escalations: Annotated[int, Field(ge=1, le=1000)] = 20
    """Escalations per attempt; afterwards the attempt is handed to an operator."""
    max_replans: Annotated[int, Field(ge=0, le=100)] = 3
    """Plan revisions per task that the supervisor may order."""
    max_switches: Annotated[int, Field(ge=0, le=100)] = 2
    """Model changes per task."""
    max_grants: Annotated[int, Field(ge=0, le=100)] = 2
    """Budget grants per task without a person."""
    grant_share: Share = 0.5
    """How much all these grants together may add to each limit of the task, as a share of it."""
    max_parts: Annotated[int, Field(ge=2, le=50)] = 6
    """The most tasks that a split may make; these are not split again."""
