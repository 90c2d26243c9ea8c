"""What is withdrawn from a fleet: its turns, its attempts, and what depends on it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from sqlalchemy import create_engine, text

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import MonitorSettings, RunSettings, Sandbox, Settings
from midwatch_monitor.config.tasks import Role, TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import AttemptTransition, Ending, Lifecycle, TaskTransition
from midwatch_supervisor.cli import main
from midwatch_supervisor.fleet.nodes.node import open_node
from midwatch_supervisor.fleet.process import identity
from midwatch_supervisor.fleet.queue.dispatch import Dispatcher
from midwatch_supervisor.fleet.queue.queue import TurnQueue, TurnUnderWay
from midwatch_supervisor.fleet.queue.submission import submit
from midwatch_supervisor.operator.withdrawal import Withdrawing
from midwatch_supervisor.present.assignment import assignments
from midwatch_tools.watch import now

pytestmark = pytest.mark.parametrize("location", ["postgresql"], indirect=True)

SETTINGS = Settings(
    monitor=MonitorSettings(poll_seconds=0.05),
    run=RunSettings(sandbox=Sandbox.OFF, grace_seconds=0.2),
)
TASKS = """
models: {{worker: "scripted:{here}@0", supervisor: none}}
workers: {{clerk: {{kind: task, tools: ["{here}:hang"]}}}}
tasks:
  - {{id: a, goal: Do it., acceptance: ["true"]{more}}}
  - {{id: b, goal: Do it., acceptance: ["true"], depends_on: [a]}}
