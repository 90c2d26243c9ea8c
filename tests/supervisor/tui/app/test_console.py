"""The console around its panes: themes, help, keys of one's own, the focus, and the way out."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest
from textual.widget import Widget
from textual.widgets import TextArea

from midwatch_monitor.config.settings import ConsoleSettings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Entry, Lifecycle, TaskTransition
from midwatch_stage.console import ConsoleDriver, console_on
from midwatch_stage.factories import AT, transition
from midwatch_supervisor.tui.app import INTERRUPTED, RunWork
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.widgets.dialogs import ConfirmDialog, HelpScreen


def open_console(
    journal: Journal, settings: ConsoleSettings | None = None, work: RunWork | None = None
) -> AbstractAsyncContextManager[ConsoleDriver[Journal]]:
    return console_on(journal, size=(80, 24), console={"settings": settings, "work": work})


async def work_forever() -> int:
    await asyncio.Event().wait()
    return 0


async def return_four() -> int:
    return 4


async def fail() -> int:
    raise JournalError("the disk is full")


async def test_the_configuration_chooses_the_theme_and_the_keys(six_tasks: Journal) -> None:
    settings = ConsoleSettings(theme="midwatch-safe", keys={"checkpoints": "f2", "help": "!"})
    async with open_console(six_tasks, settings) as seat:
        assert seat.app.theme == "midwatch-safe"
        await seat.press("2")
        assert seat.tab == "fleet-tab"
        await seat.press("f2")
        assert seat.tab == "checkpoints-tab"
        await seat.press("!")
        assert isinstance(seat.app.screen, HelpScreen)


async def test_help_opens_and_closes_over_a_fleet_that_is_up_to_date(six_tasks: Journal) -> None:
    async with open_console(six_tasks) as seat:
        count = seat.app.panes.fleet.list.count
        for key in ("escape", "q", "question_mark"):
            await seat.press("question_mark")
            await seat.write(transition(), task=f"more, till {key}")
            count += 1
            assert isinstance(seat.app.screen, HelpScreen)
            assert seat.app.panes.fleet.list.count == count
            await seat.press(key)
            assert not isinstance(seat.app.screen, HelpScreen)
        assert seat.app.is_running


@pytest.mark.parametrize(
    ("work", "code"),
    [(None, 0), (return_four, 4), (fail, 1)],
    ids=["no run", "a run", "broken off"],
)
async def test_it_stays_after_the_run_and_leaves_with_its_code(
    six_tasks: Journal, work: RunWork | None, code: int
) -> None:
    async with open_console(six_tasks, work=work) as seat:
        await seat.pilot.pause()
        assert (seat.app.code, seat.app.is_running) == (code if work else None, True)
        await seat.press("q")
        assert seat.app.return_value == code


async def test_ctrl_c_names_the_key_that_leaves(six_tasks: Journal) -> None:
    async with open_console(six_tasks, ConsoleSettings(keys={"quit": "Q"})) as seat:
        await seat.press("ctrl+c")
        assert seat.app.told == ["Q quits the console"]
        assert seat.app.is_running


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_while_the_run_works_leaving_asks_first(six_tasks: Journal, key: str) -> None:
    async with open_console(six_tasks, work=work_forever) as seat:
        await seat.press(key)
        assert isinstance(seat.app.screen, ConfirmDialog)
        await seat.press("enter")
        assert seat.app.is_running
        await seat.press(key, "y")
        assert seat.app.return_value == INTERRUPTED


async def test_a_run_of_this_process_goes_on_with_a_task_begun_again(six_tasks: Journal) -> None:
    begun: list[int] = []

    async def end_at_once() -> int:
        begun.append(len(begun))
        return len(begun)

    async with open_console(six_tasks, work=end_at_once) as seat:
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


def rendered_widget(widget: Widget) -> str:
    """A widget and its parts as they are seen, with frames and colours."""
    parts = (widget, *widget.query("*"))
    strips = [strip for part in parts for strip in part.render_lines(part.outer_size.region)]
    return "\n".join(str(segment) for strip in strips for segment in strip)


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (120, ()),
        *(
            pytest.param(width, keys, marks=pytest.mark.matrix)
            for width, keys in ((160, ()), (120, ("4",)), (120, ("5", "f5")), (120, ("5", "space")))
        ),
        (120, ("enter", "space")),
        (120, ("b",)),
    ],
)
async def test_what_has_the_focus_looks_otherwise_than_without_it(
    shop_to_read: Journal, width: int, keys: tuple[str, ...]
) -> None:
    async with console_on(shop_to_read, size=(width, 36)) as seat:
        await seat.press("5")
        seat.app.refresh_panes()
        await seat.until(lambda: bool(seat.app.learned.view.lessons))
        await seat.press("1", *keys)
        view = seat.app.screen
        await seat.until(lambda: not (isinstance(view, AttemptScreen) and view.reading))
        for words in seat.app.screen.query(TextArea):
            words.cursor_blink = False
        for _ in seat.app.screen.focus_chain:
            await seat.press("tab")
            focused = seat.app.focused
            assert focused is not None
            seen = rendered_widget(focused)
            await seat.press("shift+tab")
            await seat.until(lambda focused=focused, seen=seen: rendered_widget(focused) != seen)
            await seat.press("tab")
