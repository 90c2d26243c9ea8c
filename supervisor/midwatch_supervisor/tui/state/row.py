"""One attempt as one line of the fleet: light, because there may be ten thousand. Pure."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum

from midwatch_monitor.alerts import health
from midwatch_monitor.records import (
    Activity,
    Alert,
    AlertKey,
    AttemptTransition,
    Budget,
    Change,
    Checkpoint,
    Delivery,
    Ending,
    Entry,
    Health,
    Intervention,
    Lifecycle,
    Meter,
    Plan,
    Step,
)
from midwatch_monitor.state.intervention import WorkerRequest, worker_request

TREND = 12
"""Confidences that the sparkline shows."""


_NO_BUDGET = Budget()


class Need(IntEnum):
    """How much a line needs a person, the most first."""

    ANSWER = 0
    """It waits for an answer."""
    APPROVAL = 1
    """A decision waits for approval."""
    STUCK = 2
    SUSPECT = 3
    WORKING = 4
    QUEUED = 5
    OVER = 6


@dataclass(slots=True, kw_only=True, eq=False)
class Row:
    """What the fleet table shows of one attempt, or of a task that has none yet.

    A row is only equal to itself: it changes, and it stands in sets.
    """

    run: int
    task: int
    name: str
    title: str = ""
    attempt: int | None = None
    number: int = 0
    worker: str = ""
    model: str = ""
    node: str = ""
    """Where it is at work, or was last."""
    moves: bool = False
    """Whether another node goes on with it when its own is gone."""
    adrift: bool = False
    """Whether its node is gone and no other goes on with it yet."""
    lifecycle: Lifecycle = Lifecycle.SUBMITTED
    split: bool = False
    """Whether smaller tasks took over: it is over, and no failure."""
    reason: str = ""
    plan_step: int = 0
    plan_steps: int = 0
    progress: int | None = None
    trend: deque[int] = field(default_factory=lambda: deque[int](maxlen=TREND))
    """The last stated confidences."""
    last_step: int = 0
    last_at: datetime | None = None
    activity: Activity = Activity.IDLE
    doing: str = ""
    budget: Budget = _NO_BUDGET
    firing: dict[AlertKey, Alert] = field(default_factory=dict[AlertKey, Alert])
    acknowledged: set[AlertKey] = field(default_factory=set[AlertKey])
    held: dict[int, Intervention] = field(default_factory=dict[int, Intervention])
    """Decisions that wait for approval, by journal id."""
    petitions: dict[int, WorkerRequest] = field(default_factory=dict[int, WorkerRequest])
    """What the worker asked for and was not answered, by journal id."""
    asked_since: datetime | None = None
    """Since when the oldest of these waits."""
    needed_since: datetime | None = None
    """Since when it has waited for a person."""

    def fold(self, entry: Entry) -> None:
        """Take in one entry of this attempt."""
        self.last_at = entry.at
        match entry.record:
            case Step() as step:
                self.last_step = step.number
                if step.checkpoint is not None:
                    self._report(step.checkpoint)
            case Change() as change:
                self._change(change)
            case AttemptTransition() as state:
                self._enter(state.lifecycle, entry.at)
                self.split = state.ending is Ending.SPLIT
                self.reason = state.reason
            case Plan() as plan:
                self.plan_step, self.plan_steps = plan.current, len(plan.steps)
            case record if (petition := worker_request(record)) is not None:
                self.petitions[entry.id] = petition
                self.asked_since = self.asked_since or entry.at
            case record:
                self._judged(entry, record)

    def _judged(self, entry: Entry, record: object) -> None:
        if isinstance(record, Intervention):
            self._answer(record)
        match record:
            case Alert() as alert:
                self._alert(alert)
            case Intervention(needs_approval=True) as intervention:
                self.held[entry.id] = intervention
                self.needed_since = self.needed_since or entry.at
            case Delivery() as delivery:
                self._stamp(delivery)
            case _:
                pass

    def _answer(self, issued: Intervention) -> None:
        if issued.petition is not None:
            self.petitions.pop(issued.petition, None)
        if not self.petitions:
            self.asked_since = None

    def _report(self, checkpoint: Checkpoint) -> None:
        self.progress = checkpoint.progress_percent
        self.trend.append(checkpoint.confidence)

    def _change(self, change: Change) -> None:
        self.activity = change.activity or self.activity
        self.doing = change.doing if change.activity is not None else self.doing
        self.budget = change.budget or self.budget
        if change.plan_step is not None:
            self.plan_step, self.progress = change.plan_step, None
            self.plan_steps = change.plan_steps or self.plan_steps
        self.model = change.model or self.model
        self.node = change.node or self.node

    def _enter(self, lifecycle: Lifecycle, at: datetime) -> None:
        self.lifecycle = lifecycle
        waits = lifecycle is Lifecycle.INPUT_REQUIRED
        if lifecycle.over:
            self.held.clear()
            self.petitions.clear()
            self.asked_since = None
            self.activity, self.doing = Activity.IDLE, ""
        if waits:
            self.needed_since = self.needed_since or at
        elif not self.held:
            self.needed_since = None

    def _alert(self, alert: Alert) -> None:
        if alert.firing:
            self.firing[alert.key] = alert
        else:
            self.firing.pop(alert.key, None)
            self.acknowledged.discard(alert.key)

    def _stamp(self, delivery: Delivery) -> None:
        held = self.held.pop(delivery.intervention, None)
        if held is not None and not self.held and self.lifecycle is not Lifecycle.INPUT_REQUIRED:
            self.needed_since = None

    @property
    def label(self) -> str:
        """What people call the attempt: `fix#2`."""
        return f"{self.name}#{self.number}" if self.number else self.name

    @property
    def rules(self) -> str:
        """The rules that fire."""
        return ", ".join(dict.fromkeys(key.rule for key in self.firing))

    @property
    def standing(self) -> str:
        """Where it stands, in a word."""
        return "split" if self.split else self.lifecycle.value

    @property
    def health(self) -> Health:
        """How it fares; a parked one is not blamed for standing still."""
        if self.lifecycle is not Lifecycle.WORKING:
            return Health.OK
        return Health.UNKNOWN if self.adrift else health(self.firing.values())

    @property
    def need(self) -> Need:
        """How much it needs a person."""
        if self.lifecycle.over:
            return Need.OVER
        if self.lifecycle is Lifecycle.INPUT_REQUIRED:
            return Need.ANSWER
        if self.held:
            return Need.APPROVAL
        fares = self.health
        if fares is Health.STUCK:
            return Need.STUCK
        if fares in (Health.SUSPECT, Health.UNKNOWN):
            return Need.SUSPECT
        return Need.QUEUED if self.lifecycle is Lifecycle.SUBMITTED else Need.WORKING

    @property
    def used(self) -> float | None:
        """The largest share of a limited resource that is used; `None` without limits."""
        meters = (
            self.budget.requests,
            self.budget.tokens,
            self.budget.cost_usd,
            self.budget.minutes,
        )
        shares = [share for share in map(_share, meters) if share is not None]
        return max(shares, default=None)


def _share(meter: Meter) -> float | None:
    return None if not meter.limit else meter.used / meter.limit
