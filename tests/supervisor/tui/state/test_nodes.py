"""How the console takes the nodes of a fleet, and what is adrift without its own."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from midwatch_monitor.records import (
    Change,
    Fault,
    Health,
    NodeState,
    NodeStatus,
    Record,
    Severity,
    SupervisedBy,
)
from midwatch_stage.factories import AT, alert, attempt, run, transition
from midwatch_stage.nodes import node
from midwatch_stage.rows import Fleet
from midwatch_supervisor.present.record_text import line
from midwatch_supervisor.tui.bell import Bell
from midwatch_supervisor.tui.screens.banner import failed_parts
from midwatch_supervisor.tui.screens.lists import hosts
from midwatch_supervisor.tui.state.attention import AttentionQueue
from midwatch_supervisor.tui.state.node_list import NodeList, node_word
from midwatch_supervisor.tui.state.row import Row

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
def test_of_an_attempt_whose_node_is_gone_nobody_knows_how_it_fares(
    nodes: Sequence[NodeStatus], health: Health
) -> None:
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
    queue.observe()
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
