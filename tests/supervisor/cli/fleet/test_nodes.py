"""What people are told of a fleet: who has what in hand, who watches it, and what is missing."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.journal.fleet.nodes import MonitorStatus, Nodes
from midwatch_monitor.records import Attempt, DeliveryState, Lifecycle, NodeState, SupervisedBy
from midwatch_supervisor.cli.inspect.status import DAY, lost_notices
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.present.waiting import monitor_absent
from midwatch_tests.command import Cli, new_attempt, new_task, write
from midwatch_tests.factories import change, delivery, intervention, task_transition, transition
from midwatch_tests.matrix import DATABASES
from midwatch_tests.nodes import node

NODE_A = node("node-a", slots=2, busy=1, began=datetime.now(UTC))
NO_NODE = "no node is up: nothing continues until one is; `midwatch node` starts one"
NO_MONITOR = (
    "no monitor is running: nobody escalates, decides or learns until one is; "
    "`midwatch monitor` starts one"
)
SPEC = "of a task file"
"""Not that of an agent that came by itself."""

LEFT = "left fix#1 (1), which no node has taken over yet"
LABELS = {"id": "fix", "goal": "Fix it.", "labels": ["gpu"], "acceptance": ["true"]}

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
async def working_attempt(journal: Journal) -> Attempt:
    """An attempt at work on node-a, the only node of a fleet."""
    now = datetime.now(UTC)
    task = await new_task(journal, supervised_by=SupervisedBy.MONITOR, spec=SPEC, at=now)
    made = await new_attempt(journal, task, node="node-a", at=now)
    await Nodes(journal).enter(NODE_A, alive_seconds=1)
    await set_lifecycle(journal, made, Lifecycle.WORKING)
    await journal.claim(made.id, holder=NODE_A.holder, at=now)
    return made


async def set_lifecycle(journal: Journal, attempt: Attempt, lifecycle: Lifecycle) -> None:
    await write(journal, attempt, datetime.now(UTC), transition(lifecycle))


async def set_node_state(journal: Journal, state: NodeState) -> None:
    await Nodes(journal).beat("node-a", "1", busy=0, state=state)


async def take_leases(journal: Journal, attempt: Attempt, *, seconds: float = 60) -> None:
    monitor_leases = MonitorLeases(journal)
    await monitor_leases.take([attempt.id], holder="watch:1", seconds=seconds)
    for post in ("learner", "dispatch midwatch"):
        await monitor_leases.take_post(post, holder="watch:1", seconds=seconds)


async def read_waits_for(cli: Cli) -> str:
    """What the first task of `status` waits for."""
    return (await cli.ask("status"))[0]["waits_for"]


async def test_a_node_is_listed_with_what_it_can_do_and_what_is_said_of_it(
    journal: Journal, cli: Cli
) -> None:
    await Nodes(journal).enter(replace(NODE_A, labels=("gpu",)), alive_seconds=1)
    await Nodes(journal).doubt("node-a")
    node, _ = await cli.read("nodes")
    doubted = "labels gpu, the broker says that it is gone, version "
    assert node.startswith(f"node-a: up, 1 of 2 slots, {doubted}")
    line = (await cli.ask("nodes"))[0]
    told = [line[key] for key in ("type", "name", "state", "busy", "labels", "attempts")]
    assert told == ["node", "node-a", "up", 1, ["gpu"], []]


async def test_an_attempt_in_hand_is_named_with_its_id_and_since_when(
    working_attempt: Attempt, cli: Cli
) -> None:
    node, _ = await cli.read("nodes")
    assert re.match(r"node-a: up, 1 of 2 slots, has had fix#1 \(1\) for \d+ s, ver", node)


@pytest.mark.parametrize("state", [NodeState.LOST, NodeState.DOWN])
async def test_what_a_node_left_and_nobody_has_taken_is_named_also_once_it_is_back(
    state: NodeState, journal: Journal, working_attempt: Attempt, cli: Cli
) -> None:
    await set_node_state(journal, state)
    node, none, _ = await cli.read("nodes")
    assert node.startswith(f"node-a: {state}, {LEFT}, version 0.1.0, last heard from ")
    assert none == NO_NODE
    line = (await cli.ask("nodes"))[0]
    assert (line["attempts"], line["left_behind"]) == ([], [working_attempt.id])
    await Nodes(journal).enter(replace(NODE_A, boot="2", busy=0), alive_seconds=1)
    node, _ = await cli.read("nodes")
    assert node.startswith(f"node-a: up, 0 of 2 slots, {LEFT}, version ")


async def test_what_a_process_of_the_same_machine_has_to_itself_is_nothing_left(
    journal: Journal, attempt: Attempt, cli: Cli
) -> None:
    await Nodes(journal).enter(NODE_A, alive_seconds=1)
    await set_lifecycle(journal, attempt, Lifecycle.WORKING)
    await journal.claim(attempt.id, holder="node-a:4711", at=datetime.now(UTC))
    node, _ = await cli.read("nodes")
    assert node.startswith("node-a: up, 1 of 2 slots, version ")


async def test_a_node_that_died_is_lost_to_readers_though_nobody_is_left_to_note_it(
    journal: Journal, working_attempt: Attempt, cli: Cli
) -> None:
    long_ago = datetime.now(UTC) - timedelta(minutes=5)
    await journal.write(_set_last_beat, long_ago)
    node, none, _ = await cli.read("nodes")
    assert node.startswith(f"node-a: lost, {LEFT}, version 0.1.0, last heard from 5 min ago")
    assert none == NO_NODE
    line = (await cli.ask("nodes"))[0]
    assert (line["state"], line["silent_seconds"] > 299) == ("lost", True)
    status = await cli.read("status")
    heard = f"{long_ago.astimezone():%Y-%m-%d %H:%M:%S}"
    assert "node-a (lost)" in status[2]
    assert f"node node-a is lost: last heard from {heard}" in status
    task, lost, *_ = await cli.ask("status")
    assert (lost["type"], lost["name"], lost["state"]) == ("node", "node-a", "lost")
    assert (task["health"], task["waits_for"]) == ("unknown", "another node (node-a is lost)")
    (stored,) = await Nodes(journal).starts()
    assert stored.state is NodeState.UP


def _set_last_beat(connection: Connection, moment: datetime) -> None:
    connection.execute(update(tables.node).values(beat_at=moment))


async def test_where_there_are_several_fleets_each_node_is_listed_with_its_own(
    journal: Journal, working_attempt: Attempt, cli: Cli
) -> None:
    gone = replace(NODE_A, name="node-b", fleet="theirs", state=NodeState.DOWN, busy=0)
    await Nodes(journal).enter(gone, alive_seconds=1)
    ours, theirs, none, _ = await cli.read("nodes")
    assert ours.startswith("node-a: up, fleet midwatch, 1 of 2 slots, has had fix#1")
    assert theirs.startswith("node-b: down, fleet theirs, version ")
    assert none == NO_NODE.replace("no node", "no node of fleet theirs", 1)
    assert [line["fleet"] for line in await cli.ask("nodes")] == ["midwatch", "theirs"]


async def test_a_monitor_is_listed_with_what_it_does(
    journal: Journal, working_attempt: Attempt, cli: Cli
) -> None:
    await take_leases(journal, working_attempt)
    for post in ("notifier", "telemetry", "of a newer version"):
        await MonitorLeases(journal).take_post(post, holder="watch:1", seconds=60)
    _, monitor = await cli.read("nodes")
    assert monitor == (
        "monitor watch: watches 1 attempt, hands out the tasks of fleet midwatch, learns, "
        "notifies people, has the post of a newer version, sends telemetry"
    )
    line = (await cli.ask("nodes"))[1]
    assert (line["type"], line["name"], line["attempts"]) == (
        "monitor",
        "watch",
        [working_attempt.id],
    )
    assert line["posts"][:3] == ["dispatch midwatch", "learner", "notifier"]


@pytest.mark.parametrize("location", DATABASES, indirect=True)
async def test_the_journal_knows_who_has_what(journal: Journal, working_attempt: Attempt) -> None:
    nodes = Nodes(journal)
    assert await nodes.monitors() == []
    held = (await nodes.named([working_attempt.id, 99]))[working_attempt.id]
    assert (held.task, held.number, held.holder, held.shared) == ("fix", 1, "node-a:1", True)
    await take_leases(journal, working_attempt)
    (monitor,) = await nodes.monitors()
    assert (monitor.holder, monitor.attempts) == ("watch:1", (working_attempt.id,))
    assert monitor.posts == ("dispatch midwatch", "learner")
    await MonitorLeases(journal).finish([working_attempt.id], holder="watch:1")
    assert [each.attempts for each in await nodes.monitors()] == [()]


@pytest.mark.parametrize(("ago", "absent"), [(-1, False), (0, True), (90, True)])
def test_a_monitor_is_gone_once_all_its_leases_have_run_out(ago: int, absent: bool) -> None:
    now = datetime.now(UTC)
    old = MonitorStatus(holder="first:1", until=now - timedelta(hours=3))
    last = MonitorStatus(holder="watch:1", until=now - timedelta(seconds=ago))
    said = NO_MONITOR.replace(":", f" (watch was, until {ago} s ago):", 1)
    assert monitor_absent([last, old], now) == (said if absent else "")


async def test_status_says_what_a_fleet_with_work_to_do_lacks(
    journal: Journal, working_attempt: Attempt, cli: Cli
) -> None:
    assert (await cli.read("status"))[3:] == [NO_MONITOR]
    await take_leases(journal, working_attempt)
    assert (await cli.read("status"))[3:] == []
    await set_node_state(journal, NodeState.DOWN)
    assert (await cli.read("status"))[3:] == [NO_NODE]


async def test_what_a_person_can_answer_is_asked_although_the_node_is_lost(
    journal: Journal, working_attempt: Attempt, cli: Cli
) -> None:
    held = intervention(needs_approval=True)
    parked = change(lifecycle=Lifecycle.INPUT_REQUIRED)
    number = await write(journal, working_attempt, datetime.now(UTC), parked, held)
    await set_node_state(journal, NodeState.LOST)
    assert (await read_waits_for(cli)).startswith("approval of nudge")
    approved = delivery(number, DeliveryState.APPROVED)
    await write(journal, working_attempt, datetime.now(UTC), approved)
    assert (await cli.ask("status"))[0]["stands"] == "resuming…"
    assert await read_waits_for(cli) == "another node (node-a is lost)"


async def test_what_has_not_begun_waits_for_its_turn_or_for_a_node_that_can_do_it(
    journal: Journal, working_attempt: Attempt, cli: Cli
) -> None:
    await set_lifecycle(journal, working_attempt, Lifecycle.SUBMITTED)
    assert await read_waits_for(cli) == "its turn"
    file = TaskFile.model_validate({"workers": {"coder": {}}, "tasks": [LABELS]})
    spec = assignments(file, Path.cwd())[0].model_dump_json()
    now = datetime.now(UTC)
    task = await new_task(journal, supervised_by=SupervisedBy.MONITOR, spec=spec, at=now)
    failed = await new_attempt(journal, task, node="node-a", at=now)
    over = (transition(Lifecycle.FAILED), task_transition(Lifecycle.FAILED))
    await write(journal, failed, now, *over)
    await OperatorActions(journal, author="ada").begin_again(failed, "Anew.", step=0)
    assert await read_waits_for(cli) == "a node with the label gpu (none is up)"


@pytest.mark.parametrize(
    ("other", "holder", "others"),
    [
        ("midwatch", "node-a:1", True),
        (None, "node-a:1", False),
        ("midwatch", "node-b:1", False),
        ("theirs", "node-a:1", False),
    ],
)
def test_others_go_on_with_what_a_lost_node_still_holds_if_its_fleet_has_any(
    other: str | None, holder: str, *, others: bool
) -> None:
    lost = replace(NODE_A, state=NodeState.LOST)
    more = [] if other is None else [replace(NODE_A, name="node-b", fleet=other)]
    ((fields, said),) = lost_notices([lost, *more], lost.beat_at - DAY, [holder], UTC)
    assert said.endswith("; other nodes take over its attempts") is others
    assert (fields["name"], fields["taken_over"]) == ("node-a", others)


@pytest.mark.parametrize(
    ("location", "first"),
    [("postgresql", "no node has joined yet: "), ("file", "no monitor is running: ")],
    indirect=["location"],
)
@pytest.mark.usefixtures("journal")
async def test_a_journal_without_nodes_says_so_where_one_could_join(first: str, cli: Cli) -> None:
    assert (await cli.said("nodes")).startswith(first)
    assert await cli.ask("nodes") == []
