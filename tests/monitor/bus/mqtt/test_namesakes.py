"""Two processes that were started by one name: both are heard, and neither ends the other's
connection for long."""

import logging
import re
from asyncio import timeout
from dataclasses import replace

import pytest
from aiomqtt import Client, ProtocolVersion

from midwatch_monitor.bus.payload import decode_status, encode_status
from midwatch_monitor.records import Hint, NodeState
from midwatch_tests.net import WORDS, Net, status_of
from midwatch_tests.ports import LOOPBACK
from midwatch_tests.proxy import TcpProxy

STATUS = "midwatch/v1/midwatch/nodes/a/status"
TAKEN = "another process uses the same client id"
SESSION_TAKEN_OVER = b"\xe0\x01\x8e"
"""The packet DISCONNECT with the reason that newer brokers tell."""


def hint(entry: int) -> Hint:
    return Hint(entry=entry, kind="step", task=1, attempt=entry)


def name_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said of processes of one name."""
    texts = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    return [text for text in texts if TAKEN in text]


async def wait_until_name_is_left(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    """Wait until one of two has left the name to the other."""
    await net.until(lambda: bool(name_warnings(caplog)))
    guest = re.compile(r" as (midwatch-midwatch-(?:node|monitor)-a-[0-9a-f]{8}) ")
    await net.until(lambda: guest.search(net.broker.log) is not None)


class TakeoverPacket:
    """Tells a client that its session was taken over, where it was asked to, once."""

    asked = False

    def edit(self, data: bytes) -> tuple[bytes, bytes]:
        """Say it after what the broker says next."""
        said, TakeoverPacket.asked = TakeoverPacket.asked, False
        return (data + SESSION_TAKEN_OVER if said else data), b""


async def test_two_monitors_of_one_name_come_to_rest_and_both_hear(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        net.bus("b") as node,
        net.bus("a", share="monitors") as one,
        net.bus("a", share="monitors") as other,
    ):
        await wait_until_name_is_left(net, caplog)
        await net.until(lambda: one.counters.connected and other.counters.connected)
        fights = net.broker.log.count("already connected")
        assert fights <= 3
        heard = [one.subscribe(), other.subscribe()]
        turns = [one.claims(), other.claims()]
        for entry in range(1, 21):
            node.publish(hint(entry))
        for each in heard:
            assert sorted(await net.entries(each, 20)) == list(range(1, 21))
        shares = [await net.entries(each, 10) for each in turns]
        assert sorted(shares[0] + shares[1]) == list(range(1, 21))
        assert net.broker.log.count("already connected") == fights
    (said,) = name_warnings(caplog)
    assert said.endswith("give each process its own --name")


async def test_who_is_told_leaves_at_once(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    async with TcpProxy(net.broker.port, editor=TakeoverPacket) as proxy, net.bus("b") as b:
        settings = net.settings(url=f"mqtt://127.0.0.1:{proxy.port}")
        async with net.bus("a", settings=settings) as a:
            TakeoverPacket.asked = True
            b.publish(hint(1))
            await wait_until_name_is_left(net, caplog)
            await net.until(lambda: a.counters.connected)
            hints = b.subscribe()
            a.publish(hint(2))
            assert await net.entries(hints, 1) == [2]
    assert "already connected" not in net.broker.log
    assert len(name_warnings(caplog)) == 1


async def test_nothing_waits_for_the_id_of_who_ended(
    net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    async with net.bus("b") as b:
        async with net.bus("a"), net.bus("a"):
            await wait_until_name_is_left(net, caplog)
        b.publish(hint(1))
        await net.until(lambda: b.counters.sent == 1)
        async with net.bus("a", connected=False) as back:
            assert await net.entries(back.subscribe(), 1) == [1]


async def test_the_shipped_access_list_lets_both_in_and_hears_the_status_of_both(
    secure_net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = status_of("a"), status_of("a", boot="2")
    async with (
        secure_net.bus("b") as b,
        secure_net.bus("a", status=first) as one,
        secure_net.bus("a", status=second) as other,
    ):
        await wait_until_name_is_left(secure_net, caplog)
        await secure_net.until(lambda: one.counters.connected and other.counters.connected)
        hints = b.subscribe()
        one.publish(hint(1))
        other.publish(hint(2))
        assert sorted(await secure_net.entries(hints, 2)) == [1, 2]
        for bus, status in ((one, first), (other, second)):
            draining = replace(status, state=NodeState.DRAINING)
            async with secure_net.client("b") as witness, timeout(120):
                await witness.subscribe(STATUS, qos=1)
                bus.announce(draining)
                async for message in witness.messages:
                    if decode_status(message.payload, "a") == draining:
                        break


async def test_a_client_id_gives_nobody_the_name_of_another(secure_net: Net) -> None:
    async with (
        Client(
            LOOPBACK,
            secure_net.broker.port,
            identifier="midwatch-midwatch-node-a-00000000",
            username="b",
            password=WORDS["b"],
            protocol=ProtocolVersion.V5,
        ) as impostor,
        secure_net.bus("a", status=status_of("a")),
    ):
        lost = encode_status(status_of("a", state=NodeState.LOST))
        await impostor.publish(STATUS, lost, qos=1, retain=True)
        await impostor.subscribe(STATUS, qos=1)
        async with timeout(120):
            kept = await anext(aiter(impostor.messages))
        assert decode_status(kept.payload, "a") == status_of("a")
