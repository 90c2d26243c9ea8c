"""What happens while a monitor waits for the journal: it hears of it all the same."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar

import pytest
from sqlalchemy import Connection

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.records import (
    Activity,
    AttemptTransition,
    Change,
    Checkpoint,
    Ending,
    Escalation,
    Hint,
    Lifecycle,
    Step,
    StepKind,
    Task,
    TaskTransition,
)
from midwatch_stage.watched import SETTINGS, Brokered, Fleet

P = ParamSpec("P")
T = TypeVar("T")
SELDOM = SETTINGS.model_copy(update={"fleet": FleetSettings(lease_seconds=3600)})
"""Nothing is found by looking at everything once more."""
UNSURE = Step(
    number=0,
    kind=StepKind.CHECKPOINT,
    tool="reflect",
    checkpoint=Checkpoint(progress_percent=10, confidence=80, blockers=("a", "b", "c")),
)
OVER = AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.DONE)


class Gate:
    """Where somebody waits, once, until a test lets him through or turns him away."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.reached = asyncio.Event()
        self.open = asyncio.Event()


class Gated(Journal):
    """A journal with gates at some of what it does, by name."""

    gates: dict[str, Gate]

    async def write(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        await self._pass(getattr(work, "__name__", ""))
        return await super().write(work, *args, **kwargs)

    async def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        await self._pass(getattr(work, "__name__", ""))
        return await super().read(work, *args, **kwargs)

    async def tasks(self, run: int) -> list[Task]:
        found = await super().tasks(run)
        await self._pass("tasks of a run")  # by then there may be more
        return found

    def gate(self, name: str, error: Exception | None = None) -> Gate:
        self.gates[name] = Gate(error)
        return self.gates[name]

    async def _pass(self, name: str) -> None:
        gate = self.gates.pop(name, None)
        if gate is not None:
            gate.reached.set()
            await gate.open.wait()
            if gate.error is not None:
                raise gate.error


@pytest.fixture
async def gated(location: str, journal: Journal) -> AsyncGenerator[Gated]:
    """The same journal once more, as the monitors have it."""
    async with await Gated.open(location) as opened:
        opened.gates = {}
        yield opened


@pytest.fixture
def fleet(journal: Journal, location: str, gated: Gated) -> Fleet:
    fleet = Fleet(journal, location)
    fleet.watched = gated
    return fleet


async def escalated(fleet: Fleet) -> Sequence[int]:
    return [each.attempt for each in await fleet.records(Escalation)]


async def test_a_claim_that_comes_while_a_round_writes_is_heeded(
    fleet: Fleet, gated: Gated
) -> None:
    await fleet.begin()
    bus, gate = Brokered(), gated.gate("_take_leases")
    async with fleet.monitor("a", bus, SELDOM):
        await gate.reached.wait()
        second = (await fleet.begin()).attempt.id
        bus.given.offer([Hint(entry=1, kind="attempt_state", attempt=second)])
        for _ in range(5):
            await asyncio.sleep(0)
        gate.open.set()
        await fleet.until(lambda: fleet.held("a") == [1, second])


async def test_what_could_not_be_taken_when_it_began_is_tried_again_at_once(
    fleet: Fleet, gated: Gated
) -> None:
    await fleet.begin()
    async with fleet.monitor("a", settings=SELDOM):
        await fleet.until(lambda: fleet.held("a") == [1])
        gated.gate("_take_leases", JournalError("away")).open.set()
        await fleet.begin()
        await fleet.until(lambda: fleet.held("a") == [1, 2])


async def test_a_lease_on_what_was_read_before_it_was_heard_of_is_used(
    fleet: Fleet, gated: Gated
) -> None:
    seldom = SETTINGS.monitor.model_copy(update={"tick_seconds": 3600})
    settings = SETTINGS.model_copy(update={"monitor": seldom}).model_dump_json()
    first = await fleet.begin(settings=settings)
    await MonitorLeases(fleet.journal, clock=lambda: fleet.now).take([1], holder="b:1", seconds=1)
    async with fleet.monitor("a") as keeping:
        await fleet.until(lambda: bool(keeping.runs))
        gate = gated.gate("_read_news")
        await gate.reached.wait()
        await (await fleet.follow(first.attempt.task, number=2)).record(UNSURE)
        await fleet.until(lambda: fleet.held("a") == [1, 2])
        gate.open.set()
        await fleet.until_told(Escalation)
    assert {*await escalated(fleet)} == {2}


async def test_a_run_that_is_heard_of_while_it_seems_to_be_over_is_watched_on(
    fleet: Fleet, gated: Gated
) -> None:
    settings = '{"rules": {"silence": {"command": "1s", "model": "1s", "idle": "1s"}}}'
    first = await fleet.begin(settings=settings)
    async with fleet.monitor("a") as keeping:
        await fleet.until(lambda: bool(keeping.runs))
        gate = gated.gate("tasks of a run")
        await first.end(OVER, TaskTransition(lifecycle=Lifecycle.COMPLETED))
        await gate.reached.wait()
        later = await fleet.journal.add_task(run=1, name="later", title="", spec="{}", at=fleet.now)
        second = await fleet.follow(later.id, number=1)
        await second.record(Change(activity=Activity.COMMAND))
        await fleet.until(lambda: 2 in fleet.held("a"))
        gate.open.set()
        await fleet.until_told(Escalation)
    assert {*await escalated(fleet)} == {2}
