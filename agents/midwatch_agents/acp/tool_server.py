"""Midwatch's own tools for an agent in another process: an MCP server on a local socket.

It implements only the part of the Model Context Protocol (https://modelcontextprotocol.io) that a
tool server needs. Messages are framed as in ACP.
"""

import asyncio
import shutil
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from acp.connection import Connection
from acp.exceptions import RequestError
from pydantic_ai.tools import ToolDefinition

from midwatch_agents.acp.transport import LONGEST, LineTransport
from midwatch_monitor.traces.foreign import JsonNode

NAME = "midwatch"
_PROTOCOL = "2025-06-18"
_PUMP, _SOCKET = "tool_pump.py", "tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The result of a tool call."""

    text: str
    failed: bool = False


CallTool = Callable[[str, Mapping[str, object]], Awaitable[Answered]]
"""Calls a tool by name, with its arguments."""


class ToolServer:
    """Serves tools to everyone who connects to its socket."""

    def __init__(self, folder: Path, call: CallTool) -> None:
        self.folder = folder
        """Contains the socket and the program that connects to it; must be visible to the agent."""
        self.tools: Sequence[ToolDefinition] = ()
        self._call = call

    @property
    def command(self) -> tuple[str, ...]:
        """The command that connects an agent to it."""
        pump, socket = (str(self.folder / each) for each in (_PUMP, _SOCKET))
        return sys.executable, "-I", "-S", pump, socket

    async def hear(self, method: str, params: object, notified: bool) -> dict[str, object] | None:
        """Answer a request. Raises RequestError for a method that a tool server does not have."""
        if notified:
            return None
        said = JsonNode(params)
        match method:
            case "initialize":
                return {
                    "protocolVersion": said["protocolVersion"].text or _PROTOCOL,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": NAME, "version": "1"},
                }
            case "tools/list":
                return {"tools": [*map(_describe, self.tools)]}
            case "tools/call":
                return await self._call_tool(said)
            case "ping":
                return {}
            case _:
                raise RequestError.method_not_found(method)

    async def _call_tool(self, params: JsonNode) -> dict[str, object]:
        name = params["name"].text
        if name in {each.name for each in self.tools}:
            found = await self._call(name, params["arguments"].members)
        else:
            found = Answered(text=f"There is no tool {name!r}.", failed=True)
        return {"content": [{"type": "text", "text": found.text}], "isError": found.failed}


def _describe(tool: ToolDefinition) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description or "",
        "inputSchema": tool.parameters_json_schema,
        # Otherwise, Claude Code hides a server's tools behind a search.
        "_meta": {"anthropic/alwaysLoad": True},
    }


@asynccontextmanager
async def serve(call: CallTool) -> AsyncGenerator[ToolServer]:
    """Run a server in its own folder; open calls are abandoned at the end of the block."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="midwatch-tools-")))
        shutil.copy(Path(__file__).with_name(_PUMP), folder)
        server = ToolServer(folder, call)

        def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            stack.push_async_exit(Connection(server.hear, LineTransport(reader, writer)))

        listening = await asyncio.start_unix_server(attend, folder / _SOCKET, limit=LONGEST)
        stack.callback(listening.close)
        yield server
