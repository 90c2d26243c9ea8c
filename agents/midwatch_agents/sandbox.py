"""What the commands of workers run in, and the workspace that runs them."""

import asyncio
import shutil
from collections.abc import Mapping
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from midwatch_monitor.config.settings import Sandbox
from midwatch_monitor.errors import MissingExtraError, SandboxError

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.workspaces import Workspace

MARK = "MIDWATCH_ATTEMPT"
"""Set for every command of an attempt, so that what it leaves running can be found and ended."""

_ISOLATED = ("--unshare-pid", "--proc", "/proc")
"""Without its own process list a detached process would outlive its command, and the attempt."""


class Walls(StrEnum):
    """The sandbox that is in force."""

    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


async def find_walls(wish: Sandbox, *, program: str = "bwrap") -> Walls:
    """The sandbox that this machine gives.

    Raises SandboxError if one is required and missing, and MissingExtraError if only the part of
    it is missing that the extra brings.
    """
    if wish is Sandbox.OFF:
        return Walls.NONE
    problem = await _bubblewrap_problem(program)
    has_extra = find_spec("pydantic_ai_harness") is not None
    if has_extra and not problem:
        return Walls.BUBBLEWRAP
    if wish is not Sandbox.REQUIRED:
        return Walls.NONE
    if not has_extra:
        raise MissingExtraError("the sandbox", "coder")
    raise SandboxError(
        f"sandbox: required, but {problem}. Install bubblewrap (the package `bubblewrap`), "
        "or set `run.sandbox: auto` to go on without"
    )


async def _bubblewrap_problem(name: str) -> str:
    """Why bubblewrap does not work here, tried rather than guessed; empty if it does."""
    program = shutil.which(name)
    if program is None:
        return f"{name} is not installed"
    process = await asyncio.create_subprocess_exec(
        program,
        *("--ro-bind", "/", "/", "--dev", "/dev", *_ISOLATED, "true"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, stderr = await process.communicate()
    if process.returncode == 0:
        return ""
    return f"{name} fails: {stderr.decode().strip() or f'exit code {process.returncode}'}"


def place_capability(
    folder: Path, walls: Walls, *, network: bool, env: Mapping[str, str]
) -> "AbstractCapability[object]":
    """The capability that gives an agent its workspace, inside the walls."""
    from pydantic_ai.capabilities import LocalWorkspace

    local = LocalWorkspace[object](folder, env=env)
    if walls is Walls.NONE:
        return local
    from pydantic_ai_harness import BubblewrapSandbox

    return BubblewrapSandbox[object](local, network=network, bwrap_args=_ISOLATED)


def place(folder: Path, walls: Walls, *, network: bool, env: Mapping[str, str]) -> "Workspace":
    """The same workspace for Midwatch's own commands, such as acceptance checks."""
    from pydantic_ai.workspaces import LocalWorkspaceBackend, Workspace

    local = Workspace(LocalWorkspaceBackend(folder, env=env))
    if walls is Walls.NONE:
        return local
    from pydantic_ai_harness import BubblewrapWorkspace

    return BubblewrapWorkspace(local, network=network, bwrap_args=_ISOLATED)
