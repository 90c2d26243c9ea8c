"""Escalations, decisions, interventions and their outcomes."""

from dataclasses import dataclass, field
from enum import StrEnum

from midwatch_monitor.records.alert import AlertKey
from midwatch_monitor.records.work import Grant


class Action(StrEnum):
    """What can be done to an attempt, from the mildest to the strongest, then a person's acts."""

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
        """Whether the worker gets it as a message at its next model request."""
        return self in _SPOKEN

    @property
    def of_alerts(self) -> bool:
        """Whether it is about alerts only, and the monitor itself carries it out."""
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
    """Commands that exit with 0 when it is done; without any, the task's own checks decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Parameters of an action."""

    grant: Grant = field(default_factory=Grant)
    """For `grant_budget`."""
    model: str = ""
    """For `switch_model` and `restart`: name of the new model; empty keeps the current one."""
    worker: str = ""
    """For `restart`: the new worker; empty keeps the current one."""
    keep: tuple[str, ...] = ()
    """For `restart`: changed files to keep, as paths or globs; all other changes are dropped."""
    after: str = ""
    """For `restart`: the task that must be over first; the attempt builds on its work."""
    parts: tuple[Part, ...] = ()
    """For `split`."""
    withdraws: bool = False
    """For `stop`: whether the attempt is canceled, together with its task."""


class EscalationState(StrEnum):
    """The states of an escalation."""

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
    """Whether its alerts were not firing when it was opened, although nothing had helped."""


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
    """Numbers of the steps that are evidence for the diagnosis."""
    by: Actor
    author: str = ""
    """Name of the model or the person."""
    refused: str = ""
    """Why it was not carried out; empty if it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """An act on an attempt, issued but not yet known to be delivered."""

    action: Action
    by: Actor
    author: str = ""
    message: str = ""
    plan: tuple[str, ...] = ()
    terms: Terms = Terms()
    diagnosis: Diagnosis = Diagnosis.UNKNOWN
    escalation: int | None = None
    petition: int | None = None
    """Journal id of the worker request that it answers: a plan check, or a request."""
    answers: tuple[AlertKey, ...] = ()
    """The alerts that it should resolve; empty for an operator's own act."""
    needs_approval: bool = False
    """Whether it is held until an operator approves it (`mode: advise`, or by the policy)."""

    @property
    def permits(self) -> bool:
        """Whether it permits, once, what a worker requested."""
        return self.action is Action.RESUME and self.petition is not None


class DeliveryState(StrEnum):
    """What happened to an issued intervention."""

    APPROVED = "approved"
    REJECTED = "rejected"
    DELIVERED = "delivered"
    EXPIRED = "expired"
    """The attempt ended before it was delivered."""


BY_TIMEOUT = "timeout"
"""The author of an approval or rejection that was made because nobody answered in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A change of an intervention's delivery state. `intervention` is its journal id.

    A stop is delivered a second time if the worker was told to stop and goes on.
    """

    intervention: int
    state: DeliveryState
    step: int = 0
    """The attempt's last step at that time."""
    author: str = ""
    """Who approved or rejected it."""
    comment: str = ""
    """The reason."""


class Outcome(StrEnum):
    """The effect of an intervention, judged once."""

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
