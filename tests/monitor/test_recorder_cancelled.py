"""An attempt that is cancelled in the middle of a record leaves no gap in its numbers."""

import asyncio
from collections.abc import Awaitable, Callable

from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Step, StepKind


async def test_a_record_that_has_begun_is_stored_though_nobody_waits_for_it_any_more(
    journal: Journal, claim: Callable[..., Awaitable[Recorder]]
) -> None:
    recorder = await claim()
    step = Step(number=0, kind=StepKind.MESSAGE)
    cancelled = asyncio.create_task(recorder.record(step))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait({cancelled})
    await recorder.record(step)
    entries = await journal.entries(kinds=(Step,))
    assert cancelled.cancelled()
    assert [entry.seq for entry in entries] == [1, 2]
