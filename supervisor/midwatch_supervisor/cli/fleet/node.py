"""`midwatch node`: work for a fleet on this machine."""

import asyncio
import os
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import JournalError, UsageError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import now
from midwatch_monitor.records import Attempt, Lifecycle, Task, TaskTransition
from midwatch_supervisor.cli.fleet.nodes import slots_words
from midwatch_supervisor.cli.journals import JournalOption, journal_of_work, journal_place
from midwatch_supervisor.cli.output import write_either, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.fleet.nodes.turn import TurnOutcome
from midwatch_supervisor.fleet.nodes.turn_pool import TurnEnded
from midwatch_supervisor.present.json_lines import moment

if TYPE_CHECKING:
    from midwatch_agents.sandbox import SandboxKind
    from midwatch_monitor.config.fleet import FleetSettings
    from midwatch_monitor.config.settings import Settings
    from midwatch_supervisor.fleet.process import Identity


NameOption = Annotated[
    str | None,
    Parameter(name="--name", help="What it is called in the fleet. Default: the machine's name."),
]

_OPTIONS = {
    "slots": "--slots {value}: a node has at least 1 slot, and 1000 at most",
    "labels": "--label {value!r}: a label has letters, digits and . _ - in it, 80 characters at "
    "most, and begins with a letter or a digit",
}


