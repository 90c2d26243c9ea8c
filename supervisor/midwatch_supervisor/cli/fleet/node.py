"""`midwatch node`: work for a fleet on this machine."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError, WorkspaceError
from midwatch_supervisor.cli.journals import JournalOption, journal_of_work, journal_place
from midwatch_supervisor.cli.output import write_either
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force

if TYPE_CHECKING:
    from midwatch_agents.sandbox import SandboxKind
    from midwatch_monitor.config.fleet import FleetSettings
    from midwatch_monitor.config.settings import Settings
    from midwatch_supervisor.fleet.process import Identity


NameOption = Annotated[
    str | None,
    Parameter(name="--name", help="The node's name in the fleet. Default: the machine's name."),
]

_OPTIONS = {
    "slots": "--slots {value}: a node has 1 to 1000 slots",
    "labels": "--label {value!r}: a node has at most 6 labels, each of at most 80 letters (a-z, "
    "A-Z), digits and . _ -, beginning with a letter or a digit",
}


def node(
    *,
    slots: Annotated[
        int | None, Parameter(help="Number of tasks at the same time. Default: `fleet.slots`.")
    ] = None,
    label: Annotated[
        list[str] | None, Parameter(help="A label for what only this node can do; may be repeated.")
    ] = None,
    name: NameOption = None,
    home: Annotated[
        Path | None,
        Parameter(
            help="Its work is in nodes/NAME below this folder. Default: .midwatch in the main "
            "worktree around the current folder."
        ),
    ] = None,
    config: ConfigOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> int:
    """Work on a fleet's tasks until told to stop (SIGTERM, Ctrl-C).

    Then the node takes no more turns and waits up to `fleet.drain_seconds` for those running; it
    gives back the rest, and other nodes take them over. A second signal makes it give back all of
    them at once.
    """
    from midwatch_monitor.private_files import private_folder
    from midwatch_supervisor.cli.fleet.log import log_to_stderr
    from midwatch_supervisor.cli.interrupts import run_to_end
    from midwatch_supervisor.cli.run.conduct import work_folder as own_home
    from midwatch_supervisor.fleet.process import identity
    from midwatch_supervisor.fleet.queue.queue import system_url

    settings = _override_settings(settings_in_force(config), slots=slots, labels=label or [])
    location, who = journal_place(journal), identity(name)
    system_url(location)  # nodes cannot share a file, so none must be created
    folder = (home or own_home()).resolve() / "nodes" / who.name
    try:
        private_folder(folder)
    except OSError as error:
        raise WorkspaceError(f"{folder} cannot be written: {error}") from error
    work = _run_node(settings, location, who, folder, json=json)
    with log_to_stderr():
        return run_to_end(work, grace_seconds=settings.run.grace_seconds)


def _override_settings(settings: "Settings", *, slots: int | None, labels: list[str]) -> "Settings":
    """Return the node's settings, overridden by its options."""
    from pydantic import ValidationError

    from midwatch_monitor.config.fleet import FleetSettings
    from midwatch_supervisor.fleet.queue.queue import queues_of

    said = {
        "slots": settings.fleet.slots if slots is None else slots,
        "labels": tuple(sorted({*settings.fleet.labels, *labels})),
    }
    try:
        fleet = FleetSettings.model_validate({**settings.fleet.model_dump(), **said})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = _OPTIONS[str(first["loc"][0])]
        raise UsageError(option.format(value=first["input"])) from error
    queues_of(fleet.name, fleet.labels)
    return settings.model_copy(update={"fleet": fleet})


async def _run_node(
    settings: "Settings", location: str, who: "Identity", home: Path, *, json: bool
) -> int:
    from midwatch_agents.sandbox import find_sandbox
    from midwatch_supervisor.cli.fleet.node_exit import NodeExitReport
    from midwatch_supervisor.fleet.nodes.node import open_node
    from midwatch_supervisor.run.launch import collect_garbage_seldom

    fleet = settings.fleet
    sandbox_kind = await find_sandbox(settings.run.sandbox)
    async with await journal_of_work(location, settings) as journal:
        report = NodeExitReport(journal, name=who.name, settings=fleet, json=json)
        async with open_node(
            *(journal, location, who),
            home=home,
            settings=settings,
            environ=os.environ,
            ended=report.turn_ended,
        ) as node:

            def leave() -> None:
                node.stop()
                report.begin(node.in_hand)

            loop = asyncio.get_running_loop()
            for sign in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(sign, leave)

            def ready() -> None:
                _print_start(who.name, fleet, journal.name, home, sandbox_kind, json=json)
                collect_garbage_seldom()

            await node.run(location, ready=ready)
            await report.end()
    return 0


def _print_start(
    name: str,
    fleet: "FleetSettings",
    journal: str,
    home: Path,
    sandbox_kind: "SandboxKind",
    *,
    json: bool,
) -> None:
    """Print the node's name and slots, and what its workers' commands run in."""
    from midwatch_monitor.journal.core.clock import now
    from midwatch_supervisor.cli.fleet.nodes import slots_words
    from midwatch_supervisor.cli.run.start_warnings import sandbox_words
    from midwatch_supervisor.present.json_lines import moment

    fields = {"type": "node", "at": moment(now()), "name": name, "state": "up"}
    fields |= {"fleet": fleet.name, "slots": fleet.slots, "labels": fleet.labels}
    labels = f", labels {', '.join(fleet.labels)}" if fleet.labels else ""
    sandbox = f"sandbox for commands: {sandbox_words(sandbox_kind, None)}"
    write_either(
        {**fields, "journal": journal, "home": str(home), "sandbox": sandbox_kind},
        f"Node {name} of fleet {fleet.name}: {slots_words(fleet.slots)}{labels}",
        f"Journal {journal}, works in {home}, {sandbox}",
        json=json,
    )
    sys.stdout.flush()
