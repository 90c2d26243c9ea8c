"""The console of a fleet: its nodes, and a broker that is away."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from textual.pilot import Pilot
from textual.widgets import TabbedContent

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Change
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import NO_BROKER, Console
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.screens.banner import TitleLine
from midwatch_supervisor.tui.state.feed import Feed, NodesNow

NOW = datetime(2026, 11, 21, 20, 9, 40, tzinfo=UTC)


@asynccontextmanager
async def seated(
    journal: Journal,
    nodes: NodesNow | None = None,
    connected: Callable[[], bool] = lambda: True,
) -> AsyncGenerator[tuple[Console, Pilot[int]]]:
    feed = Feed(
        journal,
        run=1,
        bus=LocalBus(),
        poll_seconds=0.05,
        hertz=100,
        nodes=nodes,
        connected=connected,
    )
    app = Console(feed, OperatorActions(journal, author="ada"), now=lambda: NOW)
    async with app.run_test(size=(140, 40)) as pilot:
        await until(pilot, lambda: app.board.last_at is not None)
        yield app, pilot


async def until(pilot: Pilot[int], happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not happened():
            await pilot.pause()


def active(app: Console) -> str:
    return app.query_one("#panes", TabbedContent).active


async def test_a_run_of_one_process_has_no_nodes_to_show(six_tasks: Journal) -> None:
    async with seated(six_tasks) as (app, pilot):
        await pilot.press("6")
        tabs = app.query_one("#panes", TabbedContent)
        assert (active(app), tabs.get_tab("nodes-tab").display) == ("fleet-tab", False)


async def test_enter_on_a_node_shows_what_is_at_work_there(
    three_nodes: Journal, nodes_now: NodesNow
) -> None:
    async with seated(three_nodes, nodes_now) as (app, pilot):
        await pilot.press("6")
        assert active(app) == "nodes-tab"
        await pilot.press("G", "enter")
        assert active(app) == "fleet-tab"
        assert [row.name for row in app.panes.fleet.items] == ["labels"]
        await pilot.press("escape")
        assert len(app.panes.fleet.items) == 3


async def test_a_lost_node_waits_for_a_person_and_leads_to_the_nodes(
    three_nodes: Journal, nodes_now: NodesNow
) -> None:
    async with seated(three_nodes, nodes_now) as (app, pilot):
        await pilot.press("n")
        assert active(app) == "nodes-tab"
        await pilot.press("3", "enter")
        assert active(app) == "nodes-tab"


async def test_the_timeline_says_where_an_attempt_goes_on(
    three_nodes: Journal, nodes_now: NodesNow
) -> None:
    async with seated(three_nodes, nodes_now) as (app, pilot):
        moved = next(row for row in app.board.rows.values() if row.name == "labels")
        app.open_attempt(moved)
        await until(pilot, lambda: isinstance(app.screen, AttemptScreen))
        view = app.screen
        assert isinstance(view, AttemptScreen)
        await until(pilot, lambda: bool(view.timeline.items) and not view.reading)
        assert [
            item.told.text for item in view.timeline.items if isinstance(item.record, Change)
        ] == ["continues on west"]


async def test_why_there_is_no_broker_is_said_once_and_until_there_is_one(
    six_tasks: Journal,
) -> None:
    there = False
    async with seated(six_tasks, connected=lambda: there) as (app, _):
        logging.getLogger("midwatch_monitor.bus.connection").warning("it does not let %r in", "ada")
        for _ in range(6):
            app.pass_a_second()
        assert app.banner.said.endswith("it does not let 'ada' in")
        there = True
        app.pass_a_second()
        assert app.banner.said == ""


async def test_a_broker_that_is_away_is_a_small_mark_and_nothing_else(six_tasks: Journal) -> None:
    there = False
    async with seated(six_tasks, connected=lambda: there) as (app, pilot):
        for _ in range(6):
            app.pass_a_second()
        heading = app.query_one(TitleLine)
        assert NO_BROKER in str(heading.render())
        assert app.banner.said == ""
        there = True
        for _ in range(2):
            app.pass_a_second()
        await pilot.pause()
        assert NO_BROKER not in str(heading.render())
