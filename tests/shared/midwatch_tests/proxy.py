"""A TCP proxy that a test owns: it cuts a process off from a server, and lets it back."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import StrEnum
from typing import Any, Protocol, Self

from midwatch_tests.ports import LOOPBACK, free_port

_CHUNK = 65_536


class Cut(StrEnum):
    """How a network fails."""

    REFUSE = "refuse"
    """Open connections are reset, new ones refused."""
    HOLD = "hold"
    """Nothing answers and nothing passes; what was sent meanwhile comes late, after all."""


class Editor(Protocol):
    """Changes what a server says on one connection."""

    def edit(self, data: bytes) -> tuple[bytes, bytes]:
        """What the client gets of these bytes, and what the server is told in its place."""
        ...


class TcpProxy:
    """Listens on a port of its own and passes on to `target`, a port of the loopback.

    Belongs to one event loop; no privilege is needed. The port stays the same over cuts.
    """

    def __init__(self, target: int, *, editor: Callable[[], Editor] | None = None) -> None:
        """Pass on as it is, or give each connection an `editor` of what the server says."""
        self.target = target
        self.port = free_port()
        self.connections = 0
        """Connections that were made through it so far."""
        self._editor = editor
        self._server: asyncio.Server | None = None
        self._lines: dict[asyncio.Task[None], tuple[asyncio.StreamWriter, ...]] = {}
        self._passing = asyncio.Event()
        self._passing.set()

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._refuse()

    async def cut(self, how: Cut = Cut.REFUSE) -> None:
        """Let nothing through from now on."""
        if how is Cut.HOLD:
            self._passing.clear()
        else:
            await self._refuse()

    async def restore(self) -> None:
        """Let everything through again."""
        self._passing.set()
        if self._server is None:
            await self._listen()

    async def drop(self) -> None:
        """Reset the open connections; new ones are welcome."""
        for writers in self._lines.values():
            for writer in writers:
                writer.transport.abort()
        lines = list(self._lines)
        for line in lines:
            line.cancel()
        await asyncio.gather(*lines, return_exceptions=True)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, LOOPBACK, self.port)

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.drop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = asyncio.create_task(self._connect(reader, writer))
        self._lines[line] = (writer,)
        line.add_done_callback(lambda done: self._lines.pop(done, None))

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = asyncio.current_task()
        assert line is not None
        self.connections += 1
        try:
            await self._passing.wait()
            behind, beyond = await asyncio.open_connection(LOOPBACK, self.target)
            self._lines[line] = (writer, beyond)
            editor = self._editor() if self._editor else None
            await _first(self._pump(reader, beyond), self._pump(behind, writer, editor, beyond))
        except OSError:
            pass  # one end is gone: so is the other
        finally:
            for each in self._lines.get(line, (writer,)):
                each.transport.abort()

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        editor: Editor | None = None,
        beyond: asyncio.StreamWriter | None = None,
    ) -> None:
        while data := await reader.read(_CHUNK):
            await self._passing.wait()
            onward, back = editor.edit(data) if editor else (data, b"")
            writer.write(onward)
            if back and beyond:
                beyond.write(back)
            await writer.drain()
        await _flushed(writer)


async def _first(*pumps: Coroutine[Any, Any, None]) -> None:
    """Pump until one has nothing more, and then end the others."""
    tasks = [asyncio.create_task(each) for each in pumps]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _flushed(writer: asyncio.StreamWriter) -> None:
    """Let the last words out before the connection is ended."""
    with suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()
        await writer.drain()
