"""Keys that were not meant do no harm, wherever they are pressed."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    Intervention,
    Lifecycle,
    Record,
    Severity,
)
from midwatch_stage.console import ConsoleDriver, console_on
from midwatch_stage.factories import AT, alert, intervention, reflecting, transition
from midwatch_stage.rows import row
from midwatch_supervisor.tui.keys import ACTS, LEARNED, LIST
from midwatch_supervisor.tui.operator_command import Command, question, refusal

Watch = ConsoleDriver[Journal]
Open = Callable[..., AbstractAsyncContextManager[Watch]]

KEYS = [key for each in (*ACTS, *LEARNED) for key in each.keys.split(",")]
HARMLESS = frozenset({Action.PAUSE, Action.RESUME, Action.ACKNOWLEDGE})
"""What one key may do: another takes it back, or it changes nothing of the work."""

STUCK = alert(severity=Severity.CRITICAL, summary="the same acts", step=4)
RESTART = intervention(Action.RESTART, Actor.SUPERVISOR, needs_approval=True)
STANDINGS: dict[str, tuple[Record, ...]] = {
    "working": (transition(), reflecting(1)),
    "stuck": (transition(), reflecting(1), STUCK),
    "approval": (transition(), reflecting(1), STUCK, RESTART),
    "over": (transition(), reflecting(1), transition(Lifecycle.COMPLETED)),
}


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Opens the console on a journal with one attempt after `records`, or an empty one."""

    @asynccontextmanager
    async def seat(*records: Record) -> AsyncGenerator[Watch]:
        async with await Journal.open(tmp_path / "journal.db") as journal:
            await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
            async with console_on(journal, size=(120, 30)) as watch:
                if records:
                    await watch.write(*records)
                yield watch

    return seat


async def pane(watch: Watch, where: str) -> None:
    """Show a pane, or the attempt's view."""
    if where == "enter":
        await watch.open_attempt()
    else:
        await watch.press(where)


@pytest.mark.parametrize("standing", STANDINGS)
@pytest.mark.parametrize("command", Command)
def test_no_command_does_at_once_what_cannot_be_taken_back(command: Command, standing: str) -> None:
    about = row(*STANDINGS[standing])
    asks = question(command, about) is not None
    assert asks or refusal(command, about) or command.effect.action in HARMLESS


@pytest.mark.parametrize("where", ["1", "2", "3", "4", "5", "6", "enter"])
async def test_no_single_key_does_more_than_can_be_taken_back(opened: Open, where: str) -> None:
    async with opened(*STANDINGS["approval"]) as watch:
        await pane(watch, where)
        for key in KEYS:
            await watch.pilot.press(key)
            if watch.app.screen.is_modal:
                await watch.pilot.press("escape")
        written = await watch.written()
        actions = {each.action for each in written if isinstance(each, Intervention)}
        assert actions <= HARMLESS
        assert all(isinstance(each, Intervention) for each in written)


@pytest.mark.parametrize("where", ["1", "2", "3", "4", "5", "6"])
async def test_no_key_breaks_an_empty_pane(opened: Open, where: str) -> None:
    async with opened() as watch:
        await watch.press(where, *(key for each in (*ACTS, *LIST) for key in each.keys.split(",")))
        assert await watch.written() == []
        assert watch.app.is_running


@pytest.mark.parametrize("keys", ["xj", "ax", "sq", "mr"])
async def test_a_wrong_key_after_a_question_is_no_yes(opened: Open, keys: str) -> None:
    async with opened(*STANDINGS["approval"]) as watch:
        await pane(watch, "1")
        await watch.press(*keys)
        assert await watch.written() == []


@pytest.mark.parametrize("key", ["x", "a", "s"])
async def test_enter_is_no_yes_to_what_ends_or_hides_something(opened: Open, key: str) -> None:
    async with opened(*STANDINGS["approval"]) as watch:
        await pane(watch, "1")
        await watch.press(key, "enter", "enter")
        assert await watch.written() == []
