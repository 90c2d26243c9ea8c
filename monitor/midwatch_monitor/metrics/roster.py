"""Which tasks and attempts there were, and how each ended."""

from dataclasses import dataclass, field
from datetime import datetime

from midwatch_monitor.metrics.calibration import success
from midwatch_monitor.records import (
    AttemptTransition,
    Change,
    Ending,
    Entry,
    Feedback,
    Lifecycle,
    Origin,
    TaskTransition,
)


@dataclass(slots=True, kw_only=True)
class Enrolled:
    """One task, as far as it went."""

    task: int
    state: TaskTransition = field(
        default_factory=lambda: TaskTransition(lifecycle=Lifecycle.SUBMITTED)
    )
    attempts: list[int] = field(default_factory=list[int])
    """Ids, in the order in which they began."""
    passed: int = 0
    total: int = 0
    """Acceptance checks, as they were counted last."""
    began_at: datetime | None = None
    """When its first attempt was made."""
    ended_at: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """From its first attempt to its end; `None` if it has not begun or is not over."""
        if self.began_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.began_at).total_seconds()

    def take(self, state: TaskTransition, at: datetime) -> None:
        """Its newest state."""
        self.state = state
        if state.total:
            self.passed, self.total = state.passed, state.total
        self.ended_at = at if state.lifecycle.over else None


class Roster:
    """Follows tasks and attempts; what other figures need of an attempt's end is asked here."""

    def __init__(self) -> None:
        self.tasks: dict[int, Enrolled] = {}
        """By id, in the order in which they were met."""
        self._lifecycles: dict[int, Lifecycle] = {}
        self._endings: dict[int, Ending | None] = {}
        """Of the attempts that are over."""
        self._verdicts: dict[int, bool] = {}
        """What a person said of an attempt's result, the newest."""

    def observe(self, entry: Entry) -> None:
        """Take in the next entry of a task."""
        task = self.tasks.get(entry.task)
        if task is None:
            task = self.tasks[entry.task] = Enrolled(task=entry.task)
        if isinstance(entry.record, TaskTransition):
            task.take(entry.record, entry.at)
        if entry.attempt is None:
            return
        if entry.attempt not in self._lifecycles:
            self._lifecycles[entry.attempt] = Lifecycle.SUBMITTED
            task.attempts.append(entry.attempt)
            task.began_at = task.began_at or entry.at
        match entry.record:
            case AttemptTransition() as state:
                self._lifecycles[entry.attempt] = state.lifecycle
                if state.lifecycle.over:
                    self._endings[entry.attempt] = state.ending
            case Change(lifecycle=Lifecycle() as lifecycle):
                self._lifecycles[entry.attempt] = lifecycle
            case Feedback(accepted=accepted, origin=Origin.EXPLICIT):
                self._verdicts[entry.attempt] = accepted
            case _:
                pass

    def over(self, attempt: int) -> bool:
        """Whether an attempt has ended."""
        return attempt in self._endings

    def succeeded(self, attempt: int) -> bool | None:
        """Whether an attempt that is over succeeded; `None` if it is not, or nobody can say."""
        if attempt not in self._endings:
            return None
        return success(self._endings[attempt], accepted=self._verdicts.get(attempt))

    def first(self, attempt: int, task: int) -> bool:
        """Whether an attempt is the first of its task."""
        return self.tasks[task].attempts[0] == attempt

    def last(self, attempt: int, task: int) -> bool:
        """Whether an attempt is the newest of its task."""
        return self.tasks[task].attempts[-1] == attempt

    def waits(self, task: Enrolled) -> bool:
        """Whether a task waits for a person."""
        return (
            not task.state.lifecycle.over
            and bool(task.attempts)
            and self._lifecycles[task.attempts[-1]] is Lifecycle.INPUT_REQUIRED
        )
