"""The process of an agent by ACP, and all that it starts."""

import asyncio
from pathlib import Path

import pytest

from midwatch_agents.acp.agent import agent_model
from midwatch_agents.acp.presets import Preset
from midwatch_agents.sandbox import SandboxKind
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_stage.processes import let_go, reading_pipe, written_unheard


async def test_an_agent_is_ended_with_its_children_where_its_start_is_cancelled(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pulse"
    script = f"exec 3>'{pipe}'; sleep 600 & echo >&3; wait"

    async def start() -> None:
        async with agent_model(
            Preset(command=("sh", "-c", script)),
            name="agent",
            paths=SandboxPaths(folder=tmp_path),
            sandbox_kind=SandboxKind.NONE,
            mark="mark#1",
        ):
            await asyncio.Event().wait()

    with reading_pipe(pipe) as pulse:
        starting = asyncio.create_task(start())
        await written_unheard(pulse)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await let_go(pulse)
