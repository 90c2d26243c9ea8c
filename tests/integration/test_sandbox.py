"""The sandbox: found or refused at the start, and tight around what a worker's commands do."""

import asyncio
from pathlib import Path

import pytest
from pydantic_ai.workspaces import CommandResult

from midwatch_agents.sandbox import MARK, Walls, find_walls, place
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.config.settings import Sandbox
from midwatch_monitor.errors import SandboxError

CONNECT = (
    "import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5); print('connected')"
)


@pytest.mark.parametrize("attended", [True, False])
@pytest.mark.parametrize("wish", list(Sandbox))
async def test_without_bubblewrap_a_start_is_refused_unless_it_may_do_without(
    wish: Sandbox, attended: bool
) -> None:
    found = find_walls(wish, attended=attended, program="no-such-program")
    if wish is Sandbox.REQUIRED or (wish is Sandbox.DEFAULT and not attended):
        with pytest.raises(SandboxError, match="required, but no-such-program is not installed"):
            await found
    else:
        assert await found is Walls.NONE


async def test_a_bubblewrap_that_fails_is_none() -> None:
    assert await find_walls(Sandbox.AUTO, program="false") is Walls.NONE
    with pytest.raises(SandboxError, match="false fails: exit code 1"):
        await find_walls(Sandbox.REQUIRED, program="false")


async def test_off_is_off_even_where_there_is_one(bubblewrap: Walls) -> None:
    assert await find_walls(Sandbox.OFF) is Walls.NONE
    assert await find_walls(Sandbox.REQUIRED) is bubblewrap


async def run(folder: Path, command: str, walls: Walls, *, network: bool = False) -> CommandResult:
    workspace = place(SandboxPaths(folder=folder), walls, network=network, env={MARK: "1.1"})
    return await workspace.run(command, shell=True, timeout=30)


async def test_a_command_writes_in_its_workspace_only(
    bubblewrap: Walls, workspace: Path, tmp_path: Path
) -> None:
    elsewhere = Path(__file__).with_name("out.txt")
    command = f"echo in > in.txt; echo out > ../out.txt; echo out > '{elsewhere}'"
    result = await run(workspace, command, bubblewrap)
    assert result.exit_code != 0
    assert (workspace / "in.txt").read_text() == "in\n"
    assert not (tmp_path / "out.txt").exists()
    assert not elsewhere.exists()


async def test_a_folder_with_spaces_is_a_workspace_too(bubblewrap: Walls, tmp_path: Path) -> None:
    folder = tmp_path / "a folder 'with' \"quotes\""
    folder.mkdir()
    assert (await run(folder, "echo x > x.txt", bubblewrap)).exit_code == 0
    assert (folder / "x.txt").exists()


@pytest.mark.parametrize("walls", list(Walls))
async def test_every_command_carries_the_mark_and_no_secret(
    walls: Walls, bubblewrap: Walls, workspace: Path
) -> None:
    result = await run(workspace, "env", walls)
    names = {line.partition("=")[0] for line in result.stdout.splitlines()}
    assert f"{MARK}=1.1" in result.stdout.splitlines()
    assert not {name for name in names if "KEY" in name or "TOKEN" in name}


@pytest.mark.parametrize(("network", "said"), [(True, "connected\n"), (False, "")])
async def test_the_network_is_open_only_where_it_is_wished(
    network: bool, said: str, bubblewrap: Walls, workspace: Path
) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        command = f'python3 -c "{CONNECT.format(port=port)}"'
        result = await run(workspace, command, bubblewrap, network=network)
    assert result.stdout == said


async def test_a_detached_process_ends_with_its_command(bubblewrap: Walls, workspace: Path) -> None:
    # It would hold the lock for a minute.
    command = "setsid flock lock sleep 60 >/dev/null 2>&1 & until [ -e lock ]; do :; done"
    assert (await run(workspace, command, bubblewrap)).exit_code == 0
    assert (await run(workspace, "flock --wait 10 lock true", Walls.NONE)).exit_code == 0
