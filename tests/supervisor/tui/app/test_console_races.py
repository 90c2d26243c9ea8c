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
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.screens.attempt_tabs import TimelineTab
from midwatch_tests.console import ConsoleDriver, console_of
from midwatch_tests.factories import AT, intervention, message, transition

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


async def press_at_once(ui: ConsoleDriver[SlowJournal], *keys: str) -> None:
    """Press keys that are all there before the first of them is looked at."""
    for key in keys:
        character = {"enter": "\r"}.get(key, key if len(key) == 1 else None)
        ui.app.post_message(events.Key(key, character))
    await ui.pilot.pause()
    await ui.pilot.pause()


OpenConsole = Callable[..., AbstractAsyncContextManager[ConsoleDriver[SlowJournal]]]


@pytest.fixture
def open_console(tmp_path: Path) -> OpenConsole:
    """Opens the console on a journal that holds `records` of one attempt."""

    @asynccontextmanager
    async def ui(*records: Record) -> AsyncGenerator[ConsoleDriver[SlowJournal]]:
        async with (
            await SlowJournal.open(tmp_path / "journal.db") as journal,
            console_of(journal, transition(), message(4), *records, project="p") as operator,
        ):
            yield operator

    return ui


def approval(id: int) -> Delivery:
    return Delivery(intervention=id, state=DeliveryState.APPROVED, step=4, author="ada")


async def test_words_sent_twice_are_said_once_and_close_only_their_dialog(
    open_console: OpenConsole,
) -> None:
    async with open_console() as ui:
        for _ in range(2):
            below = ui.app.screen
            await ui.pilot.press("i", "h")
            await press_at_once(ui, "enter", "enter")
            assert ui.app.screen is below
            await ui.open_attempt()
        assert await ui.written() == [replace(MINE, message="h")] * 2


async def test_a_command_of_the_palette_that_is_chosen_twice_is_carried_out_once(
    open_console: OpenConsole,
) -> None:
    async with open_console() as ui:
        await ui.pilot.press("ctrl+p", *"pause the")
        commands = ui.app.screen.query_one(CommandList)
        await ui.until(lambda: bool(commands.option_count))
        await press_at_once(ui, "enter", "enter")
        await ui.until(lambda: bool(ui.app.told))
        assert await ui.written() == [PAUSE]
        assert len(ui.app.screen_stack) == 1


async def test_a_decision_is_approved_once_and_no_other_in_its_place(
    open_console: OpenConsole,
) -> None:
    async with open_console(HELD, HELD) as ui:
        await press_at_once(ui, "a", "a")
        assert await ui.written() == [approval(ui.before - 1)]
        assert "fix#1: that decision has already been settled" in ui.app.told


async def test_what_was_not_stored_can_be_said_again(open_console: OpenConsole) -> None:
    async with await Journal.open(":memory:") as closed:
        pass
    async with open_console(HELD) as ui:
        operator = ui.app.operator
        ui.app.operator = OperatorActions(closed, author="ada", clock=lambda: AT)
        await ui.pilot.press("a")
        await ui.until(lambda: bool(ui.app.told))
        ui.app.operator = operator
        await ui.pilot.press("a")
        assert await ui.written() == [approval(ui.before)]


async def test_what_is_said_is_stored_in_the_order_of_the_keys(open_console: OpenConsole) -> None:
    async with open_console() as ui:
        ui.journal.acts = first = asyncio.Event()
        await press_at_once(ui, "p", "p")
        first.set()
        assert await ui.written() == [PAUSE, GO_ON]


async def test_whoever_leaves_leaves_when_what_was_said_is_stored(
    open_console: OpenConsole,
) -> None:
    async with open_console() as ui:
        ui.journal.acts = stored = asyncio.Event()
        await press_at_once(ui, "p", "q")
        assert ui.app.return_value is None
        stored.set()
        await ui.until(lambda: ui.app.return_value is not None)
        assert [each.record for each in await ui.journal.entries(ui.before)] == [PAUSE]


async def test_whoever_leaves_again_does_not_wait_for_the_journal(
    open_console: OpenConsole,
) -> None:
    async with open_console() as ui:
        ui.journal.acts = asyncio.Event()
        await press_at_once(ui, "p", "q", "q")
        assert ui.app.return_value == 0


