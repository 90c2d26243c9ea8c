"""What may be done about alerts, in what order, how often, and what needs a person."""

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
"""What a decision can be, in rising order of force. The other actions are a person's own."""
Approvable = Literal[
    Action.NUDGE,
    Action.REPLAN,
    Action.GRANT_BUDGET,
    Action.SWITCH_MODEL,
    Action.RESTART,
    Action.SPLIT,
    Action.STOP,
]
"""What can wait for a person: to observe touches nobody, to ask a person is itself the question."""


class PolicyRow(Section):
    """One row of the policy table. What it does not name, it fits whatever that is."""

    rule: RuleName | None = None
    """The rule that fired."""
    severity: Severity | None = None
    """How much its alert matters."""
    diagnosis: Diagnosis | None = None
    """The cause, as the supervisor reads it."""
    actions: Annotated[tuple[Decidable, ...], Field(min_length=1)]
    """In order: the next if the last did not help."""

    def fits(self, rule: str, severity: Severity, diagnosis: Diagnosis) -> bool:
        """Whether the row is about this."""
        return (
            self.rule in (None, rule)
            and self.severity in (None, severity)
            and self.diagnosis in (None, diagnosis)
        )


class Unapproved(StrEnum):
    """What becomes of an action that nobody approved in time."""

    APPROVE = "approve"
    REJECT = "reject"


class Unanswered(StrEnum):
    """What becomes of an attempt whose question nobody answered in time."""

    RESUME = "resume"
    STOP = "stop"


class PersonSettings(Section):
    """How long a person is waited for, and what happens then."""

    timeout_minutes: Annotated[float, Field(ge=0, le=100_000)] = 0.0
    """Minutes; 0 waits as long as it takes."""
    approval: Unapproved = Unapproved.REJECT
    """What becomes of an action that nobody approved in time."""
    question: Unanswered = Unanswered.STOP
    """What becomes of an attempt whose question nobody answered in time."""
    hold_after: Annotated[int, Field(ge=0, le=10_000)] = 3
    """Model requests after which an attempt stands still whose proposal nobody decided; 0 never."""


class PolicySettings(Section):
    """What may be done, in what order, how often. The supervisor agent is bound by it too."""

    ladder: tuple[Decidable, ...] = (
        Action.NUDGE,
        Action.REPLAN,
        Action.SWITCH_MODEL,
        Action.RESTART,
        Action.ASK_OPERATOR,
        Action.STOP,
    )
    """The order of actions where nothing else fits: the next if the last did not help."""
    rules: dict[RuleName, tuple[Decidable, ...]] = Field(
        default_factory=lambda: {
            "explicit_escalation": (Action.NUDGE, Action.ASK_OPERATOR, Action.STOP),
            "low_confidence": (Action.OBSERVE, Action.NUDGE, Action.ASK_OPERATOR),
            "declining_confidence": (Action.OBSERVE, Action.NUDGE, Action.ASK_OPERATOR),
            "silence": (Action.RESTART, Action.ASK_OPERATOR, Action.STOP),
            "budget_burn": (Action.NUDGE, Action.GRANT_BUDGET, Action.ASK_OPERATOR),
            "workspace_conflict": (Action.NUDGE, Action.RESTART),
        }
    )
    """Orders for single rules, whatever the cause: a rule reaches only what stands here."""
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
    """Orders by rule, severity and diagnosis; the first row that fits counts.

    Rows that name a rule go before `rules`, rows that name none after it and before `ladder`.
    """
    needs_approval: tuple[Approvable, ...] = ()
    """Actions that an operator must approve even in `mode: act`."""
    person: PersonSettings = PersonSettings()
    hand_over_at: Share = 0.5
    """Share of the budget: a person is called before it is gone where guidance did not help.

    Once something was tried without success, and the next rung could not be judged before this
    much is used, the next rung is another attempt, or without one to ask a person. 1 is off.
    """
    max_interventions: Annotated[int, Field(ge=1, le=1000)] = 6
    """Delivered interventions per attempt; after them only ask_operator and stop remain."""
    max_task_interventions: Annotated[int, Field(ge=1, le=1000)] = 12
    """Delivered interventions per task, over all its attempts; after them the same."""
    max_escalations: Annotated[int, Field(ge=1, le=1000)] = 20
    """Escalations per attempt; after them the attempt is handed to an operator."""
    max_replans: Annotated[int, Field(ge=0, le=100)] = 3
    """Revisions of the plan per task that the supervisor may order."""
    max_switches: Annotated[int, Field(ge=0, le=100)] = 2
    """Changes of the model per task."""
    max_grants: Annotated[int, Field(ge=0, le=100)] = 2
    """Grants of more budget per task, without a person."""
    grant_share: Share = 0.5
    """How much all these grants together may add to each limit of the task, as a share of it."""
    max_parts: Annotated[int, Field(ge=2, le=50)] = 6
    """Tasks that a split may make; what came of a split is not split again."""
