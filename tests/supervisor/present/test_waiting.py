"""What a task that has not begun waits for, in words."""

from collections.abc import Mapping

import pytest

from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.records import Lifecycle, NodeState, NodeStatus, SupervisedBy
from midwatch_supervisor.present.waiting import missing_node_words, wait_of
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_tests import factories as make
from midwatch_tests.harness import assigned
from midwatch_tests.nodes import node

LEAVING = node("a", "fpga", state=NodeState.DRAINING)
LOST = node("b", "fpga", state=NodeState.LOST)
FULL = node("c", busy=2, slots=2)


def task(*labels: str, after: tuple[str, ...] = ()) -> TaskSpec:
    return TaskSpec(id="fix", goal="x", acceptance=("true",), labels=labels, depends_on=after)


FPGA, GPU = task("fpga"), task("fpga", "gpu")
LABEL = "a node with the label fpga"


@pytest.mark.parametrize(
    ("wanted", "nodes", "said", "short"),
    [
        (FPGA, [node("a", "gpu")], f"{LABEL} (none is up)", "no node: fpga, in vain"),
        (FPGA, [node("a", "fpga")], f"{LABEL} (a is up)", "its turn"),
        (
            GPU,
            [node("a", "gpu", "fpga"), node("b", "fpga", "gpu"), node("c", "gpu")],
            "a node with the labels fpga, gpu (a, b are up)",
            "its turn",
        ),
        (FPGA, [LOST], f"{LABEL} (none is up)", "no node is up"),
        (FPGA, [], f"{LABEL} (none is up)", "no node is up"),
        (FPGA, None, "its turn", "its turn"),
        (
            FPGA,
            [LEAVING, node("b", "gpu")],
            f"{LABEL} (none is up, a is draining)",
            "no node: fpga",
        ),
        (FPGA, [LEAVING, node("b", "fpga")], f"{LABEL} (b is up)", "its turn"),
        (
            FPGA,
            [node("a", "fpga", busy=1), node("b")],
            "a free slot on a node with the label fpga (1 of 1 taken)",
            "no free slot",
        ),
        (task(), [], "a node (none is up)", "no node is up"),
        (task(), [node("a")], "its turn", "its turn"),
        (task(), [LEAVING], "a node (none is up, a is draining)", "no node is up"),
        (task(), [FULL, LEAVING], "a free slot (2 of 2 taken)", "no free slot"),
        (task(), [FULL, node("b")], "its turn", "its turn"),
        (task("fpga", after=("x", "y")), [node("a")], "the tasks x, y", "after x, y"),
    ],
)
def test_a_task_waits_for_a_node_that_can_do_it_which_a_cell_of_a_table_says_shortly(
    wanted: TaskSpec, nodes: list[NodeStatus] | None, said: str, short: str
) -> None:
    wait = wait_of(wanted, {}, nodes)
    assert (wait.what, f"{wait.short}{', in vain' * wait.vain}") == (said, short)


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
