"""Keys that come faster than screens go, and a journal that answers late, or once not at all."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.command import CommandList
from textual.widgets import Static

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    Delivery,
    DeliveryState,
    Entry,
    Fact,
    Recall,
    Record,
)
from midwatch_stage.console import ConsoleDriver, console_of
from midwatch_stage.factories import AT, intervention, message, transition
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.screens.attempt_tabs import TimelineTab

HELD = intervention(message="Up.", needs_approval=True)
MINE = intervention(by=Actor.OPERATOR, author="ada")
PAUSE = replace(MINE, action=Action.PAUSE)
GO_ON = replace(MINE, action=Action.RESUME, message="Go on.")


class SlowJournal(Journal):
    """A journal whose answers wait for an event, or that fails, as it is told."""

    timelines: asyncio.Event | None = None
    """What the view of an attempt waits for before it has what it has read."""
    acts: asyncio.Event | None = None
    """What the first act that is stored from now on waits for."""
    facts: asyncio.Event | None = None
    """What the first look at facts from now on waits for."""
    fails: str = ""
    """The name of a function that cannot be read with; `timeline` for the view of an attempt."""

    async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
        if "task" in rest and self.fails == "timeline":
            raise JournalError("it is away")
        found = await super().entries(after, **rest)
        if "task" in rest and self.timelines is not None:
            await self.timelines.wait()
        return found

    async def write(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        gate, self.acts = self.acts, None
        if gate is not None:
            await gate.wait()
        return await super().write(work, *args, **kwargs)

    async def read(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.fails and work.__module__.endswith(f".{self.fails}"):
            raise JournalError("it is away")
        found = await super().read(work, *args, **kwargs)
        if work.__module__.endswith(".facts") and self.facts is not None:
            gate, self.facts = self.facts, None
            await gate.wait()
        return found


async def press_at_once(seat: ConsoleDriver[SlowJournal], *keys: str) -> None:
    """Press keys that are all there before the first of them is looked at."""
    for key in keys:
        character = {"enter": "\r"}.get(key, key if len(key) == 1 else None)
        seat.app.post_message(events.Key(key, character))
    await seat.pilot.pause()
    await seat.pilot.pause()


Sit = Callable[..., AbstractAsyncContextManager[ConsoleDriver[SlowJournal]]]


@pytest.fixture
def sit(tmp_path: Path) -> Sit:
    """Opens the console on a journal that holds `records` of one attempt."""

    @asynccontextmanager
    async def seat(*records: Record) -> AsyncGenerator[ConsoleDriver[SlowJournal]]:
        async with (
            await SlowJournal.open(tmp_path / "journal.db") as journal,
            console_of(journal, transition(), message(4), *records, project="p") as operator,
        ):
            yield operator

    return seat


def approval(id: int) -> Delivery:
    return Delivery(intervention=id, state=DeliveryState.APPROVED, step=4, author="ada")


async def test_words_sent_twice_are_said_once_and_close_only_their_dialog(sit: Sit) -> None:
    async with sit() as seat:
        for _ in range(2):
            below = seat.app.screen
            await seat.pilot.press("i", "h")
            await press_at_once(seat, "enter", "enter")
            assert seat.app.screen is below
            await seat.open_attempt()
        assert await seat.written() == [replace(MINE, message="h")] * 2


async def test_a_command_of_the_palette_that_is_chosen_twice_is_carried_out_once(sit: Sit) -> None:
    async with sit() as seat:
        await seat.pilot.press("ctrl+p", *"pause the")
        commands = seat.app.screen.query_one(CommandList)
        await seat.until(lambda: bool(commands.option_count))
        await press_at_once(seat, "enter", "enter")
        await seat.until(lambda: bool(seat.app.told))
        assert await seat.written() == [PAUSE]
        assert len(seat.app.screen_stack) == 1


async def test_a_decision_is_approved_once_and_no_other_in_its_place(sit: Sit) -> None:
    async with sit(HELD, HELD) as seat:
        await press_at_once(seat, "a", "a")
        assert await seat.written() == [approval(seat.before - 1)]
        assert "fix#1: that decision has already been settled" in seat.app.told


async def test_what_was_not_stored_can_be_said_again(sit: Sit) -> None:
    async with await Journal.open(":memory:") as closed:
        pass
    async with sit(HELD) as seat:
        desk = seat.app.operator
        seat.app.operator = OperatorActions(closed, author="ada", clock=lambda: AT)
        await seat.pilot.press("a")
        await seat.until(lambda: bool(seat.app.told))
        seat.app.operator = desk
        await seat.pilot.press("a")
        assert await seat.written() == [approval(seat.before)]


async def test_what_is_said_is_stored_in_the_order_of_the_keys(sit: Sit) -> None:
    async with sit() as seat:
        seat.journal.acts = first = asyncio.Event()
        await press_at_once(seat, "p", "p")
        first.set()
        assert await seat.written() == [PAUSE, GO_ON]


async def test_whoever_leaves_leaves_when_what_was_said_is_stored(sit: Sit) -> None:
    async with sit() as seat:
        seat.journal.acts = stored = asyncio.Event()
        await press_at_once(seat, "p", "q")
        assert seat.app.return_value is None
        stored.set()
        await seat.until(lambda: seat.app.return_value is not None)
        assert [each.record for each in await seat.journal.entries(seat.before)] == [PAUSE]


async def test_whoever_leaves_again_does_not_wait_for_the_journal(sit: Sit) -> None:
    async with sit() as seat:
        seat.journal.acts = asyncio.Event()
        await press_at_once(seat, "p", "q", "q")
        assert seat.app.return_value == 0


async def test_a_decision_that_the_view_does_not_tell_yet_is_not_approved(sit: Sit) -> None:
    async with sit(HELD) as seat:
        screen, first = await seat.open_attempt(), seat.before
        seat.journal.timelines = read = asyncio.Event()
        last = await seat.write(approval(first), HELD)
        await seat.pilot.press("a")
        assert await seat.written() == []
        assert seat.app.told == ["fix#1: what is waiting has just changed: look at it first"]
        read.set()
        await seat.until(lambda: screen.timeline.last_id == last)
        await seat.pilot.press("a")
        assert await seat.written() == [approval(last)]


async def test_a_timeline_that_could_not_be_read_is_read_when_it_can_be(sit: Sit) -> None:
    async with sit() as seat:
        seat.journal.fails = "timeline"
        await seat.pilot.press("enter")
        screen = seat.app.screen
        assert isinstance(screen, AttemptScreen)
        await seat.until(lambda: not screen.reading)
        assert screen.timeline.items == []
        seat.journal.fails = ""
        await seat.until(lambda: screen.timeline.last_id == seat.before)


async def test_an_attempt_says_nothing_untrue_until_it_is_read(sit: Sit) -> None:
    async with sit() as seat:
        seat.journal.timelines = read = asyncio.Event()
        seat.app.open_attempt(seat.app.board.rows[seat.attempt.id])
        await seat.until(lambda: isinstance(seat.app.screen, AttemptScreen))
        lines = seat.app.screen.query(".nothing, .empty").results(Static)
        said = {str(each.content) for each in lines}
        assert said <= {"Reading the journal…", "Reading the workspace…"}
        read.set()
        await seat.until(lambda: seat.text("#alerts-pane .nothing") == "No alerts yet.")


async def test_what_an_earlier_recall_was_of_is_not_told_of_the_newest(sit: Sit) -> None:
    async with sit(Fact(text="Old."), Fact(text="New.")) as seat:
        screen, new = await seat.open_attempt(), seat.before
        seat.journal.facts = late = asyncio.Event()
        await seat.write(Recall(facts=(new - 1,)))
        await seat.until(lambda: seat.journal.facts is None)
        await seat.write(Recall(facts=(new,)))
        await seat.until(lambda: "New." in screen.timeline.items[-1].detail)
        late.set()
        await seat.until(lambda: not [each for each in seat.app.workers if each.group == "given"])
        assert "New." in screen.timeline.items[-1].detail


async def test_what_is_cut_off_a_long_timeline_is_there_until_the_rest_is_shown(sit: Sit) -> None:
    async with sit() as seat:
        screen = await seat.open_attempt()
        timeline = screen.query_one(TimelineTab)
        before = timeline.list.render_line(timeline.list.count - 1).text
        del screen.timeline.items[:]
        assert timeline.list.render_line(timeline.list.count - 1).text == before


async def test_proposals_that_could_not_be_looked_for_are_looked_for_again(sit: Sit) -> None:
    async with sit() as seat:
        learned = seat.app.learned
        seat.journal.fails = "versions"
        learned.observe([], again=True)
        await seat.until(lambda: seat.app.learned.problem != "")
        seat.journal.fails = ""
        await seat.until(lambda: seat.app.learned.problem == "")


async def test_a_view_that_is_closed_as_it_has_read_does_not_end_the_console(sit: Sit) -> None:
    async with sit() as seat:
        await seat.open_attempt()
        await seat.first_screen()
        seat.journal.timelines = asyncio.Event()
        seat.app.open_attempt(seat.app.board.rows[seat.attempt.id])
        await seat.until(lambda: isinstance(seat.app.screen, AttemptScreen))
        screen = seat.app.screen
        await screen.remove_children()
        seat.journal.timelines.set()
        await seat.until(lambda: isinstance(screen, AttemptScreen) and not screen.reading)
        await seat.first_screen()
        assert seat.opened is None
