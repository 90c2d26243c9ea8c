"""All figures together, and the fold that makes them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from midwatch_monitor.metrics.detection import Detection, DetectionFigures
from midwatch_monitor.metrics.plans import PlanFigures, Plans
from midwatch_monitor.metrics.recovery import Recovery, RecoveryFigures
from midwatch_monitor.metrics.restraint import RestraintFigures, restraint
from midwatch_monitor.metrics.retries import Retries, RetryFigures
from midwatch_monitor.metrics.roster import Enrolled, Roster
from midwatch_monitor.metrics.spending import Outlay, SpendingFigures, Usage
from midwatch_monitor.metrics.stated import Stated, StatedFigures
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
    stated: tuple[StatedFigures, ...]
    recovery: RecoveryFigures
    restraint: RestraintFigures
    spending: SpendingFigures


class Ledger:
    """Takes the entries of tasks and answers their figures.

    The entries of a task come in their order and from its first; those of several tasks may be
    mixed. What is kept of an attempt does not grow with its length.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._roster = Roster()
        self._detection = Detection()
        self._retries = Retries()
        self._plans = Plans()
        self._stated = Stated()
        self._recovery = Recovery()
        self._outlay = Outlay()
        self._folds = (
            self._roster,
            self._detection,
            self._retries,
            self._plans,
            self._stated,
            self._recovery,
            self._outlay,
        )
        for entry in entries:
            self.observe(entry)

    def observe(self, entry: Entry) -> None:
        """Take in the next entry."""
        for fold in self._folds:
            fold.observe(entry)

    def figures(self) -> Figures:
        """How everything stands."""
        delivered, helped = self._recovery.by_task()
        return Figures(
            tasks=tuple(
                self._task(task, delivered[task.task], helped[task.task])
                for task in self._roster.tasks.values()
            ),
            detection=self._detection.figures(),
            retries=self._retries.figures(self._roster),
            plans=self._plans.figures(self._roster),
            stated=self._stated.figures(self._roster),
            recovery=self._recovery.figures(),
            restraint=restraint(self._detection, self._recovery, self._roster),
            spending=self._outlay.figures(),
        )

    def _task(self, task: Enrolled, delivered: int, recovered: int) -> TaskFigures:
        waits = self._roster.waits(task)
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
            usage=self._outlay.of(task.task),
        )
