"""`midwatch submit`: submit the tasks of a file to a fleet."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.command_hint import command
from midwatch_supervisor.cli.interrupts import INTERRUPTS
from midwatch_supervisor.cli.journals import (
    DryRunOption,
    JournalOption,
    journal_of_work,
    journal_place,
)
from midwatch_supervisor.cli.output import write_either, write_error
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.present.numbers import count_noun, list_names

if TYPE_CHECKING:
    from midwatch_monitor.config.settings import Settings
    from midwatch_monitor.journal import Journal
    from midwatch_monitor.recorder import Clock
    from midwatch_monitor.records import NodeStatus, Run
    from midwatch_supervisor.present.assignment import Assignment

_ASKED_SECONDS = 10.0
"""Seconds that `--dry-run` waits for a remote repository."""
_NAMED = 3
"""Number of tasks named in one warning; the others are counted."""


def submit(
    file: Annotated[Path, Parameter(help="The task file (YAML).")],
    *,
    key: Annotated[
        str | None,
        Parameter(
            help="A name of your choice for this submission: submitting again under "
            "the same name stores nothing and prints the existing run."
        ),
    ] = None,
    config: ConfigOption = None,
    journal: JournalOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> int:
    """Store the tasks of a file for the nodes of a fleet, and return."""
    from midwatch_monitor.config.source import load_tasks
    from midwatch_supervisor.fleet.queue.queue import system_url
    from midwatch_supervisor.fleet.queue.submission import check, check_key
    from midwatch_supervisor.present.assignment import assignments, check_workspaces

    if key is not None:
        check_key(key)
    settings = settings_in_force(config)
    wanted = assignments(load_tasks(file), file.resolve().parent)
    check(wanted, fleet=settings.fleet.name)
    check_workspaces(wanted, file=file)
    location = journal_place(journal)
    system_url(location)
    if dry_run:
        fleet = settings.fleet.name
        INTERRUPTS.run(_say_all(wanted, location, fleet=fleet, key=key, json=json))
        return 0
    return INTERRUPTS.run(_submit_tasks(wanted, file, settings, location, key=key, json=json))


async def _submit_tasks(
    wanted: "Sequence[Assignment]",
    file: Path,
    settings: "Settings",
    location: str,
    *,
    key: str | None,
    json: bool,
) -> int:
    from midwatch_monitor.journal.core.clock import journal_clock, now
    from midwatch_monitor.journal.fleet.nodes import Nodes
    from midwatch_supervisor.cli.run.start_warnings import uncommitted_warnings, unknown_prices
    from midwatch_supervisor.fleet.queue.submission import submit as store

    async with (
        await journal_of_work(location, settings) as journal,
        journal_clock(journal, now) as clock,
    ):
        nodes = await Nodes(journal, fleet=settings.fleet.name).all()
        run, already = await store(
            journal, wanted, key=key, source=str(file), settings=settings, clock=clock
        )
        # It is not known here whether tasks that existed already wait for anything.
        warnings = [] if already else _label_warnings(wanted, nodes)
        if not already:
            warnings += await uncommitted_warnings(wanted, besides=file)
            warnings += unknown_prices(wanted)
        _say_run(run, len(wanted), journal.name, warnings, already=already, json=json)
        await _hand_out(journal, settings, location, clock)
    return 0


def _say_run(
    run: "Run", tasks: int, journal: str, warnings: Sequence[str], *, already: bool, json: bool
) -> None:
    told = {"run": run.id, "tasks": tasks, "already": already, "warnings": warnings}
    there = f" already exists, since {run.started_at:%Y-%m-%d %H:%M} UTC" * already
    watch, status = command(f"watch --run {run.id}"), command("status")
    write_either(
        {"type": "run", **told},
        f"Run {run.id}{there}: {count_noun(tasks, 'task')}, journal {journal}",
        f"`{watch}` shows it, `{status}` sums it up",
        *(f"warning: {each}" for each in warnings),
        json=json,
    )


async def _hand_out(
    journal: "Journal", settings: "Settings", location: str, clock: "Clock"
) -> None:
    """Dispatch the tasks that can begin. If that fails, a monitor does it: the run is stored."""
    from midwatch_monitor.errors import JournalError
    from midwatch_supervisor.fleet.queue.dispatch import dispatch_once

    try:
        await dispatch_once(journal, location, settings=settings.fleet, clock=clock)
    except JournalError as error:
        write_error(f"the tasks are stored, but a node or monitor must dispatch them: {error}")


def _label_warnings(wanted: "Iterable[Assignment]", nodes: "Sequence[NodeStatus]") -> list[str]:
    """Return what nodes may lack for these tasks, each with the tasks' names."""
    tasks: dict[str, list[str]] = defaultdict(list)
    for each in wanted:
        for what in _missing_on_nodes(each, nodes):
            tasks[what].append(each.task.id)
    return [f"{list_names(names, _NAMED)}: {what}" for what, names in tasks.items()]


