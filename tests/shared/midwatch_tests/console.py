"""The console under somebody's keys, on a journal that the test writes."""

import asyncio
import unicodedata
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from textual.app import App
from textual.events import Key
from textual.keys import KEY_NAME_REPLACEMENTS, key_to_character
from textual.message_pump import MessagePump
from textual.notifications import SeverityLevel
from textual.pilot import Pilot
from textual.widgets import Input, Static, TabbedContent, TextArea

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Commit, Entry, Hint, Record
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.state.feed import Feed
from midwatch_supervisor.tui.widgets.footer import Footer
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_tests.factories import AT, drafts

J = TypeVar("J", bound=Journal)
_WAITERS = attrgetter("_message_queue.ready_event._waiters")
"""What waits for the next message of a pump: Textual has no public name for it."""


async def settle(pilot: Pilot[Any]) -> None:
    """Wait until every widget has done what it was told, and what followed from that.

    Textual's own `pause` sleeps until the process seems idle: a fiftieth of a second at the least,
    and what it takes for idle on a busy machine may be one that was given no time. It also waits
    for an answer from each of some seventy widgets, though only a few have anything to do.
    """
    app = pilot.app
    async with asyncio.timeout(120):
        while True:
            await asyncio.sleep(0)
            if await _answered(_at_work(app)):
                continue
            await pilot.wait_for_animation()  # and what the screen has kept for its next frame
            await _answered((app, app.screen))
            if not _at_work(app) or not app.is_running:
                return


def _at_work(app: App[Any]) -> list[MessagePump]:
    """What is at a message, of all that the screen in front has."""
    pumps = (app, *app.screen.walk_children(with_self=True))
    return [each for each in pumps if not _waits(each)]


def _waits(pump: MessagePump) -> bool:
    """Whether it has seen its last message through, and waits for one."""
    return not pump.message_queue_size and bool(_WAITERS(pump))


async def _answered(pumps: Iterable[MessagePump]) -> bool:
    """Wait until each has come to a message that it is sent now; whether any takes one still."""
    answers: list[asyncio.Event] = []
    for each in pumps:
        answer = asyncio.Event()
        if each.call_later(answer.set):  # it is not closing
            answers.append(answer)
    for answer in answers:
        await answer.wait()
    return bool(answers)


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys one after the other; each is carried out before the next, but for letters typed.

    To wait for every widget after each letter takes longer than all else that typing does.
    """
    left = list(keys)
    while left:
        typing = isinstance(pilot.app.focused, Input | TextArea)
        letters = len([*takewhile(lambda key: len(key) == 1, left)]) if typing else 0
        now, left = left[: letters or 1], left[letters or 1 :]
        for key in now:
            pilot.app.post_message(_pressed(key))
        await settle(pilot)


def _pressed(key: str) -> Key:
    """The event of a key, which is a character or the name of one, as Textual calls them."""
    if len(key) > 1 or key.isalnum():
        return Key(key, key_to_character(key))
    name = unicodedata.name(key).lower().replace(" ", "_").replace("-", "_")
    return Key(KEY_NAME_REPLACEMENTS.get(name, name), key)


class RecordingConsole(Console):
    """A console that keeps what it told, and whose time stands still unless it is moved."""

    glance_seconds = 0.0

    def __init__(
        self,
        feed: Feed,
        operator: OperatorActions,
        *,
        now: Callable[[], Any] | None,
        **options: Any,
    ) -> None:
        self.time = AT
        self.noticed: list[str] = []
        """All that was told."""
        self.told: list[str] = []
        """What was told of acts, and has no title for that."""
        self.rings = 0
        self.read = 0
        """The newest entry that it has read."""
        super().__init__(feed, operator, now=now or (lambda: self.time), **options)

    def follow_commands(self, entries: Iterable[Entry]) -> None:
        """Keep how far it has read."""
        news = tuple(entries)
        super().follow_commands(news)
        self.read = news[-1].id if news else self.read

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Keep what is told."""
        self.noticed.append(message)
        if not title:
            self.told.append(message)
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    def bell(self) -> None:
        """Keep that it rang."""
        self.rings += 1


