"""`midwatch submit`: hand the tasks of a file over to a fleet."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from midwatch_supervisor.cli.journals import DryRunOption, JournalOption
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force

if TYPE_CHECKING:
    from midwatch_monitor.config.settings import Settings
    from midwatch_monitor.journal import Journal
    from midwatch_supervisor.assignment import Assignment

_ASKED_SECONDS = 10.0
"""How long `--dry-run` waits for a repository elsewhere."""


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
    from midwatch_supervisor.assignment import assignments, check_workspaces
    from midwatch_supervisor.fleet.handout import system_url
    from midwatch_supervisor.fleet.submitting import check
    from midwatch_tools.home import journal_location

    settings = settings_in_force(config)
    wanted = assignments(load_tasks(file), file.resolve().parent)
    check(wanted, fleet=settings.fleet.name)
    check_workspaces(wanted, file=file)
    if dry_run:
        asyncio.run(_say_all(wanted, json=json))
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
            write_line(f"Run {run.id}: {_tasks(len(wanted))}, journal {journal.name}")
            write_line(f"`midwatch watch --run {run.id}` shows it, `midwatch status` sums it up")
        await _hand_out(journal, settings, location)
    return 0


def _tasks(number: int) -> str:
    return "1 task" if number == 1 else f"{number} tasks"


async def _hand_out(journal: "Journal", settings: "Settings", location: str) -> None:
    """Hand out what can begin. The run is stored: a monitor does it where this fails."""
    from midwatch_monitor.errors import JournalError
    from midwatch_supervisor.fleet.posts import dispatch_once
    from midwatch_tools.watch import now

    try:
        await dispatch_once(journal, location, settings=settings.fleet, clock=now)
    except JournalError as error:
        write_error(f"the tasks are stored; a node or monitor will hand them out, as here {error}")


async def _say_all(wanted: "Sequence[Assignment]", *, json: bool) -> None:
    """Say of each task where it is to be worked on; each repository is asked once."""
    known: dict[str, _Start] = {}
    for each in wanted:
        if each.source not in known:
            known[each.source] = await _start(each)
        _say(each, known[each.source], json=json)


class _Start(NamedTuple):
    """Where the work on a repository begins, as far as that is known."""

    commit: str
    """Empty for what is no repository."""
    problem: str = ""
    """Why the commit is not known."""


async def _start(each: "Assignment") -> _Start:
    from midwatch_monitor.errors import WorkspaceError
    from midwatch_supervisor.workspace import head_of

    try:
        return _Start(await head_of(each.source, url=bool(each.origin), seconds=_ASKED_SECONDS))
    except WorkspaceError as error:
        return _Start("", " ".join(str(error).split()))


def _say(each: "Assignment", start: _Start, *, json: bool) -> None:
    task = each.task
    if json:
        write_json(
            {
                "type": "plan",
                "task": task.id,
                "worker": each.worker,
                "workspace": each.source,
                "commit": start.commit,
                "problem": start.problem,
                "labels": list(task.labels),
            }
        )
    else:
        labels = f", for nodes with {', '.join(task.labels)}" if task.labels else ""
        place = each.source or "an empty folder"
        at = f" at {start.commit[:12]}" if start.commit else ""
        write_line(f"{task.id}: worker {each.worker}, workspace {place}{at}{labels}")
        if start.problem:
            write_line(f"  its commit is not known: {start.problem}")
