"""An ACP agent's process, the tools that it is given, and the one that follows a script."""

import asyncio
import json
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from anyio import wait_readable
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from midwatch_agents.acp.agent import agent_model
from midwatch_agents.acp.agent_model import AgentModel
from midwatch_agents.acp.presets import Preset
from midwatch_agents.acp.tool_server import Answered, ToolServer, serve
from midwatch_agents.sandbox import SandboxKind
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_tests.processes import let_go, reading_pipe, written_unheard
from midwatch_tools.observation import FOREIGN


def agent(folder: Path, script: str) -> AbstractAsyncContextManager[AgentModel]:
    """A program of the shell in the place of an agent."""
    return agent_model(
        Preset(command=("sh", "-c", script)),
        name="agent",
        paths=SandboxPaths(folder=folder),
        sandbox_kind=SandboxKind.NONE,
        mark="mark#1",
    )


async def test_an_agent_canceled_at_its_start_ends_with_its_children(tmp_path: Path) -> None:
    pipe = tmp_path / "pulse"

    async def start() -> None:
        async with agent(tmp_path, f"exec 3>'{pipe}'; sleep 600 & echo >&3; wait"):
            await asyncio.Event().wait()

    with reading_pipe(pipe) as pulse:
        starting = asyncio.create_task(start())
        await written_unheard(pulse)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await let_go(pulse)


REPLAYS = """
answer() { read -r _; echo "{\\"jsonrpc\\": \\"2.0\\", \\"id\\": $1, \\"result\\": $2}"; }
answer 0 '{"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}'
answer 1 '{}'
echo '{"jsonrpc": "2.0", "method": "session/update", "params": {"update": {
  "sessionUpdate": "tool_call", "toolCallId": "old", "title": "Shell", "kind": "execute",
  "status": "completed"}}}' | tr -d '\\n'; echo
answer 2 '{"stopReason": "end_turn"}'
cat > /dev/null
"""


async def test_what_an_agent_replays_of_a_resumed_session_is_not_done_again(tmp_path: Path) -> None:
    call = ToolCallPart(FOREIGN, {"tool": "execute", "args": {}}, tool_call_id="old")
    before = ModelResponse(parts=[call], provider_details={"acp_session": "s"})
    async with agent(tmp_path, REPLAYS) as model:
        found = await model.request([before], None, ModelRequestParameters())
    assert [type(each) for each in found.parts] == [TextPart]


async def test_a_child_that_left_its_group_can_no_longer_write_to_its_pipes(tmp_path: Path) -> None:
    pipe = tmp_path / "pulse"
    writing = f"exec 3>'{pipe}'; echo >&3; while echo more >&2; do sleep 0.1; done"
    with reading_pipe(pipe) as pulse:
        async with agent(tmp_path, f'setsid sh -c "{writing}" & exec sleep 600'):
            await wait_readable(pulse)
        await let_go(pulse)


REFLECT = ToolDefinition(name="reflect", description="Report.", parameters_json_schema={"a": 1})


async def answer_call(tool: str, args: Mapping[str, object]) -> Answered:
    return Answered(text=f"{tool}: {json.dumps(args)}", failed="wrong" in args)


@pytest.fixture
async def server() -> AsyncGenerator[ToolServer]:
    async with serve(answer_call) as found:
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


def request_line(method: str, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})


async def test_it_greets_in_the_version_asked_offers_its_tools_and_answers_calls(
    client: Process,
) -> None:
    answer = await ask(client, request_line("initialize", protocolVersion="2024-11-05"))
    assert answer["id"] == 7
    assert "2024-11-05" in json.dumps(answer["result"])
    # So that no agent hides it behind a search.
    seen = {"inputSchema": {"a": 1}, "_meta": {"anthropic/alwaysLoad": True}}
    offered = {"name": "reflect", "description": "Report.", **seen}
    assert (await ask(client, request_line("tools/list")))["result"] == {"tools": [offered]}
    answer = await ask(client, request_line("tools/call", name="reflect", arguments={"a": 1}))
    text = {"type": "text", "text": 'reflect: {"a": 1}'}
    assert answer["result"] == {"content": [text], "isError": False}
    answer = await ask(client, request_line("tools/call", name="reflect", arguments={"wrong": 1}))
    assert '"isError": true' in json.dumps(answer)


async def test_what_is_damaged_or_unknown_breaks_nothing(client: Process) -> None:
    noise = (
        "no json",
        "[1]",
        '{"method": "notifications/initialized"}',
        "\udcff".encode(errors="replace").decode(),
    )
    answer = await ask(client, *noise, request_line("tools/call", name="rm", arguments=[1]))
    assert "There is no tool 'rm'." in json.dumps(answer)
    answer = await ask(client, request_line("resources/list"))
    assert '"code": -32601' in json.dumps(answer)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (None, "cannot be read as JSON: [Errno 2] No such file or directory"),
        ("{", "cannot be read as JSON: Expecting property name"),
        ('{"acts": {}}', "must be an object with a list of `acts`"),
    ],
)
def test_what_is_no_script_of_a_fake_agent_is_told(
    tmp_path: Path, script: str | None, problem: str
) -> None:
    file = tmp_path / "script.json"
    if script is not None:
        file.write_text(script)
    argv = [sys.executable, "-m", "midwatch_agents.acp.fake_agent", str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 2)
    assert f"{file} {problem}" in done.stderr