@dataclass
class ConsoleDriver(Generic[J]):
    """Somebody before the console, and a run that writes."""

    journal: J
    bus: LocalBus
    app: RecordingConsole
    pilot: Pilot[int]
    run: int = 1
    attempts: dict[str, Attempt] = field(default_factory=dict[str, Attempt])
    """By the name of their task."""
    before: int = 0
    """The last entry that the operator did not write."""

    async def add(
        self, name: str = "fix", *, workspace: str = "", spec: str = "{}", **fields: str
    ) -> Attempt:
        """Add a task with an attempt."""
        texts = {"title": "", "spec": spec} | fields
        task = await self.journal.add_task(run=self.run, name=name, at=AT, **texts)
        whose = {"worker": "coder", "model": "m", "node": "n", "workspace": workspace}
        attempt = await self.journal.add_attempt(task=task.id, number=1, at=AT, **whose)
        self.attempts[name] = attempt
        return attempt

    @property
    def attempt(self) -> Attempt:
        """The attempt of the task `fix`."""
        return self.attempts["fix"]

    async def write(self, *records: Record, task: str = "fix") -> int:
        """Commit records as a task's run would, and wait until the console has them; the last id.

        The task and its attempt are added with its first records.
        """
        attempt = self.attempts.get(task) or await self.add(task)
        commit = Commit(drafts=drafts(attempt, records))
        self.before = (await self.journal.commit(commit))[-1].id
        self.bus.publish(Hint(entry=self.before, kind="step", task=attempt.task))
        await self.until(lambda: self.app.read >= self.before)
        return self.before

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait for the console; two minutes at most."""
        nothing = LocalBus().subscribe()
        async with asyncio.timeout(120):
            while not happened():
                await nothing.wait(0.005)
        await settle(self.pilot)

    async def press(self, *keys: str) -> None:
        """Press keys one after the other, and wait until what they say is stored."""
        await press(self.pilot, *keys)
        if self.app.storing:
            await self.until(lambda: not self.app.storing)

    async def written(self) -> list[Record]:
        """What stands in the journal since the last record of the run, all acts stored."""
        await self.until(lambda: not self.app.storing)
        return [entry.record for entry in await self.journal.entries(self.before)]

    async def first_screen(self) -> None:
        """Leave whatever is open before the first screen."""
        while len(self.app.screen_stack) > 1:
            await self.app.pop_screen()

    async def open_attempt(self, task: str = "fix") -> AttemptScreen:
        """Open an attempt's view and wait until it has read the journal."""
        self.app.open_attempt(self.app.board.rows[self.attempts[task].id])
        await self.until(lambda: isinstance(self.app.screen, AttemptScreen))
        screen = self.app.screen
        assert isinstance(screen, AttemptScreen)
        await self.until(lambda: screen.timeline.last_id >= self.before and not screen.reading)
        return screen

    @property
    def opened(self) -> str | None:
        """The task whose attempt is in front."""
        screen = self.app.screen
        return screen.timeline.task.name if isinstance(screen, AttemptScreen) else None

    @property
    def tab(self) -> str:
        """The tab of the first screen that is seen."""
        return self.app.screen_stack[0].query_one("#panes", TabbedContent).active

    def list(self, name: str) -> LineList:
        """A list of the screen in front, else of the first screen."""
        found = self.app.screen.query(f"#{name}") or self.app.screen_stack[0].query(f"#{name}")
        return found.first(LineList)

    def lines(self, name: str) -> "list[str]":
        """What a list shows, line by line."""
        found = self.list(name)
        return [found.render_line(y).text.rstrip() for y in range(found.count)]

    def words(self, name: str) -> "list[str]":
        """What a list shows, line by line, without its columns."""
        return [" ".join(line.split()) for line in self.lines(name)]

    @property
    def cursor_line(self) -> str:
        """The line of the cursor in the timeline of the attempt in front."""
        return next(line for line in self.lines("timeline") if line.startswith(">"))

    @property
    def footer(self) -> str:
        """The keys below the screen in front."""
        return " ".join(self.app.screen.query_one(Footer).render_line(0).text.split())

    def text(self, selector: str) -> str:
        """What a line of the screen in front says."""
        return str(self.app.screen.query_one(selector, Static).content)


@asynccontextmanager
async def console_on(
    journal: J,
    *,
    target: Journal | None = None,
    size: tuple[int, int] = (100, 30),
    now: Callable[[], Any] | None = None,
    toasts: bool = False,
    read: bool = True,
    console: Mapping[str, Any] = MappingProxyType({}),
    **feed: Any,
) -> AsyncGenerator[ConsoleDriver[J]]:
    """Open the console on the first run of a journal, and wait until all of it was `read`.

    What is said goes to the journal `target`, where there is one; with `toasts` what is told is
    seen on the screen. `console` are arguments of the console, `feed` those of the feed.
    """
    bus = LocalBus()
    options: dict[str, Any] = {"run": 1, "poll_seconds": 60, "hertz": 100} | feed
    operator = OperatorActions(target or journal, author="ada", bus=bus, clock=now or (lambda: AT))
    app = RecordingConsole(Feed(journal, bus=bus, **options), operator, now=now, **console)
    async with app.run_test(size=size, notifications=toasts) as pilot:
        driver = ConsoleDriver(journal, bus, app, pilot, before=await journal.last_id())
        if read:
            await driver.until(lambda: app.read >= driver.before)
        yield driver


@asynccontextmanager
async def console_of(
    journal: J, *records: Record, project: str = "", spec: str = "{}", **options: Any
) -> AsyncGenerator[ConsoleDriver[J]]:
    """Open the console on a new journal with the records, if any, of one attempt of `fix`."""
    await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
    async with console_on(journal, **options) as driver:
        if records:
            await driver.add(spec=spec, project=project)
            await driver.write(*records)
        yield driver


@asynccontextmanager
async def console_in(
    folder: Path, *records: Record, **options: Any
) -> AsyncGenerator[ConsoleDriver[Journal]]:
    """The same on a journal that is a file in a folder."""
    async with (
        await Journal.open(folder / "journal.db") as journal,
        console_of(journal, *records, **options) as driver,
    ):
        yield driver
