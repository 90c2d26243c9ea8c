"""The state of one task, folded from its entries. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from midwatch_monitor.records import (
    Acceptance,
    Alert,
    Attempt,
    Budget,
    Change,
    Completion,
    Delivery,
    Entry,
    Feedback,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Spending,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_monitor.state.intervention import InterventionState
from midwatch_monitor.state.usage import Usage, WorkerUsage

REFUSED = " cannot do it: "
"""Separates a node's name from the reason why it cannot do a task."""
_SUBMITTED = TaskTransition(lifecycle=Lifecycle.SUBMITTED)


def reservations(done: Completion) -> tuple[str, ...]:
    """Return the reservations of a completion; none for a plan step, or if it was not accepted."""
    if done.plan_step or not done.accepted:
        return ()
    return tuple(dict.fromkeys(filter(None, (done.flag, *done.doubts))))


def refusal(transition: TaskTransition) -> str:
    """Return which node cannot do a task, and why; empty if none said so, or the task is over."""
    said = transition.reason
    return said if REFUSED in said and not transition.lifecycle.over else ""


def interventions(attempts: Iterable[AttemptState]) -> Iterable[InterventionState]:
    """Yield the interventions on attempts, except those that acknowledge or silence alerts."""
    for attempt in attempts:
        yield from (each for each in attempt.interventions if not each.action.of_alerts)


@dataclass(slots=True, kw_only=True)
class TaskState:
    """The state of one task and its attempts. Takes the task's entries in order, from its first."""

    task: Task
    detailed: bool = True
    """Whether its attempts keep their details."""
    judged: bool = True
    """Whether the rules judge it; false in a run whose mode is `off`."""
    transition: TaskTransition = _SUBMITTED
    """The newest transition."""
    passed: int = 0
    total: int = 0
    """Number of acceptance checks; like `passed`, as last counted."""
    checks: dict[str, Acceptance] = field(default_factory=dict[str, Acceptance])
    """The newest result of each acceptance check, in the attempt that ran checks last."""
    checked: int | None = None
    """Journal id of the attempt that ran checks last."""
    alerts: int = 0
    """Number of times that an alert began to fire; a rise in severity does not count."""
    attempts: dict[int, AttemptState] = field(default_factory=dict[int, AttemptState])
    """Its attempts by journal id, oldest first."""
    last: Entry | None = None
    """The newest entry."""
    spent: dict[tuple[str, str], Spending] = field(default_factory=dict[tuple[str, str], Spending])
    """Usage by anything other than the workers, by role and model."""
    workers: WorkerUsage = field(default_factory=WorkerUsage)
    turn: str = ""
    """What it is waiting for before it begins, as text; set by a reader that knows it."""
    interrupted: bool = False
    """Whether the process that worked on its run is gone; set by a reader that knows it."""
    of_session: bool = False
    """Whether its run is a session that somebody else started; set by a reader that knows it."""

    @property
    def lifecycle(self) -> Lifecycle:
        """Lifecycle of the task; `input-required` while its attempt waits for a person."""
        latest, said = self.latest, self.transition.lifecycle
        if latest is None or latest.over or said.over:
            return said
        if latest.parked:
            return Lifecycle.INPUT_REQUIRED
        # No transition is recorded when the task of an embedded agent begins.
        begun = self.task.embedded and latest.lifecycle is not Lifecycle.SUBMITTED
        return Lifecycle.WORKING if begun else said

    @property
    def reason(self) -> str:
        """The recorded reason for its lifecycle; empty once the wait for a person is ending."""
        if self.latest is not None and self.lifecycle is Lifecycle.INPUT_REQUIRED:
            return "" if self.latest.goes_on else self.latest.transition.reason
        return self.transition.reason

    @property
    def refusal(self) -> str:
        """Which node last said that it cannot do the task, and why; empty once one works on it."""
        return refusal(self.transition)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.lifecycle.over

    @property
    def latest(self) -> AttemptState | None:
        """The newest attempt; `None` before the first."""
        return next(reversed(self.attempts.values()), None)

    @property
    def status(self) -> AttemptStatus:
        """Its status as a word; that of its latest attempt while it is under way."""
        latest = self.latest
        ended = latest is not None and latest.status is AttemptStatus.ENDED
        if latest is None or (not ended and (self.over or latest.over)):
            return AttemptStatus(self.transition.lifecycle.value)
        return latest.status

    @property
    def progress(self) -> int | None:
        """Percent of the current plan step, 100 once completed; `None` if nobody reported it."""
        if self.status is AttemptStatus.COMPLETED:
            return 100
        return self.latest.progress if self.latest else None

    @property
    def verdict(self) -> Feedback | None:
        """The verdict on its result that counts; `None` if there is none."""
        return self.latest.verdict if self.latest else None

    @property
    def reservations(self) -> tuple[str, ...]:
        """The reservations under which it was completed."""
        done = self.latest.completion if self.latest else None
        completed = self.lifecycle is Lifecycle.COMPLETED
        return reservations(done) if done is not None and completed else ()

    @property
    def delivered(self) -> tuple[InterventionState, ...]:
        """Interventions that were delivered to its attempts."""
        return tuple(each for each in interventions(self.attempts.values()) if each.delivered)

    @property
    def recovered(self) -> int:
        """Number of interventions that helped."""
        found = interventions(self.attempts.values())
        return sum(each.outcome is Outcome.RECOVERED for each in found)

    @property
    def used(self) -> Usage:
        """Usage of its workers."""
        return self.workers.used

    def lacks(self, entry: Entry) -> bool:
        """Return whether the entry's attempt must be added with `meet` first."""
        return entry.attempt is not None and entry.attempt not in self.attempts

    def meet(self, attempt: Attempt) -> None:
        """Add an attempt; attempts must come in the order of their ids."""
        self.attempts[attempt.id] = AttemptState(
            attempt=attempt, detailed=self.detailed, judged=self.judged
        )

    def fold(self, entry: Entry) -> None:
        """Take in the task's next entry."""
        self.last = entry
        self._count_record(entry)
        if entry.attempt in self.attempts:
            self.attempts[entry.attempt].fold(entry)
        if isinstance(entry.record, Delivery | OutcomeReport):
            # A restart is issued on one attempt and judged on the next.
            for attempt in self.attempts.values():
                if attempt.id != entry.attempt:
                    attempt.follow(entry)

    def _count_record(self, entry: Entry) -> None:
        match entry.record:
            case TaskTransition() as transition:
                self.transition = transition
                if transition.total:
                    self.passed, self.total = transition.passed, transition.total
            case Spending() as spending:
                self._add_spending(spending)
            case Change(budget=Budget() as budget):
                self.workers.fold(budget)
            case Acceptance() as check:
                self._store_check(entry.attempt, check)
            case Alert() as alert:
                self._count_alert(entry.attempt, alert)
            case _:
                pass

    def _store_check(self, attempt: int | None, check: Acceptance) -> None:
        if attempt != self.checked:
            self.checked = attempt
            self.checks.clear()
        self.checks[check.check] = check

    def _count_alert(self, id: int | None, alert: Alert) -> None:
        attempt = self.attempts.get(id or 0)
        before = attempt.alerts.get(alert.key) if attempt else None
        self.alerts += alert.firing and not (before is not None and before.firing)

    def _add_spending(self, more: Spending) -> None:
        key = more.role, more.model
        before = self.spent.get(key, Spending(role=more.role, model=more.model))
        self.spent[key] = replace(
            before,
            requests=before.requests + more.requests,
            tokens=before.tokens + more.tokens,
            cost_usd=before.cost_usd + more.cost_usd,
        )
