"""Hints between processes, over a real broker."""

from contextlib import AsyncExitStack

import pytest

from midwatch_monitor.bus.payload import encode_status
from midwatch_monitor.records import Hint
from midwatch_tests.net import Net, status_of

EVENTS = "midwatch/v1/midwatch/attempts/3/events"
STATUS = "midwatch/v1/midwatch/nodes/x/status"


def hint(entry: int, *, attempt: int | None = 3) -> Hint:
    return Hint(
        entry=entry, kind="step", task=1, attempt=attempt, step=entry, note="high as a kite"
    )


async def test_a_hint_is_heard_whole_by_others_and_once_by_ourselves(net: Net) -> None:
    async with net.bus("a") as a, net.bus("b") as b:
        ours, theirs, claims = a.subscribe(), b.subscribe(), b.claims()
        a.publish(hint(1))
        a.publish(hint(2, attempt=None))
        assert await ours.wait() == [hint(1), hint(2, attempt=None)]
        heard: set[Hint] = set()
        while len(heard) < 2:
            heard.update(await theirs.wait())
        assert heard == {hint(1), hint(2, attempt=None)}
        assert await claims.wait(0) == []  # it is of no group
        b.publish(hint(3))  # by now our own would have come back
        assert await ours.wait() == [hint(3)]


async def test_the_hints_of_an_attempt_keep_their_order_over_many_messages(net: Net) -> None:
    async with (
        net.bus("a", settings=net.settings(max_payload_bytes=1024)) as a,
        net.bus("b", settings=net.settings(max_payload_bytes=1024)) as b,
    ):
        hints = b.subscribe()
        for entry in range(5_000):
            a.publish(hint(entry))
        assert await net.entries(hints, 5_000) == list(range(5_000))
        await net.until(lambda: a.counters.sent == 5_000)


async def test_a_shared_subscription_splits_the_hints_over_the_monitors(net: Net) -> None:
    async with AsyncExitStack() as stack:
        names = ("one", "two", "three")
        monitors = [await stack.enter_async_context(net.bus(n, share="monitors")) for n in names]
        queues = [monitor.claims() for monitor in monitors]
        async with net.bus("gone", share="monitors"):
            pass  # who left gets no part
        everything = monitors[0].subscribe()
        node = await stack.enter_async_context(net.bus("a"))
        for attempt in range(1, 31):
            node.publish(hint(attempt, attempt=attempt))
        shares = [await net.entries(queue, 10) for queue in queues]
        assert sorted(entry for share in shares for entry in share) == list(range(1, 31))
        assert sorted(await net.entries(everything, 30)) == list(range(1, 31))


async def test_hints_wait_for_a_monitor_that_is_away(net: Net) -> None:
    async with net.bus("a") as node:
        async with net.bus("m", share="monitors"):
            pass
        node.publish(hint(1))
        node.publish(hint(2))
        await net.until(lambda: node.counters.sent == 2)
        async with net.bus("m", share="monitors", connected=False) as back:
            assert await net.entries(back.subscribe(), 2) == [1, 2]


async def test_nothing_waits_for_a_console_and_two_of_one_name_live_in_peace(net: Net) -> None:
    async with net.bus("a") as node:
        async with net.bus("c", session=False):
            pass
        node.publish(hint(1))
        await net.until(lambda: node.counters.sent == 1)
        async with net.bus("c", session=False) as one, net.bus("c", session=False) as other:
            queues = one.subscribe(), other.subscribe()
            node.publish(hint(2))
            assert [await each.wait() for each in queues] == [[hint(2)], [hint(2)]]


ROW = b'[[7,"step",1,null,""]]'
PASSED_OVER = (
    (EVENTS, b'[[1, "step", null, null, "", 0]]'),
    (EVENTS, b'[[1,"step",1,1,""]' + b" " * 70_000 + b"]"),  # oversize
    (EVENTS.replace("3", "three"), b"[]"),
    (STATUS, b"{}"),
    (STATUS, encode_status(status_of("y"))),
    (STATUS.replace("/x/", "//"), encode_status(status_of("x"))),
)


async def test_malformed_messages_are_skipped(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    async with net.bus("a") as a, net.client() as client:
        hints, departures = a.subscribe(), a.departures()
        for topic, payload in PASSED_OVER:
            await client.publish(topic, payload, qos=1)
        await client.publish(EVENTS, ROW, qos=1)
        assert await net.entries(hints, 1) == [7]
        assert (await hints.wait(0), await departures.wait(0)) == ([], [])
    assert caplog.text == ""


async def test_a_message_that_comes_again_or_was_retained_is_a_hint_like_others(net: Net) -> None:
    async with net.client() as client:
        await client.publish(EVENTS, ROW, qos=1, retain=True)
        async with net.bus("a", connected=False) as a:
            hints = a.subscribe()
            assert await net.entries(hints, 1) == [7]
            for _ in range(2):
                await client.publish(EVENTS, ROW, qos=1)
            assert await net.entries(hints, 2) == [7, 7]
