"""Keys that come faster than screens go, and a journal that answers late, or once not at all."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.command import CommandList
from textual.pilot import Pilot

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.words import (
    Action,
    Actor,
    Attempt,
    AttemptState,
    Commit,
    Delivery,
    DeliveryState,
    Draft,
    Entry,
    Fact,
    Hint,
    Intervention,
    Lifecycle,
    Recall,
    Record,
    Step,
    StepKind,
)
from midwatch_supervisor.desk import Desk
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.attempt import AttemptScreen
from midwatch_supervisor.tui.feed import Feed
from midwatch_supervisor.tui.timeline import Timeline

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
WORKING = AttemptState(lifecycle=Lifecycle.WORKING)
STEP = Step(number=4, kind=StepKind.MESSAGE)
HELD = Intervention(action=Action.NUDGE, by=Actor.POLICY, message="Up.", needs_approval=True)
MINE = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, author="ada")
PAUSE = replace(MINE, action=Action.PAUSE)
GO_ON = replace(MINE, action=Action.RESUME, message="Go on.")


class Slow(Journal):
    """A journal whose answers wait for an event, or that fails, as it is told."""

    stories: asyncio.Event | None = None
    """What the view of an attempt waits for before it has what it has read."""
    acts: asyncio.Event | None = None
    """What the first act that is stored from now on waits for."""
    facts: asyncio.Event | None = None
    """What the first look at facts from now on waits for."""
    fails: str = ""
    """The name of a function that cannot be read with; `story` for the view of an attempt."""

    async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
        if "task" in rest and self.fails == "story":
            raise JournalError("it is away")
        found = await super().entries(after, **rest)
        if "task" in rest and self.stories is not None:
            await self.stories.wait()
        return found

    async def commit(self, commit: Commit) -> tuple[Entry, ...]:
        gate, self.acts = self.acts, None
        if gate is not None:
            await gate.wait()
        return await super().commit(commit)

    async def read(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.fails and work.__module__.endswith(f".{self.fails}"):
            raise JournalError("it is away")
        found = await super().read(work, *args, **kwargs)
        if work.__module__.endswith(".facts") and self.facts is not None:
            gate, self.facts = self.facts, None
            await gate.wait()
        return found


class Telling(Console):
    """A console that keeps what it told about acts."""

    def __init__(self, feed: Feed, desk: Desk) -> None:
        super().__init__(feed, desk, now=lambda: AT)
        self.told: list[str] = []

    def notify(self, message: str, **rest: Any) -> None:
        if not rest.get("title"):
            self.told.append(message)
        super().notify(message, **rest)


@dataclass
class Seat:
    """An operator in a hurry, with one attempt in the journal."""

    journal: Slow
    bus: LocalBus
    attempt: Attempt
    app: Telling
    pilot: Pilot[int]
    before: int = 0
    """The last entry that the operator did not write."""

    async def write(self, *records: Record) -> int:
        """Commit records as the run would, and wait until the board has them; the last id."""
        drafts = tuple(
            Draft(record=record, at=AT, task=self.attempt.task, attempt=self.attempt.id)
            for record in records
        )
        entries = await self.journal.commit(Commit(drafts=drafts))
        self.before = entries[-1].id
        self.bus.publish(Hint(entry=self.before, kind="step", task=self.attempt.task))
        await self.until(lambda: self.attempt.id in self.app.board.rows)
        row = self.app.board.rows[self.attempt.id]
        held = {entry.id for entry in entries if entry.record is HELD}
        await self.until(lambda: held <= row.held.keys())
        return self.before

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait for the console; half a minute at most."""
        async with asyncio.timeout(30):
            while not happened():
                await self.pilot.pause()
        await self.pilot.pause()

    async def hurry(self, *keys: str) -> None:
        """Press keys that are all there before the first of them is looked at."""
        for key in keys:
            character = {"enter": "\r"}.get(key, key if len(key) == 1 else None)
            self.app.post_message(events.Key(key, character))
        await self.pilot.pause()
        await self.pilot.pause()

    async def written(self) -> list[Record]:
        """What stands in the journal since the last record of the run, all acts stored."""
        await self.until(lambda: not self.app.storing)
        return [entry.record for entry in await self.journal.entries(self.before)]

    async def opened(self) -> AttemptScreen:
        """The view of the attempt, with all of its story."""
        await self.pilot.press("enter")
        screen = self.app.screen
        assert isinstance(screen, AttemptScreen)
        await self.until(lambda: screen.story.last_id >= self.before)
        return screen


Sit = Callable[..., AbstractAsyncContextManager[Seat]]


@pytest.fixture
def sit(tmp_path: Path) -> Sit:
    """Opens the console on a journal that holds `records` of one attempt."""

    @asynccontextmanager
    async def seat(*records: Record) -> AsyncGenerator[Seat]:
        async with await Slow.open(tmp_path / "journal.db") as journal:
            run = await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
            task = await journal.add_task(
                run=run.id, name="fix", title="", spec="{}", at=AT, project="p"
            )
            attempt = await journal.add_attempt(
                task=task.id, number=1, worker="w", model="m", node="n", workspace="", at=AT
            )
            bus = LocalBus()
            feed = Feed(journal, run=run.id, bus=bus, poll_seconds=60, hertz=100)
            app = Telling(feed, Desk(journal, author="ada", bus=bus, clock=lambda: AT))
            async with app.run_test(size=(100, 30)) as pilot:
                seated = Seat(journal, bus, attempt, app, pilot)
                await seated.write(WORKING, STEP, *records)
                yield seated

    return seat


