"""An operator before the console, with one attempt in the journal."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from textual.notifications import SeverityLevel
from textual.pilot import Pilot

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Commit, Draft, Entry, Hint, Record
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.state.feed import Feed

J = TypeVar("J", bound=Journal)

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
"""The moment in which all of it happens."""


class Hearing(Console):
    """A console that keeps what it told, and how far it has read."""

    def __init__(
        self, feed: Feed, desk: OperatorActions, now: Callable[[], datetime] = lambda: AT
    ) -> None:
        super().__init__(feed, desk, now=now)
        self.noticed: list[str] = []
        """All that was told."""
        self.told: list[str] = []
        """What was told of acts, and has no title for that."""
        self.read = 0

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


@dataclass
class Seat(Generic[J]):
    """An operator before the console."""

    journal: J
    bus: LocalBus
    attempt: Attempt
    app: Hearing
    pilot: Pilot[int]
    before: int = 0
    """The last entry that the operator did not write."""

    async def write(self, *records: Record) -> int:
        """Commit records as the run would, and wait until the console has them; the last id."""
        drafts = tuple(
            Draft(record=record, at=AT, task=self.attempt.task, attempt=self.attempt.id)
            for record in records
        )
        self.before = (await self.journal.commit(Commit(drafts=drafts)))[-1].id
        self.bus.publish(Hint(entry=self.before, kind="step", task=self.attempt.task))
        await self.until(lambda: self.app.read >= self.before)
        return self.before

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait for the console; half a minute at most."""
        async with asyncio.timeout(30):
            while not happened():
                await self.pilot.pause()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys one after the other, and wait until what they say is stored."""
        for key in keys:
            await self.pilot.press(key)
        await self.pilot.pause()
        await self.until(lambda: not self.app.storing)

    async def written(self) -> list[Record]:
        """What stands in the journal since the last record of the run, all acts stored."""
        await self.until(lambda: not self.app.storing)
        return [entry.record for entry in await self.journal.entries(self.before)]


@asynccontextmanager
async def seated(
    journal: J,
    *records: Record,
    spec: str = "{}",
    project: str = "",
    desk: Journal | None = None,
) -> AsyncGenerator[Seat[J]]:
    """Open the console on a new journal that holds records of one attempt.

    What is said goes to the journal `desk`, where there is one.
    """
    run = await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
    task = await journal.add_task(
        run=run.id, name="fix", title="", spec=spec, at=AT, project=project
    )
    attempt = await journal.add_attempt(
        task=task.id, number=1, worker="w", model="m", node="n", workspace="", at=AT
    )
    bus = LocalBus()
    feed = Feed(journal, run=run.id, bus=bus, poll_seconds=60, hertz=100)
    app = Hearing(feed, OperatorActions(desk or journal, author="ada", bus=bus, clock=lambda: AT))
    async with app.run_test(size=(100, 30)) as pilot:
        seat = Seat(journal, bus, attempt, app, pilot)
        await seat.write(*records)
        yield seat
