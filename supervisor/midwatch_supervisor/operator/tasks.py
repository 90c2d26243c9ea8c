"""Open questions to a person about a task; withdrawing tasks and beginning them again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from midwatch_monitor.bus import Bus
from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import JournalError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.commits import TURNS, commit_unmoved, reopen
from midwatch_monitor.journal.core.encoding import hint_of
from midwatch_monitor.journal.fleet.run_lock import is_interrupted
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    Attempt,
    AttemptTransition,
    Commit,
    Draft,
    Ending,
    Entry,
    Intervention,
    Lifecycle,
    Record,
    Run,
    SupervisedBy,
    Task,
    TaskTransition,
    Terms,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_monitor.state.intervention import InterventionState, WorkerRequest
from midwatch_monitor.state.run import RunState
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.intervention_text import reach_text, request_name
from midwatch_supervisor.present.lookup import assignment_of, task_state
from midwatch_supervisor.present.waiting import (
    SEEN,
    attach_command,
    attempt_waits_for,
    is_only_watched,
)

_TRIES = 20
"""Tries to store a withdrawal while its task keeps changing."""


class WithdrawalResult(StrEnum):
    """What becomes of a task that is withdrawn."""

    CANCELED = "canceled"
    """Nothing works on it, so it is over."""
    STOPPING = "stopping"
    """Its attempt is stopped like any other, and the task ends with it."""
    SPLIT = "split"
    """Its parts are withdrawn, and it ends with them."""
    SPLITTING = "splitting"
    """Its parts do not exist yet, so the withdrawal must be repeated."""
    KEPT = "kept"
    """Its program is only watched by Midwatch, which cannot stop it."""
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """What was done about one task, or would be."""

    task: Task
    course: WithdrawalResult
    lifecycle: Lifecycle
    """Lifecycle of the task afterwards."""
    stands: AttemptStatus
    """The same as a word for people."""
    attempt: AttemptState | None = None
    """The attempt that is stopped."""
    intervention: int | None = None
    """Journal id of the intervention that stops it; `None` in a dry run."""
    already: bool = False
    """Whether that was already under way."""

    @property
    def refused(self) -> bool:
        """Whether nothing was done, although the task is not over."""
        return self.course in {WithdrawalResult.SPLITTING, WithdrawalResult.KEPT}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReading:
    """A task and its parts, as they were at one moment."""

    state: TaskState
    parts: tuple[Task, ...] = ()
    parts_over: bool = True

    @property
    def after(self) -> int:
        """Id of the newest entry that was read."""
        return 0 if self.state.last is None else self.state.last.id

    @property
    def course(self) -> WithdrawalResult:
        """What becomes of the task, no matter which process has its run."""
        last = self.state.latest
        if self.state.transition.lifecycle.over:
            return WithdrawalResult.OVER
        if last is not None and last.transition.lifecycle in _AT_WORK:
            return WithdrawalResult.STOPPING
        if last is not None and last.split and not self.parts:
            return WithdrawalResult.SPLITTING
        # If all its parts are over, only their assembly is left.
        return WithdrawalResult.CANCELED if self.parts_over else WithdrawalResult.SPLIT


_AT_WORK = frozenset({Lifecycle.WORKING, Lifecycle.INPUT_REQUIRED})
"""A submitted attempt is not included: it has no worker yet that could be stopped."""


def stop_on_its_way(attempt: AttemptState) -> int | None:
    """Return the journal id of a stop that will reach an attempt, or `None`."""
    coming = attempt.interventions.on_their_way
    return next((each.id for each in coming if each.action is Action.STOP), None)


def dependents_first(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks of a run, each before those that it depends on. Pure.

    In the opposite order, a node could take up a dependent of a withdrawn task, and report that it
    failed because of that.
    """
    named = {task.name: task for task in tasks}
    needs = {
        task.name: () if (of := assignment_of(task)) is None else of.task.depends_on
        for task in tasks
    }
    placed: dict[str, Task] = {}
    for task in tasks:
        path = [task.name]
        while path:  # not recursive: a chain may exceed Python's recursion limit
            left = (each for each in needs[path[-1]] if each in named and each not in placed)
            if before := next(left, ""):
                path.append(before)
            else:
                name = path.pop()
                placed[name] = named[name]
    return list(placed.values())[::-1]


def wholes(tasks: Iterable[Task]) -> list[Task]:
    """Return the tasks without parts of a split, which are withdrawn together with the whole."""
    return [
        task for task in tasks if (assigned := assignment_of(task)) is None or not assigned.parent
    ]


