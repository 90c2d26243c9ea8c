"""Which tasks of a run can go on, and which runs have such tasks."""

from itertools import count

import pytest

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.submission import NewTask, submit
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Commit,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Lifecycle,
    Record,
    Run,
    Task,
    TaskTransition,
    Terms,
)
from midwatch_supervisor.fleet.queue.dispatch import UnfinishedRuns
from midwatch_supervisor.fleet.queue.ready_tasks import ReadyTasks
from midwatch_tests import factories
from midwatch_tests.command import assignment
from midwatch_tests.factories import AT, draft
from midwatch_tests.matrix import DATABASES

OVER = TaskTransition(lifecycle=Lifecycle.COMPLETED)
WAITING = AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED)
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
ASKED = Intervention(action=Action.ASK_OPERATOR, by=Actor.POLICY, message="How?")


def task(id: int, name: str, *after: str, labels: tuple[str, ...] = (), parent: str = "") -> Task:
    spec = assignment(name, parent=parent)
    wanted = spec.task.model_copy(update={"depends_on": after, "labels": labels})
    spec = spec.model_copy(update={"task": wanted})
    return factories.task(id, name, spec=spec.model_dump_json())


class TaskHistory:
    """Ready tasks, and the entries that they are told of."""

    def __init__(self, *tasks: Task) -> None:
        self.ready_tasks = ReadyTasks()
        self.ready_tasks.meet(tasks)
        self._ids = count(1)

    def say(self, task: int, *records: Record, attempt: int | None = None) -> int:
        """Tell it records of a task; the id of the last."""
        id = 0
        for record in records:
            id = next(self._ids)
            self.ready_tasks.take(Entry(id=id, record=record, at=AT, task=task, attempt=attempt))
        return id

    def park(self, task: int, *, attempt: int = 1) -> None:
        """Let an attempt ask a person, and wait."""
        asked = self.say(task, ASKED, attempt=attempt)
        stamp = Delivery(intervention=asked, state=DeliveryState.DELIVERED)
        self.say(task, stamp, WAITING, attempt=attempt)


def make_intervention(
    action: Action, by: Actor = Actor.OPERATOR, *, approval: bool = False
) -> Intervention:
    return Intervention(action=action, by=by, message="Go on.", needs_approval=approval)


def test_a_task_is_ready_once_those_that_it_depends_on_are_over() -> None:
    first = task(1, "a", labels=("gpu", "big", "gpu"))
    history = TaskHistory(first, task(2, "b", "a"), task(3, "c", "a", "b"))
    assert history.ready_tasks.labels(1) == ("big", "gpu")
    history.say(1, WORKING, attempt=7)
    assert (history.ready_tasks.ready(), history.ready_tasks.live(1)) == ([1], 7)
    history.say(1, TaskTransition(lifecycle=Lifecycle.FAILED))
    assert history.ready_tasks.ready() == [2]  # which fails with that reason
    history.say(2, OVER)
    assert history.ready_tasks.ready() == [3]


@pytest.mark.parametrize("spec", ["{}", '{"of": "a newer Midwatch"}'])
def test_what_this_submit_did_not_make_is_never_ready(spec: str) -> None:
    history = TaskHistory(Task(id=1, run=1, name="a", title="a", spec=spec))
    assert history.ready_tasks.ready() == []
    assert not history.ready_tasks.knows(1)


@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        (make_intervention(Action.NUDGE), [1]),
        (make_intervention(Action.RESUME, Actor.POLICY), [1]),
        (make_intervention(Action.STOP), [1]),
        (make_intervention(Action.RESTART, Actor.SUPERVISOR), [1]),
        (make_intervention(Action.NUDGE, Actor.POLICY), []),
        (make_intervention(Action.GRANT_BUDGET), []),
        (make_intervention(Action.STOP, approval=True), []),
    ],
)
def test_a_parked_attempt_is_ready_once_somebody_may_end_the_waiting(
    answer: Intervention, ready: list[int]
) -> None:
    history = TaskHistory(task(1, "a"))
    history.say(1, make_intervention(Action.NUDGE), attempt=1)  # before the question: no answer
    history.park(1)
    assert history.ready_tasks.ready() == []
    history.say(1, answer, attempt=1)
    assert history.ready_tasks.ready() == ready


