"""`midwatch doctor`: what works here, and what to do about the rest."""

import asyncio
import platform
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from midwatch_agents.acp.presets import PRESETS, speaks_acp
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_tasks
from midwatch_monitor.config.tasks import TaskFile, WorkerKind
from midwatch_monitor.errors import ConfigError, MidwatchError
from midwatch_supervisor.cli.admin import checks
from midwatch_supervisor.cli.admin.checks import CheckResult, State
from midwatch_supervisor.cli.journals import JournalOption
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.run.options import on_terminal
from midwatch_supervisor.cli.settings import (
    ConfigOption,
    JsonOption,
    config_files,
    settings_in_force,
)
from midwatch_supervisor.tui.keys import check_console

_SIGNS = {State.OK: "✓", State.MISSING: "!", State.FAILED: "✗", State.UNUSED: "·"}
_SECONDS = 25.0
"""Seconds that one check may take."""
_TASKS = Path("tasks.yaml")
"""Name of the file that `midwatch init` writes, the only task file checked."""
_Check = tuple[str, str, State, Awaitable[list[CheckResult]]]
"""A check's group, its name, its state if it does not finish, and the check."""


async def doctor(
    *, config: ConfigOption = None, journal: JournalOption = None, json: JsonOption = False
) -> int:
    """Check what works on this machine, and say how to fix the rest.

    Exits with 1 if something that `midwatch run` needs is missing. Changes nothing and shows no
    key. Contacts only the configured broker and database, and Ollama on this machine.
    """
    settings, configuration = _check_configuration(config)
    tasks, task_file = _check_tasks(_TASKS)
    begin = [
        CheckResult("midwatch", State.OK, version("midwatch")),
        CheckResult("python", State.OK, f"{platform.python_version()} (3.11 or newer is needed)"),
        *(configuration, *task_file),
    ]
    checks = _list_checks(settings, tasks, journal)
    found = await asyncio.gather(*(_run_check(*each[1:]) for each in checks))
    groups = {"Midwatch": begin}
    for (group, *_), findings in zip(checks, found, strict=True):
        groups.setdefault(group, []).extend(findings)
    every = [each for group in groups.values() for each in group]
    if json:
        write_json(
            *({"type": "check", **each._asdict(), "fix": each.fix or None} for each in every)
        )
    else:
        write_line(*_result_lines(groups))
    return 1 if any(each.state is State.FAILED for each in every) else 0


def _list_checks(settings: Settings, tasks: TaskFile | None, journal: str | None) -> list[_Check]:
    """Return the checks, in the order of the report."""
    specs = checks.models_in(tasks)
    kinds = [tasks.worker_of(each)[1].kind for each in tasks.tasks] if tasks else []
    coder = "coder" if tasks is None or WorkerKind.CODER in kinds else ""
    sandbox = checks.sandbox(settings.run.sandbox, attended=on_terminal())
    thread = asyncio.to_thread
    model = thread(checks.models, specs) if tasks else thread(checks.goal_model)
    workers = tasks.workers.items() if tasks else ()
    others = [(name, spec) for name, spec in workers if speaks_acp(spec)]
    return [
        ("Extras", "extras", State.MISSING, thread(checks.extras, coder)),
        ("Machine", "git", State.FAILED, checks.git()),
        ("Machine", "sandbox", State.FAILED, sandbox),
        ("Machine", "journal", State.FAILED, thread(checks.journal, journal)),
        ("Machine", "broker", State.MISSING, checks.broker(settings.fleet.broker)),
        ("Machine", "notify", State.FAILED, thread(checks.notify, settings.notify)),
        ("Machine", "telemetry", State.FAILED, thread(checks.telemetry, settings.telemetry)),
        ("Models", "keys", State.MISSING, thread(checks.keys, specs)),
        ("Models", "models" if tasks else "for a goal", State.FAILED, model),
        *(("Agents", f"worker {a}", State.FAILED, thread(checks.worker, a, b)) for a, b in others),
        *(("Agents", name, State.MISSING, checks.agent(name, settings.run)) for name in PRESETS),
    ]


async def _run_check(
    name: str, otherwise: State, check: Awaitable[list[CheckResult]]
) -> list[CheckResult]:
    """Run a check; if it fails unexpectedly, the others continue."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await check
    except TimeoutError:
        detail = "no answer in time"
    except MidwatchError as error:
        detail = str(error)
    except Exception as error:  # any error; its text could quote a secret
        detail = f"could not be checked ({type(error).__name__})"
    return [CheckResult(name, otherwise, detail)]


def _check_configuration(config: Sequence[Path] | None) -> tuple[Settings, CheckResult]:
    """Return the settings in force, and the result of checking the files they come from."""
    try:
        settings = settings_in_force(config)
        check_console(settings.console)
    except ConfigError as error:
        return Settings(), _failed_check("configuration", error)
    files = ", ".join(map(str, config_files(config)))
    state = State.OK if files else State.UNUSED
    return settings, CheckResult("configuration", state, files or "no file; built-in defaults")


def _check_tasks(file: Path) -> tuple[TaskFile | None, list[CheckResult]]:
    """Return the tasks of a file, if it exists, and the result of checking it."""
    try:
        tasks = load_tasks(file) if file.is_file() else None
    except ConfigError as error:
        return None, [_failed_check("tasks", error)]
    return tasks, [CheckResult("tasks", State.OK, str(file))] if tasks else []


def _failed_check(name: str, error: ConfigError) -> CheckResult:
    fix = f"midwatch config check {error.place.file}" if error.others else ""
    return CheckResult(name, State.FAILED, str(error), fix)


def _result_lines(groups: Mapping[str, Sequence[CheckResult]]) -> Iterator[str]:
    """Yield the results under the names of their groups, and a summary."""
    every = [each for group in groups.values() for each in group]
    width = min(max(len(each.name) for each in every), 24)
    for group, findings in groups.items():
        yield group
        for name, state, detail, fix in findings:
            todo = f" → {fix}" if fix else ""
            yield f"  {_SIGNS[state]} {name:{width}}  {detail}{todo}"
    lacks = any(each.state is State.FAILED for each in every)
    end = f"needs what is marked {_SIGNS[State.FAILED]}" if lacks else "has what it needs here"
    yield f"`midwatch run` {end}"
