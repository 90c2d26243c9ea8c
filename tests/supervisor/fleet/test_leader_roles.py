"""Roles that one monitor has at a time, and work that is restarted when it fails."""

import asyncio

import pytest

from midwatch_monitor.bus import Subscription
from midwatch_monitor.records import Hint
from midwatch_supervisor.fleet.monitors.leases import LeaderRole, RoleChange
from midwatch_supervisor.fleet.monitors.run_monitor import side_by_side
from midwatch_supervisor.fleet.queue.dispatch import wait_for_hint


async def test_who_was_stopped_for_longer_than_the_lease_does_not_go_on() -> None:
    steps, answers = 0, True
    began, left = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def work() -> None:
        nonlocal steps
        while True:
            await asyncio.sleep(0)
            steps += 1
            began.set()

    def tell(told: RoleChange) -> None:
        if not told.held:
            left.set()

    async def take(name: str) -> bool:
        if not answers:
            await asyncio.Event().wait()
        return True

    post = LeaderRole("learner", work, take=take, lease_seconds=0.05, tell=tell)
    keeping = asyncio.create_task(post.keep())
    await began.wait()
    answers = False
    before, until = steps, loop.time() + 0.1
    while loop.time() < until:
        pass
    async with asyncio.timeout(120):
        await left.wait()
    assert steps <= before + 2
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


@pytest.mark.parametrize(
    ("kind", "wakes"), [("task_state", True), ("delivery", True), ("step", False)]
)
async def test_only_what_may_let_a_task_go_on_wakes_who_hands_out(kind: str, wakes: bool) -> None:
    hints = Subscription()
    hints.offer([Hint(entry=1, kind=kind)])
    waiting = asyncio.create_task(wait_for_hint(hints, 3600))
    await asyncio.sleep(0)
    hints.offer([Hint(entry=2, kind="change")])
    for _ in range(5):
        await asyncio.sleep(0)
    assert waiting.done() == wakes
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


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
