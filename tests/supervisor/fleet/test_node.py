"""One node of a fleet: what it takes, gives back, lets wait, leaves behind and puts away."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pydantic_ai import RunContext
from sqlalchemy import create_engine, text

from midwatch_agents.scripted import Script
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.config.settings import MonitorSettings, RunSettings, Sandbox, Settings
from midwatch_monitor.config.tasks import Role, TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import now
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Change,
    Commit,
    Ending,
    Intervention,
    Lifecycle,
    NodeState,
    Part,
    TaskTransition,
    Terms,
)
from midwatch_supervisor.fleet.nodes.node import Node, open_node
from midwatch_supervisor.fleet.process import identity
from midwatch_supervisor.fleet.queue.dispatch import Dispatcher
from midwatch_supervisor.fleet.queue.queue import TurnQueue, TurnUnderWay
from midwatch_supervisor.fleet.queue.submission import submit
from midwatch_supervisor.operator.tasks import Withdrawer
from midwatch_supervisor.present.assignment import assignments
from midwatch_tests.acting import DONE, script, task_file
from midwatch_tests.command import midwatch
from midwatch_tests.database import Database
from midwatch_tests.factories import call, drafts, turn
from midwatch_tests.reading import records_of

pytestmark = pytest.mark.parametrize("location", ["postgresql"], indirect=True)

_gates: dict[str, asyncio.Event] = {}


async def gate(ctx: RunContext[object], name: str) -> str:
    """Wait until the gate of that name is opened."""
    await ctx.workspace.write_bytes("out.txt", b"here")
    await _gates.setdefault(name, asyncio.Event()).wait()
    return "open"


def script_for(role: Role, key: str) -> Script:
    return script(turn(call("gate", name=key)), DONE)


def item(name: str, more: str = "") -> str:
    return f"id: {name}, goal: Do it., acceptance: [file: out.txt]{more}"


class Fleet:
    """A fleet on a journal in PostgreSQL, of which one node may be in this process."""

    def __init__(self, journal: Journal, location: str, home: Path) -> None:
        self.journal = journal
        self.location = location
        self.home = home
        self.nodes = Nodes(journal)
        self.settings = Settings(
            monitor=MonitorSettings(poll_seconds=0.05),
            run=RunSettings(sandbox=Sandbox.OFF, grace_seconds=0.2),
            fleet=FleetSettings(slots=2, drain_seconds=20, lost_after_seconds=3),
        )

    async def submit(self, *items: str, tools: Sequence[Callable[..., object]] = (gate,)) -> None:
        """Hand tasks over, and hand out what can begin."""
        file = TaskFile.model_validate(yaml.safe_load(task_file(__name__, *items, tools=tools)))
        wanted = assignments(file, self.home)
        await submit(self.journal, wanted, source="tasks.yaml", settings=self.settings, clock=now)
        await self.look()

    async def turn_queue(self) -> TurnQueue:
        return await TurnQueue.open(self.location, fleet="midwatch")

    async def look(self) -> None:
        """Hand out what can go on, and take back what cannot."""
        nodes, fleet = self.nodes, self.settings.fleet
        async with await self.turn_queue() as turn_queue:
            await Dispatcher(self.journal, turn_queue, nodes, settings=fleet, clock=now).look()

    async def queued_tasks(self) -> list[int]:
        """The tasks whose turns are under way, or wait for a node."""
        async with await self.turn_queue() as turn_queue:
            return [each.ticket.task for each in await turn_queue.under_way()]

    async def cancel(self, *words: str) -> int:
        return await midwatch("cancel", "--journal", self.location, *words)

    async def withdraw(self) -> None:
        """Withdraw the first task and tell no queue, like one who is cut off."""
        (run,) = await self.journal.runs()
        withdrawing = Withdrawer(self.journal, bus=LocalBus(), author="ada")
        await withdrawing.withdraw(run, await self.journal.task(1))

    @asynccontextmanager
    async def node(self, name: str = "node-a", **fleet: object) -> AsyncGenerator[Node]:
        """A node at work; it is told to leave at the end, at once."""
        own = self.settings.fleet.model_copy(update=fleet)
        settings = self.settings.model_copy(update={"fleet": own})
        ready = asyncio.Event()
        async with open_node(
            *(self.journal, self.location, identity(name)),
            home=self.home / name,
            settings=settings,
            environ={},
        ) as node:
            running = asyncio.create_task(node.run(self.location, ready=ready.set))
            ready_or_not = asyncio.create_task(ready.wait())
            try:
                await asyncio.wait({running, ready_or_not}, return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    await running
                yield node
            finally:
                ready_or_not.cancel()
                node.stop()
                node.stop()
                await running

    async def until(self, happened: Callable[[], Awaitable[bool]]) -> None:
        """Wait for something to be true; two minutes at most."""
        nothing = LocalBus().subscribe()
        async with asyncio.timeout(120):
            while not await happened():
                await nothing.wait(0.05)

    async def until_over(self, *names: str) -> None:
        """Wait until these tasks are over."""

        async def are_over() -> bool:
            return all(state.lifecycle.over for state in await self.states(*names))

        await self.until(are_over)

    async def until_at(self, lifecycle: Lifecycle, *, attempt: int = 1) -> None:
        """Wait until an attempt is there."""

        async def is_there() -> bool:
            states = await records_of(self.journal, AttemptTransition, attempt)
            return states[-1:] != [] and states[-1].lifecycle is lifecycle

        await self.until(is_there)

    async def until_node(self, state: NodeState) -> None:
        """Wait until the first node is there."""

        async def is_there() -> bool:
            return (await self.nodes.all())[0].state is state

        await self.until(is_there)

    async def states(self, *names: str) -> list[TaskTransition]:
        """Where these tasks stand, in order."""
        states = {each.id: each.name for each in await self.journal.tasks(1)}
        last = {
            states[each.task]: each.record
            for each in await self.journal.entries(kinds=(TaskTransition,))
            if isinstance(each.record, TaskTransition)
        }
        return [last[name] for name in names]

    async def say(self, attempt: int, action: Action, terms: Terms | None = None) -> None:
        """Let an operator say something to an attempt."""
        of = await self.journal.attempt(attempt)
        said = Intervention(action=action, by=Actor.OPERATOR, terms=terms or Terms())
        await self.journal.commit(Commit(drafts=drafts(replace(of, started_at=now()), [said])))


@pytest.fixture
def fleet(journal: Journal, location: str, tmp_path: Path) -> Fleet:
    _gates.clear()
    return Fleet(journal, location, tmp_path)


def open_gate(*names: str) -> None:
    for name in names:
        _gates.setdefault(name, asyncio.Event()).set()


async def test_a_node_does_what_was_submitted(fleet: Fleet) -> None:
    await fleet.submit(item("a"), item("b", ", depends_on: [a]"))
    open_gate("a", "b")
    async with fleet.node():
        await fleet.until_over("a", "b")
        (status,) = await fleet.nodes.all()
        assert (status.name, status.state, status.slots) == ("node-a", NodeState.UP, 2)
    completed = TaskTransition(
        lifecycle=Lifecycle.COMPLETED, reason="every acceptance check passed", passed=1, total=1
    )
    assert await fleet.states("a", "b") == [completed, completed]
    (status,) = await fleet.nodes.all()
    assert (status.state, status.busy) == (NodeState.DOWN, 0)


@pytest.mark.matrix
async def test_what_waits_for_a_person_frees_its_slot_and_goes_on_after_the_answer(
    fleet: Fleet,
) -> None:
    await fleet.submit(item("a"), item("b"))
    async with fleet.node(slots=1):
        await fleet.until_at(Lifecycle.WORKING)
        await fleet.say(1, Action.PAUSE)
        open_gate("a", "b")
        await fleet.until_over("b")
        await fleet.until_at(Lifecycle.INPUT_REQUIRED)
        await fleet.say(1, Action.RESUME)
        await fleet.look()
        await fleet.until_over("a")
    assert [attempt.number for attempt in await fleet.journal.attempts(1)] == [1]


async def test_a_node_with_fewer_slots_than_another_gives_back_what_it_has_no_place_for(
    fleet: Fleet,
) -> None:
    async with fleet.node("wide", slots=3):
        pass
    await fleet.submit(item("a"), item("b"), item("c"))
    async with fleet.node("narrow", slots=1):
        await fleet.until_at(Lifecycle.WORKING)
        await asyncio.to_thread(_until_given_back, fleet.location)
        # One attempt: submitted, and working.
        assert len(await records_of(fleet.journal, AttemptTransition)) == 2
        open_gate("a", "b", "c")
        await fleet.until_over("a", "b", "c")
    assert [len(await fleet.journal.attempts(task)) for task in (1, 2, 3)] == [1, 1, 1]
    turns = await asyncio.to_thread(_turns, fleet.location)
    assert [(task, number) for task, number, _ in turns] == [("1", "1"), ("2", "1"), ("3", "1")]
    assert max(times for *_, times in turns) == 1  # what is put back begins anew


def _turns(location: str) -> list[tuple[str, str, int]]:
    """The task, the number and the written steps of all turns, as their queue gives them out."""
    engine = create_engine(location)
    query = """
        SELECT w.workflow_uuid, count(s.function_id) FROM dbos.workflow_status w
        LEFT JOIN dbos.operation_outputs s USING (workflow_uuid)
        GROUP BY w.workflow_uuid, w.priority, w.created_at ORDER BY w.priority, w.created_at, 1
    """
    with engine.connect() as connection:
        rows = connection.execute(text(query)).all()
    engine.dispose()
    return [(*id.split(":")[2:], steps) for id, steps in rows]


def _until_given_back(location: str) -> None:
    """Wait until the node was given seven turns: two of the three came back to it twice."""
    query = "SELECT workflow_uuid, started_at_epoch_ms FROM dbos.workflow_status"
    given = set[tuple[str, int]]()
    with create_engine(location).connect() as connection:
        while len(given) < 7:
            given |= {(turn, at) for turn, at in connection.execute(text(query)) if at}
            connection.rollback()
    connection.engine.dispose()


@pytest.mark.matrix
async def test_a_task_waits_for_a_node_with_its_labels(fleet: Fleet) -> None:
    await fleet.submit(item("a", ", labels: [gpu]"), item("b"))
    open_gate("a", "b")
    async with fleet.node("plain"):
        await fleet.until_over("b")
    assert [state.lifecycle for state in await fleet.states("a")] == [Lifecycle.SUBMITTED]
    async with fleet.node("strong", labels=("big", "gpu")):
        await fleet.until_over("a")
    assert [attempt.node for attempt in await fleet.journal.attempts(1)] == ["strong"]


async def test_a_task_that_no_node_can_do_waits_with_the_reason(fleet: Fleet) -> None:
    def absent_tool() -> None:
        """A tool of a module that the node does not have."""

    absent_tool.__module__ = "no_such_module"
    await fleet.submit(item("a"), tools=(absent_tool,))

    async def is_refused() -> bool:
        return (await fleet.states("a"))[0].reason != ""

    async with fleet.node():
        await fleet.until(is_refused)
    (state,) = await fleet.states("a")
    assert state.lifecycle is Lifecycle.SUBMITTED
    assert state.reason.startswith("node-a cannot do it: ")
    assert "no_such_module" in state.reason
    assert await fleet.journal.attempts(1) == []


@pytest.mark.matrix
async def test_a_node_that_leaves_ends_what_it_has_in_hand(fleet: Fleet) -> None:
    await fleet.submit(item("a"), item("b"), item("c"))
    async with fleet.node() as node:
        await fleet.until_at(Lifecycle.WORKING)
        await fleet.until_at(Lifecycle.WORKING, attempt=2)
        node.stop()
        await fleet.until_node(NodeState.DRAINING)
        open_gate("a", "b", "c")
        await fleet.until_over("a", "b")
    assert [state.lifecycle for state in await fleet.states("c")] == [Lifecycle.SUBMITTED]


async def test_what_a_node_gives_back_another_goes_on_with(fleet: Fleet) -> None:
    await fleet.submit(item("a"))
    async with fleet.node("node-a"):
        await fleet.until_at(Lifecycle.WORKING)
    assert (await fleet.nodes.all())[0].state is NodeState.DOWN
    open_gate("a")
    async with fleet.node("node-b"):
        await fleet.until_over("a")
    assert [state.lifecycle for state in await fleet.states("a")] == [Lifecycle.COMPLETED]
    assert [attempt.node for attempt in await fleet.journal.attempts(1)] == ["node-a"]
    states = await records_of(fleet.journal, AttemptTransition)
    assert [state.lifecycle.over for state in states] == [False, False, True]


@pytest.mark.matrix
async def test_a_node_that_was_taken_for_lost_gives_back_all_and_goes_on(fleet: Fleet) -> None:
    await fleet.submit(item("a"))
    async with fleet.node(beat_seconds=0.2):
        await fleet.until_at(Lifecycle.WORKING)
        first = await fleet.nodes.all()
        await fleet.nodes.beat(first[0].name, first[0].boot, busy=0, state=NodeState.LOST)
        await fleet.until_node(NodeState.UP)
        open_gate("a")
        await fleet.until_over("a")
    assert [attempt.number for attempt in await fleet.journal.attempts(1)] == [1]
    claims = [each for each in await records_of(fleet.journal, Change) if each.node == "node-a"]
    assert len(claims) == 2


@pytest.mark.matrix
@pytest.mark.usefixtures("location")
async def test_a_node_rides_out_a_database_that_is_killed(
    database: Database, tmp_path: Path
) -> None:
    location = database.create("fleet")
    async with await Journal.open(location) as journal:
        fleet = Fleet(journal, location, tmp_path)
        await fleet.submit(item("a"), item("b", ", depends_on: [a]"))
        async with fleet.node(beat_seconds=0.2):
            await fleet.until_at(Lifecycle.WORKING)
            await asyncio.to_thread(database.kill)
            open_gate("a", "b")
            await asyncio.to_thread(database.restart)
            await fleet.until_over("a", "b")
        states = await records_of(journal, AttemptTransition)
        assert [state.lifecycle.over for state in states].count(True) == 2
        assert len(await journal.attempts(1)) == len(await journal.attempts(2)) == 1


@pytest.mark.matrix
async def test_a_restart_after_another_task_gives_up_its_slot_until_that_is_over(
    fleet: Fleet,
) -> None:
    await fleet.submit("id: a, goal: Do it., acceptance: ['true']", item("b"))
    async with fleet.node(slots=1):
        await fleet.until_at(Lifecycle.WORKING)
        await fleet.say(1, Action.RESTART, Terms(after="b"))
        open_gate("b")
        await fleet.until_over("a", "b")
    attempts = [*await fleet.journal.attempts(1), *await fleet.journal.attempts(2)]
    assert [(each.id, each.task) for each in attempts] == [(1, 1), (3, 1), (2, 2)]
    assert [state.lifecycle for state in await fleet.states("a")] == [Lifecycle.COMPLETED]


@pytest.mark.matrix
async def test_the_parts_of_a_split_are_gone_on_with_by_another_node(fleet: Fleet) -> None:
    await fleet.submit(item("a"))
    parts = tuple(Part(title=f"Part {n}", goal="Half of it.") for n in (1, 2))
    async with fleet.node("node-a", slots=1):
        await fleet.until_at(Lifecycle.WORKING)
        await fleet.say(1, Action.SPLIT, Terms(parts=parts))
        await fleet.until_at(Lifecycle.WORKING, attempt=2)
    open_gate("a", "a.1", "a.2")
    async with fleet.node("node-b", slots=1):
        await fleet.until_over("a", "a.1", "a.2")
    states = await fleet.states("a", "a.1", "a.2")
    assert [state.lifecycle for state in states] == 3 * [Lifecycle.COMPLETED]
    assert [len(await fleet.journal.attempts(task)) for task in (1, 2, 3)] == [1, 1, 1]


async def test_the_turn_of_a_canceled_task_is_taken_out_of_its_queue(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await fleet.submit(item("a", ", labels: [gpu]"), item("b", ", depends_on: [a]"))
    assert await fleet.queued_tasks() == [1]
    assert await fleet.cancel("--run", "1") == 0
    assert await fleet.queued_tasks() == []


async def test_a_turn_that_was_left_in_its_queue_is_taken_out_by_who_hands_out(
    fleet: Fleet,
) -> None:
    await fleet.submit(item("a", ", labels: [gpu]"), item("b", ", depends_on: [a]"))
    await fleet.withdraw()
    assert await fleet.queued_tasks() == [1]
    await fleet.look()
    assert await fleet.queued_tasks() == [2]


async def test_a_turn_is_taken_only_from_the_process_that_has_it(fleet: Fleet) -> None:
    await fleet.submit(item("a", ", labels: [gpu]"), item("b", ", depends_on: [a]"))
    await asyncio.to_thread(_give_turns, fleet.location, "node-b:1")
    async with await fleet.turn_queue() as turn_queue:
        (handed,) = await turn_queue.under_way()
        of_others = [
            await turn_queue.rescue(handed.ticket, labels=("gpu",), holder=holder)
            for holder in ("node-a:1", "node-b:1", "node-b:1")
        ]
        assert (handed.holder, of_others) == ("node-b:1", [False, True, False])
        assert await turn_queue.under_way() == [TurnUnderWay(ticket=handed.ticket)]


def _give_turns(location: str, holder: str) -> None:
    """Let a process have the turns that wait, as if it had taken them."""
    engine = create_engine(location)
    with engine.begin() as connection:
        change = "UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = :holder"
        connection.execute(text(change), {"holder": holder})
    engine.dispose()


@pytest.mark.matrix
async def test_a_node_that_is_given_a_canceled_task_puts_it_away(fleet: Fleet) -> None:
    await fleet.submit(item("a"), item("b", ", depends_on: [a]"))
    await fleet.withdraw()
    async with fleet.node():
        await fleet.until_over("b")
    assert await fleet.states("b") == [
        TaskTransition(lifecycle=Lifecycle.FAILED, reason="it depends on a, which is canceled")
    ]
    assert await fleet.journal.attempts(1) == await fleet.journal.attempts(2) == []
    assert await fleet.queued_tasks() == []


@pytest.mark.matrix
async def test_what_is_under_way_is_canceled_and_what_depends_on_it_fails(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await fleet.submit(item("a"), item("b", ", depends_on: [a]"))
    async with fleet.node():
        await fleet.until_at(Lifecycle.WORKING)
        assert await fleet.cancel("a", "--from", "ada") == 0
        await fleet.until_over("a", "b")
        assert await fleet.cancel("a", "--from", "ada") == 0
    assert [(each.lifecycle, each.reason) for each in await fleet.states("a", "b")] == [
        (Lifecycle.CANCELED, "canceled by ada"),
        (Lifecycle.FAILED, "it depends on a, which is canceled"),
    ]
    ended = (await records_of(fleet.journal, AttemptTransition, 1))[-1]
    assert ended.ending is Ending.CANCELED
