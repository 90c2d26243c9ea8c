"""Calls of one turn, whichever of them ends first, and whatever is read or written meanwhile."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic_ai.tools import RunContext

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Completion,
    Ending,
    Entry,
    Lifecycle,
    Record,
    Result,
    Step,
    TaskTransition,
    Writer,
)
from midwatch_stage.factories import (
    ended,
    task_transition,
)
from midwatch_stage.reading import records_of
from midwatch_stage.worker import Build, Claim
from midwatch_tools import Watch
from midwatch_tools.attempt_watch import AttemptWatch
from midwatch_tools.data_blocks import DataBlocks
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
