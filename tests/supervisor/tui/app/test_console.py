"""The console around its panes: themes, help, keys of one's own, and the way out."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from midwatch_monitor.config.settings import ConsoleSettings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Entry, Lifecycle, TaskTransition
from midwatch_stage.console import ConsoleDriver, console_on
from midwatch_stage.factories import AT
from midwatch_supervisor.tui.app import INTERRUPTED, RunWork
from midwatch_supervisor.tui.screens.fleet import FleetPane
from midwatch_supervisor.tui.screens.overview import OverviewPane
from midwatch_supervisor.tui.widgets.dialogs import ConfirmDialog, HelpScreen
from midwatch_supervisor.tui.widgets.palette import palette_of

ABOUT = ("Run 1: [b]six[/b] tasks", "No sandbox")


def opened(
    journal: Journal, settings: ConsoleSettings | None = None, work: RunWork | None = None
) -> AbstractAsyncContextManager[ConsoleDriver[Journal]]:
    options = {"settings": settings, "work": work, "about": ABOUT}
    return console_on(journal, size=(80, 24), console=options)


async def for_ever() -> int:
    await asyncio.Event().wait()
    return 0


async def four() -> int:
    return 4


async def breaks() -> int:
    raise JournalError("the disk is full")


async def test_the_top_line_counts_who_needs_a_person_who_works_and_what_it_cost(
    six_tasks: Journal,
) -> None:
    async with opened(six_tasks) as seat:
        seat.app.pass_a_second()
        assert seat.text("TitleLine").rstrip().split("  ")[2:] == [
            "! 3 need you",
            "■ 1 stuck",
            "● 1 working",
            "✓ 1/6",
            "53 requests",
            "48 k tokens",
        ]


async def test_what_is_watched_stands_in_the_overview_as_it_is(six_tasks: Journal) -> None:
    async with opened(six_tasks) as seat:
        await seat.press("4")
        assert "Run 1: [b]six[/b] tasks" in seat.app.query_one(OverviewPane).text


async def test_a_key_changes_the_theme_and_the_lines_with_it(six_tasks: Journal) -> None:
    async with opened(six_tasks) as seat:
        roll = seat.app.query_one(FleetPane).list
        before = palette_of(roll)
        await seat.press("T")
        await seat.pilot.pause()
        assert seat.app.theme == "midwatch-light"
        assert palette_of(roll) != before


async def test_the_configuration_chooses_the_theme_and_the_keys(six_tasks: Journal) -> None:
    settings = ConsoleSettings(theme="midwatch-safe", keys={"checkpoints": "f2", "help": "!"})
    async with opened(six_tasks, settings) as seat:
        assert seat.app.theme == "midwatch-safe"
        await seat.press("2")
        assert seat.tab == "fleet-tab"
        await seat.press("f2")
        assert seat.tab == "checkpoints-tab"
        await seat.press("!")
        assert isinstance(seat.app.screen, HelpScreen)


async def test_the_help_opens_and_closes(six_tasks: Journal) -> None:
    async with opened(six_tasks) as seat:
        for key in ("escape", "q", "question_mark"):
            await seat.press("question_mark")
            assert isinstance(seat.app.screen, HelpScreen)
            await seat.press(key)
            assert not isinstance(seat.app.screen, HelpScreen)
        assert seat.app.is_running


async def test_the_fleet_behind_an_open_help_stays_up_to_date(six_tasks: Journal) -> None:
    async with opened(six_tasks) as seat:
        fleet = seat.app.query_one(FleetPane).list
        count = fleet.count
        await seat.press("question_mark")
        await six_tasks.add_task(run=1, name="more", title="More", spec="{}", at=AT)
        await seat.until(lambda: fleet.count > count)
        assert isinstance(seat.app.screen, HelpScreen)


async def test_a_console_that_runs_nothing_leaves_at_once(six_tasks: Journal) -> None:
    async with opened(six_tasks) as seat:
        await seat.press("q")
        assert seat.app.return_value == 0


async def test_after_the_run_it_leaves_with_the_code_of_the_run(six_tasks: Journal) -> None:
    async with opened(six_tasks, work=four) as seat:
        await seat.pilot.pause()
        assert seat.app.code == 4
        await seat.press("q")
        assert seat.app.return_value == 4


async def test_ctrl_c_names_the_key_that_leaves(six_tasks: Journal) -> None:
    async with opened(six_tasks, ConsoleSettings(keys={"quit": "Q"})) as seat:
        await seat.press("ctrl+c")
        assert seat.app.told == ["Q quits the console"]
        assert seat.app.is_running


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_while_the_run_works_leaving_asks_first(six_tasks: Journal, key: str) -> None:
    async with opened(six_tasks, work=for_ever) as seat:
        await seat.press(key)
        assert isinstance(seat.app.screen, ConfirmDialog)
        await seat.press("enter")
        assert seat.app.is_running
        await seat.press(key, "y")
        assert seat.app.return_value == INTERRUPTED


async def test_a_run_that_breaks_off_leaves_the_console_open(six_tasks: Journal) -> None:
    async with opened(six_tasks, work=breaks) as seat:
        await seat.pilot.pause()
        assert seat.app.is_running
        assert seat.app.code == 1


async def test_a_run_of_this_process_goes_on_where_a_task_is_begun_again(
    six_tasks: Journal,
) -> None:
    begun: list[int] = []

    async def ends_at_once() -> int:
        begun.append(len(begun))
        return len(begun)

    async with opened(six_tasks, work=ends_at_once) as seat:
        await seat.pilot.pause()
        assert (begun, seat.app.code) == ([0], 1)
        task = next(iter(seat.app.board.attempts.values())).task
        for lifecycle in (Lifecycle.COMPLETED, Lifecycle.SUBMITTED):
            state = TaskTransition(lifecycle=lifecycle)
            seat.app.board.fold(Entry(id=0, record=state, at=AT, task=task, attempt=None))
        seat.app.pass_a_second()
        await seat.pilot.pause()
        assert (begun, seat.app.code) == ([0, 1], 2)
        seat.app.pass_a_second()
        await seat.pilot.pause()
        assert begun == [0, 1]


async def test_a_run_that_begins_while_another_is_shown_is_told_of(journal: Journal) -> None:
    await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
    async with console_on(journal, poll_seconds=0.01, others=True) as seat:
        await seat.until(lambda: not seat.app.board.loading)
        assert seat.app.banner.said == ""
        await journal.add_run(source="later.yaml", settings="{}", at=AT)
        await seat.until(lambda: bool(seat.app.banner.said))
        assert seat.app.banner.said.endswith(
            "run 2 has begun, but is not shown → `midwatch watch --run 2` shows it, "
            "`midwatch watch --all` every run"
        )
