"""What `midwatch node` prints while it is leaving, and the results of the tasks that it holds."""

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import now
from midwatch_monitor.records import TaskTransition
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.output import write_either
from midwatch_supervisor.fleet.nodes.turn import TurnEnded, TurnOutcome
from midwatch_supervisor.present.json_lines import JsonLine, moment
from midwatch_supervisor.present.lookup import task_state
from midwatch_supervisor.present.numbers import count_noun

_ASKED_SECONDS = 2.0
"""Seconds the journal may take to name a task held; without an answer only its id is printed."""
_LAST_SECONDS = 5.0
"""Seconds the process waits for the last of these lines."""
_ENDS = {
    None: "is given back: other nodes take it over",
    TurnOutcome.WAITS: "is waiting for a person or for other tasks",
    TurnOutcome.TAKEN: "was taken over by another process",
    TurnOutcome.FAILED: "could not proceed, and is offered again",
    TurnOutcome.UNREACHABLE: "could not proceed, and is offered again",
}

HeldTasks = Mapping[int, TaskState | None]
"""Tasks that the node holds, by id; `None` if the journal did not answer in time."""


class NodeExitReport:
    """Reports on a node that is leaving, in a separate asyncio task that never delays the node."""

    def __init__(self, journal: Journal, *, name: str, settings: FleetSettings, json: bool) -> None:
        self._journal = journal
        self._ends: asyncio.Queue[TurnEnded | None] = asyncio.Queue()
        self._name = name
        self._settings = settings
        self._json = json
        self._speaking: asyncio.Task[None] | None = None
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
            text = f"Node {self._name} gives back all its tasks at once"
            self._print_node("draining", {"at_once": True}, text)

    async def end(self) -> None:
        """Print that the node has left."""
        self._ends.put_nowait(None)
        if self._speaking is not None:
            await asyncio.wait({self._speaking}, timeout=_LAST_SECONDS)
            self._speaking.cancel()
        came = ", ".join(f"{count} {what}" for what, count in sorted(self._came.items()))
        counts = {"ended": self._came["ended"], "given_back": self._came["given back"]}
        self._print_node("down", counts, f"Node {self._name} has left" + (came and f": {came}"))

    async def _print_ends(self, tasks: frozenset[int]) -> None:
        with suppress(OSError):  # the reader is gone; the node leaves anyway
            held = {task: await self._read_task(task) for task in sorted(tasks)}
            self._say_what_is_waited_for(held)
            while (ended := await self._ends.get()) is not None:
                state = await self._read_task(ended.task) or held.get(ended.task)
                self._say_end(ended, state)

    def _say_what_is_waited_for(self, held: HeldTasks) -> None:
        texts = [f"Node {self._name} takes no more turns, and none is running"]
        seconds = self._settings.drain_seconds
        if held:
            texts = [
                f"Node {self._name} takes no more turns. It waits up to {seconds:g} s for "
                f"{count_noun(len(held), 'task')}: "
                f"{', '.join(_name_of(id, state) for id, state in held.items())}",
                "A second SIGTERM or Ctrl-C gives them back at once: other nodes take them over",
            ]
        tasks = [_task_fields(state) for state in held.values()]
        self._print_node("draining", {"at_once": False, "seconds": seconds, "tasks": tasks}, *texts)

    def _say_end(self, ended: TurnEnded, state: TaskState | None) -> None:
        over = state is not None and ended.outcome is TurnOutcome.OVER
        lifecycle = state.transition.lifecycle if state is not None and over else None
        self._came["given back" if ended.outcome is None else "ended"] += 1
        said = _ENDS.get(ended.outcome, f"is {lifecycle or 'over'}")
        outcome = ended.outcome.value if ended.outcome else "given back"
        fields = {**_task_fields(state), "outcome": outcome, "lifecycle": lifecycle}
        self._print("turn", fields, f"{_name_of(ended.task, state)} {said}")

    async def _read_task(self, id: int) -> TaskState | None:
        try:
            async with asyncio.timeout(_ASKED_SECONDS):
                task = await self._journal.task(id)
                return await task_state(self._journal, task, kinds=(TaskTransition,))
        except (TimeoutError, JournalError):
            return None

    def _print_node(self, state: str, fields: Mapping[str, object], *texts: str) -> None:
        self._print("node", {"name": self._name, "state": state, **fields}, *texts)

    def _print(self, kind: str, fields: Mapping[str, object], *texts: str) -> None:
        write_either({"type": kind, "at": moment(now()), **fields}, *texts, json=self._json)
        sys.stdout.flush()


def _name_of(id: int, state: TaskState | None) -> str:
    if state is None:
        return f"task number {id}"
    return state.task.name + (f"#{state.latest.attempt.number}" if state.latest else "")


def _task_fields(state: TaskState | None) -> JsonLine:
    return {
        "run": state.task.run if state else None,
        "task": state.task.name if state else None,
        "attempt": state.latest.id if state and state.latest else None,
    }
