"""What a decision about an attempt depends on, and what the supervisor is shown of it. Pure."""

from dataclasses import dataclass, field

from midwatch_monitor.budget import done_percent
from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.escalation import about_reporting
from midwatch_monitor.metrics.calibration import Calibration
from midwatch_monitor.records import (
    Action,
    Activity,
    Actor,
    Alert,
    AlertKey,
    Analysis,
    Budget,
    Completion,
    Diagnosis,
    Grant,
    Movement,
    Outcome,
    Plan,
    PlanCheck,
    Step,
)
from midwatch_monitor.rules.act import CheckKind, Normaliser
from midwatch_monitor.rules.detector import BETTER, Movements
from midwatch_monitor.state.intervention import InterventionState

_FOR_GOOD = frozenset({Action.SWITCH_MODEL, Action.RESTART, Action.SPLIT})
"""What is done to the task, not to one attempt: a new attempt does not begin with it again."""


def recovered(past: InterventionState) -> bool:
    """Whether the attempt recovered after an intervention."""
    return past.outcome is Outcome.RECOVERED


def was_in_vain(past: InterventionState) -> bool:
    """Whether it was judged and the attempt did not recover."""
    return past.outcome is not None and not recovered(past)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """A cause, and the numbers of the steps that it rests on."""

    cause: Diagnosis = Diagnosis.UNKNOWN
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrentEdit:
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
    acts: tuple[Action, ...] | None = None
    """All that reaches a worker that somebody else started; `None`: everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """An analysis, and the attempt's last step when it was written."""

    analysis: Analysis
    step: int