def node(
    *,
    slots: Annotated[
        int | None, Parameter(help="Tasks at the same time. Default: `fleet.slots`.")
    ] = None,
    label: Annotated[
        list[str] | None,
        Parameter(negative="", help="What it can do that others cannot; may be given again."),
    ] = None,
    name: NameOption = None,
    home: Annotated[
        Path | None,
        Parameter(help="Where it works. Default: .midwatch in the main worktree around here."),
    ] = None,
    config: ConfigOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> int:
    """Take tasks of a fleet and work on them until it is told to stop (SIGTERM, Ctrl-C).

    Then it takes nothing more, and waits for what it has in hand, `fleet.drain_seconds` at most;
    what is left it gives back, and others go on with it. Told again, it gives back all at once.
    """
    from midwatch_monitor.private import private_folder
    from midwatch_supervisor.cli.fleet.log import log_to_stderr
    from midwatch_supervisor.cli.interrupts import run_to_end
    from midwatch_supervisor.cli.run.conduct import home as own_home
    from midwatch_supervisor.fleet.process import identity
    from midwatch_supervisor.fleet.queue.queue import system_url

    settings = _own(settings_in_force(config), slots=slots, labels=label or [])
    location, who = journal_place(journal), identity(name)
    system_url(location)  # a file will not do, and none is to be made
    folder = (home or own_home()).resolve() / "nodes" / who.name
    try:
        private_folder(folder)
    except OSError as error:
        raise WorkspaceError(f"{folder} cannot be written: {error}") from error
    work = _work(settings, location, who, folder, json=json)
    with log_to_stderr():
        return run_to_end(work, grace_seconds=settings.run.grace_seconds)


def _own(settings: "Settings", *, slots: int | None, labels: list[str]) -> "Settings":
    """The node's own settings, with what its options say."""
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


async def _work(
    settings: "Settings", location: str, who: "Identity", home: Path, *, json: bool
) -> int:
    from midwatch_agents.sandbox import find_sandbox
    from midwatch_supervisor.fleet.nodes.node import open_node
    from midwatch_supervisor.run.launch import calm

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
                _begin(who.name, fleet, journal.name, home, sandbox_kind, json=json)
                calm()

            await node.run(location, ready=ready)
            await report.end()
    return 0


def _begin(
    name: str,
    fleet: "FleetSettings",
    journal: str,
    home: Path,
    sandbox_kind: "SandboxKind",
    *,
    json: bool,
) -> None:
    """Say who works where, and what its workers' commands run in."""
    from midwatch_monitor.journal.core.clock import now
    from midwatch_supervisor.cli.run.conduct import sandbox_words
    from midwatch_supervisor.present.json_lines import moment

    if json:
        write_json(
            {
                "type": "node",
                "at": moment(now()),
                "name": name,
                "state": "up",
                "fleet": fleet.name,
                "slots": fleet.slots,
                "labels": list(fleet.labels),
                "journal": journal,
                "home": str(home),
                "sandbox": sandbox_kind.value,
            }
        )
    else:
        labels = f", labels {', '.join(fleet.labels)}" if fleet.labels else ""
        write_line(f"Node {name} of fleet {fleet.name}: {slots_words(fleet.slots)}{labels}")
        sandbox = f"sandbox for commands: {sandbox_words(sandbox_kind)}"
        write_line(f"Journal {journal}, works in {home}, {sandbox}")
    sys.stdout.flush()


_ASKED_SECONDS = 2.0
"""How long the journal may take to say what is in hand; without it there are numbers only."""
_LAST_SECONDS = 5.0
"""How long the process waits for the last of these lines."""
_ENDS = {
    TurnOutcome.WAITS: "waits, for a person or for other tasks",
    TurnOutcome.TAKEN: "is in other hands",
    TurnOutcome.FAILED: "did not get on, and is offered again",
    TurnOutcome.UNREACHABLE: "did not get on, and is offered again",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTask:
    """A task in hand; what the journal did not say in time is missing."""

    id: int
    task: Task | None = None
    attempt: Attempt | None = None

    @property
    def name(self) -> str:
        if self.task is None:
            return f"task number {self.id}"
        return self.task.name + (f"#{self.attempt.number}" if self.attempt else "")

    @property
    def fields(self) -> dict[str, object]:
        """What JSON says of it."""
        return {
            "run": self.task.run if self.task else None,
            "task": self.task.name if self.task else None,
            "attempt": self.attempt.id if self.attempt else None,
        }


class NodeExitReport:
    """Speaks for a node that leaves, beside what the node does: it holds nothing up."""

    def __init__(
        self,
        journal: Journal,
        *,
        name: str,
        settings: FleetSettings,
        json: bool,
    ) -> None:
        self._journal = journal
        self._ends: asyncio.Queue[TurnEnded | None] = asyncio.Queue()
        self._name = name
        self._settings = settings
        self._json = json
        self._speaking: asyncio.Task[None] | None = None
        self._known: dict[int, HeldTask] = {}
        self._came: Counter[str] = Counter()

    def turn_ended(self, turn: TurnEnded) -> None:
        """A turn has ended, which is of interest once the node leaves."""
        if self._speaking is not None:
            self._ends.put_nowait(turn)

    def begin(self, in_hand: frozenset[int]) -> None:
        """The node was told to leave. A second time: it gives back what it has, at once."""
        if self._speaking is None:
            self._speaking = asyncio.create_task(self._speak(in_hand))
        elif in_hand:
            self._say(
                f"Node {self._name} gives back at once what it has",
                {"type": "node", "name": self._name, "state": "draining", "at_once": True},
            )

    async def end(self) -> None:
        """The node has left."""
        self._ends.put_nowait(None)
        if self._speaking is not None:
            await asyncio.wait({self._speaking}, timeout=_LAST_SECONDS)
            self._speaking.cancel()
        came = ", ".join(f"{count} {what}" for what, count in sorted(self._came.items()))
        self._say(
            f"Node {self._name} has left" + (came and f": {came}"),
            {
                "type": "node",
                "name": self._name,
                "state": "down",
                "ended": self._came["ended"],
                "given_back": self._came["given back"],
            },
        )

    async def _speak(self, tasks: frozenset[int]) -> None:
        with suppress(OSError):  # nobody reads it; the node leaves all the same
            for task in tasks:
                self._known[task] = await self._held_task(task)
            self._say_what_is_waited_for([self._known[each] for each in sorted(tasks)])
            while (ended := await self._ends.get()) is not None:
                await self._say_end(ended)

    def _say_what_is_waited_for(self, held: list[HeldTask]) -> None:
        seconds = self._settings.drain_seconds
        if self._json:
            write_json(
                {
                    "type": "node",
                    "at": moment(now()),
                    "name": self._name,
                    "state": "draining",
                    "at_once": False,
                    "seconds": seconds,
                    "tasks": [each.fields for each in held],
                }
            )
        elif held:
            count = "1 task" if len(held) == 1 else f"{len(held)} tasks"
            write_line(
                f"Node {self._name} takes nothing more. It waits for {count}, {seconds:g} s at "
                f"most: {', '.join(each.name for each in held)}"
            )
            write_line("A second SIGTERM or Ctrl-C gives them back at once: others go on with them")
        else:
            write_line(f"Node {self._name} takes nothing more, and has nothing in hand")
        sys.stdout.flush()

    async def _say_end(self, ended: TurnEnded) -> None:
        held = await self._held_task(ended.task)
        if held.task is None:
            held = self._known.get(ended.task, held)
        lifecycle = await self._lifecycle(ended.task) if ended.outcome is TurnOutcome.OVER else None
        if ended.outcome is None:
            self._came["given back"] += 1
            said = "is given back: others go on with it"
        else:
            self._came["ended"] += 1
            said = _ENDS.get(ended.outcome, f"is {lifecycle or 'over'}")
        outcome = ended.outcome.value if ended.outcome else "given back"
        self._say(
            f"{held.name} {said}",
            {"type": "turn", **held.fields, "outcome": outcome, "lifecycle": lifecycle},
        )

    async def _held_task(self, task: int) -> HeldTask:
        try:
            async with asyncio.timeout(_ASKED_SECONDS):
                found = await self._journal.tasks_with([task])
                attempts = await self._journal.attempts(task)
        except (TimeoutError, JournalError):
            return HeldTask(id=task)
        last = attempts[-1] if attempts else None
        return HeldTask(id=task, task=found[0] if found else None, attempt=last)

    async def _lifecycle(self, task: int) -> Lifecycle | None:
        try:
            async with asyncio.timeout(_ASKED_SECONDS):
                found = await self._journal.entries(task=task, kinds=(TaskTransition,))
        except (TimeoutError, JournalError):
            return None
        last = found[-1].record if found else None
        return last.lifecycle if isinstance(last, TaskTransition) else None

    def _say(self, text: str, fields: dict[str, object]) -> None:
        fields = {"type": fields["type"], "at": moment(now()), **fields}
        write_either(fields, text, json=self._json)
        sys.stdout.flush()
