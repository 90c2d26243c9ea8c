"""The checks of `midwatch doctor` for models and installed coding agents."""

import asyncio
import os
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from midwatch_agents.acp.presets import PRESETS, preset_of
from midwatch_agents.hooks.adapters import ADAPTERS, HookAdapter
from midwatch_agents.hooks.settings_file import called_programs, hooks_switch
from midwatch_agents.model_choice import (
    OLLAMA,
    PROVIDERS,
    choose_model,
    installed,
    ollama_address,
    ollama_has,
)
from midwatch_agents.models import NONE, SCRIPTED, model_for
from midwatch_agents.sandbox import SandboxKind, find_sandbox, unseen_hint, walls
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.config.settings import RunSettings
from midwatch_monitor.config.tasks import ModelSpec, Role, TaskFile, WorkerSpec
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal.core.clock import now
from midwatch_monitor.traces.session_reader import KEPT, find_sessions
from midwatch_supervisor.cli.admin.machine_checks import CheckResult, State
from midwatch_supervisor.present.numbers import count_noun

_PROGRAMS = {"claude-code": "claude", "codex": "codex"}
"""The program that a person starts, if another one speaks ACP."""
_DAY = timedelta(days=1)
_VERSION_SECONDS = 10.0
"""Several agents start at once, perhaps on a busy machine."""


def models_in(tasks: TaskFile | None) -> list[ModelSpec]:
    """Return the models of providers that a task file names, each once."""
    if tasks is None:
        return []
    own = [(each.model, *each.other_models) for each in tasks.workers.values()]
    specs = (*tasks.models.values(), *(each for some in own for each in some if each is not None))
    named = {each.name: each for each in specs}
    return [each for name, each in named.items() if name != NONE and not name.startswith(SCRIPTED)]


async def keys(specs: Iterable[ModelSpec]) -> list[CheckResult]:
    """Return which API keys are set, by the names of their variables."""
    known = [key for provider in PROVIDERS for key in provider.keys]
    known += [each.api_key_env for each in specs if each.api_key_env]
    there = [key for key in dict.fromkeys(known) if os.environ.get(key)]
    state = State.OK if there else State.UNUSED
    return [CheckResult("keys", state, f"set: {', '.join(there)}" if there else "none is set")]


async def models(specs: Iterable[ModelSpec]) -> list[CheckResult]:
    """Check whether those models can be used. Ollama is contacted only on this machine."""
    return await asyncio.to_thread(lambda: [*map(_check_model, specs)])


async def goal_model() -> list[CheckResult]:
    """Find the model for a goal that names none. Raises UsageError if there is none."""
    address = ollama_address(os.environ)
    keyed = (p for p in PROVIDERS if any(map(os.environ.get, p.keys)) and installed(p.package))
    if not any(keyed) and not _is_here(address):
        said = f"no usable key, and {address} is another machine: Ollama was not contacted"
        return [CheckResult("for a goal", State.MISSING, said)]
    choice = await asyncio.to_thread(choose_model, os.environ)
    return [CheckResult("for a goal", State.OK, f"{choice.name}: {choice.why}")]


def _check_model(spec: ModelSpec) -> CheckResult:
    if spec.name.startswith(OLLAMA) and not spec.base_url:
        return _of_ollama(spec.name, ollama_address(os.environ))
    try:
        model_for(spec, role=Role.WORKER, key="")
    except UsageError as error:
        return CheckResult(spec.name, State.FAILED, str(error).removeprefix(f"model {spec.name}: "))
    return CheckResult(spec.name, State.OK, "its package is installed, its key is set")


def _of_ollama(name: str, address: str) -> CheckResult:
    if not _is_here(address):
        return CheckResult(
            name, State.UNUSED, f"{address} is another machine: Ollama was not contacted"
        )
    match ollama_has(address, model := name.removeprefix(OLLAMA)):
        case None:
            return CheckResult(
                name, State.FAILED, f"Ollama is not running at {address}", "ollama serve"
            )
        case False:
            return CheckResult(
                name, State.FAILED, "Ollama does not have it", f"ollama pull {model}"
            )
        case True:
            return CheckResult(name, State.OK, f"Ollama at {address} has it")


