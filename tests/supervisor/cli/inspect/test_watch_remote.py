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
from midwatch_monitor.records import (
    Action,
    Attempt,
    AttemptTransition,
    Commit,
    Draft,
    Intervention,
    Lifecycle,
    NodeState,
    NodeStatus,
    Step,
    StepKind,
    SupervisedBy,
)
from midwatch_stage.broker import Broker, program
from midwatch_stage.command import midwatch, new_attempt, new_task, refused
from midwatch_stage.database import Database
from midwatch_stage.factories import AT
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.state.feed import Feed

WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
NORTH = NodeStatus(
    name="north",
    boot="1",
    state=NodeState.UP,
    slots=2,
    busy=1,
    labels=(),
    version="0.6.0",
    revision="",
    started_at=AT,
    beat_at=AT,
)


@dataclass
class Elsewhere:
    """Another machine that writes the same journal."""

    journal: Journal
    attempt: Attempt
    last: int = 0

    async def step(self) -> None:
        """Write the next step."""
        self.last += 1
        step = Step(number=self.last, kind=StepKind.MESSAGE)
        await self.write(step)

    async def write(self, record: Step | AttemptTransition) -> None:
        draft = Draft(record=record, at=AT, task=self.attempt.task, attempt=self.attempt.id)
        await self.journal.commit(Commit(drafts=(draft,)))


@asynccontextmanager
async def elsewhere(url: str) -> AsyncGenerator[Elsewhere]:
    """A fleet's journal in which the node `north` has an attempt at work."""
    async with await Journal.open(url) as journal:
        task = await new_task(journal, supervised_by=SupervisedBy.MONITOR, spec="a task")
        attempt = await new_attempt(journal, task, node="north")
        await Nodes(journal).enter(NORTH, alive_seconds=15)
        machine = Elsewhere(journal, attempt)
        await machine.write(WORKING)
        yield machine


@asynccontextmanager
async def watching(url: str) -> AsyncGenerator[tuple[Console, Pilot[int]]]:
    """The console of `midwatch watch` on a machine with nothing but the journal's URL."""
    async with await Journal.open(url, create=False) as journal:
        feed = Feed(
            journal,
            run=1,
            bus=LocalBus(),
            poll_seconds=0.1,
            hertz=50,
            nodes=Nodes(journal).all,
        )
        app = Console(feed, OperatorActions(journal, author="ada"))
        async with app.run_test(size=(140, 40)) as pilot:
            await until(pilot, lambda: 1 in app.board.rows and bool(app.board.node_list.nodes))
            yield app, pilot


async def until(pilot: Pilot[int], happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not happened():
            await pilot.pause()


async def test_the_journal_alone_is_enough_to_follow_and_to_act(postgres: str) -> None:
    async with elsewhere(postgres) as machine, watching(postgres) as (app, pilot):
        await machine.step()
        await until(pilot, lambda: app.board.rows[1].state.last_step == 1)
        await Nodes(machine.journal).beat("north", "1", busy=0, state=NodeState.LOST)
        await until(pilot, lambda: app.board.rows[1].adrift)
        await app.operator.act(machine.attempt, Action.PAUSE)
        assert [each.action for each in await interventions(machine)] == [Action.PAUSE]


async def interventions(machine: Elsewhere) -> list[Intervention]:
    entries = await machine.journal.entries(kinds=(Intervention,))
    return [each.record for each in entries if isinstance(each.record, Intervention)]


@pytest.mark.matrix
async def test_a_database_that_is_away_for_a_while_is_gone_on_with(database: Database) -> None:
    url = await asyncio.to_thread(database.create, "journal")
    async with elsewhere(url) as machine, watching(url) as (app, pilot):
        app.open_attempt(app.board.rows[1])
        await asyncio.to_thread(database.kill)
        await until(pilot, lambda: "no connection to the journal" in app.banner.said)
        await asyncio.to_thread(database.restart)
        await machine.step()
        await until(pilot, lambda: app.board.rows[1].state.last_step == 1)
        await until(pilot, lambda: "no connection" not in app.banner.said)
        view = app.screen
        assert isinstance(view, AttemptScreen)
        await until(pilot, lambda: view.timeline.state.last_step == 1)


@pytest.fixture
def broker(tmp_path: Path) -> Generator[Broker]:
    """A broker that lets everybody in; skipped where there is none, but not in CI."""
    if program() is None and not os.environ.get("CI"):
        pytest.skip("mosquitto is not installed here")
    with Broker.start(tmp_path / "broker") as started:
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
        argv = ("tell", str(attempt.id), "Look up.", "--journal", journal.name)
        assert await midwatch(*argv) == 0
        (said,) = await journal.entries(kinds=(Intervention,))
        async with asyncio.timeout(120):
            heard = (await hints.wait())[0]
        assert (heard.entry, heard.kind, heard.attempt) == (said.id, "intervention", attempt.id)


async def test_without_its_broker_a_person_is_heard_by_the_journal_alone(
    journal: Journal, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDWATCH_FLEET__BROKER__URL", "mqtt://127.0.0.1:1")
    argv = ("tell", str(attempt.id), "Look up.", "--journal", journal.name)
    assert await midwatch(*argv) == 0
    assert len(await journal.entries(kinds=(Intervention,))) == 1


async def test_an_attempt_that_is_not_there_is_no_console(
    capsys: pytest.CaptureFixture[str], journal_file: Path, attempt: Attempt
) -> None:
    words = ("watch", "--attempt", str(attempt.id + 1), "--journal", str(journal_file))
    assert f"there is no attempt {attempt.id + 1} in " in await refused(capsys, *words)


@pytest.mark.parametrize(
    "words",
    [
        ("watch", "--web", "--all", "--host", "a..b"),
        ("mcp", "--http", "a..b:8080"),
    ],
)
async def test_a_host_that_there_cannot_be_is_told(
    capsys: pytest.CaptureFixture[str], journal_file: Path, attempt: Attempt, words: tuple[str, ...]
) -> None:
    before = dict(os.environ)
    assert await midwatch(*words, "--journal", str(journal_file)) == 2
    assert capsys.readouterr().err.startswith("cannot listen ")
    assert dict(os.environ) == before
