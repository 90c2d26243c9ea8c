"""What becomes of a task that is withdrawn, by where it stands; in which order many are."""

from datetime import UTC, datetime
from itertools import count

import pytest

from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    AttemptTransition,
    Delivery,
    DeliveryState,
    Ending,
    Entry,
    Intervention,
    Lifecycle,
    Record,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.operator.tasks import (
    Look,
    WithdrawalCourse,
    dependents_first,
    stop_on_its_way,
    wholes,
)
from midwatch_supervisor.present.assignment import Assignment

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
SUBMITTED = AttemptTransition(lifecycle=Lifecycle.SUBMITTED)
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
SPLIT = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.SPLIT)
UNACCEPTED = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.UNACCEPTED)
STOP = Intervention(action=Action.STOP, by=Actor.OPERATOR)


def task(id: int, name: str, *after: str, parent: str = "") -> Task:
    spec = Assignment(
        task=TaskSpec(id=name, goal="g", acceptance=("true",), depends_on=after),
        worker="coder",
        spec=WorkerSpec(),
        models={},
        workspace=None,
        parent=parent,
    )
    return Task(id=id, run=1, name=name, title=name, spec=spec.model_dump_json())


def account(*said: Record) -> TaskState:
    """A task with one attempt, if anything is said of one."""
    made, ids = TaskState(task=task(1, "a")), count(1)
    for record in said:
        attempt = None if isinstance(record, TaskTransition) else 7
        if attempt and attempt not in made.attempts:
            whose = {"worker": "coder", "model": "m", "node": "n", "workspace": "/w"}
            made.meet(Attempt(id=7, task=1, number=1, started_at=AT, **whose))
        made.fold(Entry(id=next(ids), record=record, at=AT, task=1, attempt=attempt))
    return made


@pytest.mark.parametrize(
    ("said", "course"),
    [
        ((), WithdrawalCourse.CANCELED),
        ((TaskTransition(lifecycle=Lifecycle.WORKING),), WithdrawalCourse.CANCELED),
        ((SUBMITTED,), WithdrawalCourse.CANCELED),
        ((UNACCEPTED,), WithdrawalCourse.CANCELED),
        ((WORKING,), WithdrawalCourse.STOPPING),
        ((AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED),), WithdrawalCourse.STOPPING),
        ((SPLIT,), WithdrawalCourse.SPLITTING),
        ((SPLIT, TaskTransition(lifecycle=Lifecycle.FAILED)), WithdrawalCourse.OVER),
        ((TaskTransition(lifecycle=Lifecycle.CANCELED),), WithdrawalCourse.OVER),
    ],
)
def test_what_becomes_of_a_task_depends_on_who_is_at_work_on_it(
    said: tuple[Record, ...], course: WithdrawalCourse
) -> None:
    assert Look(state=account(*said)).course is course


@pytest.mark.parametrize(
    ("over", "course"), [(False, WithdrawalCourse.SPLIT), (True, WithdrawalCourse.CANCELED)]
)
def test_a_split_task_ends_with_its_parts_while_there_are_any(
    over: bool, course: WithdrawalCourse
) -> None:
    parts = (task(2, "a.1", parent="a"),)
    look = Look(state=account(SPLIT), parts=parts, parts_over=over)
    assert look.course is course


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ((WORKING,), None),
        ((WORKING, STOP), 2),
        ((WORKING, Intervention(action=Action.NUDGE, by=Actor.OPERATOR)), None),
        (
            (WORKING, Intervention(action=Action.STOP, by=Actor.POLICY, needs_approval=True)),
            None,
        ),
        ((WORKING, STOP, Delivery(intervention=2, state=DeliveryState.DELIVERED)), None),
    ],
)
def test_a_stop_that_will_arrive_is_known(said: tuple[Record, ...], found: int | None) -> None:
    assert stop_on_its_way(account(*said).attempts[7]) == found


def test_what_depends_on_others_is_withdrawn_before_them() -> None:
    tasks = [task(1, "c", "b"), task(2, "a"), task(3, "b", "a"), task(4, "d", "elsewhere")]
    assert [each.name for each in dependents_first(tasks)] == ["d", "c", "b", "a"]


def test_parts_of_a_split_are_left_to_the_whole() -> None:
    embedded = Task(id=3, run=1, name="x", title="x", spec="{}")
    tasks = [task(1, "a"), task(2, "a.1", parent="a"), embedded]
    assert wholes(tasks) == [tasks[0], embedded]
