"""Midwatch's own tools for an agent in another process: an MCP server on a socket of this machine.

Of the Model Context Protocol (https://modelcontextprotocol.io) it speaks what a server of tools
needs, and no more: agents wait for it before their first request, so it has nothing to load.
"""

import asyncio
import json
import logging
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai.tools import ToolDefinition

from midwatch_monitor.traces.foreign import Node

log = logging.getLogger(__name__)

NAME = "midwatch"
_LONGEST = 2**20
_PROTOCOL = "2025-06-18"
_METHOD_NOT_FOUND = -32601


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a call of one of the tools came to."""

    text: str
    failed: bool = False


Call = Callable[[str, Mapping[str, object]], Awaitable[Answered]]
"""Has a tool called by its name, with its arguments."""


class ToolServer:
    """Serves tools to whoever connects to its socket."""

    def __init__(self, folder: Path, call: Call) -> None:
        self.folder = folder
        """Holds the socket and the program that connects to it: what the agent must see."""
        self.tools: Sequence[ToolDefinition] = ()
        self._call = call
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.folder / "tools"

    @property
    def command(self) -> tuple[str, ...]:
        """What an agent starts to reach it."""
        return sys.executable, "-I", "-S", str(self.folder / "tool_pump.py"), str(self.socket)

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until it closes."""
        try:
            while line := await reader.readline():
                task = asyncio.create_task(self._answer(line, writer))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
        except (ValueError, ConnectionError) as error:
            log.warning("an agent's connection to Midwatch's tools broke: %s", error)
        finally:
            writer.close()

    async def close(self) -> None:
        """Give up the calls that are under way."""
        for task in [*self._under_way]:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            asked = Node(json.loads(line))
        except (ValueError, RecursionError):
            return
        if "id" not in asked:
            return  # a notification wants no answer
        answer = {"jsonrpc": "2.0", "id": asked["id"].value, **await self._result(asked)}
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()

    async def _result(self, asked: Node) -> dict[str, object]:
        params = asked["params"]
        match asked["method"].text:
            case "initialize":
                return {"result": _greeting(params)}
            case "tools/list":
                return {"result": {"tools": [*map(_described, self.tools)]}}
            case "tools/call":
                return {"result": await self._called(params)}
            case "ping":
                return {"result": {}}
            case other:
                return {"error": {"code": _METHOD_NOT_FOUND, "message": f"no method {other}"}}

    async def _called(self, params: Node) -> dict[str, object]:
        name = params["name"].text
        if name in {each.name for each in self.tools}:
            found = await self._call(name, params["arguments"].members)
        else:
            found = Answered(text=f"There is no tool {name!r}.", failed=True)
        return {"content": [{"type": "text", "text": found.text}], "isError": found.failed}


def _greeting(params: Node) -> dict[str, object]:
    return {
        "protocolVersion": params["protocolVersion"].text or _PROTOCOL,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": NAME, "version": "1"},
    }


def _described(tool: ToolDefinition) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description or "",
        "inputSchema": tool.parameters_json_schema,
        # Claude Code hides the tools of servers behind a search unless they say this.
        "_meta": {"anthropic/alwaysLoad": True},
    }


@asynccontextmanager
async def serve(call: Call) -> AsyncGenerator[ToolServer]:
    """A server in a folder of its own, until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="midwatch-tools-") as name:
        server = ToolServer(Path(name), call)
        shutil.copy(Path(__file__).with_name("tool_pump.py"), server.folder)
        listening = await asyncio.start_unix_server(server.attend, server.socket, limit=_LONGEST)
        try:
            yield server
        finally:
            listening.close()
            await server.close()
