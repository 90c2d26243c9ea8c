"""What is done about it: escalations, decisions, interventions, and what came of them."""

from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.words.alert import AlertKey


class Action(StrEnum):
    """What can be done to an attempt, in rising order of force."""

    OBSERVE = "observe"
    NUDGE = "nudge"
    REPLAN = "replan"
    RESTART = "restart"
    ASK_OPERATOR = "ask_operator"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    ACKNOWLEDGE = "acknowledge"
    """A person has seen the alerts; nothing changes for the attempt."""
    SILENCE = "silence"
    """A person does not want the alerts to be escalated again in this attempt."""

    @property
    def spoken(self) -> bool:
        """Whether it reaches the worker as a message at its next model request."""
        return self in {Action.NUDGE, Action.REPLAN, Action.RESUME}

    @property
    def of_alerts(self) -> bool:
        """Whether it is about alerts only, and the monitor itself takes it."""
        return self in {Action.ACKNOWLEDGE, Action.SILENCE}

    @property
    def at_once(self) -> bool:
        """Whether it ends the attempt without waiting for the next model request."""
        return self in {Action.RESTART, Action.STOP}


class Actor(StrEnum):
    """Who acts."""

    POLICY = "policy"
    SUPERVISOR = "supervisor"
    OPERATOR = "operator"


class Diagnosis(StrEnum):
    """The one cause that a decision names."""

    WRONG_APPROACH = "wrong_approach"
    MISSING_DEPENDENCY = "missing_dependency"
    INFEASIBLE = "infeasible"
    NEEDS_SPLIT = "needs_split"
    WRONG_WORKER = "wrong_worker"
    ENVIRONMENT = "environment"
    PROVIDER = "provider"
    BUDGET = "budget"
    FALSE_ALARM = "false_alarm"
    UNKNOWN = "unknown"


class EscalationState(StrEnum):
    """The life of an escalation."""

    OPEN = "open"
    """Waiting for a decision."""
    ANSWERED = "answered"
    """Decided; its intervention is under way or being judged."""
    CLOSED = "closed"
    """Its outcome is known, or there is nothing left to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """The firing alerts of one attempt, handed to the supervisor as one question."""

    id: int
    attempt: int
    state: EscalationState
    alerts: tuple[AlertKey, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The supervisor's structured answer to one escalation."""

    escalation: int
    action: Action
    diagnosis: Diagnosis
    message: str
    rationale: str
    plan: tuple[str, ...] = ()
    """For `replan`: the new remaining plan steps; empty asks the worker for them."""
    by: Actor
    author: str = ""
    """The model, or the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """An act on an attempt, issued but not yet known to have arrived."""

    action: Action
    by: Actor
    author: str = ""
    message: str = ""
    plan: tuple[str, ...] = ()
    escalation: int | None = None
    answers: tuple[AlertKey, ...] = ()
    """The alerts that it is meant to resolve; empty for an operator's own act."""
    needs_approval: bool = False
    """Held back until an operator approves (`mode: advise`, or the policy says so)."""


class DeliveryState(StrEnum):
    """What became of an intervention on its way."""

    APPROVED = "approved"
    REJECTED = "rejected"
    DELIVERED = "delivered"
    EXPIRED = "expired"
    """The attempt ended first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A stamp on an intervention. `intervention` is its journal id."""

    intervention: int
    state: DeliveryState
    step: int = 0
    """The attempt's last step when it happened."""
    author: str = ""
    """Who approved or rejected."""
    comment: str = ""
    """Why."""


class Outcome(StrEnum):
    """What an intervention did, judged once."""

    RECOVERED = "recovered"
    NO_EFFECT = "no effect"
    MADE_WORSE = "made worse"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeReport:
    """The monitor's verdict on one delivered intervention."""

    intervention: int
    outcome: Outcome
    step: int
    reason: str


class Origin(StrEnum):
    """Where a verdict on a result comes from; rates never mix them."""

    EXPLICIT = "explicit"
    """A person said so."""
    IMPLIED = "implied"
    AUTOMATIC = "automatic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """Accept or reject of an attempt's result."""

    accepted: bool
    comment: str = ""
    origin: Origin = Origin.EXPLICIT
    author: str = ""
