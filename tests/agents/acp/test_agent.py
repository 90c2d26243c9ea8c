"""The process of an agent by ACP, and all that it starts."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from anyio import wait_readable
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters

from midwatch_agents.acp.agent import agent_model
from midwatch_agents.acp.agent_model import AgentModel
from midwatch_agents.acp.presets import Preset
from midwatch_agents.sandbox import SandboxKind
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_stage.processes import let_go, reading_pipe, written_unheard
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


async def test_an_agent_is_ended_with_its_children_where_its_start_is_cancelled(
    tmp_path: Path,
) -> None:
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


async def test_a_child_that_left_its_group_can_no_longer_write_to_its_pipes(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pulse"
    writing = f"exec 3>'{pipe}'; echo >&3; while echo more >&2; do sleep 0.1; done"
    with reading_pipe(pipe) as pulse:
        async with agent(tmp_path, f'setsid sh -c "{writing}" & exec sleep 600'):
            await wait_readable(pulse)
        await let_go(pulse)
