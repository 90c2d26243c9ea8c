"""The sandbox: found or refused at the start, and tight around what a worker's commands do."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from pydantic_ai.workspaces import CommandResult, WorkspaceTimeoutError

from midwatch_agents.sandbox import MARK, SandboxKind, find_sandbox, place
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
    found = find_sandbox(wish, attended=attended, program="no-such-program")
    if wish is Sandbox.REQUIRED or (wish is Sandbox.DEFAULT and not attended):
        with pytest.raises(SandboxError, match="required, but no-such-program is not installed"):
            await found
    else:
        assert await found is SandboxKind.NONE


async def test_a_bubblewrap_that_fails_is_none() -> None:
    assert await find_sandbox(Sandbox.AUTO, program="false") is SandboxKind.NONE
    with pytest.raises(SandboxError, match="false fails: exit code 1"):
        await find_sandbox(Sandbox.REQUIRED, program="false")


async def test_off_is_off_even_where_there_is_one(bubblewrap: SandboxKind) -> None:
    assert await find_sandbox(Sandbox.OFF) is SandboxKind.NONE
    assert await find_sandbox(Sandbox.REQUIRED) is bubblewrap


PROGRAM = """
import asyncio
from pathlib import Path
from midwatch_agents.sandbox import SandboxKind, place
from midwatch_agents.sandbox_mounts import SandboxPaths
paths = SandboxPaths(folder=Path({folder!r}))
workspace = place(paths, SandboxKind.BUBBLEWRAP, network={network}, env={{}})
asyncio.run(workspace.run({command!r}, shell=True))
"""


async def run(
    folder: Path,
    command: str,
    sandbox_kind: SandboxKind,
    *,
    network: bool = False,
    seconds: float = 60,
    read: tuple[str, ...] = (),
) -> CommandResult:
    workspace = place(
        SandboxPaths(folder=folder, read=read), sandbox_kind, network=network, env={MARK: "1.1"}
    )
    return await workspace.run(command, shell=True, timeout=seconds)


async def test_a_command_writes_in_its_workspace_only(
    bubblewrap: SandboxKind, workspace: Path, tmp_path: Path
) -> None:
    elsewhere = Path(__file__).with_name("out.txt")
    command = f"echo in > in.txt; echo out > ../out.txt; echo out > '{elsewhere}'"
    result = await run(workspace, command, bubblewrap)
    assert result.exit_code != 0
    assert (workspace / "in.txt").read_text() == "in\n"
    assert not (tmp_path / "out.txt").exists()
    assert not elsewhere.exists()


async def test_a_folder_with_spaces_is_a_workspace_too(
    bubblewrap: SandboxKind, tmp_path: Path
) -> None:
    folder = tmp_path / "a folder 'with' \"quotes\""
    folder.mkdir()
    assert (await run(folder, "echo x > x.txt", bubblewrap)).exit_code == 0
    assert (folder / "x.txt").exists()


@pytest.mark.parametrize("sandbox_kind", list(SandboxKind))
async def test_every_command_carries_the_mark_and_no_secret(
    sandbox_kind: SandboxKind, bubblewrap: SandboxKind, workspace: Path
) -> None:
    result = await run(workspace, "env", sandbox_kind)
    names = {line.partition("=")[0] for line in result.stdout.splitlines()}
    assert f"{MARK}=1.1" in result.stdout.splitlines()
    assert not {name for name in names if "KEY" in name or "TOKEN" in name}


@pytest.mark.parametrize(("network", "said"), [(True, "connected\n"), (False, "")])
async def test_the_network_is_open_only_where_it_is_wished(
    network: bool, said: str, bubblewrap: SandboxKind, workspace: Path
) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        command = f'python3 -c "{CONNECT.format(port=port)}"'
        result = await run(workspace, command, bubblewrap, network=network)
    assert result.stdout == said


async def test_the_home_directory_can_be_written_and_keeps_nothing(
    bubblewrap: SandboxKind, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    (tmp_path / "ada").mkdir()
    result = await run(workspace, "ls -A ~; echo x > ~/x && cat ~/x", bubblewrap)
    assert result.stdout == "x\n"
    assert not (tmp_path / "ada/x").exists()


async def test_another_virtual_environment_in_the_path_runs_its_python(
    bubblewrap: SandboxKind, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = tmp_path / "project/.venv"
    make = (sys.executable, "-m", "venv", "--without-pip", venv)
    assert await (await asyncio.create_subprocess_exec(*make)).wait() == 0
    monkeypatch.setenv("PATH", f"{venv}/bin:{os.environ['PATH']}")
    result = await run(workspace, 'python -c "import json, sys; print(sys.prefix)"', bubblewrap)
    assert result.stdout == f"{venv}\n"


async def test_what_the_owner_shows_can_be_read_and_not_written(
    bubblewrap: SandboxKind, workspace: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.txt").write_text("a\n")
    command = f"cat {data}/a.txt; echo b > {data}/b.txt"
    result = await run(workspace, command, bubblewrap, read=(str(data),))
    assert (result.stdout, result.exit_code != 0) == ("a\n", True)
    assert not (data / "b.txt").exists()
    assert (await run(workspace, command, bubblewrap)).stdout == ""


LEFT = (
    "env -i $(which setsid) flock lock sleep 1000 >/dev/null 2>&1 & until [ -e lock ]; do :; done"
)


async def prove_free(workspace: Path) -> None:
    """Prove that nobody has the lock any more."""
    done = await asyncio.create_subprocess_exec("flock", "--wait", "60", workspace / "lock", "true")
    assert await done.wait() == 0


async def test_a_detached_process_ends_with_its_command(
    bubblewrap: SandboxKind, workspace: Path
) -> None:
    assert (await run(workspace, LEFT, bubblewrap)).exit_code == 0
    await prove_free(workspace)


@pytest.mark.matrix
async def test_a_detached_process_ends_when_its_commands_time_is_over(
    bubblewrap: SandboxKind, workspace: Path
) -> None:
    with pytest.raises(WorkspaceTimeoutError):
        await run(workspace, f"{LEFT}; sleep 1000", bubblewrap, seconds=3)
    await prove_free(workspace)


async def test_a_detached_process_ends_when_its_command_is_cancelled(
    bubblewrap: SandboxKind, workspace: Path
) -> None:
    command = asyncio.create_task(run(workspace, f"{LEFT}; sleep 1000", bubblewrap, seconds=600))
    async with asyncio.timeout(300):
        while not (workspace / "lock").exists():
            await asyncio.wait({command}, timeout=0.01)
    command.cancel()
    await asyncio.wait({command})
    await prove_free(workspace)


@pytest.mark.parametrize("network", [True, pytest.param(False, marks=pytest.mark.matrix)])
async def test_a_command_ends_when_midwatch_is_killed(
    network: bool, bubblewrap: SandboxKind, workspace: Path
) -> None:
    program = PROGRAM.format(folder=str(workspace), network=network, command=f"{LEFT}; sleep 1000")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    async with asyncio.timeout(300):
        while not (workspace / "lock").exists() and process.returncode is None:
            await asyncio.wait({asyncio.create_task(process.wait())}, timeout=0.01)
    process.kill()
    assert await process.wait() == -9
    await prove_free(workspace)
