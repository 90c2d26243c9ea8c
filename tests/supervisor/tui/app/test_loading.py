"""What the console says until it has read the journal to its end."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Commit, NodeStatus
from midwatch_stage.console import ConsoleDriver, console_on
from midwatch_stage.factories import drafts, step, transition
from midwatch_supervisor.tui.screens.overview import OverviewPane
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.feed import Feed

LISTS = ("fleet", "checkpoints", "attention")


class Gate:
    """Something beside the entries that is read with them, and takes its time."""

    def __init__(self, lets: int = 0) -> None:
        self.opened = asyncio.Event()
        self._lets = lets

    async def nodes(self) -> Sequence[NodeStatus]:
        """No nodes; so many looks are answered at once."""
        self._lets -= 1
        if self._lets < 0:
            await self.opened.wait()
        return ()


@asynccontextmanager
async def opening(journal: Journal, gate: Gate) -> AsyncGenerator[ConsoleDriver[Journal]]:
    """The console from its first frame on."""
    async with console_on(journal, read=False, nodes=gate.nodes) as driver:
        yield driver
        gate.opened.set()


def nothing(driver: ConsoleDriver[Journal], name: str) -> str:
    """What a list says where it has no line."""
    return driver.text(f"#{name}-pane .nothing")


async def test_until_the_journal_is_read_no_pane_says_that_there_is_nothing(
    journal: Journal, attempt: Attempt
) -> None:
    await journal.commit(Commit(drafts=drafts(attempt, [transition()])))
    gate = Gate()
    async with opening(journal, gate) as driver:
        await driver.pilot.pause()
        assert {nothing(driver, name) for name in LISTS} == {"Reading the journal…"}
        assert "Reading the journal…" in driver.text("TitleLine")
        await driver.press("4")
        assert driver.app.query_one(OverviewPane).text.startswith("Reading the journal… So far:")
        gate.opened.set()
        await driver.until(lambda: not driver.app.board.loading)
        assert "Reading" not in driver.app.query_one(OverviewPane).text
        assert "Reading" not in driver.text("TitleLine")
        await driver.press("2")
        assert nothing(driver, "checkpoints").startswith("No checkpoints yet")


async def test_an_empty_journal_is_read_at_once(journal: Journal, attempt: Attempt) -> None:
    assert attempt.number == 1
    async with opening(journal, Gate(lets=1)) as driver:
        await driver.until(lambda: not driver.app.board.loading)
        assert nothing(driver, "fleet").startswith("No tasks yet")


async def test_of_a_long_journal_it_says_how_far_it_is(journal: Journal, attempt: Attempt) -> None:
    steps = [step(number) for number in range(1, 701)]
    await journal.commit(Commit(drafts=drafts(attempt, [transition(), *steps])))
    board = FleetBoard()
    feed = Feed(journal, run=1, bus=LocalBus(), poll_seconds=60, hertz=100).batches()
    said: list[str] = []
    async for batch in feed:
        board.take(batch)
        said.append(board.progress)
        if not board.loading:
            break
    await feed.aclose()
    assert said == ["Reading the journal: 500 entries…", ""]
