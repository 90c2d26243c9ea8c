"""Finds runs, tasks and attempts that a person names."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from midwatch_monitor.errors import JournalError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Attempt,
    BudgetRequest,
    Entry,
    Escalation,
    Intervention,
    Lifecycle,
    NodeStatus,
    PermissionRequest,
    PlanCheck,
    Recall,
    Record,
    Run,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.run import RunState, judges
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.present.learning_text import NOTHING, GivenLearning
from midwatch_supervisor.present.waiting import wait_of

if TYPE_CHECKING:
    from midwatch_monitor.config.tasks import TaskSpec
    from midwatch_supervisor.present.assignment import Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTask:
    """A task, or one of its attempts."""

    task: Task
    attempt: Attempt | None = None


async def task_state(
    journal: Journal, task: Task, *, kinds: Sequence[type[Record]] = ()
) -> TaskState:
    """Return a task's present state, or only what entries of some kinds say about it."""
    run = await journal.run(task.run)
    state = TaskState(task=task, judged=judges(run), of_session=run.of_session)
    for attempt in await journal.attempts(task.id):
        state.meet(attempt)
    async for entry in journal.all_entries(task=task.id, kinds=kinds):
        if state.lacks(entry) and entry.attempt is not None:
            state.meet(await journal.attempt(entry.attempt))  # it began while this was read
        state.fold(entry)
    return state


async def meet_new(journal: Journal, run: RunState, entry: Entry) -> None:
    """Add the task and the attempt of a run's next entry, if they are new to it."""
    if entry.task not in run.tasks:
        run.meet_task(await journal.task(entry.task))
    task = run.tasks[entry.task]
    if task.lacks(entry) and entry.attempt is not None:
        task.meet(await journal.attempt(entry.attempt))


async def task_states(journal: Journal, run: int) -> list[TaskState]:
    """Return the present states of a run's tasks."""
    return [await task_state(journal, each) for each in await journal.tasks(run)]


async def is_unfinished(journal: Journal, run: Run) -> bool:
    """Whether a task of a run is not over."""
    for task in await journal.tasks(run.id):
        if not (await task_state(journal, task, kinds=(TaskTransition,))).over:
            return True
    return False


def set_waits(tasks: Collection[TaskState], nodes: Iterable[NodeStatus] | None) -> None:
    """Set what each task of a run waits for before it begins; `nodes` as in `set_wait`."""
    states = {each.task.name: each.lifecycle for each in tasks}
    for each in tasks:
        set_wait(each, states, nodes)


def set_wait(
    state: TaskState, states: Mapping[str, Lifecycle], nodes: Iterable[NodeStatus] | None
) -> None:
    """Set what a task waits for before it begins, in the words of `wait_of`.

    A part of another task waits for no node: it runs on the same node as the whole.
    """
    latest = state.latest
    begins = latest is None or latest.interventions.begin_again
    assignment = assignment_of(state.task) if begins else None
    if assignment is not None:
        nodes = None if assignment.parent else nodes
        state.turn = wait_of(assignment.task, states, nodes).what


async def states_before(journal: Journal, task: Task) -> dict[str, Lifecycle]:
    """Return the states of the tasks that a task depends on, by name."""
    assignment, states = assignment_of(task), dict[str, Lifecycle]()
    before = () if assignment is None else assignment.task.depends_on
    for each in await journal.tasks(task.run) if before else ():
        if each.name in before:
            async for entry in journal.all_entries(task=each.id, kinds=(TaskTransition,)):
                if isinstance(entry.record, TaskTransition):
                    states[each.name] = entry.record.lifecycle
    return states


async def chosen_runs(journal: Journal, run: int | None) -> list[Run]:
    """Return all runs, newest first, or only the named one. Raises UsageError if there is none."""
    runs = (await journal.runs())[::-1]
    if run is None:
        return runs
    found = [each for each in runs if each.id == run]
    if not found:
        there = ", ".join(str(each.id) for each in runs) or "none"
        raise UsageError(f"there is no run {run} in {journal.name}; known: {there}")
    return found


async def run_option(journal: Journal, run: int) -> str:
    """Return what a command needs to name tasks of a run: nothing if it is the newest."""
    return "" if run == (await journal.runs())[-1].id else f" --run {run}"


async def run_of(journal: Journal, attempt: int) -> int:
    """Return the run of an attempt. Raises UsageError if there is no such attempt."""
    found = await journal.attempts_with([attempt])
    if not found:
        raise UsageError(f"there is no attempt {attempt} in {journal.name}")
    return (await journal.task(found[0].task)).run


async def find(journal: Journal, id: str, *, run: int | None = None) -> FoundTask:
    """Return what `id` names: a task, an attempt's id, or `TASK#N`, in the newest run that has it.

    An exact name takes precedence over an attempt's id, and both over a prefix. Raises UsageError
    with the known names.
    """
    tasks = [await journal.tasks(each.id) for each in await chosen_runs(journal, run)]
    name, mark, number = id.partition("#")
    task = _by_name(tasks, name)
    if task is None and (found := await _by_attempt(journal, tasks, id)) is not None:
        return found
    task = task or _by_prefix(tasks, name)
    if task is None:
        raise _unknown_error(id, tasks)
    attempt = await _find_number(journal, task, number) if mark else None
    return FoundTask(task=task, attempt=attempt)


