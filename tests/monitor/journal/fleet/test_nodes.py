"""The rows of nodes: who lives, who is doubted, who is lost; on both databases."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection, update

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import Attempt, Lifecycle, NodeState, SupervisedBy
from midwatch_supervisor.fleet.nodes.node import status_of
from midwatch_supervisor.fleet.process import Identity
from midwatch_tests.factories import commit, transition
from midwatch_tests.matrix import DATABASES

pytestmark = pytest.mark.parametrize("location", DATABASES, indirect=True)

NODE = status_of(Identity(name="node-a", boot="1"), slots=3, labels=("gpu", "big"))


@pytest.fixture
def nodes(journal: Journal) -> Nodes:
    return Nodes(journal)


async def test_a_node_enters_with_what_it_offers(nodes: Nodes) -> None:
    await nodes.enter(NODE, alive_seconds=10)
    (found,) = await nodes.all()
    assert found == replace(NODE, started_at=found.started_at, beat_at=found.started_at)
    assert found.labels == ("big", "gpu")
    assert abs((await nodes.journal.now() - found.beat_at).total_seconds()) < 60


async def test_a_beat_says_what_it_does_and_hears_what_it_was_taken_for(nodes: Nodes) -> None:
    await nodes.enter(NODE, alive_seconds=10)
    (entered,) = await nodes.all()
    assert await nodes.beat("node-a", "1", busy=2, state=NodeState.DRAINING) is NodeState.UP
    (found,) = await nodes.all()
    assert (found.busy, found.state) == (2, NodeState.DRAINING)
    assert found.beat_at > entered.beat_at
    await nodes.beat("node-a", "1", busy=0, state=NodeState.LOST)
    assert await nodes.beat("node-a", "1", busy=2) is NodeState.LOST
    assert (await nodes.all())[0].state is NodeState.UP


async def test_a_name_that_is_alive_is_refused_and_a_silent_one_taken_over(nodes: Nodes) -> None:
    await nodes.enter(NODE, alive_seconds=10)
    again = replace(NODE, boot="2")
    with pytest.raises(UsageError, match="another name with --name"):
        await nodes.enter(again, alive_seconds=10)
    await nodes.enter(again, alive_seconds=0)
    assert await nodes.beat("node-a", "1", busy=0) is None
    await nodes.beat("node-a", "2", busy=0, state=NodeState.DOWN)
    assert await nodes.lose(after_seconds=0, beat_seconds=0) == []  # who has left is not lost
    await nodes.enter(replace(NODE, boot="3"), alive_seconds=10)
    assert [(found.boot, found.state) for found in await nodes.all()] == [("3", NodeState.UP)]


async def test_who_was_not_heard_in_time_is_lost_once(nodes: Nodes) -> None:
    await nodes.enter(NODE, alive_seconds=10)
    assert await nodes.lose(after_seconds=10, beat_seconds=5) == []
    (lost,) = await nodes.lose(after_seconds=0, beat_seconds=5)
    assert lost.holder == "node-a:1"
    assert (await nodes.all())[0].state is NodeState.LOST
    assert await nodes.lose(after_seconds=0, beat_seconds=5) == []


@pytest.mark.parametrize(
    ("settings", "seconds"), [("{}", 15), ('{"fleet": {"lost_after_seconds": 60}}', 60)]
)
async def test_who_is_silent_for_as_long_as_the_last_run_allows_reads_as_lost_and_nothing_is_noted(
    nodes: Nodes, journal: Journal, settings: str, seconds: int
) -> None:
    now = await journal.now()
    await journal.add_run(
        source="t.yaml", settings=settings, at=now, supervised_by=SupervisedBy.MONITOR
    )
    await nodes.enter(NODE, alive_seconds=10)
    for silent, state in ((seconds - 5, NodeState.UP), (seconds + 1, NodeState.LOST)):
        beat_at = await journal.now() - timedelta(seconds=silent)
        await journal.write(rewrite, "node-a", beat_at=beat_at)
        assert [each.state for each in await nodes.all()] == [state]
    assert [each.state for each in await nodes.starts()] == [NodeState.UP]


async def test_a_doubted_node_is_lost_after_two_beats_unless_one_comes(nodes: Nodes) -> None:
    await nodes.enter(NODE, alive_seconds=10)
    await nodes.doubt("node-a", "0")  # of an earlier start
    assert await nodes.lose(after_seconds=60, beat_seconds=0) == []
    await nodes.doubt("node-a")
    assert (await nodes.all())[0].doubted_at is not None
    await nodes.beat("node-a", "1", busy=0)
    assert (await nodes.all())[0].doubted_at is None
    await nodes.doubt("node-a", "1")
    assert await nodes.lose(after_seconds=60, beat_seconds=30) == []
    assert len(await nodes.lose(after_seconds=60, beat_seconds=0)) == 1
    await nodes.enter(replace(NODE, boot="2"), alive_seconds=10)
    assert (await nodes.all())[0].doubted_at is None


async def test_what_a_process_has_in_hand_is_what_works_and_it_wrote_to_last(
    nodes: Nodes, journal: Journal, attempt: Attempt
) -> None:
    for holder in ("node-a:1", "node-b:1"):
        await journal.claim(attempt.id, holder=holder, at=attempt.started_at)
    assert await nodes.in_hand() == {}
    for lifecycle, held in ((Lifecycle.WORKING, {"node-b:1": [1]}), (Lifecycle.COMPLETED, {})):
        await journal.commit(commit(attempt, transition(lifecycle)))
        assert await nodes.in_hand() == held


def rewrite(connection: Connection, name: str, **values: object) -> None:
    connection.execute(update(tables.node).where(tables.node.c.name == name).values(values))


async def test_a_fleet_gives_up_its_own_nodes_only(journal: Journal) -> None:
    ours, theirs = Nodes(journal, fleet="ours"), Nodes(journal, fleet="theirs")
    await ours.enter(replace(NODE, name="a", fleet="ours"), alive_seconds=10)
    await theirs.enter(replace(NODE, name="b", fleet="theirs"), alive_seconds=10)
    long_ago = await ours.journal.now() - timedelta(minutes=1)
    for name in ("a", "b"):
        await journal.write(rewrite, name, beat_at=long_ago)
    assert [lost.name for lost in await ours.lose(after_seconds=15, beat_seconds=1)] == ["a"]
    assert [each.state for each in await theirs.starts()] == [NodeState.UP]


async def test_a_node_in_a_state_that_only_a_newer_version_knows_is_passed_over(
    nodes: Nodes, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("node-a", "node-b"):
        await nodes.enter(replace(NODE, name=name), alive_seconds=10)
    await journal.write(rewrite, "node-a", state="dozing")
    assert [found.name for found in await nodes.all()] == ["node-b"]
    assert "node node-a cannot be read and is skipped" in caplog.text


@pytest.mark.parametrize("comes", [False, True])
async def test_who_left_a_day_ago_is_forgotten(nodes: Nodes, journal: Journal, comes: bool) -> None:
    for name, state, hours in (
        ("lost", NodeState.LOST, 25),
        ("down", NodeState.DOWN, 25),
        ("late", NodeState.DOWN, 23),
    ):
        await nodes.enter(replace(NODE, name=name), alive_seconds=10)
        await nodes.beat(name, "1", busy=0, state=state)
        beat_at = await journal.now() - timedelta(hours=hours)
        await journal.write(rewrite, name, beat_at=beat_at)
    if comes:
        await nodes.enter(NODE, alive_seconds=10)
    else:
        assert await nodes.lose(after_seconds=60, beat_seconds=5) == []
    assert [found.name for found in await nodes.all()] == ["late", "node-a"][: 1 + comes]
