"""What the console says of tasks that have not begun, and of a fleet that nobody watches."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import (
    Lifecycle,
    NodeState,
    NodeStatus,
    SupervisedBy,
    Task,
    TaskTransition,
)
from midwatch_stage.factories import AT, attempt, entry, run, task_transition, transition
from midwatch_stage.nodes import node
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.tui.bell import Bell
from midwatch_supervisor.tui.screens.banner import Trouble, missing_parts, no_monitor, no_node
from midwatch_supervisor.tui.screens.preview import why
from midwatch_supervisor.tui.state.attention import AttentionQueue
from midwatch_supervisor.tui.state.board import FleetBoard

DONE = task_transition(Lifecycle.COMPLETED)
OURS = replace(node("west"), fleet="ours")


def board(*tasks: TaskSpec, parent: str = "", **fields: Any) -> FleetBoard:
    """A board of tasks that were handed over one second apart; other fields are the run's."""
    made = FleetBoard()
    made.meet_run(run(**{"supervised_by": SupervisedBy.MONITOR, **fields}))
    for id, each in enumerate(tasks, 1):
        spec = Assignment(
            task=each, worker="w", spec=WorkerSpec(), models={}, workspace=None, parent=parent
        )
        made.meet_task(Task(id=id, run=1, name=each.id, title="", spec=spec.model_dump_json()))
        told(made, id, task_transition(Lifecycle.SUBMITTED))
    return made


def told(made: FleetBoard, id: int, state: TaskTransition) -> None:
    made.fold(entry(id, state, task=id, attempt=None))


def task(name: str, *labels: str, after: tuple[str, ...] = ()) -> TaskSpec:
    return TaskSpec(id=name, goal="x", acceptance=("true",), labels=labels, depends_on=after)


def cells(made: FleetBoard) -> list[str]:
    """Why each line of the fleet stands where it does."""
    return [why(row, made.wait(row)).text for row in made.all_rows()]


def calls(made: FleetBoard) -> list[tuple[str, str]]:
    return [(each.name, each.what) for each in AttentionQueue(made).calling]


def trouble(found: Trouble | None) -> tuple[str, datetime] | None:
    return (found.what, found.since) if found else None


def test_a_line_says_what_its_task_waits_for() -> None:
    made = board(task("a", "fpga"), task("b", after=("a",)), task("c"))
    assert cells(made) == ["no node is up", "after a", "no node is up"]
    made.meet_nodes([node("east")])
    assert cells(made) == ["no node: fpga", "after a", "its turn"]
    told(made, 1, DONE)
    assert cells(made) == ["-", "its turn", "its turn"]


def test_a_task_waits_for_a_node_of_its_own_fleet() -> None:
    made = board(task("a"), task("b", "fpga"), settings='{"fleet": {"name": "ours"}}')
    made.meet_nodes([replace(node("east", busy=1), fleet="theirs")])
    assert (cells(made), calls(made)) == (["no node is up"] * 2, [])
    still = "no node of fleet ours is up, and 2 tasks are waiting for one"
    assert trouble(no_node(made)) == (still, AT)
    made.meet_nodes([replace(node("east", "fpga"), fleet="theirs"), OURS])
    assert (cells(made), no_node(made)) == (["its turn", "no node: fpga"], None)
    assert [name for name, _ in calls(made)] == ["b"]


@pytest.mark.parametrize(
    "fields", [{"parent": "whole"}, {"supervised_by": SupervisedBy.PROCESS}], ids=str
)
def test_a_part_of_another_task_and_what_one_process_runs_wait_for_no_node(
    fields: dict[str, Any],
) -> None:
    made = board(task("a", "fpga"), **fields)
    made.meet_nodes([node("east")])
    assert (cells(made), calls(made)) == (["its turn"], [])


def test_a_line_of_an_agent_that_came_by_itself_says_nothing() -> None:
    made = board()
    made.meet_task(Task(id=1, run=1, name="x", title="", spec="{}"))
    assert (cells(made), made.open_since) == (["-"], None)


def test_tasks_that_no_node_will_take_are_one_line_for_a_person() -> None:
    made = board(task("a", "fpga"), task("b", "fpga", "gpu"), task("c"), task("d", "fpga"))
    made.meet_nodes([node("east", "gpu")])
    one = "`midwatch node --label fpga` starts one that does"
    both = "`midwatch node --label fpga --label gpu` starts one that does"
    assert calls(made) == [
        ("a +1", f"no node has the label fpga; {one}"),
        ("b", f"no node has the labels fpga, gpu; {both}"),
    ]


