"""The checks of `midwatch doctor`: packages, programs, journal and broker; models and agents.

Those that are no coroutines run in a thread.
"""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
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
from midwatch_agents.sandbox import (
    OPEN,
    SandboxKind,
    bubblewrap_problem,
    find_sandbox,
    unseen_hint,
    walls,
)
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.command_hint import command
from midwatch_monitor.config.fleet import BrokerSettings
from midwatch_monitor.config.modes import Sandbox, Synchronous
from midwatch_monitor.config.settings import NotifySettings, RunSettings, TelemetrySettings
from midwatch_monitor.config.tasks import ModelSpec, Role, TaskFile, WorkerSpec
from midwatch_monitor.errors import UnreachableError, UsageError, pip_install
from midwatch_monitor.journal.core.clock import now
from midwatch_monitor.traces.session_reader import KEPT, find_sessions
from midwatch_supervisor.cli.journals import journal_place
from midwatch_supervisor.present.numbers import count_noun
from midwatch_tools.git import ask_git

EXTRAS = {
    "coder": ("pydantic_ai_harness", "workers that edit files and run commands; the sandbox"),
    "openai": ("openai", "models of OpenAI, OpenRouter, Ollama and compatible servers"),
    "anthropic": ("anthropic", "models of Anthropic"),
    "google": ("google.genai", "models of Google"),
    "bedrock": ("boto3", "models of Amazon Bedrock"),
    "groq": ("groq", "models of Groq"),
    "mistral": ("mistralai", "models of Mistral"),
    "mcp": ("mcp", "workers with tools from MCP servers; `midwatch mcp`"),
    "acp": ("acp", "ACP agents as workers"),
    "otel": (
        "opentelemetry.exporter.otlp.proto.http",
        "telemetry; watching programs through their spans",
    ),
    "web": ("textual_serve", "the console in a browser"),
    "notify": ("apprise", "notification services"),
    "postgres": ("psycopg", "a journal in PostgreSQL"),
    "fleet": ("dbos", "several machines on one journal"),
}
"""A package that shows that an extra is installed, and what the extra is for."""
_GIT = (2, 31)
"""First version with `rev-parse --path-format`."""
_LEAST_MIB = 10
_GIT_SECONDS = 5.0
_BROKER_SECONDS = 3.0


class State(StrEnum):
    """The result of a check in a word."""

    OK = "ok"
    MISSING = "missing"
    """It is wanted but missing, or does not work; `midwatch run` works without it."""
    FAILED = "failed"
    """`midwatch run` needs it here and does not have it."""
    UNUSED = "unused"
    """It is missing, and nothing here uses it."""


class CheckResult(NamedTuple):
    """The result of a check. A tuple, so that the checks read as tables."""

    name: str
    state: State
    detail: str
    fix: str = ""
    """What to do; empty if nothing is needed, or if the detail says it."""


def extras(needed: str) -> list[CheckResult]:
    """Check which optional packages are installed; only without `needed` does nothing run here."""
    return [
        extra_finding(extra, use, there=installed(package), needed=extra == needed)
        for extra, (package, use) in EXTRAS.items()
    ]


def extra_finding(extra: str, use: str, *, there: bool, needed: bool) -> CheckResult:
    if there:
        return CheckResult(extra, State.OK, use)
    state = State.FAILED if needed else State.UNUSED
    return CheckResult(extra, state, f"not installed: {use}", pip_install(extra))


async def git() -> list[CheckResult]:
    """Check for a git that can make workspaces."""
    try:
        return [git_finding(await ask_git(Path("/"), "version", seconds=_GIT_SECONDS))]
    except UnreachableError:
        return [git_finding("not installed")]


def git_finding(version: str) -> CheckResult:
    found = re.search(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) >= _GIT:
        return CheckResult("git", State.OK, version.strip())
    fix = "install git {}.{} or newer".format(*_GIT)
    return CheckResult("git", State.FAILED, version.strip() or "it reports no version", fix)


async def sandbox(wish: Sandbox, *, attended: bool) -> list[CheckResult]:
    """Check whether workers' commands run in a sandbox here, by running one.

    `attended` is whether a run from here would open the console.
    """
    if wish is Sandbox.OFF:
        return [CheckResult("sandbox", State.UNUSED, f"`run.sandbox` is off: {OPEN}")]
    problem = await bubblewrap_problem()
    if not problem:
        return [CheckResult("sandbox", State.OK, "bubblewrap: a command ran in it")]
    refused = wish is Sandbox.REQUIRED or (wish is Sandbox.DEFAULT and not attended)
    fix = "install the package `bubblewrap`" + ", or set `run.sandbox: off`" * refused
    state = State.FAILED if refused else State.MISSING
    return [CheckResult("sandbox", state, f"{problem}: {OPEN}", fix)]


def journal(option: str | None) -> list[CheckResult]:
    """Check whether the journal can be written. Creates none and changes no table."""
    from midwatch_monitor.journal.core.engine import is_url

    location = journal_place(option)
    if is_url(location):
        return [_check_tables(location)]
    folder = next(each for each in Path(location).absolute().parents if each.exists())
    if shutil.disk_usage(folder).free < _LEAST_MIB * 2**20:
        detail = f"{location}: its file system is full; less than {_LEAST_MIB} MiB is free"
        return [CheckResult("journal", State.FAILED, detail, "make room there")]
    if not os.access(folder, os.W_OK | os.X_OK):
        fix = "check its permissions, or name another journal with --journal"
        return [CheckResult("journal", State.FAILED, f"{folder} is not writable", fix)]
    if Path(location).exists():
        return [_check_tables(location)]
    return [CheckResult("journal", State.OK, f"{location}: the first run creates it")]


