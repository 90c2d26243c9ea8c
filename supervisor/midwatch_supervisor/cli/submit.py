"""`midwatch submit`: hand the tasks of a file over to a fleet."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_supervisor.cli.journals import DryRunOption, JournalOption
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force

if TYPE_CHECKING:
    from midwatch_monitor.config.settings import Settings
    from midwatch_monitor.journal import Journal
    from midwatch_supervisor.assignment import Assignment


def submit(
    file: Annotated[Path, Parameter(help="The task file (YAML).")],
    *,
    config: ConfigOption = None,
    journal: JournalOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> int:
    """Store the tasks of a file for the nodes of a fleet, and leave."""
    from midwatch_monitor.config.source import load_tasks
    from midwatch_supervisor.assignment import assignments
    from midwatch_supervisor.fleet.handout import system_url
    from midwatch_supervisor.fleet.submitting import check
    from midwatch_tools.home import journal_location

    settings = settings_in_force(config)
    wanted = assignments(load_tasks(file), file.resolve().parent)
    check(wanted, fleet=settings.fleet.name)
    if dry_run:
        for each in wanted:
            _say(each, json=json)
        return 0
    location = journal_location(journal, os.environ, Path.cwd())
    system_url(location)
    return asyncio.run(_submit(wanted, str(file), settings, location, json=json))


async def _submit(
    wanted: "Sequence[Assignment]",
    source: str,
    settings: "Settings",
    location: str,
    *,
    json: bool,
) -> int:
    from midwatch_monitor.journal import Journal
    from midwatch_supervisor.fleet.submitting import submit as store
    from midwatch_tools.watch import now

    async with await Journal.open(
        location, patience_seconds=settings.journal.patience_seconds
    ) as journal:
        run = await store(journal, wanted, source=source, settings=settings, clock=now)
        if json:
            write_json({"type": "run", "run": run.id, "tasks": len(wanted)})
        else:
            write_line(f"Run {run.id}: {len(wanted)} tasks, journal {journal.name}")
            write_line(f"`midwatch watch --run {run.id}` shows it, `midwatch status` sums it up")
        await _hand_out(journal, settings, location)
    return 0


async def _hand_out(journal: "Journal", settings: "Settings", location: str) -> None:
    """Hand out what can begin. The run is stored: a monitor does it where this fails."""
    from midwatch_monitor.errors import JournalError
    from midwatch_monitor.journal.nodes import Nodes
    from midwatch_supervisor.fleet.dispatch import Dispatcher
    from midwatch_supervisor.fleet.handout import Handout
    from midwatch_tools.watch import now

    try:
        handout = await Handout.open(location, fleet=settings.fleet.name)
        try:
            nodes = Nodes(journal)
            fleet = settings.fleet
            await Dispatcher(journal, handout, nodes, settings=fleet, clock=now).look()
        finally:
            await handout.close()
    except JournalError as error:
        write_error(f"the tasks are stored; a node or monitor will hand them out, as here {error}")


def _say(each: "Assignment", *, json: bool) -> None:
    task = each.task
    if json:
        write_json(
            {
                "type": "plan",
                "task": task.id,
                "worker": each.worker,
                "workspace": str(each.workspace or ""),
                "labels": list(task.labels),
            }
        )
    else:
        labels = f", for nodes with {', '.join(task.labels)}" if task.labels else ""
        place = str(each.workspace or "") or "an empty folder"
        write_line(f"{task.id}: worker {each.worker}, workspace {place}{labels}")
