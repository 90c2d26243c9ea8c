"""What a stranger sees of a fleet that lacks something: nodes, labels, a monitor."""

import asyncio
import html
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import TabbedContent

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import (
    Commit,
    Draft,
    Keeper,
    Lifecycle,
    NodeState,
    NodeStatus,
    TaskTransition,
)
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.state.feed import Feed

NOW = datetime(2026, 11, 21, 20, 9, 40, tzinfo=UTC)
EAST = NodeStatus(
    name="east",
    boot="1",
    state=NodeState.UP,
    slots=2,
    busy=2,
    labels=("gpu",),
    version="0.6.0",
    revision="0003",
    started_at=NOW,
    beat_at=NOW,
)
TASKS = (
    TaskSpec(id="flash", goal="x", acceptance=("true",), labels=("fpga",)),
    TaskSpec(id="totals", goal="x", acceptance=("true",)),
    TaskSpec(id="labels", goal="x", acceptance=("true",), depends_on=("totals",)),
)


@pytest.fixture
async def handed_over() -> AsyncGenerator[Journal]:
    """A run of a fleet of which nothing has begun."""
    async with await Journal.open(":memory:") as journal:
        run = await journal.add_run(source="t", settings="{}", at=NOW, keeper=Keeper.MONITOR)
        for wanted in TASKS:
            spec = Assignment(task=wanted, worker="w", spec=WorkerSpec(), models={}, workspace=None)
            task = await journal.add_task(
                run=run.id, name=wanted.id, title="", spec=spec.model_dump_json(), at=NOW
            )
            waits = TaskTransition(lifecycle=Lifecycle.SUBMITTED)
            draft = Draft(record=waits, at=NOW, task=task.id, attempt=None)
            await journal.commit(Commit(drafts=(draft,)))
        yield journal


class Listener(Console):
    """A console that keeps what it told."""

    def __init__(self, feed: Feed, desk: OperatorActions, *, now: Callable[[], datetime]) -> None:
        super().__init__(feed, desk, now=now)
        self.told: list[str] = []

    def notify(self, message: str, **options: Any) -> None:
        """Keep it; it would go away by itself."""
        self.told.append(message)
        super().notify(message, **options)


class Fleet:
    """What a journal tells of nodes and monitors; it may be slow."""

    def __init__(self, *nodes: NodeStatus, monitors: Sequence[MonitorStatus] = ()) -> None:
        self.known = nodes
        self.watching = monitors
        self.answers = asyncio.Event()
        self.answers.set()

    async def nodes(self) -> Sequence[NodeStatus]:
        await self.answers.wait()
        return self.known

    async def monitors(self) -> Sequence[MonitorStatus]:
        return self.watching


@asynccontextmanager
async def seated(
    journal: Journal, fleet: Fleet, size: tuple[int, int] = (80, 24)
) -> AsyncGenerator[tuple[Listener, Pilot[int]]]:
    feed = Feed(
        journal,
        run=1,
        bus=LocalBus(),
        poll_seconds=0.05,
        hertz=100,
        nodes=fleet.nodes,
        monitors=fleet.monitors,
    )
    app = Listener(feed, OperatorActions(journal, author="ada"), now=lambda: NOW)
    async with app.run_test(size=size) as pilot:
        yield app, pilot


async def until(pilot: Pilot[int], happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not happened():
            await pilot.pause()


def shown(app: Console) -> list[str]:
    """The lines of the screen."""
    lines: dict[float, str] = defaultdict(str)
    for y, text in re.findall(
        r'<text [^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', app.export_screenshot()
    ):
        lines[float(y)] += html.unescape(text).replace("\xa0", " ")
    return [line for _, line in sorted(lines.items())]


async def test_before_the_nodes_were_read_nothing_is_said_of_them(handed_over: Journal) -> None:
    fleet = Fleet(EAST)
    fleet.answers.clear()
    async with seated(handed_over, fleet) as (app, pilot):
        await pilot.press("6")
        assert app.told == ["the nodes are not read yet: try again in a moment"]
        fleet.answers.set()
        await until(pilot, lambda: bool(app.board.node_list.nodes))
        await pilot.press("6")
        assert app.query_one("#panes", TabbedContent).active == "nodes-tab"


async def test_a_fleet_without_any_node_says_how_one_comes(handed_over: Journal) -> None:
    async with seated(handed_over, Fleet()) as (app, pilot):
        await until(pilot, lambda: len(app.board.queued) == 3)
        await pilot.press("6")
        assert app.told == ["No nodes: `midwatch node` starts one"]


@pytest.mark.parametrize("size", [(80, 24), (140, 45)], ids=["80x24", "140x45"])
async def test_each_line_says_why_its_task_waits(
    size: tuple[int, int], handed_over: Journal
) -> None:
    async with seated(handed_over, Fleet(EAST), size) as (app, pilot):
        await until(pilot, lambda: len(app.panes.fleet.items) == 3)
        await pilot.pause()
        lines = {line.split()[1]: line for line in shown(app) if " queued " in line}
        assert "no node: fpga" in lines["flash"]
        assert "no free slot" in lines["totals"]
        assert "after totals" in lines["labels"]


async def test_what_no_node_will_take_waits_for_a_person_and_leads_to_the_nodes(
    handed_over: Journal,
) -> None:
    async with seated(handed_over, Fleet(EAST)) as (app, pilot):
        await until(pilot, lambda: len(app.queue.calling) == 1)
        await pilot.press("3")
        await pilot.pause()
        assert any("flash" in line and "no node has the label" in line for line in shown(app))
        await pilot.press("enter")
        assert app.query_one("#panes", TabbedContent).active == "nodes-tab"
        await pilot.press("1", "n")
        assert app.query_one("#panes", TabbedContent).active == "nodes-tab"


async def test_work_that_nobody_watches_is_told_on_top(handed_over: Journal) -> None:
    async with seated(handed_over, Fleet(EAST)) as (app, pilot):
        await until(pilot, lambda: app.board.node_list.monitors is not None)
        app.pass_a_second()
        await pilot.pause()
        said = " ".join(line.strip() for line in shown(app)[:5])
        assert "no monitor is at work: nobody escalates" in said
        assert "`midwatch monitor` starts one" in said


async def test_with_a_monitor_nothing_is_told(handed_over: Journal) -> None:
    watching = MonitorStatus(holder="watch:1", until=NOW.replace(minute=30))
    async with seated(handed_over, Fleet(EAST, monitors=[watching])) as (app, pilot):
        await until(pilot, lambda: app.board.node_list.monitors is not None)
        app.pass_a_second()
        assert app.banner.said == ""
