"""A question is answered exactly once, whoever holds the lease when, and whenever that changes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

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
from midwatch_supervisor.decide.agent import Supervisor
from midwatch_supervisor.decide.supervision import Supervision
from midwatch_supervisor.fleet.monitors.leases import Leases
from midwatch_tests import factories as make
from midwatch_tests.deciding import answer, answering
from midwatch_tests.reading import records_of

T = TypeVar("T")
CYCLE = make.alert()
HELD = make.intervention(Action.REPLAN, Actor.SUPERVISOR, needs_approval=True)
SELDOM = Settings(monitor=MonitorSettings(poll_seconds=3600))
"""Those of who looks when told to, and hardly ever without."""
PATIENT = PolicySettings(person=PersonSettings(timeout_minutes=1))
OFTEN = Settings(monitor=MonitorSettings(poll_seconds=0.01), policy=PATIENT)


class SupervisorProcess:
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
            hire=self._make_supervisor,
        )

    def _make_supervisor(self, task: Task) -> Supervisor:
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

    async def settle(self, times: int = 1) -> None:
        """Look so often, and answer at once."""
        self.may_answer.set()
        for _ in range(times):
            await self.supervision.settle()


class Scene:
    """An attempt, of which something is asked, and two who may answer."""

    def __init__(
        self, journal: Journal, location: str, at: datetime, write: Callable[..., Awaitable[int]]
    ) -> None:
        self.journal, self.location, self.at, self.write = journal, location, at, write
        self.hire(OFTEN)

    def hire(self, settings: Settings) -> tuple[SupervisorProcess, SupervisorProcess]:
        self.one, self.other = (
            SupervisorProcess(self.journal, n, self.at, settings) for n in ("a", "b")
        )
        return self.one, self.other

    @asynccontextmanager
    async def process_over(
        self, kind: type[Journal], settings: Settings | None = None
    ) -> AsyncGenerator[SupervisorProcess]:
        """A supervisor that has the lease, and reads a journal of that kind."""
        async with await kind.open(self.location) as opened, asyncio.timeout(120):
            process = SupervisorProcess(opened, "a", self.at, settings or Settings())
            await process.leases.take([1])
            yield process

    async def hand_over(self) -> None:
        """The lease of the one, who knows nothing of it, goes to the other."""
        await self.one.monitor_leases.release(holder=self.one.name)
        await self.other.leases.take([1])

    async def win_back(self) -> None:
        """The other gives it back."""
        await self.other.leases.release()
        await self.one.leases.take([1])

    async def records(self, kind: type[T]) -> list[T]:
        return await records_of(self.journal, kind)

    async def wait_for(self, kind: type[Record]) -> None:
        nothing = LocalBus().subscribe()
        while not await self.records(kind):
            await nothing.wait(0.01)


@pytest.fixture
async def scene(
    journal: Journal,
    location: str,
    at: datetime,
    attempt: Attempt,
    write: Callable[..., Awaitable[int]],
) -> Scene:
    """A question about the attempt is open."""
    await write(make.transition(), make.step(), CYCLE)
    await journal.open_escalation(
        attempt=attempt.id, task=attempt.task, alerts=(CYCLE.key,), reason="", at=at
    )
    return Scene(journal, location, at, write)


async def test_while_one_thinks_another_takes_over_and_one_decides(scene: Scene) -> None:
    await scene.one.leases.take([1])
    async with scene.one.at_work(), scene.other.at_work():
        await scene.one.asked.wait()
        await scene.hand_over()
        await scene.other.asked.wait()
        await scene.one.settle()
        assert await scene.records(Decision) == []
        scene.other.may_answer.set()
        await scene.wait_for(Intervention)
    assert len(await scene.records(Decision)) == 1
    states = [each.state for each in await scene.records(Escalation)]
    assert states == [EscalationState.OPEN, EscalationState.ANSWERED]


async def test_who_takes_over_after_the_answer_does_not_even_think(scene: Scene) -> None:
    await scene.one.leases.take([1])
    scene.one.may_answer.set()
    async with scene.other.at_work():
        async with scene.one.at_work():
            await scene.wait_for(Intervention)
        await scene.hand_over()
        await scene.other.settle(3)
    assert (len(await scene.records(Decision)), scene.other.asked.is_set()) == (1, False)


async def test_who_died_while_it_thought_is_replaced(scene: Scene) -> None:
    await scene.one.leases.take([1])
    async with scene.one.at_work():
        await scene.one.asked.wait()
    await scene.hand_over()
    await scene.other.settle()
    assert [len(await scene.records(kind)) for kind in (Decision, Intervention)] == [1, 1]


async def test_nobody_answers_what_nobody_holds(scene: Scene) -> None:
    await scene.write(BudgetRequest(wanted=Grant(requests=10), reason="two tests are left"))
    for process in (scene.one, scene.other):
        await process.settle()
    assert [await scene.records(kind) for kind in (Decision, Intervention)] == [[], []]


async def test_a_question_to_a_person_is_answered_once_when_it_is_late(scene: Scene) -> None:
    await scene.write(HELD)
    await scene.one.leases.take([1])
    for process in (scene.one, scene.other, scene.one):
        await process.settle()
    await scene.hand_over()
    for process in (scene.one, scene.other, scene.one):
        await process.settle()
    (late,) = await scene.records(Delivery)
    assert (late.state, late.author, late.step) == (DeliveryState.REJECTED, "timeout", 1)


async def test_a_time_limit_holds_where_nothing_was_said_but_that_the_task_is_at_work(
    journal: Journal, at: datetime, attempt: Attempt, write: Callable[..., Awaitable[int]]
) -> None:
    await write(HELD, make.task_transition())
    process = SupervisorProcess(journal, "a", at, OFTEN)
    await process.leases.take([attempt.id])
    await process.settle(3)
    assert len(await records_of(journal, Delivery)) == 1


async def test_who_won_it_again_while_it_thought_asks_anew_without_being_told(scene: Scene) -> None:
    one, _ = scene.hire(SELDOM)
    await one.leases.take([1])
    async with one.at_work():
        await one.asked.wait()
        await scene.hand_over()
        await scene.win_back()
        one.may_answer.set()
        await scene.wait_for(Intervention)
    assert len(await scene.records(Decision)) == 1


async def test_a_thought_that_would_be_refused_is_given_up_for_a_new_one(scene: Scene) -> None:
    one, _ = scene.hire(SELDOM)
    await one.leases.take([1])
    async with one.at_work():
        await one.asked.wait()
        one.asked.clear()
        await scene.hand_over()
        await scene.win_back()
        one.bus.publish(Hint(entry=0, kind="lease"))
        await one.asked.wait()
        one.may_answer.set()
        await scene.wait_for(Intervention)
    assert len(await scene.records(Decision)) == 1


async def test_who_was_refused_thinks_again_once_it_wins_the_attempt_back(scene: Scene) -> None:
    one, _ = scene.hire(SELDOM)
    await one.leases.take([1])
    await scene.hand_over()
    await one.settle()
    one.asked.clear()
    await one.settle(3)
    assert (one.asked.is_set(), await scene.records(Decision)) == (False, [])
    await scene.win_back()
    await one.settle()
    assert len(await scene.records(Decision)) == 1


async def test_a_look_that_failed_is_soon_made_again_without_a_hint(scene: Scene) -> None:
    class FailingJournal(Journal):
        fails = 1

        async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
            self.fails -= 1
            if self.fails == 0:
                raise JournalError("away")
            return await super().entries(after, **rest)

    async with scene.process_over(FailingJournal, SELDOM) as process, process.at_work():
        process.may_answer.set()
        await scene.wait_for(Intervention)


async def test_what_is_always_asked_anew_keeps_nobody_from_answering(scene: Scene) -> None:
    class BusyJournal(Journal):
        async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
            found = await super().entries(after, **rest)
            if rest.get("run"):
                await scene.write(make.delivery(99))
            return found

    async with scene.process_over(BusyJournal) as process:
        await process.settle()
    assert len(await scene.records(Decision)) == 1


async def test_what_is_answered_while_a_look_reads_is_not_asked_again(scene: Scene) -> None:
    answered = asyncio.Event()

    class LateJournal(Journal):
        looks = 0

        async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
            found = await super().entries(after, **rest)
            if rest.get("kinds") is KINDS:
                self.looks += 1
                if self.looks == 2:
                    await answered.wait()
            return found

    async with scene.process_over(LateJournal) as process:
        first = asyncio.create_task(process.supervision.settle())
        await process.asked.wait()
        second = asyncio.create_task(process.supervision.settle())
        process.may_answer.set()
        await first
        answered.set()
        await second
        await process.settle()
    assert [each.refused for each in await scene.records(Decision)] == [""]


async def test_who_approves_just_in_time_is_not_overruled(scene: Scene) -> None:
    approved = make.delivery(await scene.write(HELD), DeliveryState.APPROVED, author="ada")

    class LateJournal(Journal):
        looks = 0

        async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
            found = await super().entries(after, **rest)
            self.looks += rest.get("kinds") is KINDS
            if self.looks == 2 and not await scene.records(Delivery):
                await scene.write(approved)
            return found

    async with scene.process_over(LateJournal, Settings(policy=PATIENT)) as process:
        await process.settle(3)
    assert await scene.records(Delivery) == [approved]
