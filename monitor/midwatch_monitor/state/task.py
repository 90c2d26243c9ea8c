"""Where one task stands, folded from its entries. Pure."""

from dataclasses import dataclass, field, replace

from midwatch_monitor.records import (
    Attempt,
    Completion,
    Delivery,
    Entry,
    Feedback,
    Lifecycle,
    OutcomeReport,
    Spending,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.attempt import AttemptState, AttemptStatus

_SUBMITTED = TaskTransition(lifecycle=Lifecycle.SUBMITTED)


def reservations(done: Completion) -> tuple[str, ...]:
    """With what reservations a task counts as done; none for a plan step, or for what does not."""
    if done.plan_step or not done.accepted:
        return ()
    return tuple(dict.fromkeys(filter(None, (done.flag, *done.doubts))))


@dataclass(slots=True, kw_only=True)
class TaskState:
    """Where one task and its attempts stand. Takes the task's entries in order, from its first."""

    task: Task
    detailed: bool = True
    """Whether its attempts keep their details."""
    judged: bool = True
    """Whether the rules look at it: not in a run whose mode is `off`."""
    transition: TaskTransition = _SUBMITTED
    """The newest one."""
    attempts: dict[int, AttemptState] = field(default_factory=dict[int, AttemptState])
    """By journal id, oldest first."""
    last: Entry | None = None
    """The newest entry."""
    spent: dict[tuple[str, str], Spending] = field(default_factory=dict[tuple[str, str], Spending])
    """What others than the workers used, by role and model."""
    turn: str = ""
    """What it waits for before it begins, in words, where the reader knows it."""

    @property
    def lifecycle(self) -> Lifecycle:
        """Of its newest transition."""
        return self.transition.lifecycle

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.lifecycle.over

    @property
    def latest(self) -> AttemptState | None:
        """The newest attempt, if the task has begun."""
        return next(reversed(self.attempts.values()), None)

    @property
    def status(self) -> AttemptStatus:
        """Where it stands, in a word: as its attempt does while that is under way."""
        latest = self.latest
        if self.over or latest is None or latest.over:
            return AttemptStatus(self.lifecycle.value)
        return latest.status if latest.parked else AttemptStatus(latest.lifecycle.value)

    @property
    def progress(self) -> int | None:
        """Percent of the plan step in hand, 100 once completed; `None` where nobody said."""
        if self.lifecycle is Lifecycle.COMPLETED:
            return 100
        return self.latest.progress if self.latest else None

    @property
    def verdict(self) -> Feedback | None:
        """What stands of the verdicts on its result; `None` where nobody spoke one."""
        return self.latest.verdict if self.latest else None

    @property
    def reservations(self) -> tuple[str, ...]:
        """With what reservations it counts as completed."""
        done = self.latest.completion if self.latest else None
        completed = self.lifecycle is Lifecycle.COMPLETED
        return reservations(done) if done is not None and completed else ()

    def lacks(self, entry: Entry) -> bool:
        """Whether the entry's attempt must be met first."""
        return entry.attempt is not None and entry.attempt not in self.attempts

    def meet(self, attempt: Attempt) -> None:
        """Learn of an attempt, in the order of their ids."""
        self.attempts[attempt.id] = AttemptState(
            attempt=attempt, detailed=self.detailed, judged=self.judged
        )

    def fold(self, entry: Entry) -> None:
        """Take in the task's next entry."""
        self.last = entry
        match entry.record:
            case TaskTransition() as transition:
                self.transition = transition
            case Spending() as spending:
                self._spend(spending)
            case _:
                pass
        if entry.attempt in self.attempts:
            self.attempts[entry.attempt].fold(entry)
        if isinstance(entry.record, Delivery | OutcomeReport):
            # A restart is issued on one attempt and judged on the next.
            for attempt in self.attempts.values():
                if attempt.id != entry.attempt:
                    attempt.follow(entry)

    def _spend(self, more: Spending) -> None:
        key = more.role, more.model
        before = self.spent.get(key, Spending(role=more.role, model=more.model))
        self.spent[key] = replace(
            before,
            requests=before.requests + more.requests,
            tokens=before.tokens + more.tokens,
            cost_usd=before.cost_usd + more.cost_usd,
        )
