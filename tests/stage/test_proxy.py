"""The proxy between a process and a server, as the network would fail."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial

import pytest

from midwatch_stage.ports import LOOPBACK, free_port
from midwatch_stage.proxy import Cut, TcpProxy


async def _answer(
    heard: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    while line := await reader.readline():
        heard.append(line)
        writer.write(line.upper())
        await writer.drain()
    writer.close()


@pytest.fixture
def heard() -> list[bytes]:
    """The lines that the server was sent."""
    return []


@pytest.fixture
async def proxy(heard: list[bytes]) -> AsyncGenerator[TcpProxy]:
    """Before a server that answers each line in capitals."""
    port = free_port()
    server = await asyncio.start_server(partial(_answer, heard), LOOPBACK, port)
    async with TcpProxy(port) as before:
        yield before
    server.close()


class Line:
    """A client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    async def ask(self, text: bytes) -> bytes:
        self.writer.write(text + b"\n")
        if answer := await self._reader.readline():
            return answer
        raise ConnectionResetError


@pytest.fixture
async def call(proxy: TcpProxy) -> AsyncGenerator[Callable[[], asyncio.Future[Line]]]:
    """Connects a client."""
    lines: list[Line] = []

    async def connect() -> Line:
        lines.append(Line(*await asyncio.open_connection(LOOPBACK, proxy.port)))
        return lines[-1]

    yield lambda: asyncio.ensure_future(connect())
    for line in lines:
        line.writer.transport.abort()


Call = Callable[[], asyncio.Future[Line]]


async def test_it_passes_on_both_ways(call: Call) -> None:
    line = await call()
    assert await line.ask(b"one") == b"ONE\n"
    assert await line.ask(b"two") == b"TWO\n"


async def test_a_cut_resets_connections_and_refuses_new_ones(call: Call, proxy: TcpProxy) -> None:
    line = await call()
    await line.ask(b"one")
    await proxy.cut()
    with pytest.raises(ConnectionError):
        await line.ask(b"two")
    with pytest.raises(ConnectionError):
        await call()


async def test_after_a_cut_it_listens_on_the_same_port(call: Call, proxy: TcpProxy) -> None:
    await proxy.cut()
    await proxy.restore()
    assert await (await call()).ask(b"one") == b"ONE\n"


async def test_what_was_sent_in_silence_comes_late(
    call: Call, proxy: TcpProxy, heard: list[bytes]
) -> None:
    line = await call()
    await line.ask(b"one")
    await proxy.cut(Cut.HOLD)
    answer = asyncio.create_task(line.ask(b"two"))
    other = await call()
    waiting = asyncio.create_task(other.ask(b"three"))
    done, _ = await asyncio.wait([answer, waiting], timeout=0.1)
    assert (done, heard) == (set(), [b"one\n"])
    await proxy.restore()
    assert (await answer, await waiting) == (b"TWO\n", b"THREE\n")


async def test_connections_can_be_dropped_without_a_cut(call: Call, proxy: TcpProxy) -> None:
    line = await call()
    await line.ask(b"one")
    await proxy.drop()
    with pytest.raises(ConnectionError):
        await line.ask(b"two")
    assert await (await call()).ask(b"four") == b"FOUR\n"


async def test_a_server_that_is_away_ends_the_connection() -> None:
    async with TcpProxy(free_port()) as alone:
        line = Line(*await asyncio.open_connection(LOOPBACK, alone.port))
        with pytest.raises(ConnectionError):
            await line.ask(b"one")
        line.writer.transport.abort()
