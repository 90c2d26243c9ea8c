"""Two works of one watch: both are begun again where one fails, and both end when it is stopped."""

import asyncio

from midwatch_supervisor.fleet.monitors.run_monitor import side_by_side


async def test_a_cancellation_that_meets_a_failure_is_heeded() -> None:
    ending, may_end, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        raise ValueError("a fault")

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await may_end.wait()

    both = asyncio.create_task(
        side_by_side(fail, slow, what="it", pause_seconds=0, stopped=stopped.is_set)
    )
    await ending.wait()  # the group ends what has not failed
    stopped.set()
    both.cancel()
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.wait({both}, timeout=5)
    assert both.done()


async def test_what_failed_begins_again() -> None:
    begun, twice = list[int](), asyncio.Event()

    async def work() -> None:
        begun.append(len(begun))
        if len(begun) == 1:
            raise ValueError("a fault")
        twice.set()
        await asyncio.Event().wait()

    both = asyncio.create_task(side_by_side(work, what="it", pause_seconds=0, stopped=bool))
    async with asyncio.timeout(120):
        await twice.wait()
    both.cancel()
    await asyncio.wait({both})
    assert begun == [0, 1]
