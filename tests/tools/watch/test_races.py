"""Calls of one turn, whichever of them ends first, and whatever is read or written meanwhile."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.tools import RunContext

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Actor,
    Attempt,
    AttemptTransition,
    Completion,
    Ending,
    Entry,
    Intervention,
    Lifecycle,
    Record,
    Result,
    Step,
    TaskTransition,
    Writer,
)
from midwatch_stage.factories import (
    analysis,
    delivery,
    ended,
    intervention,
    message,
    step,
    task_transition,
)
from midwatch_stage.reading import records_of
from midwatch_stage.worker import Build, Claim, Write
from midwatch_tools import Watch
from midwatch_tools.attempt_watch import AttemptWatch
from midwatch_tools.data_blocks import DataBlocks
from midwatch_tools.gate.gate import ALLOWED, AttemptGate, Gate
from midwatch_tools.tools.board import Board


async def test_what_a_command_wrote_is_the_workers_though_another_call_is_only_being_recorded(
    journal: Journal,
    claim: Claim,
    worker: Build,
    bus: LocalBus,
    workspace: Path,
) -> None:
    recorder = await claim()
    quick_is_over, slow_is_recorded = asyncio.Event(), asyncio.Event()

    async def before(records: Sequence[Record], results: Sequence[Result]) -> None:
        tools = {each.tool for each in records if isinstance(each, Step)}
        if "quick" in tools:
            quick_is_over.set()
            await slow_is_recorded.wait()
        if "slow" in tools:
            slow_is_recorded.set()

    async def quick() -> str:
        return "nothing to do"

    async def slow() -> str:
        await quick_is_over.wait()
        (workspace / "made.txt").write_text("by a command")
        return "made"

    recorder.before = before
    agent = worker([("quick", {}), ("slow", {})], [("quick", {})], tools=(quick, slow))
    watch = AttemptWatch(recorder, root=workspace, bus=bus)
    async with asyncio.timeout(120):
        await agent.run("Make it.", capabilities=[watch])
    steps = await records_of(journal, Step)
    made = [(each.tool, edit.path, edit.writer) for each in steps for edit in each.edits]
    assert made == [("slow", "made.txt", Writer.WORKER)]


class Slow(Watch):
    """A watch that takes its time to look at the workspace."""

    begins: asyncio.Event

    async def for_run(self, ctx: RunContext[Any]) -> Watch:
        return self

    async def _open_session(self, ctx: RunContext[Any], recorder: Recorder) -> None:
        self.begins.set()
        await asyncio.Event().wait()


async def test_an_agent_that_is_cancelled_while_its_watch_begins_is_not_taken_for_one_at_work(
    worker: Build, workspace: Path, journal: Journal
) -> None:
    watch = Slow(root=workspace, journal=journal.name)
    watch.begins = asyncio.Event()
    work = asyncio.create_task(worker().run("Fix it.", capabilities=[watch]))
    async with asyncio.timeout(120):
        await watch.begins.wait()
        work.cancel()
        await asyncio.wait({work})
    states = [
        each.record for each in await journal.entries(kinds=(AttemptTransition, TaskTransition))
    ]
    assert work.cancelled()
    assert states[-2:] == [
        task_transition(Lifecycle.CANCELED, reason="canceled"),
        ended(Ending.CANCELED, reason="canceled"),
    ]


async def test_a_board_is_read_to_its_end_though_its_neighbours_always_write_on(
    location: str, journal: Journal, attempt: Attempt, claim: Claim, at: datetime
) -> None:
    task = await journal.task(attempt.task)
    second = await journal.add_attempt(
        task=task.id, number=2, worker="w", model="m", node="n", workspace="", at=at
    )
    recorder = await claim()
    flagged = Completion(plan_step=1, goal="g", confidence=1, accepted=True, flag="not sure")

    class Busy(Journal):
        """Whenever it was read, there is something new in it."""

        async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
            await recorder.record(flagged)
            return await super().entries(after, **rest)

    async with await Busy.open(location) as busy, asyncio.timeout(120):
        text = await Board(journal=busy, task=task, attempt=second).section(DataBlocks("0badcafe"))
    assert "- fix, attempt 1" in text


# -- the gate --------------------------------------------------------------------------------


class Held(Journal):
    """A journal that answers who issued what was delivered only when a test lets it."""

    asked: asyncio.Event
    go: asyncio.Event
    fails: bool = False

    async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
        found = await super().entries(after, **rest)
        if rest.get("kinds") == (Intervention,):
            self.asked.set()
            await self.go.wait()
            if self.fails:
                raise JournalError("no answer")
        return found


@pytest.fixture
async def held(location: str, journal: Journal) -> AsyncGenerator[Held]:
    async with await Held.open(location) as opened:
        opened.asked, opened.go = asyncio.Event(), asyncio.Event()
        yield opened


@pytest.fixture
async def entrance(held: Held, claim: Claim, write: Write) -> AttemptGate:
    """The gate of an attempt to whose failure, that nothing helped against, a person has spoken."""
    settings, recorder = Settings(), await claim()
    gate = Gate(settings.errors, settings.plan, attempt=1)
    entrance = AttemptGate(held, recorder.attempt.id, gate)
    recorder.listeners.append(entrance.hear)
    await entrance.rebuild()
    await recorder.record(_call(1))
    await recorder.record(message(0, request=2))
    await recorder.record(analysis(0))
    assert (await entrance.ask(_call(3), ())).refusal
    word = await write(intervention(by=Actor.OPERATOR, message="Mended."))
    await recorder.record(delivery(word, step=2))
    return entrance


def _call(request: int) -> Step:
    return step(0, "build", request=request, ok=False, output="no disk")


async def test_no_call_of_a_turn_is_judged_before_it_is_known_who_spoke(
    held: Held, entrance: AttemptGate
) -> None:
    calls = [asyncio.create_task(entrance.ask(_call(3), ())) for _ in range(2)]
    async with asyncio.timeout(120):
        await held.asked.wait()
        held.go.set()
        assert await asyncio.gather(*calls) == [ALLOWED, ALLOWED]


async def test_who_spoke_is_read_again_where_that_could_not_be_read(
    held: Held, entrance: AttemptGate
) -> None:
    held.go.set()
    held.fails = True
    with pytest.raises(JournalError):
        await entrance.ask(_call(3), ())
    held.fails = False
    assert await entrance.ask(_call(3), ()) == ALLOWED