def _missing_on_nodes(each: "Assignment", nodes: "Sequence[NodeStatus] | None") -> list[str]:
    """Return what a task needs that no running node has, or that may be only on this machine."""
    from midwatch_supervisor.present.waiting import missing_node_words

    missing = "" if nodes is None else missing_node_words(each.task.labels, nodes)
    advice = "" if each.origin else "; `workspace:` also takes the URL of a git repository"
    return [missing] * bool(missing) + [
        f"{each.source} is a folder on this machine: other nodes can use it only if it is shared "
        f"with them under the same path{advice}"
    ] * each.local


async def _read_known(
    wanted: "Sequence[Assignment]", location: str, *, fleet: str, key: str | None
) -> "tuple[list[NodeStatus] | None, Run | None, str]":
    """Return the fleet's nodes, the run of these tasks, and the journal's name, before submitting.

    The nodes are `None` if they cannot be read now; the run is one that was submitted under the
    same key before. Raises UsageError if the key belongs to other tasks, and JournalError if the
    journal could never be read: the address, password or Midwatch version is wrong.
    """
    from midwatch_monitor.errors import (
        JournalAccessError,
        JournalCorruptError,
        JournalEmptyError,
        JournalError,
        JournalTooNewError,
    )
    from midwatch_monitor.journal import Journal
    from midwatch_monitor.journal.fleet.nodes import Nodes
    from midwatch_supervisor.fleet.queue.submission import submitted

    try:
        async with await Journal.open_to_read(location, patience_seconds=0) as journal:
            there = await submitted(journal, wanted, fleet=fleet, key=key) if key else None
            return await Nodes(journal, fleet=fleet).all(), there, journal.name
    except JournalEmptyError:
        return [], None, ""  # `submit` creates the journal, so no node uses it yet
    except (JournalAccessError, JournalCorruptError, JournalTooNewError):
        raise
    except JournalError as error:
        unknown = "whether a run with this key exists, and " if key else ""
        write_error(f"cannot tell {unknown}which nodes are up: {error}")
        return None, None, ""


async def _say_all(
    wanted: "Sequence[Assignment]", location: str, *, fleet: str, key: str | None, json: bool
) -> None:
    """Print where each task starts from, or their run if there is one; ask each repository once."""
    nodes, there, journal = await _read_known(wanted, location, fleet=fleet, key=key)
    if there is not None:
        _say_run(there, len(wanted), journal, [], already=True, json=json)
        return
    known: dict[str, tuple[str, str]] = {}
    for each in wanted:
        if each.source not in known:
            known[each.source] = await _task_start(each)
        warning = "; ".join(_missing_on_nodes(each, nodes))
        _print_plan(each, *known[each.source], warning, json=json)


async def _task_start(each: "Assignment") -> tuple[str, str]:
    """Return the commit that work starts from, empty outside git, and why it is not known."""
    from midwatch_monitor.errors import WorkspaceError
    from midwatch_supervisor.workspaces.workspace import head_of

    try:
        return await head_of(each.source, url=bool(each.origin), seconds=_ASKED_SECONDS), ""
    except WorkspaceError as error:
        return "", str(error)


def _print_plan(each: "Assignment", commit: str, problem: str, warning: str, *, json: bool) -> None:
    task = each.task
    fields = {"type": "plan", "task": task.id, "worker": each.worker, "workspace": each.source}
    fields |= {"commit": commit, "problem": problem, "labels": task.labels, "warning": warning}
    labels = f", for nodes with {', '.join(task.labels)}" if task.labels else ""
    at = f" at {commit[:12]}" if commit else ""
    place = f"{each.source or 'an empty folder'}{at}{labels}"
    write_either(
        fields,
        f"would submit {task.id}: worker {each.worker}, workspace {place}",
        *[f"  its commit is unknown: {problem}"] * bool(problem),
        *[f"  warning: {warning}"] * bool(warning),
        json=json,
    )
