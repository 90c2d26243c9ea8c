"""All figures about tasks, their plans, stated confidence and spending, and their fold. Pure."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from midwatch_monitor.metrics.alarms import (
    AlarmCounts,
    DetectionFigures,
    DisturbanceFigures,
    RecoveryFigures,
    Retries,
    RetryFigures,
    disturbance,
    recovery,
)
from midwatch_monitor.metrics.calibration import (
    BINS,
    Prediction,
    bin_of,
    expected_error,
    success_of,
)
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.records import (
    Acceptance,
    Budget,
    Change,
    Completion,
    Entry,
    Lifecycle,
    Plan,
    PlanStepState,
    Spending,
    TaskTransition,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_monitor.state.run import RunState
from midwatch_monitor.state.task import TaskState
from midwatch_monitor.state.usage import Usage, WorkerUsage, spent_usage

RESERVATIONS = 200
"""Number of newest reservations kept with their text; all are counted."""
_CHECKS = 1_000
"""Maximum acceptance checks followed per attempt; a task usually has a handful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSum:
    """Numbers of plans and plan steps."""

    plans: int = 0
    done: int = 0
    skipped: int = 0
    open: int = 0
    closed: int = 0
    """Plans without an open plan step."""
    flagged: int = 0
    """Plan steps that were finished under a reservation."""
    revisions: int = 0

    @property
    def steps(self) -> int:
        return self.done + self.skipped + self.open

    @property
    def rate(self) -> Share:
        """Share of the plan steps that were done."""
        return Share(hits=self.done, of=self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The reservation under which something was accepted as done, in the worker's words."""

    task: int
    plan_step: int
    """Number of the plan step; 0 for the whole task."""
    goal: str
    flag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFigures:
    """Plans in their last state. Attempts without a plan are left out."""

    attempts: PlanSum = PlanSum()
    """Plans of all attempts that are over."""
    tasks: PlanSum = PlanSum()
    """Plans of the last attempt of each task that is over."""
    accepted: int = 0
    """Accepted claims that something is done, including those with a reservation."""
    reserved: int = 0
    refused: int = 0
    """Claims that were refused because they lacked evidence."""
    reservations: tuple[Reservation, ...] = ()
    """The newest reservations, oldest first."""


class Source(StrEnum):
    """Where a confidence was stated."""

    CHECKPOINT = "checkpoint"
    """In the attempt's last checkpoint."""
    COMPLETION = "completion"
    """In its last claim that something is done, as lowered for lack of evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Attempts that stated a confidence in one range, in percent."""

    low: int
    high: int
    """Inclusive."""
    attempts: Share
    """Share of these attempts that succeeded."""
    checks: Share
    """Share of their acceptance checks that passed, each counted once, as run by Midwatch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceFigures:
    """Confidences of one source compared with the results. Every attempt counts once."""

    source: Source
    attempts: int = 0
    error: float | None = None
    """Expected calibration error of the stated confidence, from 0 to 1; `None` without attempts."""
    bins: tuple[Bin, ...] = ()
    """Bins with at least one attempt, by increasing confidence."""


class ClaimCounts:
    """Follows claims of completion and acceptance checks."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._reservations = deque[Reservation](maxlen=RESERVATIONS)
        self._stated: dict[int, int] = {}
        """Confidence of the last claim, by attempt."""
        self._checks: dict[int, dict[str, bool]] = defaultdict(dict)
        """Whether each check passed in its last run, by attempt and check."""

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Completion() as claim:
                self._count_claim(entry, claim)
            case Acceptance(check=check, passed=passed) if entry.attempt is not None:
                checks = self._checks[entry.attempt]
                if check in checks or len(checks) < _CHECKS:
                    checks[check] = passed
            case _:
                pass

    def _count_claim(self, entry: Entry, claim: Completion) -> None:
        if claim.plan_step and entry.attempt is not None:
            # The confidence of the whole task is derived from the checks themselves.
            self._stated[entry.attempt] = claim.confidence
        self._counts["accepted" if claim.accepted else "refused"] += 1
        if claim.accepted and claim.flag:
            self._counts["reserved"] += 1
            self._reservations.append(
                Reservation(
                    task=entry.task, plan_step=claim.plan_step, goal=claim.goal, flag=claim.flag
                )
            )

    def plans(self, ended: Iterable[AttemptState], final: Iterable[AttemptState]) -> PlanFigures:
        """Return the figures of plans and claims.

        Args:
            ended: Every attempt that is over.
            final: The last attempt of every task that is over.
        """
        return PlanFigures(
            attempts=_plan_sum(each.plan for each in ended),
            tasks=_plan_sum(each.plan for each in final),
            accepted=self._counts["accepted"],
            reserved=self._counts["reserved"],
            refused=self._counts["refused"],
            reservations=tuple(self._reservations),
        )

    def confidence(self, attempts: Iterable[AttemptState]) -> tuple[ConfidenceFigures, ...]:
        """Return the figures of each source, without attempts whose success is unknown."""
        ended = [(each, ok) for each in attempts if (ok := success_of(each)) is not None]
        return tuple(self._confidence_figures(source, ended) for source in Source)

    def _confidence_figures(
        self, source: Source, ended: list[tuple[AttemptState, bool]]
    ) -> ConfidenceFigures:
        predictions: list[Prediction] = []
        bins: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        for attempt, ok in ended:
            stated = attempt.confidence
            if source is Source.COMPLETION:
                stated = self._stated.get(attempt.id)
            if stated is not None:
                bins[bin_of(stated)].append((attempt.id, ok))
                predictions.append(Prediction(stated=stated, rate=stated / 100, succeeded=ok))
        return ConfidenceFigures(
            source=source,
            attempts=len(predictions),
            error=expected_error(predictions) if predictions else None,
            bins=tuple(self._make_bin(place, held) for place, held in sorted(bins.items())),
        )

    def _make_bin(self, place: int, held: list[tuple[int, bool]]) -> Bin:
        width = 100 // BINS
        checks = [passed for id, _ in held for passed in self._checks.get(id, {}).values()]
        return Bin(
            low=place * width,
            high=100 if place == BINS - 1 else (place + 1) * width - 1,
            attempts=Share(hits=sum(ok for _, ok in held), of=len(held)),
            checks=Share(hits=sum(checks), of=len(checks)),
        )


def _plan_sum(plans: Iterable[Plan]) -> PlanSum:
    """Return the sum of the plans that somebody wrote.

    Without a written plan the task itself is the only plan step.
    """
    written = [
        plan
        for plan in plans
        if len(plan.steps) > 1 or any(step.files or step.acceptance for step in plan.steps)
    ]
    states = Counter(step.state for plan in written for step in plan.steps)
    return PlanSum(
        plans=len(written),
        done=states[PlanStepState.DONE],
        skipped=states[PlanStepState.SKIPPED],
        open=states[PlanStepState.OPEN],
        closed=sum(plan.in_hand is None for plan in written),
        flagged=sum(len(plan.flags) for plan in written),
        revisions=sum(plan.revision for plan in written),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingFigures:
    """Usage of the workers, and usage on their behalf."""

    workers: Usage = field(default_factory=Usage)
    roles: tuple[tuple[str, Usage], ...] = ()
    """Usage of the supervisor, the planner and other roles, by name. The policy uses no model."""

    @property
    def around(self) -> Usage:
        """All usage that was not the workers'."""
        return sum((usage for _, usage in self.roles), Usage())

    def share(self, usage: Usage) -> float | None:
        """Return tokens as a share of the workers', from 0 up; `None` if the workers used none."""
        return usage.tokens / self.workers.tokens if self.workers.tokens else None


class ModelUse:
    """Follows budgets and spending."""

    def __init__(self) -> None:
        self._workers: dict[int, WorkerUsage] = defaultdict(WorkerUsage)
        """Usage of the workers, by task."""
        self._roles: dict[str, Usage] = defaultdict(Usage)

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Change(budget=Budget() as budget):
                self._workers[entry.task].fold(budget)
            case Spending() as spent:
                self._roles[spent.role] += spent_usage(spent)
            case _:
                pass

    def of(self, task: int) -> Usage:
        """Return the usage of a task's workers."""
        return self._workers[task].used if task in self._workers else Usage()

    def figures(self) -> SpendingFigures:
        return SpendingFigures(
            workers=sum((each.used for each in self._workers.values()), Usage()),
            roles=tuple((role, self._roles[role]) for role in sorted(self._roles)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """Figures of one task so far."""

    task: int
    """Journal id of the task."""
    lifecycle: Lifecycle
    """Lifecycle of its attempt while one is under way, otherwise that of the task."""
    stands: AttemptStatus
    """Its status as a word for people."""
    accepted: bool | None = None
    """Whether its result was accepted, by the verdict that counts; `None` if there is none."""
    reason: str = ""
    attempts: int = 0
    interventions: int = 0
    """Number of interventions delivered to its attempts."""
    recovered: int = 0
    """Number of those that helped."""
    passed: int = 0
    total: int = 0
    """Number of its acceptance checks; like `passed`, as last counted."""
    seconds: float | None = None
    """Time from its first attempt to its end, including waits; `None` if not over, or unknown."""
    usage: Usage = field(default_factory=Usage)
    """Usage of its workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All figures about some tasks."""

    tasks: tuple[TaskFigures, ...]
    detection: DetectionFigures
    retries: RetryFigures
    plans: PlanFigures
    confidence: tuple[ConfidenceFigures, ...]
    recovery: RecoveryFigures
    disturbance: DisturbanceFigures
    spending: SpendingFigures


class RunMetrics:
    """Takes the entries of tasks and computes their figures.

    The entries of a task must come in order and from its first; those of several tasks may be
    mixed. Steps are not kept.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._run = RunState()
        self._moved_at: dict[int, datetime] = {}
        """Time of the last change of state, by task."""
        self._alarms = AlarmCounts()
        self._retries = Retries()
        self._claims = ClaimCounts()
        self._model_use = ModelUse()
        for entry in entries:
            self.observe(entry)

    def observe(self, entry: Entry) -> None:
        """Take in the next entry."""
        for fold in (self._alarms, self._retries, self._claims, self._model_use):
            fold.observe(entry)
        self._run.fold(entry)
        if isinstance(entry.record, TaskTransition):
            self._moved_at[entry.task] = entry.at

    def figures(self) -> Figures:
        """Return the figures so far."""
        tasks = self._run.tasks
        attempts = [each for task in tasks.values() for each in task.attempts.values()]
        ended = [each for each in attempts if each.transition.lifecycle.over]
        final = [each for each in ended if (task := tasks[each.task]).over and each is task.latest]
        return Figures(
            tasks=tuple(self._task_figures(id, task) for id, task in tasks.items()),
            detection=self._alarms.figures(),
            retries=self._retries.figures(tasks.values()),
            plans=self._claims.plans(ended, final),
            confidence=self._claims.confidence(ended),
            recovery=recovery(attempts, self._alarms.refused),
            disturbance=disturbance(ended, self._alarms),
            spending=self._model_use.figures(),
        )

    def _task_figures(self, id: int, task: TaskState) -> TaskFigures:
        latest = task.latest
        under_way = latest if latest and not (task.over or latest.over) else task
        return TaskFigures(
            task=id,
            lifecycle=under_way.lifecycle,
            stands=task.status,
            accepted=task.verdict.accepted if task.verdict else None,
            reason=task.reason,
            attempts=len(task.attempts),
            interventions=len(task.delivered),
            recovered=task.recovered,
            passed=task.passed,
            total=task.total,
            seconds=self._seconds(id, task),
            usage=task.used,
        )

    def _seconds(self, id: int, task: TaskState) -> float | None:
        first = next(iter(task.attempts.values()), None)
        if first is None or not task.over:
            return None
        seconds = (self._moved_at[id] - first.attempt.started_at).total_seconds()
        return seconds if seconds >= 0 else None  # the clock was set back in the meantime
