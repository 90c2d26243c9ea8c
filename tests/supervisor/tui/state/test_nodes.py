"""The nodes of a fleet, what is adrift without its own, and tasks that wait for one."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import (
    Change,
    Fault,
    Health,
    Lifecycle,
    NodeState,
    NodeStatus,
    Record,
    Severity,
    SupervisedBy,
    Task,
    TaskTransition,
)
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.record_text import line
from midwatch_supervisor.tui.bell import Bell
from midwatch_supervisor.tui.screens.banner import (
    Trouble,
    failed_parts,
    missing_parts,
    no_monitor,
    no_node,
)
from midwatch_supervisor.tui.screens.lists import hosts
from midwatch_supervisor.tui.screens.preview import why
from midwatch_supervisor.tui.state.attention import AttentionQueue
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.node_list import NodeList, node_word
from midwatch_supervisor.tui.state.row import Row
from midwatch_tests.factories import AT, alert, attempt, entry, run, task_transition, transition
from midwatch_tests.nodes import node
from midwatch_tests.rows import Fleet

NORTH = node("north", slots=2, busy=1)
SOUTH = replace(NORTH, name="south")
LOST = replace(NORTH, state=NodeState.LOST)
STUCK = alert(severity=Severity.CRITICAL)


class Told(Fleet):
    """A board that is told one attempt's story."""

    def __init__(
        self, *, supervised_by: SupervisedBy = SupervisedBy.MONITOR, spec: str = "a task"
    ) -> None:
        super().__init__()
        self.board.meet_run(run(supervised_by=supervised_by))
        self.queue("fix", spec=spec)
        self.board.meet_attempt(attempt(node="north"))
        self.tell(transition())

    def tell(self, record: Record) -> None:
        self.say("fix", record)

    @property
    def row(self) -> Row:
        return self.board.rows[1]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (NORTH, "up"),
        (LOST, "lost"),
        (replace(NORTH, doubted_at=AT + timedelta(seconds=1)), "doubted"),
        (replace(NORTH, doubted_at=AT - timedelta(seconds=1)), "up"),
        (replace(LOST, doubted_at=AT + timedelta(seconds=1)), "lost"),
    ],
)
def test_a_node_is_doubted_until_it_beats_again_or_is_lost(status: NodeStatus, word: str) -> None:
    assert node_word(status) == word


def test_the_newest_start_of_a_node_counts_and_one_that_left_yesterday_is_forgotten() -> None:
    node_list = NodeList()
    again = replace(NORTH, boot="2", started_at=AT + timedelta(minutes=1))
    node_list.take([again, LOST])
    assert (node_list.nodes, node_list.losses) == ({"north": again}, ())
    node_list.take([LOST, replace(SOUTH, beat_at=AT + timedelta(hours=25))])
    assert list(node_list.nodes) == ["south"]


@pytest.mark.parametrize(
    ("nodes", "health"),
    [
        ((), Health.STUCK),
        ((NORTH,), Health.STUCK),
        ((LOST,), Health.UNKNOWN),
        ((replace(NORTH, state=NodeState.DOWN),), Health.UNKNOWN),
        ((replace(NORTH, state=NodeState.DRAINING),), Health.STUCK),
        ((replace(SOUTH, state=NodeState.LOST),), Health.STUCK),
    ],
)
def test_health_without_a_node_is_unknown(nodes: Sequence[NodeStatus], health: Health) -> None:
    told = Told()
    told.tell(STUCK)
    told.board.meet_nodes(nodes)
    assert told.row.health is health


def test_who_got_stuck_while_its_node_was_gone_needs_a_person_once_the_node_is_back() -> None:
    told = Told()
    queue = AttentionQueue(told.board)
    told.board.meet_nodes([LOST])
    told.tell(STUCK)
    assert queue.rows == []
    told.board.meet_nodes([NORTH])
    queue.observe([], of_nodes=True)
    assert queue.rows == [told.row]


def test_it_fares_as_it_does_once_another_node_goes_on() -> None:
    told = Told()
    told.board.meet_nodes([LOST, SOUTH])
    told.tell(Change(node="south"))
    assert (told.row.state.node, told.row.adrift, told.row.health) == ("south", False, Health.OK)


@pytest.mark.parametrize("fields", [{"supervised_by": SupervisedBy.PROCESS}, {"spec": "{}"}])
def test_what_one_process_runs_or_embeds_needs_no_node(fields: dict[str, Any]) -> None:
    told = Told(**fields)
    told.board.meet_nodes([LOST])
    assert not told.row.adrift


