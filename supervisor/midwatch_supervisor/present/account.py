"""Where a task and its attempts stand, folded from the journal for a person to read. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from midwatch_monitor.alerts import health
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Alert,
    AlertKey,
    Analysis,
    Attempt,
    AttemptTransition,
    Budget,
    BudgetRequest,
    Change,
    Checkpoint,
    Completion,
    Decision,
    Delivery,
    Ending,
    Entry,
    Escalation,
    EscalationState,
    Fault,
    Health,
    Intervention,
    Lifecycle,
    OutcomeReport,
    Plan,
    PlanCheck,
    Record,
    Snapshot,
    Spending,
    Step,
    Task,
    TaskTransition,
)
from midwatch_supervisor.decide.worker_request import WorkerRequest, petition_in
from midwatch_supervisor.present.line import InterventionState
from midwatch_supervisor.present.lines import Fate, fate_of, reservations
from midwatch_supervisor.present.waiting import TURN


@dataclass(slots=True, kw_only=True)
class AttemptAccount:
    """Where one attempt stands."""

    attempt: Attempt
    state: AttemptTransition = field(
        default_factory=lambda: AttemptTransition(lifecycle=Lifecycle.SUBMITTED)
    )
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
    analyses: list[Analysis] = field(default_factory=list[Analysis])
    plan_checks: dict[int, PlanCheck] = field(default_factory=dict[int, PlanCheck])
    """By journal id, as `requests` are."""
    requests: dict[int, BudgetRequest] = field(default_factory=dict[int, BudgetRequest])
    completions: list[Completion] = field(default_factory=list[Completion])
    switched: str = ""
    """The model that it was switched to."""
    moves: list[str] = field(default_factory=list[str])
    """The nodes that went on with it after its first one."""
    sandbox: str = ""
    """What its commands run in; empty where that was not recorded."""
    saved: Snapshot | None = None
    """Its work as it was saved last, for another node to go on with."""

    @property
    def model(self) -> str:
        """The model in force."""
        return self.switched or self.attempt.model

    @property
    def node(self) -> str:
        """Where it is at work, or was last."""
        return self.moves[-1] if self.moves else self.attempt.node

    @property
    def split(self) -> bool:
        """Whether smaller tasks took over: it is over, and no failure."""
        return self.state.ending is Ending.SPLIT

    @property
    def standing(self) -> str:
        """Where it stands, in a word."""
        return "split" if self.split else self.lifecycle.value

    @property
    def petitions(self) -> Mapping[int, WorkerRequest]:
        """What it asked for and was not answered, by journal id."""
        if self.lifecycle.over:
            return {}
        asked: dict[int, PlanCheck | BudgetRequest] = {**self.plan_checks, **self.requests}
        return {
            id: petition
            for id, record in sorted(asked.items())
            if (petition := petition_in(record)) is not None and self.answer(id) is None
        }

    def answer(self, petition: int) -> Intervention | None:
        """What was said to a petition; `None` while it waits. Approval is as if never needed."""
        for fate in reversed(self.fates.values()):
            about = fate.intervention
            if about.petition == petition and fate.state is not InterventionState.REJECTED:
                return replace(about, needs_approval=fate.state is InterventionState.HELD)
        return None

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
            case AttemptTransition() | Change() | Plan() | Acceptance() as change:
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
                self._fold_account(id, record)

    def _fold_account(self, id: int, record: Record) -> None:
        match record:
            case Analysis() as analysis:
                self.analyses.append(analysis)
            case PlanCheck() as check:
                self.plan_checks[id] = check
            case BudgetRequest() as request:
                self.requests[id] = request
            case Completion() as completion:
                self.completions.append(completion)
            case Snapshot() as snapshot:
                self.saved = snapshot
            case _:
                pass

    def _fold_circumstances(self, news: AttemptTransition | Change | Plan | Acceptance) -> None:
        match news:
            case AttemptTransition() as state:
                self.state, self.lifecycle = state, state.lifecycle
            case Change() as change:
                self.lifecycle = change.lifecycle or self.lifecycle
                self.budget = change.budget or self.budget
                self.switched = change.model or self.switched
                self.sandbox = change.sandbox or self.sandbox
                if change.node is not None and change.node != self.node:
                    self.moves.append(change.node)
            case Plan() as plan:
                self.plan = plan
            case Acceptance() as check:
                self.checks[check.check] = check


@dataclass(slots=True, kw_only=True)
class TaskAccount:
    """Where one task stands. Takes the task's entries in order, from its first."""

    task: Task
    state: TaskTransition = field(
        default_factory=lambda: TaskTransition(lifecycle=Lifecycle.SUBMITTED)
    )
    attempts: dict[int, AttemptAccount] = field(default_factory=dict[int, AttemptAccount])
    """By id, oldest first."""
    last: Entry | None = None
    """The newest entry."""
    spent: dict[tuple[str, str], Spending] = field(default_factory=dict[tuple[str, str], Spending])
    """What others than the workers used, by role and model."""
    turn: str = TURN
    """What it waits for before it begins, in words, as far as who asks knows it."""

    @property
    def latest(self) -> AttemptAccount | None:
        """The newest attempt, if the task has begun."""
        return list(self.attempts.values())[-1] if self.attempts else None

    @property
    def waits_for(self) -> str:
        """What must come from elsewhere before the task goes on, in words; empty for nothing."""
        if self.state.lifecycle.over:
            return ""
        if self.latest is None:
            return self.turn
        return "the tasks that it was split into" if self.latest.split else self.latest.waits_for

    @property
    def reservations(self) -> tuple[str, ...]:
        """With what reservations the task counts as completed."""
        if self.latest is None or self.state.lifecycle is not Lifecycle.COMPLETED:
            return ()
        whole = [each for each in self.latest.completions if not each.plan_step]
        return reservations(whole[-1]) if whole else ()

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
            case TaskTransition() as state:
                self.state = state
            case Spending() as spending:
                self._spend(spending)
            case Delivery() | OutcomeReport() as news:
                # A restart is issued on one attempt and judged on the next.
                for account in self.attempts.values():
                    if news.intervention in account.fates:
                        account.fates[news.intervention].fold(news)
            case record if entry.attempt in self.attempts:
                self.attempts[entry.attempt].fold(entry.id, record)
            case _:
                pass

    def _spend(self, more: Spending) -> None:
        key = more.role, more.model
        before = self.spent.get(key, Spending(role=more.role, model=more.model))
        self.spent[key] = replace(
            before,
            requests=before.requests + more.requests,
            tokens=before.tokens + more.tokens,
            cost_usd=before.cost_usd + more.cost_usd,
        )
