"""A post is left in time, and what wakes who hands out tasks."""

import asyncio

import pytest

from midwatch_monitor.bus import Subscription
from midwatch_monitor.records import Hint
from midwatch_supervisor.fleet.monitors.leases import LeaderRole, RoleChange
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