"""


async def hang() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


def script_for(role: Role, key: str) -> Script:
    return Script(phases=(Phase(turns=(Turn(calls=(Call(tool="hang", args="{}"),)),)),))


class Yard:
    """A journal in PostgreSQL, and a node in this process."""

    def __init__(self, journal: Journal, location: str, home: Path) -> None:
        self.journal = journal
        self.location = location
        self.home = home

    async def submit(self, more: str = "") -> None:
        file = TaskFile.model_validate(yaml.safe_load(TASKS.format(here=__name__, more=more)))
        wanted = assignments(file, self.home)
        await submit(self.journal, wanted, source="t.yaml", settings=SETTINGS, clock=now)
        await self.look()

    @asynccontextmanager
    async def turn_queue(self) -> AsyncGenerator[TurnQueue]:
        opened = await TurnQueue.open(self.location, fleet="midwatch")
        try:
            yield opened
        finally:
            await opened.close()

    async def look(self) -> None:
        """Hand out what can go on, and take back what cannot."""
        nodes, fleet = Nodes(self.journal), SETTINGS.fleet
        async with self.turn_queue() as turn_queue:
            await Dispatcher(self.journal, turn_queue, nodes, settings=fleet, clock=now).look()

    async def queued(self) -> list[int]:
        """The tasks whose turns are under way, or wait for a node."""
        async with self.turn_queue() as turn_queue:
            return [each.ticket.task for each in await turn_queue.under_way()]

    async def cancel(self, *words: str) -> int:
        return await asyncio.to_thread(main, ("cancel", "--journal", self.location, *words))

    async def withdraw(self) -> None:
        """Withdraw the first task and tell no queue, like one who is cut off."""
        (run,) = await self.journal.runs()
        withdrawing = Withdrawing(self.journal, bus=LocalBus(), author="ada")
        await withdrawing.withdraw(run, await self.journal.task(1))

    @asynccontextmanager
    async def node(self) -> AsyncGenerator[None]:
        """A node at work; it leaves at the end, at once."""
        ready = asyncio.Event()
        async with open_node(
            *(self.journal, self.location, identity("node-a")),
            home=self.home,
            settings=SETTINGS,
            environ={},
        ) as node:
            running = asyncio.create_task(node.run(self.location, ready=ready.set))
            await ready.wait()
            try:
                yield
            finally:
                node.stop()
                node.stop()
                await running

    async def until(self, happened: Callable[[], Awaitable[bool]]) -> None:
        """Wait for something to be true; half a minute at most."""
        nothing = LocalBus().subscribe()
        async with asyncio.timeout(30):
            while not await happened():
                await nothing.wait(0.05)

    async def state(self, task: int) -> TaskTransition:
        found = (await self.journal.entries(task=task, kinds=(TaskTransition,)))[-1].record
        assert isinstance(found, TaskTransition)
        return found

    async def until_over(self, task: int) -> TaskTransition:
        async def over() -> bool:
            return (await self.state(task)).lifecycle.over

        await self.until(over)
        return await self.state(task)

    async def until_working(self) -> None:
        async def there() -> bool:
            working = AttemptTransition(lifecycle=Lifecycle.WORKING)
            said = await self.journal.entries(kinds=(AttemptTransition,))
            return working in [each.record for each in said]

        await self.until(there)


@pytest.fixture
def yard(journal: Journal, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    monkeypatch.chdir(tmp_path)
    return Yard(journal, location, tmp_path)


async def test_the_turn_of_a_canceled_task_is_taken_out_of_its_queue(yard: Yard) -> None:
    await yard.submit(", labels: [gpu]")
    assert await yard.queued() == [1]
    assert await yard.cancel("--run", "1") == 0
    assert await yard.queued() == []


async def test_a_turn_that_was_left_in_its_queue_is_taken_out_by_who_hands_out(yard: Yard) -> None:
    await yard.submit(", labels: [gpu]")
    await yard.withdraw()
    assert await yard.queued() == [1]
    await yard.look()
    assert await yard.queued() == [2]


async def test_a_turn_is_taken_only_from_the_process_that_has_it(yard: Yard) -> None:
    await yard.submit(", labels: [gpu]")
    await asyncio.to_thread(_give, yard.location, "node-b:1")
    async with yard.turn_queue() as turn_queue:
        (handed,) = await turn_queue.under_way()
        of_others = [
            await turn_queue.rescue(handed.ticket, labels=("gpu",), holder=holder)
            for holder in ("node-a:1", "node-b:1", "node-b:1")
        ]
        assert (handed.holder, of_others) == ("node-b:1", [False, True, False])
        assert await turn_queue.under_way() == [TurnUnderWay(ticket=handed.ticket)]


def _give(location: str, holder: str) -> None:
    """Let a process have the turns that wait, as if it had taken them."""
    engine = create_engine(location)
    with engine.begin() as connection:
        change = "UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = :holder"
        connection.execute(text(change), {"holder": holder})
    engine.dispose()


async def test_a_node_that_is_given_a_canceled_task_puts_it_away(yard: Yard) -> None:
    await yard.submit()
    await yard.withdraw()
    async with yard.node():
        state = await yard.until_over(2)
    assert state == TaskTransition(
        lifecycle=Lifecycle.FAILED, reason="it depends on a, which is canceled"
    )
    assert await yard.journal.attempts(1) == await yard.journal.attempts(2) == []
    assert await yard.queued() == []


async def test_what_is_under_way_is_stopped_and_what_depends_on_it_fails(yard: Yard) -> None:
    await yard.submit()
    async with yard.node():
        await yard.until_working()
        assert await yard.cancel("a", "--from", "ada") == 0
        states = [await yard.until_over(task) for task in (1, 2)]
        assert await yard.cancel("a", "--from", "ada") == 0
    assert [(each.lifecycle, each.reason) for each in states] == [
        (Lifecycle.FAILED, "stop by operator: canceled by ada"),
        (Lifecycle.FAILED, "it depends on a, which is failed"),
    ]
    ended = (await yard.journal.entries(attempt=1, kinds=(AttemptTransition,)))[-1].record
    assert isinstance(ended, AttemptTransition)
    assert ended.ending is Ending.STUCK
