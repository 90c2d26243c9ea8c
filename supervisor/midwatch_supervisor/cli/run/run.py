"""`midwatch run`: run the tasks of a file."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.config.source import load_tasks
from midwatch_supervisor.cli.inspect.console import on_terminal
from midwatch_supervisor.cli.journals import JournalOption
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.run.conduct import AdviseOption, HeadlessOption, advised, start
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.present.assignment import Assignment, assignments, check_workspaces


def run(
    file: Annotated[Path, Parameter(help="The task file (YAML).")],
    *,
    config: ConfigOption = None,
    journal: JournalOption = None,
    advise: AdviseOption = False,
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


def _say(each: Assignment, *, json: bool) -> None:
    workspace = each.source
    if json:
        write_json(
            {"type": "plan", "task": each.task.id, "worker": each.worker, "workspace": workspace}
        )
    else:
        place = workspace or "an empty folder"
        write_line(f"{each.task.id}: worker {each.worker}, workspace {place}")
