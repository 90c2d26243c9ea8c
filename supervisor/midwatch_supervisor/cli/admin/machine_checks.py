"""The checks of `midwatch doctor` on this machine: packages, programs, journal and broker."""

import asyncio
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from midwatch_agents.model_choice import installed
from midwatch_agents.sandbox import OPEN, bubblewrap_problem
from midwatch_monitor.command_hint import command
from midwatch_monitor.config.fleet import BrokerSettings
from midwatch_monitor.config.modes import Sandbox, Synchronous
from midwatch_monitor.config.settings import NotifySettings, TelemetrySettings
from midwatch_monitor.errors import UnreachableError, UsageError, pip_install
from midwatch_supervisor.cli.journals import journal_place
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


async def extras(needed: str) -> list[CheckResult]:
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


async def journal(option: str | None) -> list[CheckResult]:
    """Check whether the journal can be written. Creates none and changes no table."""
    return [await asyncio.to_thread(_check_journal, option)]


def _check_journal(option: str | None) -> CheckResult:
    from midwatch_monitor.journal.core.engine import is_url

    location = journal_place(option)
    if is_url(location):
        return _check_tables(location)
    folder = next(each for each in Path(location).absolute().parents if each.exists())
    if shutil.disk_usage(folder).free < _LEAST_MIB * 2**20:
        detail = f"{location}: its file system is full; less than {_LEAST_MIB} MiB is free"
        return CheckResult("journal", State.FAILED, detail, "make room there")
    if not os.access(folder, os.W_OK | os.X_OK):
        fix = "check its permissions, or name another journal with --journal"
        return CheckResult("journal", State.FAILED, f"{folder} is not writable", fix)
    if Path(location).exists():
        return _check_tables(location)
    return CheckResult("journal", State.OK, f"{location}: the first run creates it")


def _check_tables(location: str) -> CheckResult:
    """Check whether a database can be written and has the right tables. Raises JournalError."""
    from midwatch_monitor.journal.core.engine import Access, connect, explain_errors, transaction
    from midwatch_monitor.journal.core.schema import prepare, upgrade, version_of

    with closing(connect(location, Access.WRITE, Synchronous.NORMAL)) as store:
        with explain_errors(store.name):
            current = version_of(store).current
            if current and store.writing is not None:
                prepare(
                    store, Access.WRITE
                )  # the tables are current, so this checks only the rights
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
    from midwatch_monitor.bus.client import Login, connect, read_password
    from midwatch_supervisor.fleet.process import identity

    name, password = settings.username or identity(None).name, read_password(settings, os.environ)
    login = Login(client="", username=name, password=password, session_seconds=0)
    async with asyncio.timeout(_BROKER_SECONDS), connect(settings, login, _ignore_message):
        return [CheckResult("broker", State.OK, f"{settings.url} accepts {name}")]


async def notify(settings: NotifySettings) -> list[CheckResult]:
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


async def telemetry(settings: TelemetrySettings) -> list[CheckResult]:
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