async def test_a_decision_that_the_view_does_not_tell_yet_is_not_approved(
    open_console: OpenConsole,
) -> None:
    async with open_console(HELD) as ui:
        screen, first = await ui.open_attempt(), ui.before
        ui.journal.timelines = read = asyncio.Event()
        last = await ui.write(approval(first), HELD)
        await ui.pilot.press("a")
        assert await ui.written() == []
        assert ui.app.told == ["fix#1: what is waiting has just changed: look at it first"]
        read.set()
        await ui.until(lambda: screen.timeline.last_id == last)
        await ui.pilot.press("a")
        assert await ui.written() == [approval(last)]


async def test_a_timeline_that_could_not_be_read_is_read_when_it_can_be(
    open_console: OpenConsole,
) -> None:
    async with open_console() as ui:
        ui.journal.fails = "timeline"
        await ui.pilot.press("enter")
        screen = ui.app.screen
        assert isinstance(screen, AttemptScreen)
        await ui.until(lambda: not screen.reading)
        assert screen.timeline.items == []
        ui.journal.fails = ""
        await ui.until(lambda: screen.timeline.last_id == ui.before)


async def test_an_attempt_says_nothing_untrue_until_it_is_read(open_console: OpenConsole) -> None:
    async with open_console() as ui:
        ui.journal.timelines = read = asyncio.Event()
        ui.app.open_attempt(ui.app.board.rows[ui.attempt.id])
        await ui.until(lambda: isinstance(ui.app.screen, AttemptScreen))
        lines = ui.app.screen.query(".nothing, .empty").results(Static)
        said = {str(each.content) for each in lines}
        assert said <= {"Reading the journal…", "Reading the workspace…"}
        read.set()
        await ui.until(lambda: ui.text("#alerts-pane .nothing") == "No alerts yet.")


async def test_what_an_earlier_recall_was_of_is_not_told_of_the_newest(
    open_console: OpenConsole,
) -> None:
    async with open_console(Fact(text="Old."), Fact(text="New.")) as ui:
        screen, new = await ui.open_attempt(), ui.before
        ui.journal.facts = late = asyncio.Event()
        await ui.write(Recall(facts=(new - 1,)))
        await ui.until(lambda: ui.journal.facts is None)
        await ui.write(Recall(facts=(new,)))
        await ui.until(lambda: "New." in screen.timeline.items[-1].detail)
        late.set()
        await ui.until(lambda: not [each for each in ui.app.workers if each.group == "given"])
        assert "New." in screen.timeline.items[-1].detail


async def test_what_is_cut_off_a_long_timeline_is_there_until_the_rest_is_shown(
    open_console: OpenConsole,
) -> None:
    async with open_console() as ui:
        screen = await ui.open_attempt()
        timeline = screen.query_one(TimelineTab)
        before = timeline.list.render_line(timeline.list.count - 1).text
        del screen.timeline.items[:]
        assert timeline.list.render_line(timeline.list.count - 1).text == before


async def test_proposals_that_could_not_be_looked_for_are_looked_for_again(
    open_console: OpenConsole,
) -> None:
    async with open_console() as ui:
        learned = ui.app.learned
        ui.journal.fails = "versions"
        learned.observe([], again=True)
        await ui.until(lambda: ui.app.learned.problem != "")
        ui.journal.fails = ""
        await ui.until(lambda: ui.app.learned.problem == "")


async def test_a_view_that_is_closed_as_it_has_read_does_not_end_the_console(
    open_console: OpenConsole,
) -> None:
    async with open_console() as ui:
        await ui.open_attempt()
        await ui.first_screen()
        ui.journal.timelines = asyncio.Event()
        ui.app.open_attempt(ui.app.board.rows[ui.attempt.id])
        await ui.until(lambda: isinstance(ui.app.screen, AttemptScreen))
        screen = ui.app.screen
        await screen.remove_children()
        ui.journal.timelines.set()
        await ui.until(lambda: isinstance(screen, AttemptScreen) and not screen.reading)
        await ui.first_screen()
        assert ui.opened is None
