"""Hints reach whoever listens, and harm nobody if they do not."""

import asyncio

from midwatch_monitor.bus import CAPACITY, Bus, LocalBus
from midwatch_monitor.words import Hint


def hint(entry: int) -> Hint:
    return Hint(entry=entry, kind="step", task=1, attempt=1)


def test_without_a_subscriber_a_hint_is_lost() -> None:
    bus: Bus = LocalBus()
    bus.publish(hint(1))


async def test_every_subscriber_gets_every_hint_in_order() -> None:
    bus = LocalBus()
    async with bus.subscribe() as one, bus.subscribe() as other:
        bus.publish(hint(1))
        bus.publish(hint(2))
        assert await one.wait() == [hint(1), hint(2)]
        assert await other.wait() == [hint(1), hint(2)]


async def test_a_hint_from_before_the_subscription_does_not_come() -> None:
    bus = LocalBus()
    bus.publish(hint(1))
    async with bus.subscribe() as subscription:
        assert await subscription.wait(0) == []


async def test_a_wait_ends_empty_when_its_time_is_over() -> None:
    async with LocalBus().subscribe() as subscription:
        assert await subscription.wait(0.001) == []


async def test_a_hint_wakes_who_waits() -> None:
    bus = LocalBus()
    async with bus.subscribe() as subscription, asyncio.TaskGroup() as group:
        waiting = group.create_task(subscription.wait())
        group.create_task(publish(bus, 1))
    assert waiting.result() == [hint(1)]


async def publish(bus: LocalBus, *entries: int) -> None:
    for entry in entries:
        bus.publish(hint(entry))


async def test_a_slow_subscriber_loses_the_oldest_hints_and_knows_how_many() -> None:
    bus = LocalBus()
    async with bus.subscribe() as subscription:
        await publish(bus, *range(CAPACITY + 3))
        hints = await subscription.wait()
        assert [each.entry for each in hints] == list(range(3, CAPACITY + 3))
        assert subscription.dropped == 3


async def test_a_subscription_can_be_walked_until_it_is_closed() -> None:
    bus = LocalBus()
    subscription = bus.subscribe()
    await publish(bus, 1, 2, 3)
    seen: list[int] = []
    async for each in subscription:
        seen.append(each.entry)
        if each.entry == 3:
            subscription.close()
    assert seen == [1, 2, 3]


async def test_closing_wakes_who_waits_with_nothing() -> None:
    subscription = LocalBus().subscribe()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(subscription.wait())
        await asyncio.sleep(0)
        subscription.close()
    assert waiting.result() == []


async def test_a_closed_subscription_takes_no_more_hints() -> None:
    bus = LocalBus()
    subscription = bus.subscribe()
    subscription.close()
    bus.publish(hint(1))
    assert await subscription.wait() == []
