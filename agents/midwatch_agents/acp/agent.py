"""Runs an ACP agent for one attempt: its sandboxed process, its session and Midwatch's tools."""

import asyncio
import os
import signal
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from midwatch_agents.acp.agent_model import AgentModel
from midwatch_agents.acp.client import AgentSession
from midwatch_agents.acp.presets import Preset
from midwatch_agents.acp.tool_server import serve
from midwatch_agents.acp.transport import LONGEST, LineTransport
from midwatch_agents.sandbox import MARK, SandboxKind, walls
from midwatch_agents.sandbox_mounts import SandboxPaths

_END_SECONDS = 1.0
"""Time for the process to end by itself, and again after each signal."""
_SHELL_SIGNAL = 128
"""What a sandbox or a shell adds to the signal that killed its program, as its own exit code."""
_KEPT_CHARS = 4096
"""Bytes of one read of the agent's standard error, which is kept to explain its end."""
_KEPT_PIECES = 64
"""Number of last reads that are kept; some programs write a line in several pieces."""


@asynccontextmanager
async def agent_model(
    preset: Preset,
    *,
    name: str,
    paths: SandboxPaths,
    sandbox_kind: SandboxKind,
    mark: str,
    allows: bool | None = True,
) -> AsyncGenerator[AgentModel]:
    """Run the agent's process until the end of the block, then end it and everything it started."""
    async with (
        serve(lambda tool, args: session.want(tool, args)) as server,
        AsyncExitStack() as stack,
    ):
        transport, process = await _start(preset, paths, sandbox_kind, mark, server.folder)
        stack.push_async_callback(_end_group, transport, process)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        complaints: deque[str] = deque(maxlen=_KEPT_PIECES)
        stack.callback(asyncio.create_task(_read(process.stderr, complaints)).cancel)
        lines = LineTransport(process.stdout, process.stdin)
        session = AgentSession(lines, preset.steering, allows=allows)
        stack.push_async_callback(session.close)
        yield AgentModel(
            session,
            server,
            name=name,
            folder=paths.folder,
            complaints=complaints,
            how_ended=lambda: _how_ended(process),
        )


async def _start(
    preset: Preset, paths: SandboxPaths, sandbox_kind: SandboxKind, mark: str, tools: Path
) -> tuple[asyncio.SubprocessTransport, Process]:
    """Start the agent; if canceled meanwhile, end its whole group, which asyncio would not do."""
    state = await asyncio.to_thread(_existing_paths, preset.state)
    command = walls(paths, sandbox_kind, preset.command, writable=[*state, tools])
    env = {**os.environ, **preset.env, MARK: mark}
    starting = asyncio.ensure_future(_spawn(command, paths.folder, env))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end_group(*await starting)
        raise


async def _spawn(
    command: Sequence[str], folder: Path, env: Mapping[str, str]
) -> tuple[asyncio.SubprocessTransport, Process]:
    """Like `create_subprocess_exec`, but with the transport, which is needed to close the pipes."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: SubprocessStreamProtocol(limit=LONGEST, loop=loop),
        *command,
        cwd=folder,
        env=env,
        start_new_session=True,
    )
    return transport, Process(transport, protocol, loop)


def _existing_paths(places: Sequence[str]) -> list[Path]:
    found = (Path(each).expanduser() for each in places)
    return [each for each in found if each.exists()]


async def _how_ended(process: Process) -> str:
    """Return the exit code or the signal of the agent's process; empty while it runs."""
    try:
        async with asyncio.timeout(_END_SECONDS):
            code = await process.wait()
    except TimeoutError:
        return ""
    killed = -code if code < 0 else code - _SHELL_SIGNAL
    return f"(killed by signal {killed})" if killed > 0 else f"(exit code {code})"


async def _read(stream: asyncio.StreamReader, kept: deque[str]) -> None:
    """Read the agent's standard error, so that it never blocks on a full pipe."""
    while chunk := await stream.read(_KEPT_CHARS):
        kept.append(chunk.decode(errors="replace"))


async def _end_group(transport: asyncio.SubprocessTransport, process: Process) -> None:
    """Let the agent end by itself, then end its whole group: children outlive their parents."""
    try:
        for sign in (None, signal.SIGTERM, signal.SIGKILL):
            if sign is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, sign)
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await process.wait()
    finally:
        # A child that left the group may keep its pipes open forever.
        transport.close()
