"""How the journal reaches the console: in order, whole, in pieces that let keys through."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import Attempt, Commit, NodeStatus
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.screens.overview import OverviewPane
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.feed import Feed, FeedBatch, NodesNow
from midwatch_tests.console import ConsoleDriver, console_on
from midwatch_tests.factories import AT, drafts, message, step, transition


@asynccontextmanager
async def journal_of(tasks: int, steps: int) -> AsyncGenerator[Journal]:
    """A journal with one run; each task has one attempt, and each attempt so many steps."""
    async with await Journal.open(":memory:") as journal:
        run = await journal.add_run(source="x.yaml", settings="{}", at=AT)
        for number in range(tasks):
            task = await journal.add_task(run=run.id, name=f"t{number}", title="", spec="{}", at=AT)
            whose = {"worker": "coder", "model": "m", "node": "n", "workspace": ""}
            await commit(
                journal, await journal.add_attempt(task=task.id, number=1, at=AT, **whose), steps
            )
        yield journal


async def commit(journal: Journal, attempt: Attempt, steps: int) -> None:
    records = [message(number) for number in range(1, steps + 1)]
    await journal.commit(Commit(drafts=drafts(attempt, records)))


def make_feed(journal: Journal, *, run: int | None = None, **more: Any) -> Feed:
    return Feed(journal, run=run, bus=LocalBus(), poll_seconds=0.01, hertz=1_000, **more)


async def read_batches(found: Feed, entries: int) -> list[FeedBatch]:
    """The batches until so many entries have come; two minutes at most."""
    batches: list[FeedBatch] = []
    async with asyncio.timeout(120), aclosing(found.batches()) as coming:
        async for batch in coming:
            batches.append(batch)
            if sum(len(each.entries) for each in batches) >= entries:
                break
    return batches


async def test_a_long_history_comes_once_in_order_and_in_pieces_that_say_that_more_follows() -> (
    None
):
    async with journal_of(3, 400) as journal:
        last = await journal.last_id()
        batches = await read_batches(make_feed(journal), last)
    assert [each.id for batch in batches for each in batch.entries] == [*range(1, last + 1)]
    assert max(len(batch.entries) for batch in batches) <= 500
    assert [batch.more for batch in batches] == [True, True, False]


async def test_tasks_and_attempts_are_met_once_whether_few_or_many() -> None:
    for tasks in (2, 9):
        async with journal_of(tasks, 2) as journal:
            for run in (1, None):
                batches = await read_batches(make_feed(journal, run=run), await journal.last_id())
                met = [task.name for batch in batches for task in batch.tasks]
                tried = [each.task for batch in batches for each in batch.attempts]
                assert met == [f"t{n}" for n in range(tasks)]
                assert tried == list(range(1, tasks + 1))


async def test_what_is_added_later_comes_without_a_bus() -> None:
    async with journal_of(1, 1) as journal:
        found = make_feed(journal)
        coming = found.batches()
        async with asyncio.timeout(120), aclosing(coming):
            await anext(coming)
            await commit(journal, await journal.attempt(1), 2)
            later = await anext(coming)
        assert [each.record for each in later.entries] == [message(1), message(2)]


async def test_a_key_is_heard_while_a_long_history_loads() -> None:
    async with journal_of(1, 1) as journal:
        app = Console(make_feed(journal), OperatorActions(journal, author="ann"), now=lambda: AT)
        async with app.run_test(), asyncio.timeout(120):
            await commit(journal, await journal.attempt(1), 10_000)
            await wait_until(lambda: 1 in app.board.rows and app.board.rows[1].state.last_step > 1)
            app.simulate_key("question_mark")
            await wait_until(lambda: len(app.screen_stack) > 1)
            assert app.board.rows[1].state.last_step < 5_000


async def wait_until(happened: Callable[[], bool]) -> None:
    # Nothing of the console tells of it, and a pilot waits until the whole history is there.
    while not happened():  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_nodes_read_before_something_failed_are_told_later(nodes_now: NodesNow) -> None:
    failed = False

    async def monitors() -> tuple[MonitorStatus, ...]:
        nonlocal failed
        if not failed:
            failed = True
            raise JournalError("it is away")
        return ()

    async with journal_of(1, 1) as journal:
        (batch,) = await read_batches(make_feed(journal, nodes=nodes_now, monitors=monitors), 1)
        assert failed
        assert batch.nodes == await nodes_now()


LISTS = ("fleet", "checkpoints", "attention")


class SlowNodes:
    """Nodes that are read with the entries, and take their time."""

    def __init__(self, quick: int = 0) -> None:
        self.ready = asyncio.Event()
        self._quick = quick

    async def read(self) -> Sequence[NodeStatus]:
        """No nodes; the first reads are answered at once."""
        self._quick -= 1
        if self._quick < 0:
            await self.ready.wait()
        return ()


@asynccontextmanager
async def open_console(
    journal: Journal, nodes: SlowNodes
) -> AsyncGenerator[ConsoleDriver[Journal]]:
    """The console from its first frame on."""
    async with console_on(journal, read=False, nodes=nodes.read) as driver:
        yield driver
        nodes.ready.set()


def empty_text(driver: ConsoleDriver[Journal], name: str) -> str:
    """What a list says where it has no line."""
    return driver.text(f"#{name}-pane .nothing")


async def test_an_unread_journal_is_not_called_empty(journal: Journal, attempt: Attempt) -> None:
    await journal.commit(Commit(drafts=drafts(attempt, [transition()])))
    nodes = SlowNodes()
    async with open_console(journal, nodes) as driver:
        await driver.pilot.pause()
        assert {empty_text(driver, name) for name in LISTS} == {"Reading the journal…"}
        assert "Reading the journal…" in driver.text("TitleLine")
        await driver.press("4")
        assert driver.app.query_one(OverviewPane).text.startswith("Reading the journal… So far:")
        nodes.ready.set()
        await driver.until(lambda: not driver.app.board.loading)
        assert "Reading" not in driver.app.query_one(OverviewPane).text
        assert "Reading" not in driver.text("TitleLine")
        await driver.press("2")
        assert empty_text(driver, "checkpoints").startswith("No checkpoints yet")


async def test_an_empty_journal_is_read_at_once(journal: Journal, attempt: Attempt) -> None:
    assert attempt.number == 1
    async with open_console(journal, SlowNodes(quick=1)) as driver:
        await driver.until(lambda: not driver.app.board.loading)
        assert empty_text(driver, "fleet").startswith("No tasks yet")


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
