"""Who is there and who has gone, as the broker tells it."""

from asyncio import timeout
from dataclasses import replace

from midwatch_monitor.bus import NodeGone
from midwatch_monitor.bus.payload import decode_status
from midwatch_monitor.records import NodeState, NodeStatus
from midwatch_tests.net import Net, status_of
from midwatch_tests.proxy import Cut, TcpProxy

GONE = NodeGone(name="a", boot="1")


async def retained_status(net: Net, name: str) -> NodeStatus | None:
    """What the broker keeps of a node."""
    async with net.client() as client, timeout(120):
        await client.subscribe(f"midwatch/v1/midwatch/nodes/{name}/status", qos=1)
        return decode_status((await anext(aiter(client.messages))).payload, name)


async def test_a_killed_node_is_known_before_anybody_misses_it_and_later(net: Net) -> None:
    async with net.bus("m", share="monitors") as monitor:
        departures = monitor.departures()
        child = await net.node("a", keepalive_seconds=600)
        child.kill()
        async with timeout(120):  # its silence would be noticed after fifteen minutes
            assert await departures.wait() == [GONE]
    assert await retained_status(net, "a") == status_of("a", state=NodeState.LOST)
    async with net.bus("late", connected=False) as monitor, timeout(120):
        assert await monitor.departures().wait() == [GONE]
    async with net.bus("a", status=status_of("a", boot="2")):  # a new start is up all the same
        assert await retained_status(net, "a") == status_of("a", boot="2")


async def test_a_node_that_leaves_says_so(net: Net) -> None:
    async with net.bus("m") as monitor:
        departures = monitor.departures()
        async with net.bus("a", status=status_of("a")):
            assert await retained_status(net, "a") == status_of("a")
        async with timeout(120):
            assert await departures.wait() == [GONE]
    assert await retained_status(net, "a") == replace(status_of("a", state=NodeState.DOWN), busy=0)


async def test_a_status_is_told_again_when_it_changes(net: Net) -> None:
    async with net.bus("a", status=status_of("a")) as a, net.client() as client:
        await client.subscribe("midwatch/v1/midwatch/nodes/a/status", qos=1)
        heard = aiter(client.messages)
        a.announce(status_of("a", state=NodeState.DRAINING))
        async with timeout(120):
            payloads = [(await anext(heard)).payload, (await anext(heard)).payload]
    assert [decode_status(each, "a") for each in payloads] == [
        status_of("a"),
        status_of("a", state=NodeState.DRAINING),
    ]


async def test_a_node_that_was_cut_off_is_doubted_and_comes_back_as_itself(net: Net) -> None:
    async with TcpProxy(net.broker.port) as proxy, net.bus("m") as monitor:
        departures = monitor.departures()
        settings = net.settings(url=f"mqtt://127.0.0.1:{proxy.port}")
        async with net.bus("a", settings=settings, status=status_of("a")) as a:
            own = a.departures()
            await proxy.cut(Cut.REFUSE)
            async with timeout(120):
                assert await departures.wait() == [GONE]
            await net.until(lambda: not a.counters.connected)
            await proxy.restore()
            await net.until(lambda: a.counters.connected)
            assert await retained_status(net, "a") == status_of("a")
            assert await own.wait(0) == []
