"""What a task that has not begun waits for, in words."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.words import (
    Entry,
    Keeper,
    Lifecycle,
    NodeState,
    NodeStatus,
    Run,
    Task,
    TaskState,
)
from midwatch_supervisor.assignment import Assignment
from midwatch_supervisor.tui.board import Board
from midwatch_supervisor.waiting import turn_of

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


def node(name: str, *labels: str, state: NodeState = NodeState.UP) -> NodeStatus:
    return NodeStatus(
        name=name,
        boot="1",
        state=state,
        slots=1,
        busy=0,
        labels=labels,
        version="",
        revision="",
        started_at=AT,
        beat_at=AT,
    )


def task(*labels: str, after: tuple[str, ...] = ()) -> TaskSpec:
    return TaskSpec(id="fix", goal="x", acceptance=("true",), labels=labels, depends_on=after)


@pytest.mark.parametrize(
    ("wanted", "nodes", "said"),
    [
        (task("fpga"), [node("a", "gpu")], "a node with the label fpga (none is up)"),
        (task("fpga"), [node("a", "fpga")], "a node with the label fpga (a is up)"),
        (
            task("fpga", "gpu"),
            [node("a", "gpu", "fpga"), node("b", "fpga", "gpu"), node("c", "gpu")],
            "a node with the labels fpga, gpu (a, b are up)",
        ),
        (
            task("fpga"),
            [node("a", "fpga", state=NodeState.LOST)],
            "a node with the label fpga (none is up)",
        ),
        (task(), [], "a node (none is up)"),
        (task(), [node("a")], "its turn"),
        (task("fpga"), None, "its turn"),
    ],
)
def test_a_task_waits_for_a_node_that_can_do_it(
    wanted: TaskSpec, nodes: list[NodeStatus] | None, said: str
) -> None:
    assert turn_of(wanted, {}, nodes) == said


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ({}, "the tasks a, b"),
        ({"a": Lifecycle.COMPLETED, "b": Lifecycle.WORKING}, "the task b"),
        ({"a": Lifecycle.COMPLETED, "b": Lifecycle.COMPLETED}, "its turn"),
    ],
)
def test_the_tasks_that_it_depends_on_come_first(
    states: Mapping[str, Lifecycle], said: str
) -> None:
    assert turn_of(task(after=("a", "b")), states, None) == said


def stored(id: int, wanted: TaskSpec) -> Task:
    spec = Assignment(task=wanted, worker="w", spec=WorkerSpec(), models={}, workspace=None)
    return Task(id=id, run=1, name=wanted.id, title="", spec=spec.model_dump_json())


def test_the_console_says_it_of_a_task_without_an_attempt() -> None:
    board = Board()
    board.meet_run(Run(id=1, source="", settings="{}", started_at=AT, keeper=Keeper.MONITOR))
    board.meet_task(stored(1, TaskSpec(id="a", goal="x", acceptance=("true",), labels=("fpga",))))
    board.meet_task(stored(2, task(after=("a",))))
    waits = [board.turn(row) for row in board.queued.values()]
    assert waits == ["a node with the label fpga (none is up)", "the task a"]
    done = TaskState(lifecycle=Lifecycle.COMPLETED)
    board.fold(Entry(id=1, record=done, at=AT, task=1, attempt=None))
    board.meet_nodes([node("north")])
    assert board.turn(board.queued[2]) == "its turn"
