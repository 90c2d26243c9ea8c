"""All figures together, and the fold that makes them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from midwatch_monitor.metrics.claims import Confidence, ConfidenceFigures, PlanFigures, Plans
from midwatch_monitor.metrics.detection import Detection, DetectionFigures
from midwatch_monitor.metrics.recovery import (
    DisturbanceFigures,
    Recovery,
    RecoveryFigures,
    disturbance,
)
from midwatch_monitor.metrics.retries import Retries, RetryFigures
from midwatch_monitor.metrics.tasks import ModelUse, SpendingFigures, TaskProgress, Tasks, Usage
from midwatch_monitor.records import Entry, Lifecycle


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """What came of one task so far."""

    task: int
    """Its journal id."""
    lifecycle: Lifecycle
    """`input-required` where it waits for a person."""
    reason: str = ""
    attempts: int = 0
    interventions: int = 0
    """Delivered to any of its attempts."""
    recovered: int = 0
    """Of those, the ones that helped."""
    passed: int = 0
    total: int = 0
    """Its acceptance checks."""
    seconds: float | None = None
    """From its first attempt to its end, waiting included; `None` while it is not over."""
    usage: Usage = field(default_factory=Usage)
    """Of its workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is known of some tasks."""

    tasks: tuple[TaskFigures, ...]
    detection: DetectionFigures
    retries: RetryFigures
    plans: PlanFigures
    confidence: tuple[ConfidenceFigures, ...]
    recovery: RecoveryFigures
    disturbance: DisturbanceFigures
    spending: SpendingFigures


class RunMetrics:
    """Takes the entries of tasks and answers their figures.

    The entries of a task come in their order and from its first; those of several tasks may be
    mixed. What is kept of an attempt does not grow with its length.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._tasks = Tasks()
        self._detection = Detection()
        self._retries = Retries()
        self._plans = Plans()
        self._confidence = Confidence()
        self._recovery = Recovery()
        self._model_use = ModelUse()
        self._folds = (
            self._tasks,
            self._detection,
            self._retries,
            self._plans,
            self._confidence,
            self._recovery,
            self._model_use,
        )
        for entry in entries:
            self.observe(entry)

    def observe(self, entry: Entry) -> None:
        for fold in self._folds:
            fold.observe(entry)

    def figures(self) -> Figures:
        delivered, helped = self._recovery.by_task()
        return Figures(
            tasks=tuple(
                self._task(task, delivered[task.task], helped[task.task])
                for task in self._tasks.tasks.values()
            ),
            detection=self._detection.figures(),
            retries=self._retries.figures(self._tasks),
            plans=self._plans.figures(self._tasks),
            confidence=self._confidence.figures(self._tasks),
            recovery=self._recovery.figures(),
            disturbance=disturbance(self._detection, self._recovery, self._tasks),
            spending=self._model_use.figures(),
        )

    def _task(self, task: TaskProgress, delivered: int, recovered: int) -> TaskFigures:
        waits = self._tasks.waits(task)
        return TaskFigures(
            task=task.task,
            lifecycle=Lifecycle.INPUT_REQUIRED if waits else task.state.lifecycle,
            reason=task.state.reason,
            attempts=len(task.attempts),
            interventions=delivered,
            recovered=recovered,
            passed=task.passed,
            total=task.total,
            seconds=task.seconds,
            usage=self._model_use.of(task.task),
        )
