"""What `midwatch node` prints while it is leaving, and the results of the tasks that it holds."""

import asyncio
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import now
from midwatch_monitor.records import Attempt, Lifecycle, Task, TaskTransition
from midwatch_supervisor.cli.output import write_either, write_json, write_line
from midwatch_supervisor.fleet.nodes.turn import TurnOutcome
from midwatch_supervisor.fleet.nodes.turn_pool import TurnEnded
from midwatch_supervisor.present.json_lines import moment

_ASKED_SECONDS = 2.0
"""Seconds the journal may take to name the tasks held; without an answer only ids are printed."""
_LAST_SECONDS = 5.0
"""Seconds the process waits for the last of these lines."""
_ENDS = {
    TurnOutcome.WAITS: "is waiting for a person or for other tasks",
    TurnOutcome.TAKEN: "was taken over by another process",
    TurnOutcome.FAILED: "could not proceed, and is offered again",
    TurnOutcome.UNREACHABLE: "could not proceed, and is offered again",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTask:
    """A task that the node holds; what the journal did not supply in time is missing."""

    id: int
    task: Task | None = None
    attempt: Attempt | None = None
    lifecycle: Lifecycle | None = None
    """State of the task."""

    @property
    def name(self) -> str:
        if self.task is None:
            return f"task number {self.id}"
        return self.task.name + (f"#{self.attempt.number}" if self.attempt else "")

    @property
    def fields(self) -> dict[str, object]:
        """The fields of its JSON object."""
        return {
            "run": self.task.run if self.task else None,
            "task": self.task.name if self.task else None,
            "attempt": self.attempt.id if self.attempt else None,
        }


class NodeExitReport:
    """Reports on a node that is leaving, in a separate asyncio task that never delays the node."""

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
        """Print that a turn has ended, if the node is leaving."""
        if self._speaking is not None:
            self._ends.put_nowait(turn)

    def begin(self, in_hand: frozenset[int]) -> None:
        """Print that the node was told to leave; the second time, that it gives back everything at
        once.
        """
        if self._speaking is None:
            self._speaking = asyncio.create_task(self._print_ends(in_hand))
        elif in_hand:
            self._print_report(
                f"Node {self._name} gives back all its tasks at once",
                {"type": "node", "name": self._name, "state": "draining", "at_once": True},
            )

    async def end(self) -> None:
        """Print that the node has left."""
        self._ends.put_nowait(None)
        if self._speaking is not None:
            await asyncio.wait({self._speaking}, timeout=_LAST_SECONDS)
            self._speaking.cancel()
        came = ", ".join(f"{count} {what}" for what, count in sorted(self._came.items()))
        self._print_report(
            f"Node {self._name} has left" + (came and f": {came}"),
            {
                "type": "node",
                "name": self._name,
                "state": "down",
                "ended": self._came["ended"],
                "given_back": self._came["given back"],
            },
        )

    async def _print_ends(self, tasks: frozenset[int]) -> None:
        with suppress(OSError):  # the reader is gone; the node leaves anyway
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
                f"Node {self._name} takes no more turns. It waits up to {seconds:g} s for {count}: "
                f"{', '.join(each.name for each in held)}"
            )
            write_line(
                "A second SIGTERM or Ctrl-C gives them back at once: other nodes take them over"
            )
        else:
            write_line(f"Node {self._name} takes no more turns, and none is running")
        sys.stdout.flush()

    async def _say_end(self, ended: TurnEnded) -> None:
        held = await self._held_task(ended.task)
        if held.task is None:
            held = self._known.get(ended.task, held)
        lifecycle = held.lifecycle if ended.outcome is TurnOutcome.OVER else None
        if ended.outcome is None:
            self._came["given back"] += 1
            said = "is given back: other nodes take it over"
        else:
            self._came["ended"] += 1
            said = _ENDS.get(ended.outcome, f"is {lifecycle or 'over'}")
        outcome = ended.outcome.value if ended.outcome else "given back"
        self._print_report(
            f"{held.name} {said}",
            {"type": "turn", **held.fields, "outcome": outcome, "lifecycle": lifecycle},
        )

    async def _held_task(self, task: int) -> HeldTask:
        try:
            async with asyncio.timeout(_ASKED_SECONDS):
                found = await self._journal.tasks_with([task])
                attempts = await self._journal.attempts(task)
                states = await self._journal.entries(task=task, kinds=(TaskTransition,))
        except (TimeoutError, JournalError):
            return HeldTask(id=task)
        last = states[-1].record if states else None
        return HeldTask(
            id=task,
            task=found[0] if found else None,
            attempt=attempts[-1] if attempts else None,
            lifecycle=last.lifecycle if isinstance(last, TaskTransition) else None,
        )

    def _print_report(self, text: str, fields: dict[str, object]) -> None:
        fields = {"type": fields["type"], "at": moment(now()), **fields}
        write_either(fields, text, json=self._json)
        sys.stdout.flush()