class Withdrawer:
    """Withdraws tasks of a journal in a person's name."""

    def __init__(
        self, journal: Journal, *, bus: Bus, author: str, why: str = "", dry_run: bool = False
    ) -> None:
        """With `dry_run`, only return what would be done."""
        self._journal = journal
        self._bus = bus
        self._reason = f"canceled by {author}" + (why and f": {why}")
        self._author = author
        self._dry_run = dry_run

    async def withdraw(self, run: Run, task: Task) -> list[Withdrawal]:
        """Withdraw a task, and the parts that it was split into; return what became of each.

        Raises JournalError.
        """
        for _ in range(_TRIES):
            look = await self._read_task(task)
            done = await self._withdraw_task(run, look)
            if done is not None:
                break
        else:
            raise JournalError(f"{task.name} keeps changing; try again")
        if done.course is not WithdrawalResult.SPLIT:
            return [done]
        found = [
            each for part in dependents_first(look.parts) for each in await self.withdraw(run, part)
        ]
        return [done, *found]

    async def _read_task(self, task: Task) -> TaskReading:
        state = await task_state(self._journal, task, kinds=TURNS)
        if state.latest is None or not state.latest.split or state.transition.lifecycle.over:
            return TaskReading(state=state)
        parts = tuple(
            each
            for each in await self._journal.tasks(task.run)
            if (assigned := assignment_of(each)) is not None and assigned.parent == task.name
        )
        states = [await task_state(self._journal, each, kinds=TURNS) for each in parts]
        over = all(each.transition.lifecycle.over for each in states)
        return TaskReading(state=state, parts=parts, parts_over=over)

    async def _withdraw_task(self, run: Run, look: TaskReading) -> Withdrawal | None:
        """Do what the reading calls for; return `None` if the task has changed since."""
        course = look.course
        embedded = assignment_of(look.state.task) is None
        if embedded and await is_interrupted(self._journal, run.id):
            if course is WithdrawalResult.STOPPING:
                course = WithdrawalResult.CANCELED  # no process is left to receive the stop
        elif embedded and await self._only_program_ends(run, look):
            course = WithdrawalResult.KEPT
        of = look.state
        done = Withdrawal(
            task=of.task, course=course, lifecycle=of.transition.lifecycle, stands=of.status
        )
        match course:
            case WithdrawalResult.STOPPING if look.state.latest is not None:
                return await self._stop_attempt(look, look.state.latest, done)
            case WithdrawalResult.CANCELED:
                return await self._cancel_task(look, done)
            case _:
                return done

    async def _only_program_ends(self, run: Run, look: TaskReading) -> bool:
        """Whether only the program that a task runs in can end it."""
        if look.course is WithdrawalResult.CANCELED:
            return run.supervised_by is SupervisedBy.PROCESS
        if look.course is not WithdrawalResult.STOPPING or not run.of_session:
            return False
        latest = (await task_state(self._journal, look.state.task)).latest
        return latest is not None and bool(out_of_reach(latest, Action.STOP))

    async def _stop_attempt(
        self, look: TaskReading, attempt: AttemptState, done: Withdrawal
    ) -> Withdrawal | None:
        known = stop_on_its_way(attempt)
        intervention = known
        if known is None and not self._dry_run:
            order = Intervention(
                action=Action.STOP,
                by=Actor.OPERATOR,
                author=self._author,
                message=self._reason,
                terms=Terms(withdraws=True),
            )
            intervention = await self._commit_unchanged(look, (attempt.attempt.id, order))
            if intervention is None:
                return None
        already = known is not None
        return replace(done, attempt=attempt, intervention=intervention, already=already)

    async def _cancel_task(self, look: TaskReading, done: Withdrawal) -> Withdrawal | None:
        records: list[tuple[int | None, Record]] = []
        last = look.state.latest
        if last is not None and not last.transition.lifecycle.over:
            state = AttemptTransition(
                lifecycle=Lifecycle.CANCELED, reason=self._reason, ending=Ending.CANCELED
            )
            records.append((last.attempt.id, state))
        records.append((None, TaskTransition(lifecycle=Lifecycle.CANCELED, reason=self._reason)))
        if self._dry_run:
            return done
        if await self._commit_unchanged(look, *records) is None:
            return None
        return replace(done, lifecycle=Lifecycle.CANCELED, stands=AttemptStatus.CANCELED)

    async def _commit_unchanged(
        self, look: TaskReading, *records: tuple[int | None, Record]
    ) -> int | None:
        """Store records; return the last one's journal id, or `None` if the task has changed."""
        task, at = look.state.task.id, await self._journal.now()
        drafts = tuple(
            Draft(record=record, at=at, task=task, attempt=attempt) for attempt, record in records
        )
        entries = await self._journal.write(
            commit_unmoved, Commit(drafts=drafts), task=task, after=look.after
        )
        for entry in entries or ():
            self._bus.publish(hint_of(entry))
        return entries[-1].id if entries else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopening:
    """What is opened when one task is begun again."""

    run: Run
    task: Task
    attempt: Attempt
    """The last attempt of the task."""
    others: tuple[Task, ...]
    """Tasks that failed before they began because of it, and the whole that it is a part of."""
    after: int
    """Id of the newest entry that was read."""

    @property
    def begins(self) -> str:
        """What happens now, for people who watch the run."""
        return f"attempt {self.attempt.number + 1} begins"

    @property
    def follows(self) -> str:
        """What happens now, for people elsewhere, who cannot see if the run's process exists."""
        if self.run.supervised_by is SupervisedBy.MONITOR:
            return f"{self.begins} on a node of the fleet"
        run = self.run.id
        return f"{self.begins} if run {run} is running, or with `{command(f'resume --run {run}')}`"


