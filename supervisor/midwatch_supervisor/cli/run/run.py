"""`midwatch run`, `demo` and `resume`: run tasks or the bundled example, or go on with a run."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from midwatch_monitor.config.settings import settings_of
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Keeper, Run
from midwatch_supervisor.cli.interrupts import INTERRUPTS
from midwatch_supervisor.cli.journals import JournalOption, journal_place
from midwatch_supervisor.cli.output import write_either, write_error, write_line
from midwatch_supervisor.cli.run.conduct import home, stay, with_patience
from midwatch_supervisor.cli.run.options import (
    AdviseOption,
    CheckOption,
    HeadlessOption,
    ModelOption,
    Output,
    ProviderWaitOption,
    QuietOption,
    output,
)
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import Job, latest_state
from midwatch_supervisor.run.launch import again
from midwatch_supervisor.run.run_lock import refuse_held

if TYPE_CHECKING:
    from midwatch_supervisor.present.assignment import Assignment


_CONSOLE_PACE = 0.8
"""Seconds that the demo's script takes for an answer: long enough to be watched, and acted upon."""


def run(
    wanted: Annotated[
        str, Parameter(name="TASK", help="A task file (YAML), `-` for one on stdin, or a goal.")
    ],
    /,
    *,
    check: CheckOption = None,
    model: ModelOption = None,
    config: ConfigOption = None,
    journal: JournalOption = None,
    advise: AdviseOption = False,
    wait_for_provider: ProviderWaitOption = False,
    headless: HeadlessOption = False,
    quiet: QuietOption = False,
    dry_run: Annotated[
        bool, Parameter(name="--dry-run", negative="", help="Say what would run, and run nothing.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Run tasks and stay until each is over or waits for a person.

    A goal is worked on in the repository around this folder, on a branch of its own.
    """
    # What is wrong with the file is said before the rest is imported, which takes seconds.
    from midwatch_supervisor.cli.run.goal import run_request

    settings = settings_in_force(config)
    found = run_request(wanted, checks=check or (), model=model, environ=os.environ)

    from midwatch_supervisor.present.assignment import assignments, check_workspaces

    tasks = assignments(found.tasks, found.folder)
    check_workspaces(tasks, file=Path(found.source))
    if found.notice:
        (write_error if json or quiet else write_line)(found.notice)
    if dry_run:
        for each in tasks:
            _say(each, json=json)
        return 0

    from midwatch_supervisor.cli.run.conduct import in_advise_mode, start, with_patience

    settings = in_advise_mode(settings) if advise else settings
    return start(
        lambda: tasks,
        source=found.source,
        settings=with_patience(settings) if wait_for_provider else settings,
        journal=journal,
        output=output(headless=headless, quiet=quiet, json=json),
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
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> int:
    """Run the bundled example with a scripted model; files, commands and judgements are real."""
    from midwatch_monitor.config.settings import RunSettings, Sandbox, Settings
    from midwatch_monitor.config.source import load_tasks
    from midwatch_supervisor.cli.run.conduct import home, in_advise_mode, start
    from midwatch_supervisor.demo import make_project
    from midwatch_supervisor.present.assignment import assignments
    from midwatch_tools.git import run_git

    shown = output(headless=headless, quiet=quiet, json=json)
    if pace is None and shown is Output.CONSOLE:
        pace = _CONSOLE_PACE
    # No model is asked, so its commands are known: it runs where there is no sandbox too.
    own = RunSettings(sandbox=Sandbox.AUTO)
    ours = settings_in_force(None)
    settings = Settings(console=ours.console, notify=ours.notify, run=own)
    run_git(Path.cwd(), "version")  # without git there is no project, and nothing is left behind

    def wanted() -> "list[Assignment]":
        file = make_project(home() / "demo")
        return [with_pace(each, pace) for each in assignments(load_tasks(file), file.parent)]

    return start(
        wanted,
        source="demo",
        settings=in_advise_mode(settings) if advise else settings,
        journal=journal,
        output=shown,
    )


def with_pace(assignment: "Assignment", seconds: float | None) -> "Assignment":
    """The same task with scripted models that take so long for an answer."""
    if seconds is None:
        return assignment
    models = {
        role: model.model_copy(update={"name": f"{model.name}@{seconds:g}"})
        for role, model in assignment.models.items()
    }
    return assignment.model_copy(update={"models": models})


def _say(each: "Assignment", *, json: bool) -> None:
    task, worker, workspace = each.task.id, each.worker, each.source
    write_either(
        {"type": "plan", "task": task, "worker": worker, "workspace": workspace},
        f"{task}: worker {worker}, workspace {workspace or 'an empty folder'}",
        json=json,
    )


def resume(
    *,
    run: Annotated[int | None, Parameter(help="The run. Default: the last unfinished one.")] = None,
    journal: JournalOption = None,
    wait_for_provider: ProviderWaitOption = False,
    headless: HeadlessOption = False,
    quiet: QuietOption = False,
    dry_run: Annotated[
        bool, Parameter(name="--dry-run", negative="", help="Say which run it would be.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Go on with a run: no answered model request is asked again, no delivered word is repeated."""
    found = INTERRUPTS.run(_find_run(journal_place(journal), run))
    if dry_run:
        write_line(f"run {found.id} of {found.source} would go on")
        return 0

    shown = output(headless=headless, quiet=quiet, json=json)
    told = {"notify": settings_in_force(None).notify}  # whom to call is of here and now
    settings = settings_of(found).model_copy(update=told)
    settings = with_patience(settings) if wait_for_provider else settings

    async def opened(log: Journal, clock: Clock) -> tuple[RunResources, tuple[Job, ...]]:
        return await again(
            log,
            found,
            home=home(),
            learning=RunLearning,
            clock=clock,
            attended=shown is Output.CONSOLE,
            settings=settings,
        )

    return stay(opened, settings=settings, journal=journal, output=shown)


async def _find_run(location: str, wanted: int | None) -> Run:
    """The run to go on with; raises UsageError if there is none."""
    async with await Journal.open(location, create=False) as journal:
        runs = await journal.runs()
        if wanted is not None:
            chosen = [run for run in runs if run.id == wanted]
            if not chosen:
                raise UsageError(f"there is no run {wanted}; `midwatch status --all` lists them")
            if chosen[0].keeper is Keeper.MONITOR:
                raise UsageError(f"run {wanted} is not run here: a fleet goes on with it by itself")
            refuse_held(journal.name, wanted)
            return chosen[0]
        for run in reversed([run for run in runs if run.keeper is Keeper.PROCESS]):
            states = [await latest_state(journal, task) for task in await journal.tasks(run.id)]
            if any(not state.lifecycle.over for state in states):
                refuse_held(journal.name, run.id)
                return run
    raise UsageError("every run is over; `midwatch run FILE` starts a new one")
