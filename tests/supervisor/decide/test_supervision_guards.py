"""A question is answered exactly once, whoever holds the lease when, and whenever that changes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.policy import PersonSettings, PolicySettings
from midwatch_monitor.config.settings import MonitorSettings, Settings, SupervisorSettings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    BudgetRequest,
    Decision,
    Delivery,
    DeliveryState,
    Entry,
    Escalation,
    EscalationState,
    Grant,
    Hint,
    Intervention,
    Record,
    Task,
)
from midwatch_monitor.state.run import OPEN_QUESTION_KINDS as KINDS
from midwatch_stage.deciding import answer, answering
from midwatch_stage.factories import (
    alert,
    delivery,
    intervention,
    step,
    task_transition,
    transition,
)
from midwatch_stage.reading import records_of
from midwatch_supervisor.decide.agent import Supervisor
from midwatch_supervisor.decide.supervision import Supervision
from midwatch_supervisor.fleet.monitors.leases import Leases

Write = Callable[[Record], Awaitable[int]]

CYCLE = alert()
HELD = intervention(Action.REPLAN, Actor.SUPERVISOR, needs_approval=True)


class Boss:
    """A supervisor with a model, in a process that holds leases of its own."""

    def __init__(self, journal: Journal, name: str, at: datetime, settings: Settings) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.monitor_leases, self.name = MonitorLeases(journal, clock=lambda: at), name
        self.leases = Leases(
            self.monitor_leases, holder=name, lease_seconds=60, seconds=lambda: 0.0
        )
        self.moments = iter([at, at])
        self.bus = LocalBus()
        self.supervision = Supervision(
            journal=journal,
            bus=self.bus,
            settings=settings,
            run=1,
            clock=lambda: next(self.moments, at + timedelta(hours=1)),
            guards=self.leases,
            hire=self._hired,
        )

    def _hired(self, task: Task) -> Supervisor:
        return Supervisor(answering(answer(), self._think), SupervisorSettings(tries=1))

    async def _think(self) -> None:
        self.asked.set()
        await self.may_answer.wait()

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        helper = asyncio.create_task(self.supervision.run())
        try:
            async with asyncio.timeout(120):
                yield
        finally:
            helper.cancel()
            await asyncio.gather(helper, return_exceptions=True)


@pytest.fixture
def settings() -> Settings:
    return Settings(
        monitor=MonitorSettings(poll_seconds=0.01),
        policy=PolicySettings(person=PersonSettings(timeout_minutes=1)),
    )


@pytest.fixture
def bosses(journal: Journal, at: datetime, settings: Settings) -> tuple[Boss, Boss]:
    return Boss(journal, "a", at, settings), Boss(journal, "b", at, settings)


@pytest.fixture
async def asked(journal: Journal, attempt: Attempt, write: Write, at: datetime) -> Escalation:
    for record in (transition(), step(), CYCLE):
        await write(record)
    asked = await journal.open_escalation(
        attempt=attempt.id, task=attempt.task, alerts=(CYCLE.key,), reason="", at=at
    )
    assert asked is not None
    return asked


async def hand_over(one: Boss, other: Boss) -> None:
    """The lease of a boss that knows nothing of it goes to another."""
    await one.monitor_leases.release(holder=one.name)
    await other.leases.take([1])


async def until_told(journal: Journal, kind: type[Record], count: int = 1) -> None:
    nothing = LocalBus().subscribe()
    while len(await records_of(journal, kind)) < count:
        await nothing.wait(0.01)


async def test_while_one_thinks_another_takes_over_and_one_decides(
    journal: Journal, bosses: tuple[Boss, Boss], asked: Escalation
) -> None:
    one, other = bosses
    await one.leases.take([asked.attempt])
    async with one.at_work(), other.at_work():
        await one.asked.wait()
        await hand_over(one, other)
        await other.asked.wait()
        one.may_answer.set()
        await one.supervision.settle()
        assert await records_of(journal, Decision) == []
        other.may_answer.set()
        await until_told(journal, Intervention)
    assert len(await records_of(journal, Decision)) == 1
    states = [each.state for each in await records_of(journal, Escalation)]
    assert states == [EscalationState.OPEN, EscalationState.ANSWERED]


async def test_who_takes_over_after_the_answer_does_not_even_think(
    journal: Journal, bosses: tuple[Boss, Boss], asked: Escalation
) -> None:
    one, other = bosses
    await one.leases.take([asked.attempt])
    one.may_answer.set()
    async with other.at_work():
        async with one.at_work():
            await until_told(journal, Intervention)
        await hand_over(one, other)
        for _ in range(3):
            await other.supervision.settle()
    assert (len(await records_of(journal, Decision)), other.asked.is_set()) == (1, False)


async def test_who_died_while_it_thought_is_replaced(
    journal: Journal, bosses: tuple[Boss, Boss], asked: Escalation
) -> None:
    one, other = bosses
    await one.leases.take([asked.attempt])
    async with one.at_work():
        await one.asked.wait()
    await hand_over(one, other)
    other.may_answer.set()
    await other.supervision.settle()
    assert [len(await records_of(journal, kind)) for kind in (Decision, Intervention)] == [1, 1]


async def test_nobody_answers_what_nobody_holds(
    journal: Journal, bosses: tuple[Boss, Boss], asked: Escalation, write: Write
) -> None:
    await write(BudgetRequest(wanted=Grant(requests=10), reason="two tests are left"))
    for boss in bosses:
        boss.may_answer.set()
        await boss.supervision.settle()
    assert [await records_of(journal, kind) for kind in (Decision, Intervention)] == [[], []]


async def test_a_question_to_a_person_is_answered_once_when_it_is_late(
    journal: Journal, bosses: tuple[Boss, Boss], asked: Escalation, write: Write
) -> None:
    await write(HELD)
    one, other = bosses
    for boss in bosses:
        boss.may_answer.set()
    await one.leases.take([asked.attempt])
    for boss in (one, other, one):
        await boss.supervision.settle()
    await hand_over(one, other)
    for boss in (one, other, one):
        await boss.supervision.settle()
    (late,) = await records_of(journal, Delivery)
    assert (late.state, late.author, late.step) == (DeliveryState.REJECTED, "timeout", 1)


async def test_a_time_limit_holds_where_nothing_was_said_but_that_the_task_is_at_work(
    journal: Journal, bosses: tuple[Boss, Boss], attempt: Attempt, write: Write
) -> None:
    await write(HELD)
    await write(task_transition())
    await bosses[0].leases.take([attempt.id])
    for _ in range(3):
        await bosses[0].supervision.settle()
    assert len(await records_of(journal, Delivery)) == 1


@pytest.fixture
def seldom(journal: Journal, at: datetime) -> tuple[Boss, Boss]:
    """Bosses who look when they are told to, and hardly ever by themselves."""
    settings = Settings(monitor=MonitorSettings(poll_seconds=3600))
    return Boss(journal, "a", at, settings), Boss(journal, "b", at, settings)


@asynccontextmanager
async def boss_over(
    kind: type[Journal], location: str, at: datetime, settings: Settings | None = None
) -> AsyncGenerator[Boss]:
    """A boss that has the lease, and reads a journal of that kind."""
    async with await kind.open(location) as opened, asyncio.timeout(120):
        boss = Boss(opened, "a", at, settings or Settings())
        await boss.leases.take([1])
        yield boss


async def lose_and_win_again(one: Boss, other: Boss) -> None:
    await hand_over(one, other)
    await other.leases.release()
    await one.leases.take([1])


async def test_who_won_it_again_while_it_thought_asks_anew_without_being_told(
    journal: Journal, seldom: tuple[Boss, Boss], asked: Escalation
) -> None:
    one, other = seldom
    await one.leases.take([asked.attempt])
    async with one.at_work():
        await one.asked.wait()
        await lose_and_win_again(one, other)
        one.may_answer.set()
        await until_told(journal, Intervention)
    assert len(await records_of(journal, Decision)) == 1


async def test_a_thought_that_would_be_refused_is_given_up_for_a_new_one(
    journal: Journal, seldom: tuple[Boss, Boss], asked: Escalation
) -> None:
    one, other = seldom
    await one.leases.take([asked.attempt])
    async with one.at_work():
        await one.asked.wait()
        one.asked.clear()
        await lose_and_win_again(one, other)
        one.bus.publish(Hint(entry=0, kind="lease"))
        await one.asked.wait()
        one.may_answer.set()
        await until_told(journal, Intervention)
    assert len(await records_of(journal, Decision)) == 1


async def test_who_was_refused_does_not_think_again_before_it_wins_the_attempt_again(
    journal: Journal, seldom: tuple[Boss, Boss], asked: Escalation
) -> None:
    one, other = seldom
    one.may_answer.set()
    await one.leases.take([asked.attempt])
    await hand_over(one, other)
    await one.supervision.settle()
    one.asked.clear()
    for _ in range(3):
        await one.supervision.settle()
    assert (one.asked.is_set(), await records_of(journal, Decision)) == (False, [])
    await other.leases.release()
    await one.leases.take([1])
    await one.supervision.settle()
    assert len(await records_of(journal, Decision)) == 1


async def test_a_look_that_failed_is_soon_made_again_without_a_hint(
    journal: Journal, location: str, at: datetime, asked: Escalation
) -> None:
    class Failing(Journal):
        fails = 1

        async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
            self.fails -= 1
            if self.fails == 0:
                raise JournalError("away")
            return await super().entries(after, **rest)

    settings = Settings(monitor=MonitorSettings(poll_seconds=3600))
    async with boss_over(Failing, location, at, settings) as boss, boss.at_work():
        boss.may_answer.set()
        await until_told(journal, Intervention)


async def test_what_is_always_asked_anew_keeps_nobody_from_answering(
    journal: Journal, location: str, at: datetime, asked: Escalation, write: Write
) -> None:
    class Busy(Journal):
        async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
            found = await super().entries(after, **rest)
            if rest.get("run"):
                await write(delivery(99))
            return found

    async with boss_over(Busy, location, at) as boss:
        boss.may_answer.set()
        await boss.supervision.settle()
    assert len(await records_of(journal, Decision)) == 1


async def test_a_question_that_is_answered_while_a_look_reads_is_not_asked_again(
    journal: Journal, location: str, at: datetime, asked: Escalation
) -> None:
    answered = asyncio.Event()

    class Late(Journal):
        looks = 0

        async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
            found = await super().entries(after, **rest)
            if rest.get("kinds") is KINDS:
                self.looks += 1
                if self.looks == 2:
                    await answered.wait()
            return found

    async with boss_over(Late, location, at) as boss:
        first = asyncio.create_task(boss.supervision.settle())
        await boss.asked.wait()
        second = asyncio.create_task(boss.supervision.settle())
        boss.may_answer.set()
        await first
        answered.set()
        await second
        await boss.supervision.settle()
    assert [each.refused for each in await records_of(journal, Decision)] == [""]


async def test_who_approves_just_in_time_is_not_overruled(
    journal: Journal, location: str, at: datetime, asked: Escalation, write: Write
) -> None:
    approved = delivery(await write(HELD), DeliveryState.APPROVED, author="ada")

    class Late(Journal):
        looks = 0

        async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
            found = await super().entries(after, **rest)
            self.looks += rest.get("kinds") is KINDS
            if self.looks == 2 and not await records_of(journal, Delivery):
                await write(approved)
            return found

    policy = PolicySettings(person=PersonSettings(timeout_minutes=1))
    async with boss_over(Late, location, at, Settings(policy=policy)) as boss:
        boss.may_answer.set()
        for _ in range(3):
            await boss.supervision.settle()
    assert await records_of(journal, Delivery) == [approved]
