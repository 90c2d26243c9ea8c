"""The console on a journal that others write: without a bus, and while the database is away."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.pilot import Pilot

from midwatch_monitor.bus import LocalBus, bus_for
from midwatch_monitor.config.fleet import BrokerSettings, FleetSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import Action, Attempt, Intervention, NodeState, SupervisedBy
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.state.feed import Feed
from midwatch_supervisor.tui.state.row import Row
from midwatch_tests import factories as make
from midwatch_tests.broker import Broker, program
from midwatch_tests.command import midwatch, new_attempt, new_task, write
from midwatch_tests.database import Database
from midwatch_tests.nodes import node
from midwatch_tests.reading import records_of


@dataclass
class Elsewhere:
    """Another machine that writes the same journal, and a console here that reads it."""

    journal: Journal
    attempt: Attempt
    app: Console
    pilot: Pilot[int]

    async def until(self, happened: Callable[[Row], bool]) -> None:
        """Wait for the line of the attempt to be so."""
        async with asyncio.timeout(120):
            while not ((row := self.app.board.rows.get(1)) and happened(row)):
                await self.pilot.pause()


@asynccontextmanager
async def elsewhere(url: str) -> AsyncGenerator[Elsewhere]:
    """A fleet whose node `north` has an attempt at work; here there is nothing but the URL."""
    async with await Journal.open(url) as writes, await Journal.open(url, create=False) as reads:
        task = await new_task(writes, supervised_by=SupervisedBy.MONITOR, spec="a task")
        attempt = await new_attempt(writes, task, node="north")
        await Nodes(writes).enter(node("north"), alive_seconds=15)
        await write(writes, attempt, make.AT, make.transition())
        nodes = Nodes(reads).all
        feed = Feed(reads, run=1, bus=LocalBus(), poll_seconds=0.1, hertz=50, nodes=nodes)
        app = Console(feed, OperatorActions(reads, author="ada"))
        async with app.run_test(size=(140, 40)) as pilot:
            machine = Elsewhere(writes, attempt, app, pilot)
            await machine.until(lambda row: bool(app.board.node_list.nodes))
            yield machine


async def test_the_journal_alone_is_enough_to_follow_and_to_act(postgres: str) -> None:
    async with elsewhere(postgres) as machine:
        await write(machine.journal, machine.attempt, make.AT, make.message(1))
        await machine.until(lambda row: row.state.last_step == 1)
        await Nodes(machine.journal).beat("north", "1", busy=0, state=NodeState.LOST)
        await machine.until(lambda row: row.adrift)
        await machine.app.operator.act(machine.attempt, Action.PAUSE)
        (said,) = await records_of(machine.journal, Intervention)
        assert said.action is Action.PAUSE


@pytest.mark.matrix
async def test_a_database_that_is_away_for_a_while_is_gone_on_with(database: Database) -> None:
    async with elsewhere(await asyncio.to_thread(database.create, "journal")) as machine:
        app = machine.app
        app.open_attempt(app.board.rows[1])
        await asyncio.to_thread(database.kill)
        await machine.until(lambda _: "no connection to the journal" in app.banner.said)
        await asyncio.to_thread(database.restart)
        await write(machine.journal, machine.attempt, make.AT, make.message(1))
        await machine.until(lambda row: row.state.last_step == 1)
        await machine.until(lambda _: "no connection" not in app.banner.said)
        view = app.screen
        assert isinstance(view, AttemptScreen)
        await machine.until(lambda _: view.timeline.state.last_step == 1)


@pytest.fixture
def broker(tmp_path: Path) -> Generator[Broker]:
    """A broker that lets everybody in; skipped where there is none, but not in CI."""
    if program() is None and not os.environ.get("CI"):
        pytest.skip("mosquitto is not installed here")
    with Broker(tmp_path / "broker") as started:
        yield started


async def test_what_a_person_says_on_one_machine_is_heard_on_another_at_once(
    broker: Broker, journal: Journal, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDWATCH_FLEET__BROKER__URL", broker.url)
    settings = FleetSettings(broker=BrokerSettings(url=broker.url))
    async with bus_for(settings, name="node-a", environ={}) as bus, bus.subscribe() as hints:
        async with asyncio.timeout(120):
            while not bus.counters.connected:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
        assert await midwatch("tell", "fix", "Look up.", "--journal", journal.name) == 0
        (said,) = await journal.entries(kinds=(Intervention,))
        async with asyncio.timeout(120):
            heard = (await hints.wait())[0]
        assert (heard.entry, heard.kind, heard.attempt) == (said.id, "intervention", attempt.id)


@pytest.mark.usefixtures("attempt")
async def test_without_its_broker_a_person_is_heard_by_the_journal_alone(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDWATCH_FLEET__BROKER__URL", "mqtt://127.0.0.1:1")
    assert await midwatch("tell", "fix", "Look up.", "--journal", journal.name) == 0
    assert len(await records_of(journal, Intervention)) == 1
