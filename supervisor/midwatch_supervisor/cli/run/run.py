"""`midwatch run` and `midwatch demo`: run the tasks of a file, or the bundled example."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from midwatch_monitor.config.settings import RunSettings, Sandbox, Settings
from midwatch_monitor.config.source import load_tasks
from midwatch_supervisor.cli.inspect.console import on_terminal
from midwatch_supervisor.cli.journals import JournalOption
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.run.conduct import (
    AdviseOption,
    HeadlessOption,
    WaitOption,
    advised,
    home,
    patient,
    start,
)
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.demo import make_project
from midwatch_supervisor.present.assignment import Assignment, assignments, check_workspaces

_CONSOLE_PACE = 0.8
"""Seconds that the demo's script takes for an answer: long enough to be watched, and acted upon."""


def run(
    file: Annotated[Path, Parameter(help="The task file (YAML).")],
    *,
    config: ConfigOption = None,
    journal: JournalOption = None,
    advise: AdviseOption = False,
    wait_for_provider: WaitOption = False,
    headless: HeadlessOption = False,
    dry_run: Annotated[
        bool, Parameter(name="--dry-run", negative="", help="Say what would run, and run nothing.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Run the tasks of a file and stay until each is over or waits for a person."""
    settings = settings_in_force(config)
    if advise:
        settings = advised(settings)
    if wait_for_provider:
        settings = patient(settings)
    wanted = assignments(load_tasks(file), file.resolve().parent)
    check_workspaces(wanted, file=file)
    if dry_run:
        for each in wanted:
            _say(each, json=json)
        return 0
    return start(
        wanted,
        source=str(file),
        settings=settings,
        journal=journal,
        console=on_terminal() and not (headless or json),
        json=json,
    )


def demo(
    *,
    journal: JournalOption = None,
    advise: AdviseOption = False,
    pace: Annotated[
        float | None,
        Parameter(
            validator=Number(gte=0, lte=60),
            help="Seconds that the scripted model takes for an answer. Default: 0.05, under the "
            "console 0.8.",
        ),
    ] = None,
    headless: HeadlessOption = False,
    json: JsonOption = False,
) -> int:
    """Run the bundled example with a scripted model; files, commands and judgements are real."""
    console = on_terminal() and not (headless or json)
    if pace is None and console:
        pace = _CONSOLE_PACE
    # No model is asked, so its commands are known: it runs where there is no sandbox too.
    own = RunSettings(sandbox=Sandbox.AUTO)
    settings = Settings(console=settings_in_force(None).console, run=own)
    file = make_project(home() / "demo")
    wanted = [paced(each, pace) for each in assignments(load_tasks(file), file.parent)]
    return start(
        wanted,
        source="demo",
        settings=advised(settings) if advise else settings,
        journal=journal,
        console=console,
        json=json,
    )


def paced(assignment: Assignment, seconds: float | None) -> Assignment:
    """The same task with scripted models that take so long for an answer."""
    if seconds is None:
        return assignment
    models = {
        role: model.model_copy(update={"name": f"{model.name}@{seconds:g}"})
        for role, model in assignment.models.items()
    }
    return assignment.model_copy(update={"models": models})


def _say(each: Assignment, *, json: bool) -> None:
    workspace = each.source
    if json:
        write_json(
            {"type": "plan", "task": each.task.id, "worker": each.worker, "workspace": workspace}
        )
    else:
        place = workspace or "an empty folder"
        write_line(f"{each.task.id}: worker {each.worker}, workspace {place}")