def test_a_lost_node_is_told_with_what_waits_for_another() -> None:
    told = Told()
    told.board.meet_nodes([NORTH, SOUTH])
    told.board.meet_nodes([LOST, SOUTH])
    host, _ = hosts(told.board)
    assert (host.status, host.attempts) == (LOST, ("fix#1",))
    (lost,) = AttentionQueue(told.board).of_nodes
    assert (lost.name, lost.kind, lost.since) == ("north", "lost", AT)
    assert lost.what == "the node is lost; 1 attempt is waiting for another one"
    told.tell(Change(node="south"))
    (after,) = AttentionQueue(told.board).of_nodes
    assert after.what == "the node is lost; other nodes continue its attempts"
    told.board.meet_nodes([NORTH, replace(SOUTH, state=NodeState.LOST, busy=0)])
    told.tell(Change(node="north"))
    (idle,) = AttentionQueue(told.board).of_nodes
    assert idle.what == "the node is lost; it was running no attempt"


@pytest.mark.parametrize(
    ("status", "has"),
    [
        (replace(NORTH, busy=0), "fix#1"),
        (NORTH, "fix#1"),
        (replace(NORTH, busy=3), "fix#1, 2 more"),
        (replace(LOST, busy=3), "fix#1"),
        (replace(SOUTH, busy=2), "2 of other runs"),
        (replace(SOUTH, busy=0), "-"),
    ],
)
def test_a_slot_that_another_run_takes_is_told_too(status: NodeStatus, has: str) -> None:
    told = Told()
    told.board.meet_nodes([status])
    assert [host.has for host in hosts(told.board)] == [has]


def test_a_person_is_called_once_for_a_node_that_is_lost_while_they_look() -> None:
    told, bell = Told(), Bell(AT)
    queue = AttentionQueue(told.board)
    told.board.meet_nodes([LOST, SOUTH])
    before = bell.next_call(queue.calling)
    told.board.meet_nodes([LOST, replace(SOUTH, state=NodeState.LOST)])
    first, again = bell.next_call(queue.calling), bell.next_call(queue.calling)
    assert (before, again) == (None, None)
    assert first == "south: the node is lost; other nodes continue its attempts"


def test_what_a_lost_node_had_is_no_trouble_of_the_watch() -> None:
    told = Told()
    lost = Fault(part="node", error="north is gone: another node continues it")
    told.tell(lost)
    assert failed_parts(told.board.faults) == []
    assert line(lost).text == "north is gone: another node continues it"
    assert line(Change(node="south")).text == "continues on south"


DONE = task_transition(Lifecycle.COMPLETED)
OURS = replace(node("west"), fleet="ours")


def board(*tasks: TaskSpec, parent: str = "", **fields: Any) -> FleetBoard:
    """A board of tasks that were handed over one second apart; other fields are the run's."""
    made = FleetBoard()
    options: dict[str, Any] = {"supervised_by": SupervisedBy.MONITOR} | fields
    made.meet_run(run(**options))
    for id, each in enumerate(tasks, 1):
        spec = Assignment(
            task=each, worker="w", spec=WorkerSpec(), models={}, workspace=None, parent=parent
        )
        made.meet_task(Task(id=id, run=1, name=each.id, title="", spec=spec.model_dump_json()))
        fold_state(made, id, task_transition(Lifecycle.SUBMITTED))
    return made


def fold_state(made: FleetBoard, id: int, state: TaskTransition) -> None:
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
    fold_state(made, 1, DONE)
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
def test_a_part_and_what_one_process_runs_wait_for_no_node(fields: dict[str, Any]) -> None:
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
    fold_state(made, 2, task_transition(Lifecycle.CANCELED))
    assert calls(made) == []


@pytest.mark.parametrize("begun", [None, Lifecycle.SUBMITTED, Lifecycle.WORKING])
def test_what_a_node_could_not_do_is_told_until_one_works_on_it(begun: Lifecycle | None) -> None:
    refusal = "node-a cannot do it: git clone: no such repository"
    made = board(task("a"))
    made.meet_nodes([node("node-a")])
    if begun is not None:
        made.meet_attempt(attempt(node="node-a"))
        made.fold(entry(2, transition(begun)))
    fold_state(made, 1, task_transition(Lifecycle.WORKING, reason=refusal))
    (row,) = made.all_rows()
    shown = begun is not Lifecycle.WORKING
    assert (cells(made) == [refusal]) is shown
    assert made.turn(row) == (f"a node that can do it ({refusal})" if shown else "")
    fold_state(made, 1, task_transition(Lifecycle.WORKING))
    assert refusal not in cells(made)


@pytest.mark.parametrize(("opened", "rings"), [(AT, True), (AT + timedelta(hours=1), False)])
def test_a_person_is_called_for_what_comes_while_they_look(opened: datetime, rings: bool) -> None:
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
    fold_state(made, 2, DONE)
    assert trouble(no_node(made)) == ("no node is up, and 1 task is waiting for one", AT)
    made.meet_monitors([])
    both = trouble(missing_parts(made, AT))
    assert both is not None
    assert both[0].startswith(
        "no node is up, and 1 task is waiting for one → `midwatch node` starts one; "
        "no monitor is running: nobody escalates"
    )
    fold_state(made, 1, DONE)
    assert (no_monitor(made, AT), no_node(made)) == (None, None)