@dataclass(slots=True, kw_only=True)
class Track:
    """The course of one attempt, as far as observed evidence tells."""

    better_at: int = 0
    """The last step at which a check passed that had failed, or failed in fewer places."""
    broken_at: int = 0
    """The last step at which a check failed that had passed."""
    passing_at: int = 0
    """The last look at the work, if it went well; 0 if it failed, or before the first."""
    _acts: Normaliser = field(default_factory=Normaliser, compare=False)
    _movements: Movements = field(default_factory=Movements, compare=False)

    def take(self, step: Step) -> None:
        act = self._acts.act(step)
        moved = self._movements.observe(act).kinds
        if moved & BETTER:
            self.better_at = step.number
        if Movement.CHECK_BROKEN in moved:
            self.broken_at = step.number
        if act.check is not CheckKind.NONE and act.failed is not None:
            self.passing_at = 0 if act.failed else act.number

    def improved_since(self, step: int) -> bool:
        """Whether the work got better after a step, and no worse again."""
        return self.better_at > step and self.better_at > self.broken_at


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionContext:
    """One attempt and its task, as they stood when something about them is to be decided."""

    policy: PolicySettings
    escalation: int = 0
    """The journal id of the question; 0 where a worker asks."""
    alerts: tuple[Alert, ...] = ()
    """The alerts to answer."""
    request: str = ""
    """What the worker asks for, in its words; empty for an escalation."""
    reading: Diagnosed = Diagnosed()
    """The cause as the table reads it from the signs."""

    title: str = ""
    goal: str = ""
    attempt: int = 1
    """The attempt's number within its task."""
    worker: str = ""
    plan: Plan = field(default_factory=lambda: Plan(steps=()))
    revised_at: int = 0
    """The last step before the plan was last written anew; 0 if it never was."""
    budget: Budget = field(default_factory=Budget)
    then_used: float = 0.0
    """The share of the tightest limit, 0 to 1, that is used when what is done now is judged."""
    activity: Activity | None = None

    firing: tuple[Alert, ...] = ()
    """All alerts that fire now."""
    observed: frozenset[AlertKey] = frozenset()
    """Alerts about which nothing was done before, and which fire still or again."""
    steps: tuple[Step, ...] = ()
    """The last ones, oldest first."""
    checkpoints: tuple[Step, ...] = ()
    """All steps of kind `checkpoint`, oldest first."""
    track: Track = field(default_factory=Track)
    analyses: tuple[Noted, ...] = ()
    """Of what failed, oldest first."""
    plan_check: PlanCheck | None = None
    """The last look at the rest of the plan."""
    completions: tuple[Completion, ...] = ()
    """What was claimed of finished plan steps, oldest first."""
    diff: str = ""
    calibration: Calibration | None = None
    """Of the attempt's model."""

    interventions: tuple[InterventionState, ...] = ()
    """The delivered ones of this attempt, oldest first."""
    delivered: tuple[InterventionState, ...] = ()
    """All that reached this attempt, with what only a person does."""
    before: tuple[InterventionState, ...] = ()
    """The delivered ones of the task's earlier attempts, oldest first."""
    rejected: frozenset[Action] = frozenset()
    """Actions that a person, or the time, did not let happen since the last recovery."""
    escalations: int = 0
    """How many the attempt had before this one."""
    asked: int = 0
    """Model requests that decisions about the attempt took so far."""
    means: Means = Means()
    concurrent: tuple[ConcurrentEdit, ...] = ()

    @property
    def last_step(self) -> int:
        """The number of the newest step; 0 before the first."""
        return max((step.number for step in (*self.steps, *self.checkpoints)), default=0)

    @property
    def done(self) -> float | None:
        """How much of the whole work is done, in percent, as the worker is told it."""
        last = self.checkpoints[-1].checkpoint if self.checkpoints else None
        # What was reported of a plan step before says nothing of the one in hand.
        here = last is not None and (last.plan_step == self.plan.current or not self.plan.steps)
        within = last.progress_percent if last is not None and here else None
        return done_percent(self.plan.current, len(self.plan.steps), within)

    def fires(self, *rules: str) -> tuple[Alert, ...]:
        """Those of the alerts to answer that some rules raised."""
        return tuple(alert for alert in self.alerts if alert.key.rule in rules)

    @property
    def task_wide(self) -> tuple[InterventionState, ...]:
        """Everything that was done in the task, oldest first."""
        return (*self.before, *self.interventions)

    def count(self, action: Action) -> int:
        """How often the task had an action that no person ordered."""
        return sum(
            each.action is action and each.intervention.by is not Actor.OPERATOR
            for each in self.task_wide
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
    def since_recovery(self) -> tuple[InterventionState, ...]:
        """The interventions of this attempt after the last one that helped."""
        return _after_recovery(self.interventions)

    @property
    def in_vain(self) -> frozenset[Action]:
        """The actions that did not help since the last recovery.

        A restart counts in every later attempt, and before it is judged too: another one at once
        would only cost. Nothing done about an alert that goes on was in vain as well, and what a
        person rejected is not proposed again. That a worker was told in vain to report says
        nothing of what may be told it about its work.
        """
        failed = {past.action for past in self.since_recovery if self._failed(past)} | self.rejected
        failed |= {
            past.action for past in self.earlier if past.action in _FOR_GOOD and not recovered(past)
        }
        if self.observed and self.reading.cause is not Diagnosis.FALSE_ALARM:
            failed.add(Action.OBSERVE)
        return frozenset(failed)

    @property
    def earlier(self) -> tuple[InterventionState, ...]:
        """What was done since the task last recovered, in earlier attempts too."""
        return _after_recovery(self.task_wide)

    @property
    def guided_in_vain(self) -> bool:
        """Whether something was tried since the task last recovered, and did not help."""
        return bool(self.rejected) or any(map(self._failed, self.earlier))

    def _failed(self, past: InterventionState) -> bool:
        answers = past.intervention.answers
        of_reporting = bool(answers) and about_reporting(answers)
        beside = of_reporting and not about_reporting(alert.key for alert in self.alerts)
        return was_in_vain(past) and not beside

    def yields_to(self, path: str) -> ConcurrentEdit | None:
        """The attempt that keeps a file which both work on; `None` where this one keeps it."""
        found = (each for each in self.concurrent if each.path == path and each.elder)
        return next(found, None)


def _after_recovery(
    earlier: tuple[InterventionState, ...],
) -> tuple[InterventionState, ...]:
    for index in range(len(earlier) - 1, -1, -1):
        if recovered(earlier[index]):
            return earlier[index + 1 :]
    return earlier
