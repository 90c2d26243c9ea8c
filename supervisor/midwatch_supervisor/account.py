"""Where a task and its attempts stand, folded from the journal for a person to read. Pure."""

from dataclasses import dataclass, field

from midwatch_monitor.alerts import health
from midwatch_monitor.words import (
    Acceptance,
    Action,
    Alert,
    AlertKey,
    Attempt,
    AttemptState,
    Budget,
    Change,
    Checkpoint,
    Decision,
    Delivery,
    Entry,
    Escalation,
    EscalationState,
    Fault,
    Health,
    Intervention,
    Lifecycle,
    OutcomeReport,
    Plan,
    Record,
    Step,
    Task,
    TaskState,
)
from midwatch_supervisor.line import InterventionState
from midwatch_supervisor.lines import Fate, fate_of


@dataclass(slots=True, kw_only=True)
class AttemptAccount:
    """Where one attempt stands."""

    attempt: Attempt
    state: AttemptState = field(default_factory=lambda: AttemptState(lifecycle=Lifecycle.SUBMITTED))
    lifecycle: Lifecycle = Lifecycle.SUBMITTED
    """Of the newest state or change of circumstances."""
    plan: Plan = field(default_factory=lambda: Plan(steps=()))
    budget: Budget = field(default_factory=Budget)
    last_step: int = 0
    checkpoint: Checkpoint | None = None
    alerts: dict[AlertKey, Alert] = field(default_factory=dict[AlertKey, Alert])
    escalations: dict[int, Escalation] = field(default_factory=dict[int, Escalation])
    decisions: list[Decision] = field(default_factory=list[Decision])
    fates: dict[int, Fate] = field(default_factory=dict[int, Fate])
    """The interventions, by journal id, and what became of each."""
    checks: dict[str, Acceptance] = field(default_factory=dict[str, Acceptance])
    faults: list[Fault] = field(default_factory=list[Fault])

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that count now, in the order in which they were first seen."""
        return tuple(alert for alert in self.alerts.values() if alert.firing)

    @property
    def parked(self) -> bool:
        """Whether it waits for a person."""
        return self.lifecycle is Lifecycle.INPUT_REQUIRED

    @property
    def health(self) -> Health:
        """How it fares; a parked attempt is not blamed for standing still."""
        return health(self.firing, parked=self.parked)

    @property
    def waits_for(self) -> str:
        """What must come from elsewhere before it goes on, in words; empty for nothing."""
        if self.lifecycle.over:
            return ""
        for id, fate in self.fates.items():
            if fate.state is InterventionState.HELD:
                return f"approval of {fate.intervention.action} ({id})"
        if self.parked:
            return self._question()
        if any(each.state is EscalationState.OPEN for each in self.escalations.values()):
            return "a decision"
        for id, fate in self.fates.items():
            if fate.state.under_way:
                return f"delivery of {fate.intervention.action} ({id})"
        return ""

    def _question(self) -> str:
        delivered = [
            fate.intervention
            for fate in self.fates.values()
            if fate.state is InterventionState.DELIVERED
        ]
        for intervention in reversed(delivered):
            if intervention.action is Action.ASK_OPERATOR:
                return f"an answer: {intervention.message}"
            if intervention.action is Action.PAUSE:
                return "a person to resume it"
        return "a person"

    def fold(self, id: int, record: Record) -> None:
        """Take in a record of this attempt. Kinds that do not matter here are passed over."""
        match record:
            case Step() as step:
                self.last_step = step.number
                self.checkpoint = step.checkpoint or self.checkpoint
            case AttemptState() | Change() | Plan() | Acceptance() as change:
                self._fold_circumstances(change)
            case Alert() as alert:
                self.alerts[alert.key] = alert
            case Escalation() as escalation:
                self.escalations[escalation.id] = escalation
            case Decision() as decision:
                self.decisions.append(decision)
            case Intervention() as intervention:
                self.fates[id] = fate_of(intervention)
            case Fault() as fault:
                self.faults.append(fault)
            case _:
                pass

    def _fold_circumstances(self, news: AttemptState | Change | Plan | Acceptance) -> None:
        match news:
            case AttemptState() as state:
                self.state, self.lifecycle = state, state.lifecycle
            case Change() as change:
                self.lifecycle = change.lifecycle or self.lifecycle
                self.budget = change.budget or self.budget
            case Plan() as plan:
                self.plan = plan
            case Acceptance() as check:
                self.checks[check.check] = check


@dataclass(slots=True, kw_only=True)
class TaskAccount:
    """Where one task stands. Takes the task's entries in order, from its first."""

    task: Task
    state: TaskState = field(default_factory=lambda: TaskState(lifecycle=Lifecycle.SUBMITTED))
    attempts: dict[int, AttemptAccount] = field(default_factory=dict[int, AttemptAccount])
    """By id, oldest first."""
    last: Entry | None = None
    """The newest entry."""

    @property
    def latest(self) -> AttemptAccount | None:
        """The newest attempt, if the task has begun."""
        return list(self.attempts.values())[-1] if self.attempts else None

    @property
    def waits_for(self) -> str:
        """What must come from elsewhere before the task goes on, in words; empty for nothing."""
        if self.state.lifecycle.over:
            return ""
        return self.latest.waits_for if self.latest else "its turn"

    def lacks(self, entry: Entry) -> bool:
        """Whether the entry's attempt must be met first."""
        return entry.attempt is not None and entry.attempt not in self.attempts

    def meet(self, attempt: Attempt) -> None:
        """Learn of an attempt, in the order of their ids."""
        self.attempts[attempt.id] = AttemptAccount(attempt=attempt)

    def fold(self, entry: Entry) -> None:
        """Take in the task's next entry."""
        self.last = entry
        match entry.record:
            case TaskState() as state:
                self.state = state
            case Delivery() | OutcomeReport() as news:
                # A restart is issued on one attempt and judged on the next.
                for account in self.attempts.values():
                    if news.intervention in account.fates:
                        account.fates[news.intervention].fold(news)
            case record if entry.attempt in self.attempts:
                self.attempts[entry.attempt].fold(entry.id, record)
            case _:
                pass
