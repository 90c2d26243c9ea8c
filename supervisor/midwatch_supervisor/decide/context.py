"""The context of a decision about an attempt, as the supervisor sees it. Pure."""

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
"""Actions on the whole task; once they have failed, later attempts do not repeat them."""


def recovered(past: InterventionState) -> bool:
    """Whether the attempt recovered after an intervention."""
    return past.outcome is Outcome.RECOVERED


def was_in_vain(past: InterventionState) -> bool:
    """Whether an intervention was judged and the attempt did not recover."""
    return past.outcome is not None and not recovered(past)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosedCause:
    """A cause, and the numbers of the steps that support it."""

    cause: Diagnosis = Diagnosis.UNKNOWN
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrentEdit:
    """Another running attempt that changed, or plans to change, a file that this one works on."""

    path: str
    task: str
    """Name of the other task."""
    elder: bool
    """Whether the other attempt began first. Then this one yields the file, else the other does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """The resources that a task has left for actions."""

    attempts: int = 0
    """Number of attempts allowed after this one."""
    models: tuple[str, ...] = ()
    """Names of models to switch to, in order, without those already used."""
    workers: tuple[str, ...] = ()
    """Names of workers that may take over, in order, without those already used."""
    grant: Grant = field(default_factory=Grant)
    """The most that one more grant may add; empty if no more may be granted."""
    may_split: bool = False
    """Whether the task may be split; a part of a split may not."""
    acts: tuple[Action, ...] | None = None
    """Actions that can reach a worker that Midwatch did not start; `None` if all can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedAnalysis:
    """An analysis, and the attempt's last step when it was written."""

    analysis: Analysis
    step: int


