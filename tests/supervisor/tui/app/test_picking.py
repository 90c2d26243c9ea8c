"""Nobody acts on a row that came under the cursor by itself, or with a key that was not meant."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertState,
    Delivery,
    DeliveryState,
    Intervention,
    Lifecycle,
    Record,
    Severity,
)
from midwatch_supervisor.tui.keys import ACTS, LEARNED, LIST
from midwatch_supervisor.tui.operator_command import OperatorCommand, question, refusal
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_tests.console import ConsoleDriver, console_in, press
from midwatch_tests.factories import alert, delivery, intervention, reflecting, transition
from midwatch_tests.rows import row

Watch = ConsoleDriver[Journal]
WORKING = transition()
FOLLOWS = "select a line first: the cursor follows the newest"
SLIPPED = "another line has just moved under the cursor: look at it first"
HELD = intervention(Action.NUDGE, Actor.SUPERVISOR, message="Look up.", needs_approval=True)
STUCK = alert(severity=Severity.CRITICAL, summary="the same acts", step=4)


def approval(id: int, step: int = 1) -> Delivery:
    return Delivery(intervention=id, state=DeliveryState.APPROVED, step=step, author="ada")


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncGenerator[Watch]:
    async with console_in(tmp_path, size=(120, 30), hertz=1000) as driver:
        # Whoever looks is slow: a line that comes by itself stays unread for an hour.
        driver.app.glance_seconds = 3600
        yield driver


async def write_two_checkpoints(watch: Watch) -> int:
    held = await watch.write(WORKING, reflecting(1), HELD, task="one")
    await watch.press("2")
    await watch.write(WORKING, reflecting(1), HELD, task="two")
    return held


async def test_a_checkpoint_takes_no_act_until_it_was_picked(watch: Watch) -> None:
    first = await write_two_checkpoints(watch)
    second = watch.before
    await watch.press("a", "x", "p", "i")
    assert watch.app.told == [FOLLOWS] * 4
    assert await watch.written() == []
    await watch.press("k", "a")
    await watch.pilot.click("#checkpoints", offset=(4, 1))
    await watch.press("a")
    assert await watch.written() == [approval(first), approval(second)]


async def test_the_newest_checkpoint_is_picked_by_a_move_and_keeps_the_cursor(watch: Watch) -> None:
    await write_two_checkpoints(watch)
    second = watch.before
    await watch.press("j")
    await watch.write(WORKING, reflecting(1), HELD, task="three")
    await watch.press("a")
    assert await watch.written() == [approval(second)]


async def test_the_cursor_follows_again_when_the_pick_is_put_away(watch: Watch) -> None:
    await write_two_checkpoints(watch)
    for number, key in enumerate(("G", "escape"), start=2):
        await watch.press("k", key)
        await watch.write(reflecting(number), task="one")
        assert watch.list("checkpoints").cursor == number
        await watch.press("a")
    await watch.press("g", "slash", *"two", "enter", "a")
    assert watch.app.told == [FOLLOWS] * 3
    assert await watch.written() == []
    await watch.press("escape", "g", "j", "slash", *"two", "enter", "a")
    assert len(await watch.written()) == 1


async def test_a_row_that_jumps_under_the_cursor_at_the_start_takes_no_act(watch: Watch) -> None:
    await watch.write(WORKING, task="seen")
    await watch.write(WORKING, HELD, task="jumps")
    await watch.press("p")
    assert watch.app.told == [SLIPPED]
    assert await watch.written() == []
    await watch.press("k", "a")
    assert await watch.written() == [approval(watch.before, step=0)]


async def test_what_follows_an_answered_line_is_not_answered_with_it(watch: Watch) -> None:
    first = await watch.write(WORKING, HELD, task="one")
    second = await watch.write(WORKING, HELD, task="two")
    await watch.press("3", "j", "k", "a")
    await watch.until(lambda: watch.list("attention").count == 1)
    await watch.press("a")
    assert watch.app.told[-1] == SLIPPED
    assert await watch.written() == [approval(first, step=0)]
    watch.app.glance_seconds = 0
    await watch.press("a")
    assert (await watch.written())[1:] == [approval(second, step=0)]


async def test_the_next_that_needs_a_person_is_looked_at_first(watch: Watch) -> None:
    held = await watch.write(WORKING, HELD, task="one")
    await watch.press("n")
    await watch.until(lambda: watch.opened == "one")
    await watch.press("a")
    assert watch.app.told == ["this attempt was just opened: look at it first"]
    watch.app.glance_seconds = 0
    page = watch.app.screen
    assert isinstance(page, AttemptScreen)
    await watch.until(lambda: page.shows(held))  # it reads the journal first
    await watch.press("a")
    assert await watch.written() == [approval(held, step=0)]


async def test_a_row_that_leaves_the_filter_does_not_hand_its_act_to_the_next(watch: Watch) -> None:
    for name in ("one", "two"):
        await watch.write(WORKING, STUCK, task=name)
    await watch.press("slash", *"stuck", "enter", "j", "k")
    await watch.write(replace(STUCK, state=AlertState.RESOLVED), task="one")
    await watch.press("p")
    assert watch.app.told == [SLIPPED]
    assert await watch.written() == []


async def test_who_picked_a_row_while_the_history_is_read_stays_on_it(watch: Watch) -> None:
    await watch.write(WORKING, task="a")
    await watch.write(WORKING, task="b")
    await watch.press("j")
    await watch.write(WORKING, HELD, task="z")
    await watch.press("p")
    paused = intervention(Action.PAUSE, Actor.OPERATOR, author="ada")
    entries = await watch.journal.entries(watch.before)
    assert [(each.record, each.attempt) for each in entries] == [(paused, watch.attempts["b"].id)]


async def test_the_footer_shows_what_can_be_done_about_the_chosen_row(watch: Watch) -> None:
    assert watch.footer.startswith("⏎ Open n Next / Filter")
    await watch.write(WORKING)
    assert watch.footer.startswith("i Guide p Pause x Stop b Restart ⏎ Open")
    await watch.write(HELD)
    answers = "a Approve m Modify r Reject i Guide"
    assert watch.footer.startswith(answers)
    await watch.pilot.resize_terminal(80, 24)
    assert watch.footer.startswith(answers)
    assert watch.footer.endswith("? Help")
    await watch.pilot.resize_terminal(120, 30)
    await watch.open_attempt()
    await watch.pilot.pause()
    assert watch.footer.startswith(answers)
    await watch.write(approval(watch.before))
    assert watch.footer.startswith("i Guide p Pause x Stop b Restart")
    await watch.first_screen()
    await watch.write(transition(Lifecycle.COMPLETED))
    assert watch.footer.startswith("A Accept R Reject result b Restart ⏎ Open")


async def test_what_was_asked_for_shows_until_it_arrives(watch: Watch) -> None:
    await watch.write(WORKING)
    await watch.press("j", "p")
    assert "p Resume" in watch.footer
    await watch.until(lambda: "pausing…" in watch.lines("fleet")[0])
    await watch.write(delivery(watch.before + 1), transition(Lifecycle.INPUT_REQUIRED))
    assert "paused" in watch.lines("fleet")[0]


async def test_the_footer_offers_nothing_about_a_followed_checkpoint(watch: Watch) -> None:
    await write_two_checkpoints(watch)
    assert watch.footer.startswith("⏎ Open n Next / Filter")
    await watch.press("j")
    assert watch.footer.startswith("a Approve m Modify r Reject")


Open = Callable[..., AbstractAsyncContextManager[Watch]]

KEYS = [key for each in (*ACTS, *LEARNED) for key in each.keys.split(",")]
HARMLESS = frozenset({Action.PAUSE, Action.RESUME, Action.ACKNOWLEDGE})
"""What one key may do: another takes it back, or it changes nothing of the work."""

RESTART = intervention(Action.RESTART, Actor.SUPERVISOR, needs_approval=True)
STANDINGS: dict[str, tuple[Record, ...]] = {
    "working": (transition(), reflecting(1)),
    "stuck": (transition(), reflecting(1), STUCK),
    "approval": (transition(), reflecting(1), STUCK, RESTART),
    "over": (transition(), reflecting(1), transition(Lifecycle.COMPLETED)),
}


@pytest.fixture
def open_console(tmp_path: Path) -> Open:
    """Opens the console on a journal with one attempt after `records`, or an empty one."""

    return partial(console_in, tmp_path, size=(120, 30))


@pytest.mark.parametrize("standing", STANDINGS)
@pytest.mark.parametrize("command", OperatorCommand)
def test_no_command_ends_something_at_once(command: OperatorCommand, standing: str) -> None:
    about = row(*STANDINGS[standing])
    asks = question(command, about) is not None
    assert asks or refusal(command, about) or command.effect.action in HARMLESS


async def press_each_key(watch: Watch) -> None:
    """Press one key after the other, and leave what it opens."""
    for key in KEYS:
        await press(watch.pilot, key)
        if watch.app.screen.is_modal:
            await press(watch.pilot, "escape")


async def is_harmless(watch: Watch) -> bool:
    written = await watch.written()
    return all(isinstance(each, Intervention) and each.action in HARMLESS for each in written)


async def test_no_single_key_does_more_than_can_be_taken_back(open_console: Open) -> None:
    async with open_console(*STANDINGS["approval"]) as watch:
        for pane in "12345":
            await watch.press(pane)
            await press_each_key(watch)
        assert await is_harmless(watch)


async def test_nor_does_one_in_an_attempts_view(open_console: Open) -> None:
    async with open_console(*STANDINGS["approval"]) as watch:
        await watch.open_attempt()
        await press_each_key(watch)
        assert await is_harmless(watch)


async def test_no_key_breaks_an_empty_pane(open_console: Open) -> None:
    keys = [key for each in (*ACTS, *LIST) for key in each.keys.split(",")]
    async with open_console() as watch:
        for pane in "12345":
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
async def test_an_answer_by_mistake_is_no_yes(open_console: Open, answers: tuple[str, ...]) -> None:
    async with open_console(*STANDINGS["approval"]) as watch:
        for keys in answers:
            await watch.press("1", *("enter" if key == "\n" else key for key in keys))
            assert await watch.written() == [], keys
            await watch.press("escape")