async def find_reopening(journal: Journal, attempt: Attempt) -> Reopening:
    """Return what is opened with the task of an attempt.

    Dependent tasks that have begun stay as they are, no matter how they ended. Raises UsageError if
    the task cannot be begun again.
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
    if why := _why_not_resumable(of, attempt.id):
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


def _why_not_resumable(of: TaskState, attempt: int) -> str:
    """Return why a task cannot be begun again from an attempt; empty if it can."""
    last = of.latest
    if last is None or last.id != attempt:
        return "a later attempt has taken over"
    if not of.over:
        return "it is not over: it continues by itself"
    if last.split:
        return "it was split: begin the failed part again"
    return ""


def _opened_with(
    begun: Assignment, assigned: dict[int, Assignment], states: dict[int, TaskState]
) -> set[int]:
    """Return the journal ids of the other tasks that can then continue. Pure."""
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
    """Whether a task failed before it began. One that a person withdrew is `canceled`."""
    return of.latest is None and of.transition.lifecycle is Lifecycle.FAILED


async def store_reopening(
    journal: Journal, what: Reopening, order: Intervention, *, step: int, at: datetime
) -> Sequence[Entry]:
    """Store a person's restart together with what it opens, and return the entries.

    `step` is the last one of the finished attempt. Raises UsageError if its task has changed.
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
        raise UsageError(f"{what.task.name} has just changed; check it and try again")
    return entries


OpenQuestion = InterventionState | WorkerRequest
"""A decision that waits for approval, or a worker request."""


def questions(state: AttemptState) -> Mapping[int, OpenQuestion]:
    """Return the open questions to a person by journal id: decisions first, each oldest first."""
    if state.over:
        return {}
    return {**{each.id: each for each in state.interventions.held}, **state.open_requests}


def question_name(question: OpenQuestion) -> str:
    """Return the name of a question, in a word or two."""
    if isinstance(question, InterventionState):
        return question.action.value
    return request_name(question)


def is_held(state: AttemptState) -> bool:
    """Whether an attempt waits for a person, or soon will."""
    coming = () if state.over else state.interventions.under_way
    return state.parked or any(each.action is Action.PAUSE for each in coming)


def alerts_answered(state: AttemptState, action: Action) -> tuple[AlertKey, ...]:
    """Return the alerts that an act should resolve, which decide its outcome."""
    holds = action in {Action.PAUSE, Action.RESUME, Action.STOP}
    return () if holds else tuple(alert.key for alert in state.firing)


def act_refusal(state: AttemptState, action: Action | None, *, held: bool) -> str:
    """Return why an act on an unfinished attempt would have no effect; empty if it has one.

    `held` is the result of `is_held`, or whether a pause is under way that is not in the journal.
    """
    if why := out_of_reach(state, action):
        return why
    if action is Action.PAUSE and held:
        return "it is already paused, or waiting for you"
    if action is not Action.RESUME:
        return ""
    if state.permission is not None:
        return f"it waits for {attempt_waits_for(state)}"
    return "" if held else f"it is not paused: {state.status}"


def out_of_reach(state: AttemptState, action: Action | None) -> str:
    """Return why an act cannot reach an attempt that Midwatch did not start; empty if it can."""
    acts, worker = state.acts, state.attempt.worker
    if acts is None or action is None or action in acts or action.of_alerts:
        return ""
    from midwatch_monitor.traces.session_reader import KEPT  # imported late: it loads all formats

    hint = ""
    if is_only_watched(state):
        hint = f"; answer it where it runs, or acknowledge its alerts ({SEEN})"
    if is_only_watched(state) and worker in KEPT:
        hint = (
            f"; none of its hooks has called Midwatch: `midwatch hook install {worker}` installs "
            "them for its next session, or says why they may not be called"
        )
    return f"somebody else started it: {reach_text(acts)}{hint}"


def reached_after(run: Run, *, embedded: bool) -> str:
    """Return what must happen before an act reaches an attempt of a run whose process is gone."""
    if run.of_session:
        watching = attach_command(run.agent)
        return f"nothing is watching it now: it waits for `{watching}` and the agent's next step"
    if embedded:
        return f"its process is gone, and nothing reaches it: `{command(f'cancel --run {run.id}')}`"
    return f"no process works on it now: it waits for `{command(f'resume --run {run.id}')}`"