def _check_tables(location: str) -> CheckResult:
    """Check whether a database can be written and has the right tables. Raises JournalError."""
    from midwatch_monitor.journal.core.engine import Access, connect, explain_errors, transaction
    from midwatch_monitor.journal.core.schema import prepare, upgrade, version_of

    with closing(connect(location, Access.WRITE, Synchronous.NORMAL)) as store:
        with explain_errors(store.name):
            current = version_of(store).current
            if current and store.writing is not None:
                prepare(store, Access.WRITE)  # only the rights: the tables are current
                with transaction(store.writing):
                    return CheckResult("journal", State.OK, f"{store.name}: writable, up to date")
        plan = upgrade(store, dry_run=True)
        at = f"its tables are at {plan.before}, not {plan.after}" if plan.before else "no tables"
        detail = f"{store.name}: {at}"
        if store.connections is not None:
            return CheckResult("journal", State.FAILED, detail, command("db upgrade"))
        return CheckResult("journal", State.OK, f"{detail}; the next run brings it up to date")


async def broker(settings: BrokerSettings) -> list[CheckResult]:
    """Check whether the broker accepts a connection, if one is configured."""
    if not settings.url:
        return []
    from midwatch_monitor.bus.client import Login, connect, read_password, refusal_text
    from midwatch_monitor.errors import LinkError, LinkFault
    from midwatch_supervisor.fleet.process import identity

    name, password = settings.username or identity(None).name, read_password(settings, os.environ)
    login = Login(client="", username=name, password=password, session_seconds=0)
    try:
        async with asyncio.timeout(_BROKER_SECONDS), connect(settings, login, _ignore_message):
            return [CheckResult("broker", State.OK, f"{settings.url} accepts {name}")]
    except LinkError as error:
        if error.fault is not LinkFault.REFUSED:
            raise
        refusal = f"{settings.url} {refusal_text(settings, name)}"
        return [CheckResult("broker", State.MISSING, refusal)]


def notify(settings: NotifySettings) -> list[CheckResult]:
    """Check whether each target has the variables, files and packages that it needs."""
    return [_check_target(name, settings) for name in settings.targets]


def _check_target(name: str, settings: NotifySettings) -> CheckResult:
    from midwatch_supervisor.notify.notifier import senders_of

    check, where = f"notify {name}", f"notify.targets.{name}: "
    try:
        only = settings.model_copy(update={"targets": {name: settings.targets[name]}})
        senders_of(only, os.environ)
    except UsageError as error:
        return CheckResult(check, State.FAILED, str(error).removeprefix(where))
    fix = command(f"notify test {name}")
    return CheckResult(check, State.OK, f"has what it needs; `{fix}` sends it a message")


def telemetry(settings: TelemetrySettings) -> list[CheckResult]:
    """Check whether spans can be sent, if a collector is configured. Raises UsageError if the
    headers for it are missing or malformed.
    """
    if not settings.endpoint:
        return []
    from midwatch_supervisor.telemetry.exporting import headers_of

    headers_of(settings, os.environ)
    if not installed(EXTRAS["otel"][0]):
        detail = "its package is not installed, so no spans are sent"
        return [CheckResult("telemetry", State.MISSING, detail, pip_install("otel"))]
    return [CheckResult("telemetry", State.OK, f"spans are sent to {settings.endpoint}")]


def _ignore_message(_topic: str, _payload: bytes, _numbers: Sequence[int]) -> None:
    """Ignore a message; there are no subscriptions."""


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


def keys(specs: Iterable[ModelSpec]) -> list[CheckResult]:
    """Return which API keys are set, by the names of their variables."""
    known = [key for provider in PROVIDERS for key in provider.keys]
    known += [each.api_key_env for each in specs if each.api_key_env]
    there = [key for key in dict.fromkeys(known) if os.environ.get(key)]
    state = State.OK if there else State.UNUSED
    return [CheckResult("keys", state, f"set: {', '.join(there)}" if there else "none is set")]


def models(specs: Iterable[ModelSpec]) -> list[CheckResult]:
    """Check whether those models can be used. Ollama is contacted only on this machine."""
    return [*map(_check_model, specs)]


def goal_model() -> list[CheckResult]:
    """Find the model for a goal that names none. Raises UsageError if there is none."""
    address = ollama_address(os.environ)
    keyed = (p for p in PROVIDERS if any(map(os.environ.get, p.keys)) and installed(p.package))
    if not any(keyed) and not _is_here(address):
        said = f"no usable key, and {address} is another machine: Ollama was not contacted"
        return [CheckResult("for a goal", State.MISSING, said)]
    choice = choose_model(os.environ)
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
        detail = f"{address} is another machine: Ollama was not contacted"
        return CheckResult(name, State.UNUSED, detail)
    there = ollama_has(address, model := name.removeprefix(OLLAMA))
    if there is None:
        detail = f"Ollama is not running at {address}"
        return CheckResult(name, State.FAILED, detail, "ollama serve")
    if not there:
        return CheckResult(name, State.FAILED, "Ollama does not have it", f"ollama pull {model}")
    return CheckResult(name, State.OK, f"Ollama at {address} has it")


def _is_here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def worker(name: str, spec: WorkerSpec) -> list[CheckResult]:
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
