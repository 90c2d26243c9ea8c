"""All figures about tasks, and the fold that computes them. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from midwatch_monitor.metrics.alarms import (
    AlarmCounts,
    DetectionFigures,
    DisturbanceFigures,
    RecoveryFigures,
    disturbance,
    recovery,
)
from midwatch_monitor.metrics.plans_and_spending import (
    ClaimCounts,
    ConfidenceFigures,
    ModelUse,
    PlanFigures,
    SpendingFigures,
    Usage,
)
from midwatch_monitor.metrics.retries import Retries, RetryFigures
from midwatch_monitor.records import Entry, Lifecycle, TaskTransition
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_monitor.state.run import RunState
from midwatch_monitor.state.task import TaskState


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
