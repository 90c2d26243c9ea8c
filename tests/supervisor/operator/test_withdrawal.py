"""What becomes of a withdrawn task, in which order many are, and what asks for an answer."""

from dataclasses import replace

import pytest

from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.records import (
    Action,
    Actor,
    BudgetRequest,
    Ending,
    Grant,
    Lifecycle,
    PlanCheck,
    Record,
    Ruling,
    Spending,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.intervention import worker_request
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.operator.tasks import (
    TaskReading,
    WithdrawalResult,
    dependents_first,
    stop_on_its_way,
    wholes,
)
from midwatch_supervisor.present.assignment import Assignment
from midwatch_tests import factories as make

WORKING, SPLIT = make.transition(), make.ended(Ending.SPLIT)
STOP = make.intervention(Action.STOP, Actor.OPERATOR)


def task(id: int, name: str, *after: str, parent: str = "") -> Task:
    spec = Assignment(
        task=TaskSpec(id=name, goal="g", acceptance=("true",), depends_on=after),
        worker="coder",
        spec=WorkerSpec(),
        models={},
        workspace=None,
        parent=parent,
    )
    return make.task(id, name, spec=spec.model_dump_json())


def task_state(*said: Record) -> TaskState:
    """A task with one attempt, if anything is said of one."""
    made = TaskState(task=task(1, "a"))
    for id, record in enumerate(said, start=1):
        attempt = None if isinstance(record, TaskTransition) else 7
        if attempt and attempt not in made.attempts:
            made.meet(make.attempt(7))
        made.fold(make.entry(id, record, attempt=attempt))
    return made


@pytest.mark.parametrize(
    ("said", "course"),
    [
        ((), WithdrawalResult.CANCELED),
        ((make.task_transition(),), WithdrawalResult.CANCELED),
        ((make.transition(Lifecycle.SUBMITTED),), WithdrawalResult.CANCELED),
        ((make.ended(Ending.UNACCEPTED),), WithdrawalResult.CANCELED),
        ((WORKING,), WithdrawalResult.STOPPING),
        ((make.transition(Lifecycle.INPUT_REQUIRED),), WithdrawalResult.STOPPING),
        ((SPLIT,), WithdrawalResult.SPLITTING),
        ((SPLIT, make.task_transition(Lifecycle.FAILED)), WithdrawalResult.OVER),
        ((make.task_transition(Lifecycle.CANCELED),), WithdrawalResult.OVER),
    ],
)
def test_what_becomes_of_a_task_depends_on_who_is_at_work_on_it(
    said: tuple[Record, ...], course: WithdrawalResult
) -> None:
    assert TaskReading(state=task_state(*said)).course is course


@pytest.mark.parametrize(
    ("over", "course"), [(False, WithdrawalResult.SPLIT), (True, WithdrawalResult.CANCELED)]
)
def test_a_split_task_ends_with_its_parts(over: bool, course: WithdrawalResult) -> None:
    parts = (task(2, "a.1", parent="a"),)
    look = TaskReading(state=task_state(SPLIT), parts=parts, parts_over=over)
    assert look.course is course


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ((WORKING,), None),
        ((WORKING, STOP), 2),
        ((WORKING, make.intervention(Action.NUDGE, Actor.OPERATOR)), None),
        ((WORKING, make.intervention(Action.STOP, needs_approval=True)), None),
        ((WORKING, STOP, make.delivery(2)), None),
    ],
)
def test_a_stop_that_will_arrive_is_known(said: tuple[Record, ...], found: int | None) -> None:
    assert stop_on_its_way(task_state(*said).attempts[7]) == found


def test_what_depends_on_others_is_withdrawn_before_them() -> None:
    tasks = [task(1, "c", "b"), task(2, "a"), task(3, "b", "a"), task(4, "d", "elsewhere")]
    assert [each.name for each in dependents_first(tasks)] == ["d", "c", "b", "a"]
    chain = [task(n, f"t{n}", f"t{n + 1}") for n in range(1, 1500)]
    assert dependents_first(chain) == chain


def test_parts_of_a_split_are_left_to_the_whole() -> None:
    embedded = make.task(3, "x", spec="{}")
    tasks = [task(1, "a"), task(2, "a.1", parent="a"), embedded]
    assert wholes(tasks) == [tasks[0], embedded]


REVISION = PlanCheck(
    plan_step=3, assumption="", reality="", impact="", proposed=("x",), ruling=Ruling.PENDING
)
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")


@pytest.mark.parametrize(
    ("record", "asks"),
    [
        (REVISION, True),
        (BUDGET, True),
        (replace(REVISION, ruling=Ruling.GRANTED), False),
        (replace(REVISION, ruling=Ruling.REFUSED), False),
        (Spending(role="planner", model="m"), False),
    ],
    ids=["a revision", "a budget", "granted", "refused", "no request"],
)
def test_only_what_waits_for_an_answer_is_a_petition(record: Record, asks: bool) -> None:
    assert worker_request(record) == (record if asks else None)
