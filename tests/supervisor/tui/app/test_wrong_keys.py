"""Keys that were not meant do no harm, wherever they are pressed."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Actor, Intervention, Lifecycle, Record, Severity
from midwatch_stage.console import ConsoleDriver, console_in, press
from midwatch_stage.factories import alert, intervention, reflecting, transition
from midwatch_stage.rows import row
from midwatch_supervisor.tui.keys import ACTS, LEARNED, LIST
from midwatch_supervisor.tui.operator_command import OperatorCommand, question, refusal

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

    return partial(console_in, tmp_path, size=(120, 30))


@pytest.mark.parametrize("standing", STANDINGS)
@pytest.mark.parametrize("command", OperatorCommand)
def test_no_command_does_at_once_what_cannot_be_taken_back(
    command: OperatorCommand, standing: str
) -> None:
    about = row(*STANDINGS[standing])
    asks = question(command, about) is not None
    assert asks or refusal(command, about) or command.effect.action in HARMLESS


async def press_each_alone(watch: Watch) -> None:
    """Press one key after the other, and leave what it opens."""
    for key in KEYS:
        await press(watch.pilot, key)
        if watch.app.screen.is_modal:
            await press(watch.pilot, "escape")


async def only_harmless(watch: Watch) -> bool:
    written = await watch.written()
    return all(isinstance(each, Intervention) and each.action in HARMLESS for each in written)


async def test_no_single_key_does_more_than_can_be_taken_back(opened: Open) -> None:
    async with opened(*STANDINGS["approval"]) as watch:
        for pane in "123456":
            await watch.press(pane)
            await press_each_alone(watch)
        assert await only_harmless(watch)


async def test_nor_does_one_in_an_attempts_view(opened: Open) -> None:
    async with opened(*STANDINGS["approval"]) as watch:
        await watch.open_attempt()
        await press_each_alone(watch)
        assert await only_harmless(watch)


async def test_no_key_breaks_an_empty_pane(opened: Open) -> None:
    keys = [key for each in (*ACTS, *LIST) for key in each.keys.split(",")]
    async with opened() as watch:
        for pane in "123456":
            await watch.press(pane, *keys, "escape")
        assert await watch.written() == []
        assert watch.app.is_running


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(("xj", "ax", "sq", "mr"), id="a wrong key"),
        pytest.param(("x\n\n", "a\n\n", "s\n\n"), id="enter, where something ends or is hidden"),
    ],
)
async def test_what_answers_a_question_by_mistake_is_no_yes(
    opened: Open, answers: tuple[str, ...]
) -> None:
    async with opened(*STANDINGS["approval"]) as watch:
        for keys in answers:
            await watch.press("1", *("enter" if key == "\n" else key for key in keys))
            assert await watch.written() == [], keys
            await watch.press("escape")
