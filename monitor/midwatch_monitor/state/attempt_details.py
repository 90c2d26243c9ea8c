"""The status words of an attempt, and the details that only a close view needs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch_monitor.records import (
    Acceptance,
    Action,
    Alert,
    AlertKey,
    Analysis,
    BudgetRequest,
    Completion,
    Decision,
    Ending,
    Fault,
    PlanCheck,
    Record,
    Snapshot,
)
from midwatch_monitor.state.intervention import Interventions, InterventionState


@dataclass(slots=True, kw_only=True)
class AttemptDetails:
    """Texts, checks and histories of one attempt; they grow with its length."""

    decisions: list[Decision] = field(default_factory=list[Decision])
    analyses: list[Analysis] = field(default_factory=list[Analysis])
    plan_checks: dict[int, PlanCheck] = field(default_factory=dict[int, PlanCheck])
    """Plan checks by journal id; so are `requests`."""
    requests: dict[int, BudgetRequest] = field(default_factory=dict[int, BudgetRequest])
    completions: list[Completion] = field(default_factory=list[Completion])
    checks: dict[str, Acceptance] = field(default_factory=dict[str, Acceptance])
    """The newest result of each acceptance check."""
    faults: list[Fault] = field(default_factory=list[Fault])
    history: dict[AlertKey, list[Alert]] = field(default_factory=dict[AlertKey, list[Alert]])
    """Every change of each alert, oldest first."""
    saved: Snapshot | None = None
    """The last saved snapshot, from which another node can continue."""
    unsaved: Snapshot | None = None
    """The newest snapshot, if it was too large to be saved."""

    def fold(self, id: int, record: Record) -> None:
        """Take in a record of the attempt, with its journal id."""
        match record:
            case Decision():
                self.decisions.append(record)
            case Analysis():
                self.analyses.append(record)
            case PlanCheck():
                self.plan_checks[id] = record
            case BudgetRequest():
                self.requests[id] = record
            case Completion():
                self.completions.append(record)
            case Acceptance():
                self.checks[record.check] = record
            case Fault():
                self.faults.append(record)
            case Alert():
                self.history.setdefault(record.key, []).append(record)
            case Snapshot(kept=kept):
                self.saved = record if kept else self.saved
                self.unsaved = None if kept else record
            case _:
                pass


class AttemptStatus(StrEnum):
    """The status of an attempt as a word for people. Programs read its lifecycle."""

    SUBMITTED = "submitted"
    WORKING = "working"
    PAUSED = "paused"
    """Paused until a person resumes it."""
    WAITING = "waits for you"
    """Waits for a person's answer."""
    IDLE = "idle"
    """Waits for the next prompt from its own terminal."""
    COMPLETED = "completed"
    ENDED = "ended"
    """Completed, but nothing was checked."""
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"
    SPLIT = "split"
    """Smaller tasks replaced it; it is over, but did not fail."""
    RESTARTED = "restarted"
    """A new attempt replaced it; it is over, but did not fail."""
    PAUSING = "pausing…"
    """The intervention is in the journal, but not delivered yet; so are those of the next three."""
    RESUMING = "resuming…"
    STOPPING = "stopping…"
    """It may also be delivered, if the worker has not stopped yet."""
    RESTARTING = "restarting…"


class AlertStatus(StrEnum):
    """The status of an alert."""

    PENDING = "pending"
    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    """It fires, and a person has acknowledged it."""
    SILENCED = "silenced"
    """A person does not want it escalated again in this attempt."""
    RESOLVED = "resolved"
    ENDED = "ended"
    """The attempt ended before the alert was resolved."""


class Awaited(StrEnum):
    """What an attempt waits for before it continues."""

    NOTHING = ""
    APPROVAL = "approval"
    """Approval of an intervention."""
    ANSWER = "answer"
    """An answer to a question to a person."""
    RESUME = "resume"
    """To be resumed, after a person paused it."""
    PERMISSION = "permission"
    """Permission for what its worker is about to do."""
    PERSON = "person"
    """Any answer of a person."""
    END = "end"
    """To be ended in its terminal: it was told to stop and goes on."""
    PROVIDER = "provider"
    """The end of an outage of its model's provider."""
    DECISION = "decision"
    """A decision about an open escalation."""
    DELIVERY = "delivery"
    """Delivery of an intervention that is on its way."""


_COMING: Mapping[Action, AttemptStatus] = {
    Action.PAUSE: AttemptStatus.PAUSING,
    Action.RESUME: AttemptStatus.RESUMING,
    Action.STOP: AttemptStatus.STOPPING,
    Action.RESTART: AttemptStatus.RESTARTING,
}

ENDED_AS: Mapping[Ending, AttemptStatus] = {
    Ending.SPLIT: AttemptStatus.SPLIT,
    Ending.RESTARTED: AttemptStatus.RESTARTED,
    Ending.UNCHECKED: AttemptStatus.ENDED,
}
"""Status for the endings that no lifecycle expresses."""


def planned(plan_step: int, plan_steps: int) -> tuple[int, int] | None:
    """Return the current plan step, or the last if all are closed, and the number of plan steps.

    `None` without a plan: then the task itself is the only plan step.
    """
    return (min(plan_step, plan_steps), plan_steps) if plan_steps > 1 else None


def coming_change(interventions: Interventions) -> InterventionState | None:
    """Return the intervention on its way that will change the attempt's status, or `None`.

    The newest counts, but those that end the attempt take precedence, and a stop over all others.
    """
    coming = [each for each in interventions.on_their_way if each.action in _COMING]
    ends = [each for each in coming if each.action.at_once]
    stops = [each for each in ends if each.action is Action.STOP]
    return next(reversed(stops or ends or coming), None)


def coming_status(interventions: Interventions) -> AttemptStatus | None:
    """Return the status while such a change is on its way or a stop is not heeded, or `None`."""
    change = interventions.stop or coming_change(interventions)
    return None if change is None else _COMING[change.action]