@pytest.mark.parametrize(
    ("nodes", "called"),
    [
        ([], 0),
        ([node("east")], 1),
        ([node("east"), node("west", "fpga")], 0),
        ([node("east"), node("west", "fpga", state=NodeState.DRAINING)], 0),
        ([node("east"), node("west", "fpga", state=NodeState.DOWN)], 0),
        (
            [
                node("east", heard=AT + timedelta(hours=25)),
                node("west", "fpga", state=NodeState.DOWN),
            ],
            1,
        ),
    ],
    ids=["none", "another", "up", "draining", "just left", "left yesterday"],
)
def test_a_node_that_may_come_back_is_waited_for(nodes: Sequence[NodeStatus], called: int) -> None:
    made = board(task("a", "fpga"))
    made.meet_nodes(nodes)
    assert len(calls(made)) == called


def test_a_task_that_begins_or_ends_needs_nobody_any_more() -> None:
    made = board(task("a", "fpga"), task("b", "gpu"))
    made.meet_nodes([node("east")])
    assert len(calls(made)) == 2
    made.meet_attempt(attempt(node="east"))
    told(made, 2, task_transition(Lifecycle.CANCELED))
    assert calls(made) == []


@pytest.mark.parametrize("begun", [None, Lifecycle.SUBMITTED, Lifecycle.WORKING])
def test_what_a_node_could_not_do_is_told_until_one_works_on_it(begun: Lifecycle | None) -> None:
    refusal = "node-a cannot do it: git clone: no such repository"
    made = board(task("a"))
    made.meet_nodes([node("node-a")])
    if begun is not None:
        made.meet_attempt(attempt(node="node-a"))
        made.fold(entry(2, transition(begun)))
    told(made, 1, task_transition(Lifecycle.WORKING, reason=refusal))
    (row,) = made.all_rows()
    shown = begun is not Lifecycle.WORKING
    assert (cells(made) == [refusal]) is shown
    assert made.turn(row) == (f"a node that can do it ({refusal})" if shown else "")
    told(made, 1, task_transition(Lifecycle.WORKING))
    assert refusal not in cells(made)


@pytest.mark.parametrize(("opened", "rings"), [(AT, True), (AT + timedelta(hours=1), False)])
def test_a_person_is_called_for_what_was_handed_over_while_they_look(
    opened: datetime, rings: bool
) -> None:
    made, bell = board(task("a", "fpga")), Bell(opened)
    made.meet_nodes([node("east")])
    (line,) = AttentionQueue(made).calling
    assert (line.since, "fpga" in line.text) == (AT + timedelta(seconds=1), True)
    said = bell.next_call([line])
    assert (said is not None and said.startswith("a: no node has the label fpga")) is rings


def test_work_that_no_monitor_looks_after_is_told() -> None:
    made = board(task("a"))
    assert no_monitor(made, AT) is None
    made.meet_monitors([])
    never = trouble(no_monitor(made, AT))
    assert never is not None
    assert (never[0].partition(":")[0], never[1]) == ("no monitor is running", AT)
    until = AT + timedelta(seconds=5)
    made.meet_monitors([MonitorStatus(holder="watch:1", until=until)])
    assert no_monitor(made, AT) is None
    gone = trouble(no_monitor(made, AT + timedelta(minutes=5)))
    assert gone is not None
    assert gone[0].startswith("no monitor is running (watch was, until 4 min ago): ")
    assert gone[1] == until


def test_that_no_node_is_there_is_told_once_that_is_known_and_while_there_is_work() -> None:
    made = board(task("a"), task("b"))
    assert (no_node(made), missing_parts(made, AT)) == (None, None)
    made.meet_nodes([])
    assert trouble(no_node(made)) == ("no node is up, and 2 tasks are waiting for one", AT)
    told(made, 2, DONE)
    assert trouble(no_node(made)) == ("no node is up, and 1 task is waiting for one", AT)
    made.meet_monitors([])
    both = trouble(missing_parts(made, AT))
    assert both is not None
    assert both[0].startswith(
        "no node is up, and 1 task is waiting for one → `midwatch node` starts one; "
        "no monitor is running: nobody escalates"
    )
    told(made, 1, DONE)
    assert (no_monitor(made, AT), no_node(made)) == (None, None)