@dataclass(slots=True, kw_only=True)
class ObservedProgress:
    """The course of one attempt, judged by observed evidence only."""

    better_at: int = 0
    """Last step at which a failed check passed, or failed in fewer places."""
    broken_at: int = 0
    """Last step at which a check failed that had passed."""
    passing_at: int = 0
    """Step of the newest check if it passed; 0 if it failed or none was run."""
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
        """Whether the work improved after a step, and has not got worse since."""
        return self.better_at > step and self.better_at > self.broken_at


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionContext:
    """One attempt and its task, as they were when a decision about them was needed."""

    policy: PolicySettings
    escalation: int = 0
    """Journal id of the escalation; 0 for a worker request."""
    alerts: tuple[Alert, ...] = ()
    """Alerts to answer."""
    request: str = ""
    """The worker's request, in its words; empty for an escalation."""
    reading: DiagnosedCause = DiagnosedCause()
    """The cause according to the diagnosis table."""

    title: str = ""
    goal: str = ""
    attempt: int = 1
    """Number of the attempt within its task."""
    failed_before: str = ""
    """Acceptance check that the previous attempt failed; empty if none is known."""
    worker: str = ""
    plan: Plan = field(default_factory=lambda: Plan(steps=()))
    revised_at: int = 0
    """Last step before the plan was last rewritten; 0 if it never was."""
    budget: Budget = field(default_factory=Budget)
    then_used: float = 0.0
    """Share of the tightest limit, 0 to 1, that will be used when an action taken now is judged."""
    activity: Activity | None = None

    firing: tuple[Alert, ...] = ()
    """All alerts that fire now."""
    observed: frozenset[AlertKey] = frozenset()
    """Alerts that an earlier decision left alone, and that still fire or fire again."""
    steps: tuple[Step, ...] = ()
    """The newest steps, oldest first."""
    checkpoints: tuple[Step, ...] = ()
    """All steps of kind `checkpoint`, oldest first."""
    track: ObservedProgress = field(default_factory=ObservedProgress)
    analyses: tuple[NotedAnalysis, ...] = ()
    """Analyses of failures, oldest first."""
    plan_check: PlanCheck | None = None
    """The newest check of the rest of the plan."""
    completions: tuple[Completion, ...] = ()
    """Claims about finished plan steps, oldest first."""
    diff: str = ""
    calibration: Calibration | None = None
    """Calibration of the attempt's model."""

    interventions: tuple[InterventionState, ...] = ()
    """Interventions delivered to this attempt, oldest first."""
    delivered: tuple[InterventionState, ...] = ()
    """Everything delivered to this attempt, including actions that only a person takes."""
    before: tuple[InterventionState, ...] = ()
    """Interventions delivered to earlier attempts of the task, oldest first."""
    rejected: frozenset[Action] = frozenset()
    """Actions rejected by a person or a time limit since the last recovery."""
    escalations: int = 0
    """Number of escalations of the attempt before this one."""
    asked: int = 0
    """Model requests that decisions about the attempt have used so far."""
    means: Means = Means()
    concurrent: tuple[ConcurrentEdit, ...] = ()

    @property
    def last_step(self) -> int:
        """Number of the newest step; 0 before the first."""
        return max((step.number for step in (*self.steps, *self.checkpoints)), default=0)

    @property
    def done(self) -> float | None:
        """Percentage of the whole work that is done, as told to the worker; `None` if unknown."""
        last = self.checkpoints[-1].checkpoint if self.checkpoints else None
        # Progress reported for an earlier plan step says nothing about the current one.
        here = last is not None and (last.plan_step == self.plan.current or not self.plan.steps)
        within = last.progress_percent if last is not None and here else None
        return done_percent(self.plan.current, len(self.plan.steps), within)

    def fires(self, *rules: str) -> tuple[Alert, ...]:
        """Return the alerts to answer that come from the named rules."""
        return tuple(alert for alert in self.alerts if alert.key.rule in rules)

    @property
    def task_wide(self) -> tuple[InterventionState, ...]:
        """All interventions delivered in the task, oldest first."""
        return (*self.before, *self.interventions)

    def count(self, action: Action) -> int:
        """Count how often the task had an action that was not ordered by a person."""
        return sum(
            each.action is action and each.intervention.by is not Actor.OPERATOR
            for each in self.task_wide
        )

    @property
    def capped(self) -> bool:
        """Whether a cap is reached, so that only a person can be asked or the attempt stopped."""
        return (
            len(self.interventions) >= self.policy.max_interventions
            or len(self.task_wide) >= self.policy.max_task_interventions
            or self.escalations >= self.policy.max_escalations
        )

    @property
    def since_recovery(self) -> tuple[InterventionState, ...]:
        """Interventions of this attempt after the last one that helped."""
        return _after_recovery(self.interventions)

    @property
    def in_vain(self) -> frozenset[Action]:
        """Actions that did not help since the last recovery.

        A restart counts in every later attempt, even before it is judged, because an immediate
        second one would only cost. Observing counts if the alert persists, and so does what a
        person rejected. A failed intervention about reporting does not count against one about the
        work.
        """
        failed = {
            past.action for past in self.since_recovery if self._counts_as_failed(past)
        } | self.rejected
        failed |= {
            past.action for past in self.earlier if past.action in _FOR_GOOD and not recovered(past)
        }
        if self.observed and self.reading.cause is not Diagnosis.FALSE_ALARM:
            failed.add(Action.OBSERVE)
        return frozenset(failed)

    @property
    def earlier(self) -> tuple[InterventionState, ...]:
        """Interventions since the task last recovered, including those of earlier attempts."""
        return _after_recovery(self.task_wide)

    @property
    def guided_in_vain(self) -> bool:
        """Whether something was tried without success since the task last recovered."""
        return bool(self.rejected) or any(map(self._counts_as_failed, self.earlier))

    def _counts_as_failed(self, past: InterventionState) -> bool:
        answers = past.intervention.answers
        of_reporting = bool(answers) and about_reporting(answers)
        beside = of_reporting and not about_reporting(alert.key for alert in self.alerts)
        return was_in_vain(past) and not beside

    def yields_to(self, path: str) -> ConcurrentEdit | None:
        """Return the attempt that keeps a file that both work on; `None` if this one keeps it."""
        found = (each for each in self.concurrent if each.path == path and each.elder)
        return next(found, None)


def _after_recovery(
    earlier: tuple[InterventionState, ...],
) -> tuple[InterventionState, ...]:
    for index in range(len(earlier) - 1, -1, -1):
        if recovered(earlier[index]):
            return earlier[index + 1 :]
    return earlier
