"""What a task that has not begun waits for, in words."""

from collections.abc import Mapping

import pytest

from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.records import Lifecycle, NodeState, NodeStatus, SupervisedBy
from midwatch_stage import factories as make
from midwatch_stage.harness import assigned
from midwatch_stage.nodes import node
from midwatch_supervisor.present.waiting import missing_node_words, wait_of
from midwatch_supervisor.tui.state.board import FleetBoard

LEAVING = node("a", "fpga", state=NodeState.DRAINING)


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
        (task(), [LEAVING], "a node (none is up, a is draining)"),
        (
            task("fpga"),
            [LEAVING, node("b", "gpu")],
            "a node with the label fpga (none is up, a is draining)",
        ),
        (task("fpga"), [LEAVING, node("b", "fpga")], "a node with the label fpga (b is up)"),
        (task(), [node("a", busy=2, slots=2), LEAVING], "a free slot (2 of 2 taken)"),
        (task(), [node("a", busy=2, slots=2), node("b")], "its turn"),
        (
            task("fpga"),
            [node("a", "fpga", busy=1), node("b")],
            "a free slot on a node with the label fpga (1 of 1 taken)",
        ),
    ],
)
def test_a_task_waits_for_a_node_that_can_do_it(
    wanted: TaskSpec, nodes: list[NodeStatus] | None, said: str
) -> None:
    assert wait_of(wanted, {}, nodes).what == said


@pytest.mark.parametrize(
    ("wanted", "nodes", "cell"),
    [
        (task("fpga"), [node("a")], ("no node: fpga", True)),
        (task("fpga"), [node("a"), LEAVING], ("no node: fpga", False)),
        (task("fpga"), [node("b", "fpga", state=NodeState.LOST)], ("no node is up", False)),
        (task("fpga"), [], ("no node is up", False)),
        (task(), [LEAVING], ("no node is up", False)),
        (task(), [node("a", busy=1)], ("no free slot", False)),
        (task("fpga"), [node("a", "fpga")], ("its turn", False)),
        (task("fpga", after=("x", "y")), [node("a")], ("after x, y", False)),
    ],
)
def test_a_cell_of_a_table_says_it_shortly_and_whether_it_is_in_vain(
    wanted: TaskSpec, nodes: list[NodeStatus], cell: tuple[str, bool]
) -> None:
    wait = wait_of(wanted, {}, nodes)
    assert (wait.short, wait.vain) == cell


@pytest.mark.parametrize(
    ("labels", "nodes", "said"),
    [
        ((), [], "no node is up"),
        ((), [LEAVING], "no node is up"),
        ((), [node("a")], ""),
        (("fpga",), [node("a"), LEAVING], "no node that is up has the label fpga"),
        (("fpga", "gpu"), [node("a", "gpu")], "no node that is up has the labels fpga, gpu"),
        (("fpga",), [node("a", "gpu", "fpga", busy=1)], ""),
    ],
)
def test_what_no_node_that_is_up_takes_is_said_before_it_waits(
    labels: tuple[str, ...], nodes: list[NodeStatus], said: str
) -> None:
    assert missing_node_words(labels, nodes) == said


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
    assert wait_of(task(after=("a", "b")), states, None).what == said


def test_the_console_says_it_of_a_task_without_an_attempt() -> None:
    board = FleetBoard()
    board.meet_run(make.run(supervised_by=SupervisedBy.MONITOR))
    wanted = (task("fpga").model_copy(update={"id": "a"}), task(after=("a",)))
    for id, each in enumerate(wanted, start=1):
        spec = assigned().model_copy(update={"task": each}).model_dump_json()
        board.meet_task(make.task(id, each.id, spec=spec))
    waits = [board.turn(row) for row in board.queued.values()]
    assert waits == ["a node with the label fpga (none is up)", "the task a"]
    board.fold(make.entry(1, make.task_transition(Lifecycle.COMPLETED), attempt=None))
    board.meet_nodes([node("north")])
    assert board.turn(board.queued[2]) == "its turn"
