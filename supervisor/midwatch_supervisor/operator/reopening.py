"""A person has a task that is over begun again: when that can be, and what is opened with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.commits import TURNS, reopen
from midwatch_monitor.records import (
    Attempt,
    Draft,
    Entry,
    Intervention,
    Keeper,
    Lifecycle,
    Run,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.run import RunState
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.lookup import assignment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopening:
    """What is opened when one task is begun again."""

    run: Run
    task: Task
    attempt: Attempt
    """Its last."""
    others: tuple[Task, ...]
    """Those that failed only because of it and never began, and the whole that it is a part of."""
    after: int
    """The newest entry by which that is told."""

    @property
    def begins(self) -> str:
        """What happens now, for people who are with the run."""
        return f"attempt {self.attempt.number + 1} begins"

    @property
    def follows(self) -> str:
        """What happens now, for people elsewhere: they cannot see whether the run's process is."""
        if self.run.keeper is Keeper.MONITOR:
            return f"{self.begins} on a node of the fleet"
        run = self.run.id
        return f"{self.begins} if run {run} is at work, else by `midwatch resume --run {run}`"


async def reopening(journal: Journal, attempt: Attempt) -> Reopening:
    """What is opened with the task of an attempt. Raises UsageError where it cannot be begun again.

    What depends on it and has begun stays as it is, whatever came of it.
    """
    task = await journal.task(attempt.task)
    run, tasks = await journal.run(task.run), await journal.tasks(task.run)
    state, after = RunState(), 0
    for each in tasks:
        state.meet_task(each)
    async for entry in journal.all_entries(run=run.id, kinds=TURNS):
        state.fold(entry)
        after = entry.id
    of = state.tasks[task.id]
    if why := _refusal(of, attempt.id):
        raise UsageError(f"{task.name}: {why}")
    assigned = {each.id: found for each in tasks if (found := assignment_of(each)) is not None}
    if task.id not in assigned:
        raise UsageError(f"{task.name}: only the program that it runs in can begin it again")
    others = _opened_with(assigned[task.id], assigned, state.tasks)
    return Reopening(
        run=run,
        task=task,
        attempt=attempt,
        others=tuple(each for each in tasks if each.id in others),
        after=after,
    )


def _refusal(of: TaskState, attempt: int) -> str:
    """Why a task cannot be begun again from an attempt; empty if it can."""
    last = of.latest
    if last is None or last.id != attempt:
        return "a later attempt has taken over"
    if not of.over:
        return "it is not over: it goes on by itself"
    if last.split:
        return "it was split: begin that part again which failed"
    return ""


def _opened_with(
    begun: Assignment, assigned: dict[int, Assignment], states: dict[int, TaskState]
) -> set[int]:
    """The other tasks that can go on by it, by journal id. Pure."""
    names, found = {begun.task.id}, set[int]()
    if begun.parent:
        names.add(begun.parent)
        found = {id for id, each in assigned.items() if each.task.id == begun.parent}
        found = {id for id in found if states[id].over}
    grew = True
    while grew:
        new = {
            id
            for id, each in assigned.items()
            if id not in found and _only_waited(states[id]) and names & {*each.task.depends_on}
        }
        found |= new
        names |= {assigned[id].task.id for id in new}
        grew = bool(new)
    return found


def _only_waited(of: TaskState) -> bool:
    """Whether a task failed before it began. What a person withdrew is `canceled`."""
    return of.latest is None and of.transition.lifecycle is Lifecycle.FAILED


async def store_reopening(
    journal: Journal, what: Reopening, order: Intervention, *, step: int, at: datetime
) -> Sequence[Entry]:
    """Store a person's word with what it opens, as one; its entries.

    `step` is the last of the attempt that is over. Raises UsageError where its task has moved.
    """
    word = f": {order.message}" if order.message else ""
    reasons = {what.task.id: f"begun again by {order.author}{word}"}
    reasons |= {each.id: f"{what.task.name} is begun again" for each in what.others}
    states = [
        Draft(record=TaskTransition(lifecycle=Lifecycle.SUBMITTED, reason=reason), at=at, task=task)
        for task, reason in reasons.items()
    ]
    issued = Draft(record=order, at=at, task=what.task.id, attempt=what.attempt.id)
    entries = await journal.write(reopen, issued, states, step=step, after=what.after)
    if entries is None:
        raise UsageError(f"{what.task.name} has moved just now: look again")
    return entries
