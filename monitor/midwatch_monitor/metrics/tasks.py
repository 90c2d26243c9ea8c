"""Tasks and attempts: how each ended, and what the models cost."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from midwatch_monitor.metrics.calibration import success
from midwatch_monitor.records import (
    AttemptTransition,
    Budget,
    Change,
    Ending,
    Entry,
    Feedback,
    Lifecycle,
    Origin,
    Spending,
    TaskTransition,
)


@dataclass(slots=True, kw_only=True)
class TaskProgress:
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


class Tasks:
    """Follows tasks and attempts; what other figures need of an attempt's end is asked here."""

    def __init__(self) -> None:
        self.tasks: dict[int, TaskProgress] = {}
        """By id, in the order in which they were met."""
        self._lifecycles: dict[int, Lifecycle] = {}
        self._endings: dict[int, Ending | None] = {}
        """Of the attempts that are over."""
        self._verdicts: dict[int, bool] = {}
        """What a person said of an attempt's result, the newest."""

    def observe(self, entry: Entry) -> None:
        task = self.tasks.get(entry.task)
        if task is None:
            task = self.tasks[entry.task] = TaskProgress(task=entry.task)
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

    def waits(self, task: TaskProgress) -> bool:
        """Whether a task waits for a person."""
        return (
            not task.state.lifecycle.over
            and bool(task.attempts)
            and self._lifecycles[task.attempts[-1]] is Lifecycle.INPUT_REQUIRED
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, more: "Usage") -> "Usage":
        return Usage(
            requests=self.requests + more.requests,
            tokens=self.tokens + more.tokens,
            cost_usd=self.cost_usd + more.cost_usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingFigures:
    """What workers used, and what was used on their behalf."""

    workers: Usage = Usage()
    roles: tuple[tuple[str, Usage], ...] = ()
    """The supervisor, the planner and the others, by name. The policy uses no model."""

    @property
    def around(self) -> Usage:
        """All that was not the workers'."""
        return sum((usage for _, usage in self.roles), Usage())

    def share(self, usage: Usage) -> float | None:
        """Tokens as a share of the workers', from 0 up; `None` where the workers used none."""
        return usage.tokens / self.workers.tokens if self.workers.tokens else None


class ModelUse:
    """Follows budgets and spending."""

    def __init__(self) -> None:
        self._meters: dict[int, Usage] = {}
        """By task: what its meters showed last. Its attempts share one budget."""
        self._tasks: dict[int, Usage] = defaultdict(Usage)
        self._roles: dict[str, Usage] = defaultdict(Usage)

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Change(budget=Budget() as budget):
                self._meter(entry.task, budget)
            case Spending() as spent:
                self._roles[spent.role] += Usage(
                    requests=spent.requests, tokens=spent.tokens, cost_usd=spent.cost_usd
                )
            case _:
                pass

    def _meter(self, task: int, budget: Budget) -> None:
        shown = Usage(
            requests=int(budget.requests.used),
            tokens=int(budget.tokens.used),
            cost_usd=budget.cost_usd.used,
        )
        before = self._meters.get(task, Usage())
        # Meters only rise; one that fell was begun anew.
        if shown.requests < before.requests or shown.tokens < before.tokens:
            before = Usage()
        self._tasks[task] += Usage(
            requests=shown.requests - before.requests,
            tokens=shown.tokens - before.tokens,
            cost_usd=max(0.0, shown.cost_usd - before.cost_usd),
        )
        self._meters[task] = shown

    def of(self, task: int) -> Usage:
        """What a task's workers used."""
        return self._tasks.get(task, Usage())

    def figures(self) -> SpendingFigures:
        return SpendingFigures(
            workers=sum(self._tasks.values(), Usage()),
            roles=tuple((role, self._roles[role]) for role in sorted(self._roles)),
        )
