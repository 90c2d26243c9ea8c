"""What becomes of a task that a node cannot do, or whose turns break: others try, not for ever."""

import re
from collections.abc import Iterable

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.nodes import Nodes
from midwatch_monitor.recorder import Clock
from midwatch_monitor.words import (
    AttemptState,
    Commit,
    Draft,
    Ending,
    Fault,
    Lifecycle,
    NodeState,
    NodeStatus,
    Record,
    Task,
    TaskState,
)

PART = "turn"
MAX_BREAKDOWNS = 3
"""Turns of one task that may break before it has failed."""
_CANNOT = re.compile(r"(\S+) cannot do it: ")


class Mishaps:
    """Stores what went wrong with a task's turns, and ends the task where there is no hope."""

    def __init__(self, journal: Journal, *, node: str, clock: Clock) -> None:
        self._journal = journal
        self._node = node
        self._clock = clock

    async def unable(
        self, task: Task, why: str, *, labels: Iterable[str], live: int | None
    ) -> bool:
        """Note that this node cannot do a task; whether the task is over by that.

        It is once every node that is up and has its labels has said so, unless an attempt is
        `live`: that one waits for a node that can.
        """
        states = await self._states(task)
        reason = f"{self._node} cannot do it: {why}"
        if all(state.reason != reason for state in states):
            lifecycle = states[-1].lifecycle if states else Lifecycle.SUBMITTED
            await self._commit(task, TaskState(lifecycle=lifecycle, reason=reason))
        tried = {self._node, *names(state.reason for state in states)}
        if live is not None or able(await Nodes(self._journal).all(), labels) - tried:
            return False
        await self._commit(task, TaskState(lifecycle=Lifecycle.FAILED, reason=reason))
        return True

    async def broke(self, task: Task, error: Exception, *, live: int | None) -> bool:
        """Note that a turn broke for a reason that is Midwatch's own; whether the task is over."""
        why = f"{type(error).__name__}: {error}"
        await self._commit(task, Fault(part=PART, error=f"{self._node}: {why}"), attempt=live)
        faults = await self._journal.entries(task=task.id, kinds=(Fault,))
        broken = [each for each in faults if _is_ours(each.record)]
        if len(broken) < MAX_BREAKDOWNS:
            return False
        if live is not None:
            ended = AttemptState(lifecycle=Lifecycle.FAILED, reason=why, ending=Ending.ERROR)
            await self._commit(task, ended, attempt=live)
        await self._commit(task, TaskState(lifecycle=Lifecycle.FAILED, reason=why))
        return True

    async def _states(self, task: Task) -> list[TaskState]:
        entries = await self._journal.entries(task=task.id, kinds=(TaskState,))
        return [entry.record for entry in entries if isinstance(entry.record, TaskState)]

    async def _commit(self, task: Task, record: Record, *, attempt: int | None = None) -> None:
        of = task.id if attempt is None else (await self._journal.attempt(attempt)).task
        draft = Draft(record=record, at=self._clock(), task=of, attempt=attempt)
        await self._journal.commit(Commit(drafts=(draft,)))


def names(reasons: Iterable[str]) -> set[str]:
    """The nodes that said that they cannot do a task. Pure."""
    return {found[1] for reason in reasons if (found := _CANNOT.match(reason))}


def able(nodes: Iterable[NodeStatus], labels: Iterable[str]) -> set[str]:
    """The names of the nodes that take turns and offer these labels. Pure."""
    wanted = set(labels)
    return {
        node.name for node in nodes if node.state is NodeState.UP and wanted <= set(node.labels)
    }


def _is_ours(record: Record) -> bool:
    return isinstance(record, Fault) and record.part == PART
