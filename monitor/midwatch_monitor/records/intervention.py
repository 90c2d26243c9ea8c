"""What is done about it: escalations, decisions, interventions, and what came of them."""

from dataclasses import dataclass, field
from enum import StrEnum

from midwatch_monitor.records.alert import AlertKey
from midwatch_monitor.records.work import Grant


class Action(StrEnum):
    """What can be done to an attempt, in rising order of force."""

    OBSERVE = "observe"
    NUDGE = "nudge"
    REPLAN = "replan"
    GRANT_BUDGET = "grant_budget"
    SWITCH_MODEL = "switch_model"
    RESTART = "restart"
    SPLIT = "split"
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
        return self in _SPOKEN

    @property
    def of_alerts(self) -> bool:
        """Whether it is about alerts only, and the monitor itself takes it."""
        return self in {Action.ACKNOWLEDGE, Action.SILENCE}

    @property
    def at_once(self) -> bool:
        """Whether it ends the attempt without waiting for the next model request."""
        return self in {Action.RESTART, Action.SPLIT, Action.STOP}


_SPOKEN = frozenset(
    {Action.NUDGE, Action.REPLAN, Action.GRANT_BUDGET, Action.SWITCH_MODEL, Action.RESUME}
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A smaller task that a split makes."""

    title: str
    goal: str
    acceptance: tuple[str, ...] = ()
    """Commands that exit with 0 once it is done; without any the whole proves it at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What exactly an action does, where its name does not say it."""

    grant: Grant = field(default_factory=Grant)
    """For `grant_budget`."""
    model: str = ""
    """For `switch_model` and `restart`: the name of the model that goes on; empty keeps it."""
    worker: str = ""
    """For `restart`: the worker that takes over; empty keeps it."""
    keep: tuple[str, ...] = ()
    """For `restart`: the changed files to take over, as paths or globs; none drops them all."""
    after: str = ""
    """For `restart`: the task that must be over first, whose work is built upon."""
    parts: tuple[Part, ...] = ()
    """For `split`."""
    withdraws: bool = False
    """For `stop`: the attempt is canceled, and its task with it."""


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
    silent: bool = False
    """Whether its alerts did not fire when it was opened: nothing had helped against them."""


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
    terms: Terms = Terms()
    steps: tuple[int, ...] = ()
    """The numbers of the steps that the diagnosis rests on."""
    by: Actor
    author: str = ""
    """The model, or the person."""
    refused: str = ""
    """Why nothing came of it; empty where it was carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """An act on an attempt, issued but not yet known to have arrived."""

    action: Action
    by: Actor
    author: str = ""
    message: str = ""
    plan: tuple[str, ...] = ()
    terms: Terms = Terms()
    diagnosis: Diagnosis = Diagnosis.UNKNOWN
    escalation: int | None = None
    petition: int | None = None
    """What of a worker's it answers, by journal id: a plan check, or a request."""
    answers: tuple[AlertKey, ...] = ()
    """The alerts that it is meant to resolve; empty for an operator's own act."""
    needs_approval: bool = False
    """Held back until an operator approves (`mode: advise`, or the policy says so)."""

    @property
    def permits(self) -> bool:
        """Whether it allows, once, what a worker asked a permission for."""
        return self.action is Action.RESUME and self.petition is not None


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
