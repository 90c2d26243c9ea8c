"""A broker that is away: then things are late, and nothing else."""

import gc
import logging
from asyncio import StreamReader, StreamWriter, get_running_loop, sleep, start_server, to_thread

import pytest

from midwatch_monitor.bus.mqtt import MqttBus
from midwatch_monitor.bus.payload import decode_status
from midwatch_monitor.records import Hint
from midwatch_tests.net import Net, status_of
from midwatch_tests.ports import LOOPBACK
from midwatch_tests.proxy import Cut, TcpProxy

CONNECTED, SHUTTING_DOWN = b"\x20\x03\x00\x00\x00", b"\xe0\x02\x8b\x00"
"""The packets CONNACK, and DISCONNECT with that reason."""


def publish(bus: MqttBus, *entries: int) -> None:
    for entry in entries:
        bus.publish(Hint(entry=entry, kind="step", task=1, attempt=1))


async def test_a_bus_opens_at_once_and_connects_later(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    net.broker.stop()
    async with net.bus("a", connected=False) as a, net.bus("b", connected=False) as b:
        hints = b.subscribe()
        publish(a, 1, 2)
        await net.until(lambda: len(caplog.records) == 2)
        await to_thread(net.broker.restart)
        await net.until(lambda: a.counters.connected and b.counters.connected)
        publish(a, 3)
        assert (await net.entries(hints, 1))[0] in (1, 3)  # b may have come too late for the rest
    assert "Connection refused" in caplog.text


async def test_a_killed_broker_costs_only_what_did_not_fit_and_nobody_hears_of_another_process(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "midwatch_monitor")
    small = net.settings(max_waiting=100)
    async with net.bus("a", settings=small, status=status_of("a")) as a, net.bus("b") as b:
        hints, ours = b.subscribe(), a.subscribe()
        await to_thread(net.broker.kill)
        await net.until(lambda: not a.counters.connected)
        publish(a, *range(250))
        assert (a.counters.waiting, a.counters.dropped) == (100, 150)
        assert len(await ours.wait()) == 100
        await net.until(lambda: not b.counters.connected)
        await to_thread(net.broker.restart)
        await net.until(lambda: a.counters.connected and b.counters.connected)
        await net.until(lambda: a.counters.sent == 100)
        publish(a, 250)
        assert (await net.entries(hints, 1))[0] <= 250
        assert a.counters.dropped == 150
        async with net.client() as client:
            await client.subscribe("midwatch/v1/midwatch/nodes/a/status", qos=1)
            kept = await anext(aiter(client.messages))
            assert decode_status(kept.payload, "a") == status_of("a")
    said = [each.getMessage() for each in caplog.records]
    broker = f"to the broker at 127.0.0.1:{net.broker.port}"
    assert sum(each.startswith(f"no connection {broker} (it ended") for each in said) == 2
    assert sum(each.startswith(f"connected {broker} again after ") for each in said) == 2
    assert "another process" not in caplog.text


async def test_a_broker_that_lets_in_and_ends_the_connection_at_once_is_away(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.read(4096)
        writer.write(CONNECTED + SHUTTING_DOWN)
        writer.close()

    async with await start_server(answer, LOOPBACK, 0) as server:
        port = server.sockets[0].getsockname()[1]
        settings = net.settings(url=f"mqtt://{LOOPBACK}:{port}", max_wait_seconds=0.1)
        async with net.bus("a", settings=settings, connected=False):
            await net.until(lambda: bool(caplog.records))
    gc.collect()  # then asyncio tells of what failed and nobody looked at
    (said,) = (each.getMessage() for each in caplog.records)
    assert said.startswith("no connection to the broker")
    assert "Server shutting down" in said


async def test_what_was_under_way_is_sent_again(net: Net) -> None:
    async with TcpProxy(net.broker.port) as proxy, net.bus("b") as b:
        hints = b.subscribe()
        settings = net.settings(url=f"mqtt://127.0.0.1:{proxy.port}")
        async with net.bus("a", settings=settings) as a:
            await proxy.cut(Cut.HOLD)
            publish(a, *range(10))
            for _ in range(20):
                await sleep(0)  # they are on their way, and nobody will ever acknowledge them
            publish(a, *range(10, 20))
            await proxy.cut(Cut.REFUSE)
            await net.until(lambda: not a.counters.connected)
            assert a.counters.waiting == 20
            await proxy.restore()
            await net.until(lambda: a.counters.sent == 20)
        seen: set[int] = set()
        while seen != set(range(20)):
            seen |= set(await net.entries(hints, 1))


@pytest.mark.matrix
async def test_a_broker_that_acknowledges_nothing_is_left_and_all_is_sent_again(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    async with TcpProxy(net.broker.port) as proxy, net.bus("b") as b:
        hints = b.subscribe()
        settings = net.settings(url=f"mqtt://127.0.0.1:{proxy.port}", keepalive_seconds=600)
        async with net.bus("a", settings=settings) as a:
            await proxy.cut(Cut.HOLD)
            publish(a, *range(10))
            await net.until(lambda: not a.counters.connected)
            assert (a.counters.waiting, a.counters.sent) == (10, 0)
            await proxy.restore()
            await net.until(lambda: a.counters.sent == 10)
            assert set(await net.entries(hints, 10)) == set(range(10))
    assert "Operation timed out" in caplog.text


async def test_leaving_sends_what_waits(net: Net) -> None:
    async with net.bus("b") as b:
        hints = b.subscribe()
        async with net.bus("a") as a:
            publish(a, *range(2_000))
        assert await net.entries(hints, 2_000) == list(range(2_000))


@pytest.mark.parametrize("broker", ["away", "silent"])
async def test_leaving_waits_for_no_broker_that_does_not_answer(net: Net, broker: str) -> None:
    async with TcpProxy(net.broker.port) as proxy:
        settings = net.settings(url=f"mqtt://127.0.0.1:{proxy.port}", max_wait_seconds=60)
        async with net.bus("a", settings=settings) as a:
            await proxy.cut(Cut.REFUSE if broker == "away" else Cut.HOLD)
            publish(a, 1)
            began = get_running_loop().time()
        assert get_running_loop().time() - began < 4
