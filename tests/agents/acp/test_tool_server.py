"""Midwatch's tools, as an agent in another process asks for them."""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping

import pytest
from pydantic_ai.tools import ToolDefinition

from midwatch_agents.acp.tool_server import Answered, ToolServer, serve

REFLECT = ToolDefinition(name="reflect", description="Report.", parameters_json_schema={"a": 1})


async def answered(tool: str, args: Mapping[str, object]) -> Answered:
    return Answered(text=f"{tool}: {json.dumps(args)}", failed="wrong" in args)


@pytest.fixture
async def server() -> AsyncGenerator[ToolServer]:
    async with serve(answered) as found:
        found.tools = [REFLECT]
        yield found


@pytest.fixture
async def client(server: ToolServer) -> AsyncGenerator[Process]:
    """The program that an agent starts."""
    process = await asyncio.create_subprocess_exec(*server.command, stdin=PIPE, stdout=PIPE)
    yield process
    assert process.stdin is not None
    process.stdin.close()
    assert await process.wait() == 0


async def ask(client: Process, *lines: str) -> dict[str, object]:
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write("".join(f"{line}\n" for line in lines).encode())
    async with asyncio.timeout(120):
        return json.loads(await client.stdout.readline())


def asking(method: str, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})


async def test_it_greets_in_the_version_that_it_is_asked_in(client: Process) -> None:
    answer = await ask(client, asking("initialize", protocolVersion="2024-11-05"))
    assert answer["id"] == 7
    assert "2024-11-05" in json.dumps(answer["result"])


async def test_a_tool_is_offered_so_that_no_agent_hides_it_behind_a_search(client: Process) -> None:
    answer = await ask(client, asking("tools/list"))
    assert answer["result"] == {
        "tools": [
            {
                "name": "reflect",
                "description": "Report.",
                "inputSchema": {"a": 1},
                "_meta": {"anthropic/alwaysLoad": True},
            }
        ]
    }


async def test_a_call_is_answered_with_what_it_came_to(client: Process) -> None:
    answer = await ask(client, asking("tools/call", name="reflect", arguments={"a": 1}))
    text = {"type": "text", "text": 'reflect: {"a": 1}'}
    assert answer["result"] == {"content": [text], "isError": False}
    answer = await ask(client, asking("tools/call", name="reflect", arguments={"wrong": 1}))
    assert '"isError": true' in json.dumps(answer)


async def test_what_is_damaged_or_unknown_breaks_nothing(client: Process) -> None:
    noise = (
        "no json",
        "[1]",
        '{"method": "notifications/initialized"}',
        "\udcff".encode(errors="replace").decode(),
    )
    answer = await ask(client, *noise, asking("tools/call", name="rm", arguments=[1]))
    assert "There is no tool 'rm'." in json.dumps(answer)
    answer = await ask(client, asking("resources/list"))
    assert '"code": -32601' in json.dumps(answer)