def _is_here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


async def worker(name: str, spec: WorkerSpec) -> list[CheckResult]:
    """Check that the program of an ACP worker is installed. Raises UsageError if not."""
    return [CheckResult(f"worker {name}", State.OK, " ".join(preset_of(spec, name).command))]


async def agent(name: str, run: RunSettings) -> list[CheckResult]:
    """Check whether a coding agent is installed, calls Midwatch, and was used in the last day.

    An agent that can be a worker is started as a worker would be: in the sandbox, if there is one.
    """
    preset, (hooks, fix, sessions) = PRESETS[name], await asyncio.to_thread(_hook_use, name)
    program = shutil.which(_PROGRAMS.get(name, preset.command[0]))
    if program is None:
        return [CheckResult(name, State.UNUSED, _join_texts("not installed", sessions))]
    state = State.MISSING if fix else State.OK
    try:
        version = await _first_line((program, "--version"), {**os.environ, **preset.env})
        hint = "" if name in _PROGRAMS else await _sandbox_advice(program, run)
    except (TimeoutError, OSError) as error:
        version = f"--version: {error.strerror or 'no answer in time'}"
        hint, state, fix = "", State.MISSING, fix or "check that it starts"
    if hint:
        return [CheckResult(name, State.MISSING, hint)]
    return [CheckResult(name, state, _join_texts(f"{program} {version}", hooks, sessions), fix)]


def _join_texts(*texts: str) -> str:
    return "; ".join(filter(None, texts))


async def _sandbox_advice(program: str, run: RunSettings) -> str:
    """Return what to do if a program does not start in the sandbox; empty if it does, or if there
    is no sandbox.
    """
    if await find_sandbox(run.sandbox, attended=True) is SandboxKind.NONE:
        return ""
    with TemporaryDirectory() as folder:
        paths = SandboxPaths(folder=Path(folder), read=run.sandbox_read)
        command = walls(paths, SandboxKind.BUBBLEWRAP, (program, "--version"))
        return unseen_hint(await _first_line(command, os.environ, errors=True))


def _hook_use(name: str) -> tuple[str, str, str]:
    """Return whether an agent's hooks call Midwatch, what to do if they should but cannot, and how
    many sessions are new.
    """
    if name not in KEPT:
        return "", "", ""
    found = find_sessions(KEPT[name], os.environ, Path.home(), since=now() - _DAY)
    return *_read_hooks(ADAPTERS[name]), f"{count_noun(len(found), 'session')} in the last day"


def _read_hooks(adapter: HookAdapter) -> tuple[str, str]:
    file = adapter.settings_file(os.environ, Path.home())
    install = f"midwatch hook install {adapter.name}"
    try:
        text = file.read_text("utf-8") if file.is_file() else ""
        programs, switch = called_programs(text, adapter), hooks_switch(text, adapter)
    except (OSError, UnicodeDecodeError, UsageError):
        return f"its hooks in {file} cannot be read", ""
    if not programs:
        return f"its hooks do not call Midwatch ({install})", ""
    if switch:
        return f"`{switch}` turns its hooks off", f"change it in {file}"
    if lost := [each for each in programs if shutil.which(each) is None]:
        return f"its hooks call {lost[0]}, which does not exist", install
    return _join_texts("its hooks call Midwatch", adapter.note), ""


async def _first_line(
    command: Sequence[str], environ: Mapping[str, str], *, errors: bool = False
) -> str:
    """Return the first line of a command's output, empty for none, and end its process group.

    Raises TimeoutError after ten seconds, OSError if the command cannot be started, and ValueError
    for an endless line.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT if errors else asyncio.subprocess.DEVNULL,
        env=environ,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_VERSION_SECONDS):
            return (await process.stdout.readline()).decode(errors="replace").strip()
    finally:
        with suppress(ProcessLookupError, PermissionError):  # it has just ended
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
