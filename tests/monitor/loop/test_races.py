"""Whatever happens while the monitor waits for the journal is neither forgotten nor done twice."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.guards import Guards, Unguarded
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.silence import SILENT
from midwatch_tests.factories import WHOSE, escalation, reflecting, step

UNSURE = reflecting(0, 10, 10)


class FailingJournal(Journal):
    """A journal that can do some things only when a test lets it."""

    fails: frozenset[str] = frozenset()
    failed: asyncio.Event

    async def attempt(self, attempt: int) -> r.Attempt:
        self._look_out(f"attempt {attempt}")
        return await super().attempt(attempt)

    async def open_escalation(self, *, attempt: int, **rest: Any) -> r.Escalation | None:
        self._look_out(f"escalation of {attempt}")
        return await super().open_escalation(attempt=attempt, **rest)

    def _look_out(self, what: str) -> None:
        if what in self.fails:
            self.failed.set()
            raise JournalError(f"no {what}")


class SomeGuards(Unguarded):
    """Guards that let act on some attempts; what they are at a moment may be set beforehand."""

    def __init__(self, *attempts: int) -> None:
        self.attempts = set(attempts)
        self.moments: list[Guards] = []

    def holds(self, attempt: int) -> bool:
        return attempt in self.attempts

    def now(self) -> Guards:
        return self.moments.pop(0) if self.moments else SomeGuards(*self.attempts)


@pytest.fixture
async def failing_journal(location: str, journal: Journal) -> AsyncGenerator[FailingJournal]:
    """The same journal once more, as the monitor has it."""
    async with await FailingJournal.open(location) as opened:
        opened.failed = asyncio.Event()
        yield opened


Claim = Callable[..., Awaitable[Recorder]]
MakeMonitor = Callable[..., Monitor]


@pytest.fixture
def settings() -> Settings:
    return Settings(monitor=MonitorSettings(poll_seconds=3600, tick_seconds=3600))


@pytest.fixture
def make_monitor(make_monitor: MakeMonitor, failing_journal: FailingJournal) -> MakeMonitor:
    return partial(make_monitor, journal=failing_journal)


@pytest.fixture
async def recorders(
    journal: Journal, attempt: r.Attempt, claim: Claim, at: datetime
) -> list[Recorder]:
    """Two attempts at work, both of which something is to be asked about."""
    second = await journal.add_attempt(task=attempt.task, number=2, at=at, **WHOSE)
    recorders = [await claim(of=each) for each in (attempt, second)]
    for recorder in recorders:
        await recorder.record(working_transition(), UNSURE)
    return recorders


async def escalated_attempts(journal: Journal) -> list[int]:
    """The attempts of which escalations were opened, in their order."""
    entries = await journal.entries(kinds=(r.Escalation,))
    return [each.attempt or 0 for each in entries]


async def look_twice(monitor: Monitor, failing: FailingJournal, what: str) -> None:
    """One look fails because of this, and the next one does not."""
    failing.fails = frozenset({what})
    with pytest.raises(JournalError):
        await monitor.look()
    failing.fails = frozenset()
    await monitor.look()


async def test_what_was_won_is_not_lost_with_a_look_that_fails(
    journal: Journal,
    failing_journal: FailingJournal,
    recorders: list[Recorder],
    make_monitor: MakeMonitor,
) -> None:
    guards = SomeGuards(1, 2)
    monitor = make_monitor(guards=guards)
    guards.moments.append(SomeGuards(2))  # the first is won while the look reads
    await look_twice(monitor, failing_journal, "escalation of 2")
    assert sorted(await escalated_attempts(journal)) == [1, 2]


async def test_a_page_that_could_be_read_in_part_is_not_counted_twice(
    journal: Journal,
    failing_journal: FailingJournal,
    recorders: list[Recorder],
    make_monitor: MakeMonitor,
) -> None:
    question = escalation(9)
    await recorders[0].record(question, replace(question, state=r.EscalationState.CLOSED))
    await journal.add_attempt(task=1, number=3, at=recorders[0].clock(), **WHOSE)
    monitor = make_monitor(guards=SomeGuards())
    await look_twice(monitor, failing_journal, "attempt 3")
    view = monitor.view(1)
    assert view is not None
    assert view.state.raised == 1


async def test_an_attempt_that_was_refused_is_looked_at_by_the_next_look_though_that_one_failed(
    journal: Journal,
    failing_journal: FailingJournal,
    recorders: list[Recorder],
    make_monitor: MakeMonitor,
) -> None:
    class RefusedGuards(SomeGuards):
        """The first attempt went to another monitor, unknown to this one."""

        def guard_of(self, attempt: int) -> int | None:
            return 99 if attempt == 1 else None

    guards = SomeGuards(1, 2)
    monitor = make_monitor(guards=guards)
    guards.moments.append(RefusedGuards(1, 2))
    await look_twice(monitor, failing_journal, "escalation of 2")
    assert sorted(await escalated_attempts(journal)) == [1, 2]


async def test_a_look_that_failed_is_soon_made_again_without_a_hint(
    journal: Journal,
    failing_journal: FailingJournal,
    recorders: list[Recorder],
    make_monitor: MakeMonitor,
    bus: LocalBus,
) -> None:
    monitor = make_monitor(guards=SomeGuards(1, 2))
    failing_journal.fails = frozenset({"attempt 1"})
    hints = bus.subscribe()
    work = asyncio.create_task(monitor.run())
    async with asyncio.timeout(120):
        await failing_journal.failed.wait()
        failing_journal.fails = frozenset()
        told: list[r.Hint] = []
        while len(told) < 2:
            told += await hints.wait()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert await escalated_attempts(journal) == [1, 2]


async def test_those_who_always_have_something_to_say_do_not_keep_the_monitor_from_acting(
    location: str, journal: Journal, recorders: list[Recorder], make_monitor: MakeMonitor
) -> None:
    class BusyJournal(Journal):
        """Whenever it was read, there is something new in it."""

        async def entries(self, after: int = 0, **rest: Any) -> list[r.Entry]:
            found = await super().entries(after, **rest)
            await recorders[1].record(r.Change())
            return found

    async with await BusyJournal.open(location) as busy, asyncio.timeout(120):
        await make_monitor(journal=busy, guards=SomeGuards(1)).look()
    assert await escalated_attempts(journal) == [1]


async def test_who_wrote_while_a_look_was_slow_is_not_taken_for_silent(
    location: str,
    journal: Journal,
    recorders: list[Recorder],
    make_monitor: MakeMonitor,
    at: datetime,
) -> None:
    class SlowJournal(Journal):
        """An hour passes here while the first attempt is asked about; the second one works on."""

        async def open_escalation(self, *, attempt: int, **rest: Any) -> r.Escalation | None:
            if attempt == 1:
                now.append(at + timedelta(hours=1))
                await recorders[1].record(step(at=now[-1]))
            return await super().open_escalation(attempt=attempt, **rest)

    now = [at]
    async with await SlowJournal.open(location) as slow:
        await make_monitor(journal=slow, guards=SomeGuards(2, 1), clock=lambda: now[-1]).look()
    alerts = [each.record for each in await journal.entries(attempt=2, kinds=(r.Alert,))]
    assert SILENT not in {each.key for each in alerts if isinstance(each, r.Alert)}
