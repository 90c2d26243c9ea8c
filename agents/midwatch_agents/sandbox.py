"""The sandbox for workers' commands, and the workspace that runs them."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from midwatch_agents.sandbox_mounts import SandboxPaths, mounts, program_files
from midwatch_monitor.config.modes import Sandbox
from midwatch_monitor.errors import MissingExtraError, SandboxError

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.workspaces import Workspace

MARK = "MIDWATCH_ATTEMPT"
"""Set for every command of an attempt, so that leftover processes can be found and ended."""

OPEN = "workers' commands can reach everything that you can: files, keys, network, this journal"
"""What is unprotected without a sandbox."""


_UNSEEN = re.compile(r"^bwrap: execvp (.+): No such file", re.MULTILINE)
_RESOLVER = "/run/systemd/resolve"
"""The target of `/etc/resolv.conf` on many systems."""


class SandboxKind(StrEnum):
    """The sandbox in force."""

    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


async def find_sandbox(
    wish: Sandbox, *, attended: bool = False, program: str = "bwrap"
) -> SandboxKind:
    """Return the sandbox available on this machine; `attended` if somebody is watching the start.

    Raises SandboxError if one is required and missing, and MissingExtraError if only the extra's
    package is missing.
    """
    if wish is Sandbox.OFF:
        return SandboxKind.NONE
    problem = await bubblewrap_problem(program)
    has_extra = find_spec("pydantic_ai_harness") is not None
    if has_extra and not problem:
        return SandboxKind.BUBBLEWRAP
    if wish is Sandbox.AUTO or (wish is Sandbox.DEFAULT and attended):
        return SandboxKind.NONE
    if not has_extra:
        raise MissingExtraError("the sandbox", "coder")
    raise SandboxError(
        f"a sandbox is required, but {problem}. Install bubblewrap (the package `bubblewrap`), "
        f"or set `run.sandbox: off` to continue without one: {OPEN}"
    )


async def bubblewrap_problem(name: str = "bwrap") -> str:
    """Try bubblewrap and return why it does not work here; empty if it does."""
    program = shutil.which(name)
    if program is None:
        return f"{name} is not installed"
    await asyncio.to_thread(_no_nested_namespaces)  # cached from here on
    with tempfile.TemporaryDirectory() as folder:
        tried = _bwrap_args(SandboxPaths(folder=Path(folder)))
        process = await asyncio.create_subprocess_exec(
            program,
            *("--ro-bind", "/", "/", "--unshare-user", *tried, "true"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, stderr = await process.communicate()
    if process.returncode == 0:
        return ""
    return f"{name} fails: {stderr.decode().strip() or f'exit code {process.returncode}'}"


@cache
def _no_nested_namespaces() -> tuple[str, ...]:
    """Return bubblewrap's option against nested user namespaces, if it works here."""
    option = ("--disable-userns",)
    tried = ("bwrap", "--unshare-user", *option, "--ro-bind", "/", "/", "true")
    try:
        done = subprocess.run(tried, capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return option if done.returncode == 0 else ()


def _bwrap_args(paths: SandboxPaths) -> tuple[str, ...]:
    """Return the arguments to add to the harness's own, which show the whole disk."""
    # In a PID namespace, because a detached process would outlive its command and the attempt.
    return ("--unshare-pid", *_no_nested_namespaces(), *mounts(paths, os.environ))


def walls(
    paths: SandboxPaths,
    sandbox_kind: SandboxKind,
    command: Sequence[str],
    *,
    writable: Iterable[Path] = (),
) -> tuple[str, ...]:
    """Return the command line of an agent program inside the sandbox.

    `writable` are further folders, where it keeps its state. It has network access, which it needs
    for its model; so do the commands that it runs.
    """
    prefix = _prefix(sandbox_kind)
    if sandbox_kind is SandboxKind.NONE:
        return (*prefix, *command)
    paths = replace(paths, read=(*paths.read, *program_files(command)))
    kept = [each for place in writable for each in ("--bind", str(place), str(place))]
    unshared = ("--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    return (
        *(*prefix, "bwrap", "--die-with-parent", "--new-session", *unshared, "--cap-drop", "ALL"),
        *(*_bwrap_args(paths), *kept),
        *("--ro-bind-try", _RESOLVER, _RESOLVER, "--chdir", str(paths.folder), "--"),
        *command,
    )


def unseen_hint(said: str) -> str:
    """Return what to do if bubblewrap could not start an existing program; else empty."""
    found = _UNSEEN.search(said)
    program = shutil.which(found[1]) if found else None
    if program is None:
        return ""
    place = Path(program).resolve().parent
    return (
        f"the sandbox hides something that {program} needs to start: add its folder to "
        f"`run.sandbox_read`, such as {place.parent if place.name == 'bin' else place}"
    )


def place_capability(
    paths: SandboxPaths, sandbox_kind: SandboxKind, *, network: bool, env: Mapping[str, str]
) -> "AbstractCapability[object]":
    """Return the capability that gives an agent its workspace, inside the sandbox."""
    from pydantic_ai.capabilities import LocalWorkspace

    from midwatch_agents.command_prefix import PrefixedCommands

    local = LocalWorkspace[object](paths.folder, env=env)
    started = PrefixedCommands(local, prefix=_prefix(sandbox_kind))
    if sandbox_kind is SandboxKind.NONE:
        return started
    from pydantic_ai_harness import BubblewrapSandbox

    return BubblewrapSandbox[object](started, network=network, bwrap_args=_bwrap_args(paths))


def place(
    paths: SandboxPaths, sandbox_kind: SandboxKind, *, network: bool, env: Mapping[str, str]
) -> "Workspace":
    """Return the same workspace for Midwatch's own commands, such as acceptance checks."""
    from pydantic_ai.workspaces import LocalWorkspaceBackend, Workspace

    from midwatch_agents.command_prefix import PrefixedWorkspace

    local = Workspace(LocalWorkspaceBackend(paths.folder, env=env))
    started = PrefixedWorkspace(local, _prefix(sandbox_kind))
    if sandbox_kind is SandboxKind.NONE:
        return started
    from pydantic_ai_harness import BubblewrapWorkspace

    return BubblewrapWorkspace(started, network=network, bwrap_args=_bwrap_args(paths))


def _prefix(sandbox_kind: SandboxKind) -> tuple[str, ...]:
    """Return the prefix that keeps a command from outliving us."""
    if sandbox_kind is SandboxKind.NONE:
        if sys.platform != "linux":
            return ()
        return (sys.executable, "-I", "-S", str(Path(__file__).with_name("orphan_parent.py")))
    # The harness starts bubblewrap through a shell, which would survive if we were killed.
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()
