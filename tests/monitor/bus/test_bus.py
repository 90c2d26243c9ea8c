"""Hints reach whoever listens, and harm nobody if they do not."""

import asyncio

import pytest

from midwatch_monitor.bus import CAPACITY, BusCounters, LocalBus, Subscription, bus_for
from midwatch_monitor.bus.local import Audience
from midwatch_monitor.bus.mqtt import MqttBus, Outbox
from midwatch_monitor.config.fleet import BrokerSettings, FleetSettings
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal.core.encoding import hint_of
from midwatch_monitor.records import Hint, Plan, Record, Step, StepKind
from midwatch_tests.factories import alert, entry


def hint(entry: int) -> Hint:
    return Hint(entry=entry, kind="step", task=1, attempt=1)


async def test_every_subscriber_gets_every_hint_from_its_beginning_to_its_end_in_order() -> None:
    bus = LocalBus()
    bus.publish(hint(0))
    async with bus.subscribe() as one, bus.subscribe() as other:
        assert await one.wait(0.001) == []
        bus.publish(hint(1))
        bus.publish(hint(2))
        assert await one.wait() == await other.wait() == [hint(1), hint(2)]
        one.close()
        bus.publish(hint(3))
        assert (await one.wait(), await other.wait()) == ([], [hint(3)])


async def test_who_listens_for_one_attempt_is_not_woken_by_the_others() -> None:
    bus, other = LocalBus(), Hint(entry=2, kind="step", task=1, attempt=2)
    nobodys = Hint(entry=3, kind="task_state", task=1)
    async with bus.subscribe(1) as subscription:
        for each in (hint(1), other, nobodys):
            bus.publish(each)
        assert await subscription.wait() == [hint(1), nobodys]


def test_who_listened_for_an_attempt_that_is_over_is_forgotten() -> None:
    audience = Audience()
    for attempt in range(1, 4):
        audience.listen(attempt).close()
    last = audience.listen(4)
    audience.offer([hint(1)])
    assert (len(audience), last.dropped) == (1, 0)


@pytest.mark.parametrize("closes", [False, True])
async def test_a_hint_wakes_who_waits_and_closing_does_with_nothing(closes: bool) -> None:
    bus = LocalBus()
    subscription = bus.subscribe()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(subscription.wait())
        await asyncio.sleep(0)
        subscription.close() if closes else bus.publish(hint(1))
    assert waiting.result() == ([] if closes else [hint(1)])


async def test_a_slow_subscriber_loses_the_oldest_hints_and_knows_how_many() -> None:
    bus, together = LocalBus(), Subscription(3)
    async with bus.subscribe() as subscription:
        for number in range(CAPACITY + 3):
            bus.publish(hint(number))
        hints = await subscription.wait()
    assert [each.entry for each in hints] == list(range(3, CAPACITY + 3))
    assert subscription.dropped == 3
    for offered in ([hint(1), hint(2)], [hint(3), hint(4), hint(5)]):
        together.offer(offered)
    assert (await together.wait(), together.dropped) == ([hint(3), hint(4), hint(5)], 2)


async def test_without_a_broker_a_fleet_talks_within_its_process() -> None:
    async with bus_for(FleetSettings(), name="a", environ={}) as bus:
        async with bus.subscribe() as hints, bus.claims() as claims, bus.departures() as gone:
            bus.publish(hint(1))
            assert await hints.wait() == [hint(1)]
            assert (await claims.wait(0), await gone.wait(0)) == ([], [])
        assert bus.counters == BusCounters()


def make_mqtt_bus(name: str = "a") -> MqttBus:
    settings = FleetSettings(broker=BrokerSettings(url="mqtt://127.0.0.1:9"))
    bus = bus_for(settings, name=name, environ={})
    assert isinstance(bus, MqttBus)
    return bus


async def test_a_bus_that_was_never_opened_still_carries_hints_within_its_process() -> None:
    bus = make_mqtt_bus()
    async with bus.subscribe() as hints:
        bus.publish(hint(1))
        assert await hints.wait() == [hint(1)]
    assert bus.counters == BusCounters(waiting=1)


@pytest.mark.parametrize("name", ["", "a/b", "#"])
async def test_a_name_that_topics_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a valid node name"):
        make_mqtt_bus(name)


# -- hints that wait to be sent ----------------------------------------------------------------


def filled_outbox(capacity: int, *entries: int) -> Outbox:
    outbox = Outbox(capacity)
    outbox.offer([hint(number) for number in entries])
    return outbox


async def waiting_entries(outbox: Outbox) -> list[int]:
    return [each.entry for each in await outbox.wait()]


@pytest.mark.parametrize(
    ("capacity", "waiting", "back", "sent", "dropped"),
    [
        (3, (1, 2, 3, 4, 5), (), [3, 4, 5], 2),
        (4, (3, 4), (1, 2), [1, 2, 3, 4], 0),
        (3, (4, 5), (1, 2, 3), [3, 4, 5], 2),
        (2, (4, 5), (3,), [4, 5], 1),
    ],
)
async def test_what_was_not_sent_waits_before_all_others_and_the_oldest_make_room(
    capacity: int, waiting: tuple[int, ...], back: tuple[int, ...], sent: list[int], dropped: int
) -> None:
    outbox = filled_outbox(capacity, *waiting)
    outbox.put_back([hint(number) for number in back])
    assert (len(outbox), outbox.dropped, await waiting_entries(outbox)) == (
        len(sent),
        dropped,
        sent,
    )
    assert len(outbox) == 0


async def test_who_waits_is_woken_by_a_hint_and_by_a_ring() -> None:
    outbox = filled_outbox(3, 1)
    assert await waiting_entries(outbox) == [1]
    outbox.ring()
    assert await waiting_entries(outbox) == []


ALERT = alert("low_confidence", subject="a secret", summary="what the worker wrote", step=4)


@pytest.mark.parametrize(
    ("record", "kind", "step", "note"),
    [
        (Step(number=5, kind=StepKind.TOOL, output="a secret"), "step", 5, ""),
        (ALERT, "alert", 4, "low_confidence warning firing"),
        (Plan(steps=()), "plan", None, ""),
    ],
)
def test_a_hint_names_the_step_and_of_an_alert_the_rule_and_nothing_that_was_written(
    record: Record, kind: str, step: int | None, note: str
) -> None:
    assert hint_of(entry(9, record, attempt=2)) == Hint(
        entry=9, kind=kind, task=1, attempt=2, step=step, note=note
    )
