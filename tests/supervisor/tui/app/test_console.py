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
from midwatch_supervisor.tui.app import INTERRUPTED, RunWork
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.widgets.dialogs import ConfirmDialog, HelpScreen
from midwatch_tests.console import ConsoleDriver, console_on
from midwatch_tests.factories import AT, transition


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
    async with open_console(six_tasks, settings) as ui:
        assert ui.app.theme == "midwatch-safe"
        await ui.press("2")
        assert ui.tab == "fleet-tab"
        await ui.press("f2")
        assert ui.tab == "checkpoints-tab"
        await ui.press("!")
        assert isinstance(ui.app.screen, HelpScreen)


async def test_help_opens_and_closes_over_a_fleet_that_is_up_to_date(six_tasks: Journal) -> None:
    async with open_console(six_tasks) as ui:
        count = ui.app.panes.fleet.list.count
        for key in ("escape", "q", "question_mark"):
            await ui.press("question_mark")
            await ui.write(transition(), task=f"more, till {key}")
            count += 1
            assert isinstance(ui.app.screen, HelpScreen)
            assert ui.app.panes.fleet.list.count == count
            await ui.press(key)
            assert not isinstance(ui.app.screen, HelpScreen)
        assert ui.app.is_running


@pytest.mark.parametrize(
    ("work", "code"),
    [(None, 0), (return_four, 4), (fail, 1)],
    ids=["no run", "a run", "broken off"],
)
async def test_it_stays_after_the_run_and_leaves_with_its_code(
    six_tasks: Journal, work: RunWork | None, code: int
) -> None:
    async with open_console(six_tasks, work=work) as ui:
        await ui.pilot.pause()
        assert (ui.app.code, ui.app.is_running) == (code if work else None, True)
        await ui.press("q")
        assert ui.app.return_value == code


async def test_ctrl_c_names_the_key_that_leaves(six_tasks: Journal) -> None:
    async with open_console(six_tasks, ConsoleSettings(keys={"quit": "Q"})) as ui:
        await ui.press("ctrl+c")
        assert ui.app.told == ["Q quits the console"]
        assert ui.app.is_running


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_while_the_run_works_leaving_asks_first(six_tasks: Journal, key: str) -> None:
    async with open_console(six_tasks, work=work_forever) as ui:
        await ui.press(key)
        assert isinstance(ui.app.screen, ConfirmDialog)
        await ui.press("enter")
        assert ui.app.is_running
        await ui.press(key, "y")
        assert ui.app.return_value == INTERRUPTED


async def test_a_run_of_this_process_goes_on_with_a_task_begun_again(six_tasks: Journal) -> None:
    begun: list[int] = []

    async def end_at_once() -> int:
        begun.append(len(begun))
        return len(begun)

    async with open_console(six_tasks, work=end_at_once) as ui:
        await ui.pilot.pause()
        assert (begun, ui.app.code) == ([0], 1)
        task = next(iter(ui.app.board.attempts.values())).task
        for lifecycle in (Lifecycle.COMPLETED, Lifecycle.SUBMITTED):
            state = TaskTransition(lifecycle=lifecycle)
            ui.app.board.fold(Entry(id=0, record=state, at=AT, task=task, attempt=None))
        ui.app.pass_a_second()
        await ui.pilot.pause()
        assert (begun, ui.app.code) == ([0, 1], 2)
        ui.app.pass_a_second()
        await ui.pilot.pause()
        assert begun == [0, 1]


async def test_a_run_that_begins_while_another_is_shown_is_told_of(journal: Journal) -> None:
    await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
    async with console_on(journal, poll_seconds=0.01, others=True) as ui:
        await ui.until(lambda: not ui.app.board.loading)
        assert ui.app.banner.said == ""
        await journal.add_run(source="later.yaml", settings="{}", at=AT)
        await ui.until(lambda: bool(ui.app.banner.said))
        assert ui.app.banner.said.endswith(
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
    async with console_on(shop_to_read, size=(width, 36)) as ui:
        await ui.press("5")
        ui.app.refresh_panes()
        await ui.until(lambda: bool(ui.app.learned.view.lessons))
        await ui.press("1", *keys)
        view = ui.app.screen
        await ui.until(lambda: not (isinstance(view, AttemptScreen) and view.reading))
        for words in ui.app.screen.query(TextArea):
            words.cursor_blink = False
        for _ in ui.app.screen.focus_chain:
            await ui.press("tab")
            focused = ui.app.focused
            assert focused is not None
            seen = rendered_widget(focused)
            await ui.press("shift+tab")
            await ui.until(lambda focused=focused, seen=seen: rendered_widget(focused) != seen)
            await ui.press("tab")
