"""`midwatch demo`: the bundled example, offline."""

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from midwatch_monitor.config.settings import RunSettings, Sandbox, Settings
from midwatch_monitor.config.source import load_tasks
from midwatch_supervisor.cli.inspect.console import on_terminal
from midwatch_supervisor.cli.journals import JournalOption
from midwatch_supervisor.cli.run.conduct import AdviseOption, HeadlessOption, advised, home, start
from midwatch_supervisor.cli.settings import JsonOption, settings_in_force
from midwatch_supervisor.demo import make_project
from midwatch_supervisor.present.assignment import Assignment, assignments

_CONSOLE_PACE = 0.8
"""Seconds that the script takes for an answer: long enough to be watched, and acted upon."""


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