def stamp(id: int) -> Delivery:
    return Delivery(intervention=id, state=DeliveryState.APPROVED, step=4, author="ada")


@pytest.mark.parametrize("inside", [False, True])
async def test_words_that_are_sent_twice_are_said_once_and_close_only_their_dialog(
    sit: Sit, inside: bool
) -> None:
    async with sit() as seat:
        below = await seat.opened() if inside else seat.app.screen
        await seat.pilot.press("i", "h")
        await seat.hurry("enter", "enter")
        assert await seat.written() == [replace(MINE, message="h")]
        assert seat.app.screen is below


async def test_a_command_of_the_palette_that_is_chosen_twice_is_carried_out_once(sit: Sit) -> None:
    async with sit() as seat:
        await seat.pilot.press("ctrl+p", *"pause the")
        commands = seat.app.screen.query_one(CommandList)
        await seat.until(lambda: bool(commands.option_count))
        await seat.hurry("enter", "enter")
        await seat.until(lambda: bool(seat.app.told))
        assert await seat.written() == [PAUSE]
        assert len(seat.app.screen_stack) == 1


async def test_a_decision_is_approved_once_and_no_other_in_its_place(sit: Sit) -> None:
    async with sit(HELD, HELD) as seat:
        await seat.hurry("a", "a")
        assert await seat.written() == [stamp(seat.before - 1)]
        assert "fix#1: that decision was settled meanwhile" in seat.app.told


async def test_what_was_not_stored_can_be_said_again(sit: Sit) -> None:
    async with sit(HELD) as seat:
        desk, seat.app.desk = seat.app.desk, Desk(await closed(), author="ada", clock=lambda: AT)
        await seat.pilot.press("a")
        await seat.until(lambda: bool(seat.app.told))
        seat.app.desk = desk
        await seat.pilot.press("a")
        assert await seat.written() == [stamp(seat.before)]


async def closed() -> Journal:
    async with await Journal.open(":memory:") as journal:
        return journal


async def test_what_is_said_is_stored_in_the_order_of_the_keys(sit: Sit) -> None:
    async with sit() as seat:
        seat.journal.acts = first = asyncio.Event()
        await seat.hurry("p", "p")
        first.set()
        assert await seat.written() == [PAUSE, GO_ON]


async def test_whoever_leaves_leaves_when_what_was_said_is_stored(sit: Sit) -> None:
    async with sit() as seat:
        seat.journal.acts = stored = asyncio.Event()
        await seat.hurry("p", "q")
        assert seat.app.return_value is None
        stored.set()
        await seat.until(lambda: seat.app.return_value is not None)
        assert [each.record for each in await seat.journal.entries(seat.before)] == [PAUSE]


async def test_whoever_leaves_again_does_not_wait_for_the_journal(sit: Sit) -> None:
    async with sit() as seat:
        seat.journal.acts = asyncio.Event()
        await seat.hurry("p", "q", "q")
        assert seat.app.return_value == 0


async def test_a_decision_that_the_view_does_not_tell_of_yet_is_not_approved_in_it(
    sit: Sit,
) -> None:
    async with sit(HELD) as seat:
        screen, first = await seat.opened(), seat.before
        seat.journal.stories = read = asyncio.Event()
        last = await seat.write(stamp(first), HELD)
        await seat.pilot.press("a")
        assert await seat.written() == []
        assert seat.app.told == ["fix#1: what waits has changed just now: look at it first"]
        read.set()
        await seat.until(lambda: screen.story.last_id == last)
        await seat.pilot.press("a")
        assert await seat.written() == [stamp(last)]


async def test_a_story_that_could_not_be_read_is_read_when_it_can_be(sit: Sit) -> None:
    async with sit() as seat:
        seat.journal.fails = "story"
        await seat.pilot.press("enter")
        screen = seat.app.screen
        assert isinstance(screen, AttemptScreen)
        await seat.until(lambda: not screen.reading)
        assert screen.story.items == []
        seat.journal.fails = ""
        await seat.until(lambda: screen.story.last_id == seat.before)


async def test_what_an_earlier_recall_was_of_is_not_told_of_the_newest(sit: Sit) -> None:
    async with sit(Fact(text="Old."), Fact(text="New.")) as seat:
        screen, new = await seat.opened(), seat.before
        seat.journal.facts = late = asyncio.Event()
        await seat.write(Recall(facts=(new - 1,)))
        await seat.until(lambda: seat.journal.facts is None)
        await seat.write(Recall(facts=(new,)))
        await seat.until(lambda: "New." in screen.story.items[-1].detail)
        late.set()
        await seat.until(lambda: not [each for each in seat.app.workers if each.group == "given"])
        assert "New." in screen.story.items[-1].detail


async def test_what_is_cut_off_a_long_story_is_there_until_the_rest_is_shown(sit: Sit) -> None:
    async with sit() as seat:
        screen = await seat.opened()
        timeline = screen.query_one(Timeline)
        before = timeline.roll.render_line(timeline.roll.count - 1).text
        del screen.story.items[:]
        assert timeline.roll.render_line(timeline.roll.count - 1).text == before


async def test_proposals_that_could_not_be_looked_for_are_looked_for_again(sit: Sit) -> None:
    async with sit() as seat:
        learned = seat.app.learned
        seat.journal.fails = "versions"
        learned.hear([], again=True)
        await seat.until(lambda: seat.app.learned.problem != "")
        seat.journal.fails = ""
        await seat.until(lambda: seat.app.learned.problem == "")
