"""What a decision about one escalation depends on, as values. Pure."""

from dataclasses import dataclass, field

from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    Budget,
    Diagnosis,
    Grant,
    Outcome,
    Plan,
    Terms,
)
from midwatch_monitor.state.intervention import InterventionState

_FOR_GOOD = frozenset({Action.SWITCH_MODEL, Action.RESTART, Action.SPLIT})
"""What is done to the task, not to one attempt: a new attempt does not begin with it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """An intervention that reached an attempt, and what came of it."""

    action: Action
    outcome: Outcome | None = None
    """`None` until it is judged."""
    reason: str = ""
    """Why the outcome is what it is."""
    by: Actor = Actor.POLICY
    message: str = ""
    diagnosis: Diagnosis = Diagnosis.UNKNOWN
    terms: Terms = field(default_factory=Terms)

    @property
    def helped(self) -> bool:
        """Whether the attempt recovered."""
        return self.outcome is Outcome.RECOVERED

    @property
    def failed(self) -> bool:
        """Whether it was judged and the attempt did not recover."""
        return self.outcome is not None and not self.helped


def tried_of(state: InterventionState) -> Tried:
    """An intervention as decisions look at it."""
    issued = state.intervention
    return Tried(
        action=issued.action,
        outcome=state.outcome,
        reason=state.reason,
        by=Actor(issued.by),
        message=issued.message,
        diagnosis=issued.diagnosis,
        terms=issued.terms,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """A cause, and the numbers of the steps that it rests on."""

    cause: Diagnosis = Diagnosis.UNKNOWN
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another attempt at work that changed a file which this one changed too."""

    path: str
    task: str
    """The other task's name."""
    elder: bool
    """Whether the other attempt began first: then this one yields, else the other does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a task still has that an action would need."""

    attempts: int = 0
    """Attempts after this one."""
    models: tuple[str, ...] = ()
    """The names of models that may go on, in order, but for those that had their turn."""
    workers: tuple[str, ...] = ()
    """The workers that may take over, in order, but for those that had their turn."""
    grant: Grant = field(default_factory=Grant)
    """The most that one more grant may add; empty where no more may be granted."""
    may_split: bool = False
    """Whether the task may become smaller ones: what came of a split may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All that a decision about one escalation depends on."""

    escalation: int
    """The journal id of the question."""
    alerts: tuple[Alert, ...]
    """The alerts to answer."""
    reading: Diagnosed = Diagnosed()
    """The cause as the table reads it from the signs."""
    interventions: tuple[Tried, ...] = ()
    """The delivered ones of this attempt, oldest first."""
    before: tuple[Tried, ...] = ()
    """The delivered ones of the task's earlier attempts, oldest first."""
    observed: frozenset[AlertKey] = frozenset()
    """Alerts about which nothing was done before, and which fire still or again."""
    rejected: frozenset[Action] = frozenset()
    """Actions that a person, or the time, did not let happen since the last recovery."""
    escalations: int = 0
    """How many the attempt had before this one."""
    means: Means = Means()
    plan: Plan = field(default_factory=lambda: Plan(steps=()))
    budget: Budget = field(default_factory=Budget)
    then_used: float = 0.0
    """The share of the tightest limit, 0 to 1, that is used when what is done now is judged."""
    rivals: tuple[Rival, ...] = ()
    asked: int = 0
    """Model requests that decisions about the attempt took so far."""
    policy: PolicySettings

    @property
    def task_wide(self) -> tuple[Tried, ...]:
        """Everything that was done in the task, oldest first."""
        return (*self.before, *self.interventions)

    def count(self, action: Action) -> int:
        """How often the task had an action that no person ordered."""
        return sum(
            each.action is action and each.by is not Actor.OPERATOR for each in self.task_wide
        )

    @property
    def capped(self) -> bool:
        """Whether so much was done already that only a person, or the end, remains."""
        return (
            len(self.interventions) >= self.policy.max_interventions
            or len(self.task_wide) >= self.policy.max_task_interventions
            or self.escalations >= self.policy.max_escalations
        )

    @property
    def since_recovery(self) -> tuple[Tried, ...]:
        """The interventions of this attempt after the last one that helped."""
        return _after_recovery(self.interventions)

    @property
    def in_vain(self) -> frozenset[Action]:
        """The actions that did not help since the last recovery.

        A restart counts in every later attempt, and before it is judged too: another one at once
        would only cost. Nothing done about an alert that goes on was in vain as well, and what a
        person rejected is not proposed again.
        """
        failed = {past.action for past in self.since_recovery if past.failed} | self.rejected
        failed |= {
            past.action for past in self.tried if past.action in _FOR_GOOD and not past.helped
        }
        if self.observed and self.reading.cause is not Diagnosis.FALSE_ALARM:
            failed.add(Action.OBSERVE)
        return frozenset(failed)

    @property
    def tried(self) -> tuple[Tried, ...]:
        """What was done since the task last recovered, in earlier attempts too."""
        return _after_recovery(self.task_wide)

    @property
    def guided_in_vain(self) -> bool:
        """Whether something was tried since the task last recovered, and did not help."""
        return bool(self.rejected) or any(past.failed for past in self.tried)

    def yields_to(self, path: str) -> Rival | None:
        """The attempt that keeps a file which both work on; `None` where this one keeps it."""
        found = (each for each in self.rivals if each.path == path and each.elder)
        return next(found, None)


def _after_recovery(tried: tuple[Tried, ...]) -> tuple[Tried, ...]:
    for index in range(len(tried) - 1, -1, -1):
        if tried[index].helped:
            return tried[index + 1 :]
    return tried
