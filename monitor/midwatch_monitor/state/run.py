"""The state of one run: where its tasks stand, and what is waiting for an answer. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from midwatch_monitor.config.modes import Mode
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    BudgetRequest,
    Delivery,
    Entry,
    Escalation,
    EscalationState,
    Intervention,
    PermissionRequest,
    PlanCheck,
    Record,
    Run,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import InterventionState
from midwatch_monitor.state.task import TaskState

OPEN_QUESTION_KINDS: tuple[type[Record], ...] = (
    TaskTransition,
    AttemptTransition,
    Escalation,
    BudgetRequest,
    PermissionRequest,
    PlanCheck,
    Intervention,
    Delivery,
)
"""Records that open questions are folded from, or that show that a task has moved on."""


def judges(run: Run) -> bool:
    """Return whether the rules judge a run; false if its mode was `off`."""
    try:
        settings: object = json.loads(run.settings)
    except ValueError:
        return True
    if not isinstance(settings, dict):
        return True
    return cast("dict[str, object]", settings).get("mode") != Mode.OFF.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An attempt that waits for a person's answer."""

    task: int
    attempt: int
    since: datetime
    text: str
    petition: int | None = None
    """Journal id of the permission request, if it is one."""


@dataclass(slots=True, kw_only=True)
class RunState:
    """The state of one run. Takes its entries in order.

    Tasks and attempts that were not added before their first entry are known only by their journal
    ids.
    """

    tasks: dict[int, TaskState] = field(default_factory=dict[int, TaskState])
    """Tasks by journal id."""
    asked: dict[int, Entry] = field(default_factory=dict[int, Entry])
    """Entries of open escalations and of worker requests.

    For an escalation the newest entry, by the escalation's id; for a request its entry, by journal
    id.
    """

    def meet_task(self, task: Task) -> TaskState:
        """Add a task before its first entry, and return its state."""
        return self.tasks.setdefault(task.id, TaskState(task=task, detailed=False))

    def fold(self, entry: Entry) -> None:
        """Take in the run's next entry."""
        task = self.tasks.get(entry.task)
        if task is None:
            task = self.meet_task(Task(id=entry.task, run=0, name="", title="", spec=""))
        if entry.attempt is not None and task.lacks(entry):
            task.meet(_unknown_attempt(entry.attempt, entry))
        task.fold(entry)
        match entry.record:
            case Escalation(id=id, state=EscalationState.OPEN):
                self.asked[id] = entry
            case BudgetRequest() | PlanCheck():
                self.asked[entry.id] = entry
            case _:
                pass

    @property
    def under_way(self) -> Iterator[AttemptState]:
        """Attempts that have not ended."""
        for task in self.tasks.values():
            yield from (each for each in task.attempts.values() if not each.over)

    @property
    def escalations(self) -> dict[int, Entry]:
        """Entries of the escalations without a decision, by escalation id.

        Those of attempts that are about to end are left out.
        """
        return {
            each.escalation.id: self.asked[each.escalation.id]
            for task in self.tasks.values()
            for each in task.attempts.values()
            if each.escalation is not None and each.escalation.state is EscalationState.OPEN
            if not each.interventions.ends_attempt
        }

    @property
    def requests(self) -> dict[int, Entry]:
        """Entries of the unanswered requests of workers, by journal id.

        Permission requests are left out, since only a person answers them.
        """
        open_ones = (id for each in self.under_way for id in each.open_requests)
        return {id: self.asked[id] for id in open_ones if id in self.asked}

    @property
    def held(self) -> tuple[InterventionState, ...]:
        """Interventions that wait for approval."""
        return tuple(held for each in self.under_way for held in each.interventions.held)

    @property
    def questions(self) -> tuple[Question, ...]:
        """Questions to a person that nobody has answered; a pause is not a question."""
        return tuple(
            asked for each in self.under_way if (asked := _open_question(each)) is not None
        )


def _open_question(attempt: AttemptState) -> Question | None:
    since, question = attempt.parked_since, attempt.question
    if since is None or attempt.goes_on:
        return None
    if (wanted := attempt.permission) is not None:
        text, petition = wanted.what, attempt.interventions.permission
    elif question is not None:
        text, petition = question.intervention.message, None
    else:
        return None
    return Question(
        task=attempt.task, attempt=attempt.id, since=since, text=text, petition=petition
    )


def _unknown_attempt(id: int, entry: Entry) -> Attempt:
    return Attempt(
        id=id,
        task=entry.task,
        number=0,
        worker="",
        model="",
        node="",
        workspace="",
        started_at=entry.at,
    )
