"""The console around its panes: themes, help, keys of one's own, and the way out."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from textual.pilot import Pilot
from textual.widgets import TabbedContent

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import ConsoleSettings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Entry, Lifecycle, TaskTransition
from midwatch_stage.factories import AT
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import INTERRUPTED, Console, RunWork
from midwatch_supervisor.tui.screens.fleet import FleetPane
from midwatch_supervisor.tui.screens.overview import OverviewPane
from midwatch_supervisor.tui.screens.title import TitleLine
from midwatch_supervisor.tui.state.feed import Feed
from midwatch_supervisor.tui.widgets.dialogs import ConfirmDialog, HelpScreen

Seated = tuple[Console, Pilot[int]]
Open = Callable[..., AbstractAsyncContextManager[Seated]]


@pytest.fixture
def opened(six_tasks: Journal) -> Open:
    """Opens the console: `async with opened(ConsoleSettings(…), work=…) as (app, pilot)`."""

    @asynccontextmanager
    async def show(
        settings: ConsoleSettings | None = None, work: RunWork | None = None
    ) -> AsyncGenerator[Seated]:
        feed = Feed(six_tasks, run=1, bus=LocalBus(), poll_seconds=60, hertz=10)
        about = ("Run 1: [b]six[/b] tasks", "No sandbox")
        desk = OperatorActions(six_tasks, author="ada")
        app = Console(feed, desk, work=work, settings=settings, about=about)
        async with app.run_test() as pilot:
            yield app, pilot

    return show


async def for_ever() -> int:
    await asyncio.Event().wait()
    return 0


async def four() -> int:
    return 4


async def breaks() -> int:
    raise JournalError("the disk is full")


async def test_the_top_line_counts_who_needs_a_person_who_works_and_what_it_cost(
    opened: Open,
) -> None:
    async with opened() as (app, pilot):
        async with asyncio.timeout(30):
            while (
                "$0.00" not in (said := str(app.query_one(TitleLine).render())) or "1/6" not in said
            ):
                await pilot.pause()
        assert said.rstrip().split("  ")[2:] == [
            "! 3 need you",
            "■ 1 stuck",
            "● 1 working",
            "✓ 1/6",
            "53 requests",
            "$0.00",
            "48 k tokens",
        ]


async def test_what_is_watched_stands_in_the_overview_as_it_is(opened: Open) -> None:
    async with opened() as (app, pilot):
        await pilot.press("4")
        assert "Run 1: [b]six[/b] tasks" in app.query_one(OverviewPane).text


async def test_a_key_changes_the_theme_and_the_lines_with_it(opened: Open) -> None:
    async with opened() as (app, pilot):
        roll = app.query_one(FleetPane).list
        before = roll.colours
        await pilot.press("T")
        await pilot.pause()
        assert app.theme == "midwatch-light"
        assert roll.colours != before


async def test_the_configuration_chooses_the_theme_and_the_keys(opened: Open) -> None:
    settings = ConsoleSettings(theme="midwatch-safe", keys={"checkpoints": "f2", "help": "!"})
    async with opened(settings) as (app, pilot):
        assert app.theme == "midwatch-safe"
        tabs = app.query_one("#panes", TabbedContent)
        await pilot.press("2")
        assert tabs.active == "fleet-tab"
        await pilot.press("f2")
        assert tabs.active == "checkpoints-tab"
        await pilot.press("!")
        assert isinstance(app.screen, HelpScreen)


@pytest.mark.parametrize("key", ["escape", "q", "question_mark"])
async def test_the_help_opens_and_closes(opened: Open, key: str) -> None:
    async with opened() as (app, pilot):
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press(key)
        assert not isinstance(app.screen, HelpScreen)
        assert app.is_running


async def test_a_console_that_runs_nothing_leaves_at_once(opened: Open) -> None:
    async with opened() as (app, pilot):
        await pilot.press("q")
        assert app.return_value == 0


async def test_after_the_run_it_leaves_with_the_code_of_the_run(opened: Open) -> None:
    async with opened(work=four) as (app, pilot):
        await pilot.pause()
        assert app.code == 4
        await pilot.press("q")
        assert app.return_value == 4


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_while_the_run_works_leaving_asks_first(opened: Open, key: str) -> None:
    async with opened(work=for_ever) as (app, pilot):
        await pilot.press(key)
        assert isinstance(app.screen, ConfirmDialog)
        await pilot.press("enter")
        assert app.is_running
        await pilot.press(key, "y")
        assert app.return_value == INTERRUPTED


async def test_a_run_that_breaks_off_leaves_the_console_open(opened: Open) -> None:
    async with opened(work=breaks) as (app, pilot):
        await pilot.pause()
        assert app.is_running
        assert app.code == 1


async def test_a_run_of_this_process_goes_on_where_a_task_is_begun_again(
    opened: Open, six_tasks: Journal
) -> None:
    begun: list[int] = []

    async def ends_at_once() -> int:
        begun.append(len(begun))
        return len(begun)

    async with opened(work=ends_at_once) as (app, pilot):
        await pilot.pause()
        assert (begun, app.code) == ([0], 1)
        while not app.board.attempts:
            await pilot.pause()
        task = next(iter(app.board.attempts.values())).task
        for lifecycle in (Lifecycle.COMPLETED, Lifecycle.SUBMITTED):
            state = TaskTransition(lifecycle=lifecycle)
            app.board.fold(Entry(id=0, record=state, at=AT, task=task, attempt=None))
        app.pass_a_second()
        await pilot.pause()
        assert (begun, app.code) == ([0, 1], 2)
        app.pass_a_second()
        await pilot.pause()
        assert begun == [0, 1]