async def find_about(journal: Journal, id: str, *, run: int | None = None) -> FoundTask:
    """Like `find`; else return the attempt of an intervention, a request or an escalation."""
    try:
        return await find(journal, id, run=run)
    except UsageError:
        attempt = await _attempt_about(journal, int(id), run) if id.isdecimal() else None
        if attempt is None:
            raise
    found = await journal.attempt(attempt)
    return FoundTask(task=await journal.task(found.task), attempt=found)


async def _attempt_about(journal: Journal, number: int, run: int | None) -> int | None:
    """Return the attempt of an intervention or request by journal id, or of an escalation by its
    id.
    """
    kinds = (Intervention, BudgetRequest, PermissionRequest, PlanCheck)
    for entry in await journal.entries(number - 1, run=run, kinds=kinds, limit=1):
        if entry.id == number:
            return entry.attempt
    async for entry in journal.all_entries(run=run, kinds=(Escalation,)):
        if isinstance(entry.record, Escalation) and entry.record.id == number:
            return entry.attempt
    return None


def assignment_of(task: Task) -> "Assignment | None":
    """Return the task's assignment; `None` for an agent that came without a task file."""
    from pydantic import ValidationError

    # Importing it takes a tenth of a second, and most of `status` does not need it.
    from midwatch_supervisor.present.assignment import Assignment

    try:
        return Assignment.model_validate_json(task.spec)
    except ValidationError:
        return None


def specification_of(task: Task) -> "TaskSpec":
    """Return a task's specification; for an agent without a task file, its prompt.

    Such an agent cannot be restarted or given another budget.
    """
    assignment = assignment_of(task)
    if assignment is not None:
        return assignment.task
    from midwatch_monitor.config.tasks import BudgetSpec, TaskSpec

    # Not validated: a name that Midwatch did not give may be anything.
    return TaskSpec.model_construct(
        id=task.name,
        title=task.title,
        goal=task.title or task.name,
        acceptance=(),
        budget=BudgetSpec(requests=None),
        max_attempts=1,
    )


def models_of(task: Task, worker: str) -> tuple[str, ...]:
    """Return the models that a worker of the task may use, its own first; empty if unknown."""
    assignment = assignment_of(task)
    if assignment is None:
        return ()
    specs = assignment.worker_model(worker), *assignment.worker_spec(worker).other_models
    return tuple(spec.name for spec in specs if spec is not None)


def _by_name(tasks: list[list[Task]], name: str) -> Task | None:
    return next((each for run in tasks for each in run if each.name == name), None)


def _by_prefix(tasks: list[list[Task]], prefix: str) -> Task | None:
    for run in tasks:
        found = [each for each in run if prefix and each.name.startswith(prefix)]
        if len(found) > 1:
            names = ", ".join(each.name for each in found)
            raise UsageError(f"`{prefix}` could mean any of {names}")
        if found:
            return found[0]
    return None


async def _by_attempt(journal: Journal, tasks: list[list[Task]], id: str) -> FoundTask | None:
    for task in [each for run in tasks for each in run] if id.isdecimal() else []:
        for attempt in await journal.attempts(task.id):
            if attempt.id == int(id):
                return FoundTask(task=task, attempt=attempt)
    return None


async def _find_number(journal: Journal, task: Task, number: str) -> Attempt:
    attempts = await journal.attempts(task.id)
    for attempt in attempts:
        if str(attempt.number) == number:
            return attempt
    there = ", ".join(f"{task.name}#{each.number}" for each in attempts) or "none yet"
    raise UsageError(f"there is no attempt {task.name}#{number}; known: {there}")


def _unknown_error(id: str, tasks: list[list[Task]]) -> UsageError:
    names = ", ".join(dict.fromkeys(each.name for run in tasks for each in run))
    there = f"the tasks are: {names}" if names else "nothing has run yet"
    return UsageError(f"there is no task or attempt `{id}`; {there}")


async def given_by(learned: Learned, recall: Recall) -> GivenLearning:
    """Return what a recall names in its present state, without anything erased meanwhile."""
    lessons = [each.lesson for each in recall.lessons]
    try:
        version = recall.guidelines
        return GivenLearning(
            lessons=tuple(await learned.lessons(ids=lessons)) if lessons else (),
            facts=tuple(await learned.facts(ids=recall.facts, live=False)) if recall.facts else (),
            guidelines=None if version is None else await learned.guidelines_version(version),
        )
    except JournalError:
        return NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAttempt:
    """An attempt, named so that a person can find it."""

    task: Task
    attempt: Attempt

    @property
    def name(self) -> str:
        """Its task and its number: `fix#2`."""
        return f"{self.task.name}#{self.attempt.number}"


async def named_attempts(journal: Journal, ids: Collection[int]) -> dict[int, NamedAttempt]:
    """Return the attempts with these ids, without those that were erased meanwhile."""
    attempts = await journal.attempts_with(ids)
    tasks = {each.id: each for each in await journal.tasks_with({it.task for it in attempts})}
    return {
        each.id: NamedAttempt(task=tasks[each.task], attempt=each)
        for each in attempts
        if each.task in tasks
    }
