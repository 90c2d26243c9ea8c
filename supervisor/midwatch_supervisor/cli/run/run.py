"""`midwatch run`, `demo` and `resume`: run tasks or the bundled example, or continue a run."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from midwatch_supervisor.cli.interrupts import INTERRUPTS
from midwatch_supervisor.cli.journals import JournalOption, journal_place
from midwatch_supervisor.cli.output import write_either, write_error, write_line
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from midwatch_monitor.config.tasks import ModelSpec, Role
    from midwatch_supervisor.present.assignment import Assignment


_CONSOLE_PACE = 0.8
"""Seconds the demo's scripted model takes to answer: long enough to watch and to step in."""


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
    dry_run: Annotated[bool, Parameter(help="Print what would run, and run nothing.")] = False,
    json: JsonOption = False,
) -> int:
    """Run tasks, and stay until each is finished or waits for a person.

    A goal is worked on in the repository around this folder, on its own branch.
    """
    # Mistakes in the file are reported before the slow imports.
    from midwatch_supervisor.cli.run.goal import run_request

    settings = settings_in_force(config)
    found = run_request(wanted, checks=check or (), model=model, environ=os.environ)

    from midwatch_supervisor.present.assignment import assignments, check_workspaces

    tasks = assignments(found.tasks, found.folder)
    check_workspaces(tasks, file=Path(found.source))
    if found.notice:
        (write_error if json or quiet else write_line)(found.notice)
    if dry_run:
        _print_plans(tasks, journal_place(journal), json=json)
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
            help="Seconds the scripted model takes to answer. Default: 0.05; 0.8 in the console.",
        ),
    ] = None,
    headless: HeadlessOption = False,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> int:
    """Run the bundled example. A script plays the model; files, commands and alerts are real."""
    from midwatch_monitor.config.settings import RunSettings, Sandbox, Settings
    from midwatch_monitor.config.source import load_tasks
    from midwatch_supervisor.cli.run.conduct import in_advise_mode, start, work_folder
    from midwatch_supervisor.demo import make_project
    from midwatch_supervisor.present.assignment import assignments
    from midwatch_tools.git import run_git

    shown = output(headless=headless, quiet=quiet, json=json)
    if pace is None and shown is Output.CONSOLE:
        pace = _CONSOLE_PACE
    # No model is called, so its commands are known: it may run without a sandbox.
    own = RunSettings(sandbox=Sandbox.AUTO)
    ours = settings_in_force(None)
    settings = Settings(console=ours.console, notify=ours.notify, run=own)
    run_git(Path.cwd(), "version")  # without git there is no project, and nothing is left behind

    def wanted() -> "list[Assignment]":
        file = make_project(work_folder() / "demo")
        return [with_pace(each, pace) for each in assignments(load_tasks(file), file.parent)]

    return start(
        wanted,
        source="demo",
        settings=in_advise_mode(settings) if advise else settings,
        journal=journal,
        output=shown,
    )


def with_pace(assignment: "Assignment", seconds: float | None) -> "Assignment":
    """Return the same task with scripted models that take that many seconds to answer."""
    if seconds is None:
        return assignment
    models = {
        role: model.model_copy(update={"name": f"{model.name}@{seconds:g}"})
        for role, model in assignment.models.items()
    }
    return assignment.model_copy(update={"models": models})


def _print_plans(tasks: "Sequence[Assignment]", journal: str, *, json: bool) -> None:
    """Print what would be run. Raises MidwatchError as the run would."""
    from midwatch_supervisor.cli.run.start_warnings import task_warnings

    _require_possible(tasks, journal)
    for warning in task_warnings(tasks):
        write_error(f"warning: {warning}")
    for each in tasks:
        _print_plan(each, json=json)


def _require_possible(tasks: "Sequence[Assignment]", journal: str) -> None:
    """Raise MidwatchError for anything that would end the run before it begins, on any machine."""
    from midwatch_agents.models import SCRIPTED, check_model, model_for
    from midwatch_monitor.journal.core.schema import require_usable
    from midwatch_supervisor.present.assignment import models_named

    require_usable(journal)
    for each in tasks:
        for spec in models_named(each):
            check_model(spec)
        for role, spec in _models_asked(each):
            if spec.name.startswith(SCRIPTED):  # it may have nothing for this task
                model_for(spec, role=role, key=each.task.id)


def _models_asked(each: "Assignment") -> "Iterator[tuple[Role, ModelSpec]]":
    """Yield the models that a run needs from its start, each with its role."""
    from midwatch_monitor.config.tasks import Role

    for name in (each.worker, *each.others):
        for spec in (each.worker_model(name), *each.worker_spec(name).other_models):
            if spec is not None:
                yield Role.WORKER, spec
    if (spec := each.model(Role.SUPERVISOR)) is not None:
        yield Role.SUPERVISOR, spec


def _print_plan(each: "Assignment", *, json: bool) -> None:
    task, worker, workspace = each.task.id, each.worker, each.source
    write_either(
        {"type": "plan", "task": task, "worker": worker, "workspace": workspace},
        f"would run {task}: worker {worker}, workspace {workspace or 'an empty folder'}",
        json=json,
    )


def resume(
    *,
    run: Annotated[int | None, Parameter(help="The run. Default: the last unfinished one.")] = None,
    journal: JournalOption = None,
    wait_for_provider: ProviderWaitOption = False,
    headless: HeadlessOption = False,
    quiet: QuietOption = False,
    dry_run: Annotated[bool, Parameter(help="Print which run would be continued.")] = False,
    json: JsonOption = False,
) -> int:
    """Continue a run that was interrupted. No model request or message is repeated."""
    from midwatch_supervisor.cli.run.conduct import find_run, resume_run

    found = INTERRUPTS.run(find_run(journal_place(journal), run))
    if dry_run:
        write_line(f"would continue run {found.id} of {found.source}")
        return 0
    shown = output(headless=headless, quiet=quiet, json=json)
    return resume_run(found, patient=wait_for_provider, journal=journal, output=shown)
