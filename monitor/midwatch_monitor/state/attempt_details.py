"""Where an attempt stands in a word, and what is only read closely. Pure."""

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
    """Texts, checks and histories of one attempt. They grow with it."""

    decisions: list[Decision] = field(default_factory=list[Decision])
    analyses: list[Analysis] = field(default_factory=list[Analysis])
    plan_checks: dict[int, PlanCheck] = field(default_factory=dict[int, PlanCheck])
    """By journal id, as `requests` are."""
    requests: dict[int, BudgetRequest] = field(default_factory=dict[int, BudgetRequest])
    completions: list[Completion] = field(default_factory=list[Completion])
    checks: dict[str, Acceptance] = field(default_factory=dict[str, Acceptance])
    """The newest result of each acceptance check."""
    faults: list[Fault] = field(default_factory=list[Fault])
    history: dict[AlertKey, list[Alert]] = field(default_factory=dict[AlertKey, list[Alert]])
    """Every change of each alert, oldest first."""
    saved: Snapshot | None = None
    """The work as it was saved last, for another node to go on with."""
    unsaved: Snapshot | None = None
    """The newest work, where it was too large to be saved."""

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
    """Where an attempt stands, in a word for people. Programs read its lifecycle."""

    SUBMITTED = "submitted"
    WORKING = "working"
    PAUSED = "paused"
    """Until a person resumes it."""
    WAITING = "waits for you"
    """For a person's answer."""
    IDLE = "idle"
    """Until somebody asks it for more, at its own terminal."""
    COMPLETED = "completed"
    ENDED = "ended"
    """It is completed, and nothing was checked."""
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"
    SPLIT = "split"
    """Smaller tasks took over: it is over, and no failure."""
    RESTARTED = "restarted"
    """A new attempt took over: it is over, and no failure."""
    PAUSING = "pausing…"
    """What was asked for is in the journal, and has not arrived. So are the next three."""
    RESUMING = "resuming…"
    STOPPING = "stopping…"
    RESTARTING = "restarting…"


class AlertStatus(StrEnum):
    """Where an alert stands now."""

    PENDING = "pending"
    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    """It fires, and a person has seen it."""
    SILENCED = "silenced"
    """A person does not want it to be escalated again in this attempt."""
    RESOLVED = "resolved"
    ENDED = "ended"
    """The attempt was over first."""


class Awaited(StrEnum):
    """What must come from elsewhere before an attempt goes on."""

    NOTHING = ""
    APPROVAL = "approval"
    """Of an intervention."""
    ANSWER = "answer"
    """To a question to a person."""
    RESUME = "resume"
    """A person paused it."""
    PERMISSION = "permission"
    """For what its worker is about to do."""
    PERSON = "person"
    """Anything that a person says."""
    PROVIDER = "provider"
    """Its model's provider, in an outage."""
    DECISION = "decision"
    """About an open escalation."""
    DELIVERY = "delivery"
    """Of an intervention that is on its way."""


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
"""The endings that a lifecycle has no word for."""


def planned(plan_step: int, plan_steps: int) -> tuple[int, int] | None:
    """The plan step in hand, or the last one when all are closed, and how many there are.

    `None` without a plan: there the only plan step is the task itself.
    """
    return (min(plan_step, plan_steps), plan_steps) if plan_steps > 1 else None


def coming_change(interventions: Interventions) -> InterventionState | None:
    """What is about to change where the attempt stands; `None` if nothing is on its way.

    The newest counts, but what ends the attempt comes before the rest, and a stop before all.
    """
    coming = [each for each in interventions.on_their_way if each.action in _COMING]
    ends = [each for each in coming if each.action.at_once]
    stops = [each for each in ends if each.action is Action.STOP]
    return next(reversed(stops or ends or coming), None)


def coming_status(interventions: Interventions) -> AttemptStatus | None:
    """Where the attempt stands by that, in a word."""
    change = coming_change(interventions)
    return None if change is None else _COMING[change.action]