def test_an_approved_answer_is_one() -> None:
    history = TaskHistory(task(1, "a"))
    history.park(1)
    held = history.say(1, make_intervention(Action.STOP, Actor.POLICY, approval=True), attempt=1)
    history.say(1, Delivery(intervention=held, state=DeliveryState.APPROVED), attempt=1)
    assert history.ready_tasks.ready() == [1]


def test_an_attempt_that_goes_on_and_asks_again_waits_again() -> None:
    history = TaskHistory(task(1, "a"))
    history.park(1)
    told = history.say(1, make_intervention(Action.NUDGE), attempt=1)
    stamp = Delivery(intervention=told, state=DeliveryState.DELIVERED)
    history.say(1, stamp, WORKING, attempt=1)
    assert history.ready_tasks.ready() == [1]
    history.park(1)
    assert history.ready_tasks.ready() == []


def restart_after(history: TaskHistory, id: int, name: str) -> None:
    order = Intervention(
        action=Action.RESTART, by=Actor.POLICY, message="", terms=Terms(after=name)
    )
    issued = history.say(id, order, attempt=id)
    history.say(id, Delivery(intervention=issued, state=DeliveryState.DELIVERED), attempt=id)


def test_a_restart_after_another_task_waits_for_it() -> None:
    history = TaskHistory(task(1, "a"), task(2, "b"))
    restart_after(history, 1, "b")
    assert history.ready_tasks.ready() == [2]
    assert history.ready_tasks.concerns(1) == {1}
    history.say(2, OVER)
    assert history.ready_tasks.ready() == [1]
    assert history.ready_tasks.concerns(1) == {1, 2}


def test_two_restarts_after_each_other_do_not_wait_for_ever() -> None:
    history = TaskHistory(task(1, "a"), task(2, "b"))
    restart_after(history, 1, "b")
    restart_after(history, 2, "a")
    assert history.ready_tasks.ready() == [1, 2]


def test_a_dependency_that_waits_for_its_dependent_still_holds_it_up() -> None:
    history = TaskHistory(task(1, "a"), task(2, "b", "a"))
    restart_after(history, 1, "b")
    assert history.ready_tasks.ready() == [1]


def test_parts_of_a_split_are_done_with_the_whole_and_wait_for_it() -> None:
    history = TaskHistory(
        task(1, "a"), task(2, "a.1", parent="a"), task(3, "a.2", "a.1", parent="a")
    )
    assert history.ready_tasks.ready() == [1]
    assert history.ready_tasks.concerns(1) == {1, 2, 3}
    history.park(2, attempt=7)
    assert history.ready_tasks.ready() == []
    history.say(2, make_intervention(Action.NUDGE), attempt=7)
    assert history.ready_tasks.ready() == [1]
    assert history.ready_tasks.live(1) == 7


SPEC = '{"of": "a fleet"}'


async def store_run(journal: Journal, *names: str, spec: str = SPEC) -> Run:
    tasks = [NewTask(name=name, title="", spec=spec, project="p") for name in names]
    run, _ = await journal.write(submit, tasks, source="", settings="", at=AT)
    return run


@pytest.mark.parametrize("location", DATABASES, indirect=True)
async def test_a_run_is_open_until_its_last_task_is_over_or_erased(journal: Journal) -> None:
    async def set_lifecycle(task: int, lifecycle: Lifecycle) -> None:
        record = TaskTransition(lifecycle=lifecycle)
        await journal.commit(Commit(drafts=(draft(record, task=task, attempt=None),)))

    unfinished_runs = UnfinishedRuns(journal)
    assert await unfinished_runs.open() == []
    first, second = await store_run(journal, "a", "b"), await store_run(journal, "a")
    await store_run(journal, "a", spec="{}")  # it came by itself
    await journal.add_task(
        run=(await journal.add_run(source="", settings="", at=AT)).id,
        name="kept by a process",
        title="",
        spec=SPEC,
        at=AT,
    )
    assert await unfinished_runs.open() == [first, second]
    await set_lifecycle(1, Lifecycle.COMPLETED)
    await set_lifecycle(2, Lifecycle.WORKING)
    assert await unfinished_runs.open() == [first, second]
    await set_lifecycle(2, Lifecycle.FAILED)
    assert await unfinished_runs.open() == await UnfinishedRuns(journal).open() == [second]
    with pytest.raises(UsageError):
        await Learned(journal).forget("q", author="ada", at=AT)
    assert await unfinished_runs.open() == [second]
    await Learned(journal).forget("p", author="ada", at=AT)
    assert await unfinished_runs.open() == []
