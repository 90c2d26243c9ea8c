"""Failures of a task on the nodes of a fleet, and when they end the task."""

import logging
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from importlib.metadata import version

from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import (
    AttemptTransition,
    Commit,
    Draft,
    Ending,
    Entry,
    Fault,
    Lease,
    Lifecycle,
    NodeState,
    NodeStatus,
    Record,
    Task,
    TaskTransition,
    name_of,
)
from midwatch_monitor.state.task import REFUSED
from midwatch_supervisor.present.text_line import one_line
from midwatch_supervisor.workspaces.snapshot import newest_snapshot

log = logging.getLogger(__name__)

PART = "turn"
MAX_BREAKDOWNS = 3
"""Number of broken turns after which a task fails."""
UNABLE = timedelta(minutes=10)
"""Time for which all nodes must be unable to run a task before the task fails."""
_UPDATE = "update Midwatch"
_CANNOT = re.compile(rf"(\S+){REFUSED}")


class TaskFailures:
    """Stores what went wrong with a task's turns, and ends a task that cannot succeed."""

    def __init__(self, journal: Journal, *, node: str, fleet: str, clock: Clock) -> None:
        self._journal = journal
        self._nodes = Nodes(journal, fleet=fleet)
        self._node = node
        self._clock = clock
        self._bundles = Bundles(journal)
        self._held: dict[int, Lease | None] = {}

    async def begin(self, live: int | None) -> None:
        """Remember the lease of the attempt that a turn continues; only that may be ended."""
        if live is None:
            return
        held = self._held[live] = await self._bundles.lease_of(live)
        if held is not None and name_of(held.holder) != self._node:
            await self._log_takeover(live, name_of(held.holder))

    async def _log_takeover(self, live: int, before: str) -> None:
        """Log that an attempt comes from another node, and how old its files are."""
        attempt = await self._journal.attempt(live)
        task = await self._journal.task(attempt.task)
        newest = await newest_snapshot(self._bundles, attempt)
        saved = newest.step if newest else 0
        log.info(
            "%s#%d of node %s continues on %s, with its files as %s; later changes are missing",
            *(task.name, attempt.number, before, self._node),
            f"saved after step {saved}" if saved else "they were at the beginning",
        )

    async def unable(
        self, task: Task, why: str, *, labels: Iterable[str], live: int | None
    ) -> bool:
        """Record and log, once, that this node cannot run a task; return whether that ends it.

        It does once every node that is up and has its labels has said so, the first of them
        `UNABLE` ago. A task with an attempt that has begun waits without limit.
        """
        entries = await self._read_entries(task, AttemptTransition)
        states = [each.record for each in entries if isinstance(each.record, TaskTransition)]
        since, now = unable_since(entries), self._clock()
        reason = f"{self._node}{REFUSED}{one_line(why)}"
        if self._node not in since:
            await self._note_reason(task, states, reason)
            log.warning("task %s cannot continue here: %s", task.name, reason)
        waited = now - min(since.values(), default=now)
        up = able_nodes(await self._nodes.all(), labels)
        if waited < UNABLE or up - {self._node, *since} or await self._has_begun(task, live):
            return False
        await self._fail_task(task, reason, live=live)
        return True

    async def unreadable(self, task: Task, why: str) -> None:
        """Record, once, that this node's version of Midwatch cannot read the task."""
        fault = Fault(part="node", error=f"{self._node} ({version('midwatch')}) {why}: {_UPDATE}")
        if all(each != fault for each in await self._read_faults(task)):
            await self._commit(task, fault)

    async def broke(self, task: Task, error: Exception, *, live: int | None) -> bool:
        """Record that a turn broke due to a fault in Midwatch; return if the task is over."""
        why = f"{type(error).__name__}: {error}"
        await self._commit(task, Fault(part=PART, error=f"{self._node}: {why}"), attempt=live)
        broken = [each for each in await self._read_faults(task) if each.part == PART]
        if len(broken) < MAX_BREAKDOWNS:
            return False
        await self._fail_task(task, why, live=live)
        return True

    async def _note_reason(self, task: Task, states: list[TaskTransition], reason: str) -> None:
        """Store why a task does not continue, without changing its lifecycle."""
        lifecycle = states[-1].lifecycle if states else Lifecycle.SUBMITTED
        await self._commit(task, TaskTransition(lifecycle=lifecycle, reason=reason))

    async def _has_begun(self, task: Task, live: int | None) -> bool:
        """Whether a running attempt has done work, or belongs to a part of the task."""
        if live is None:
            return False
        entries = await self._journal.entries(attempt=live, kinds=(AttemptTransition,))
        own = (await self._journal.attempt(live)).task == task.id
        return not own or any(_is_at_work(each.record) for each in entries)

    async def _fail_task(self, task: Task, why: str, *, live: int | None) -> None:
        if live is not None:
            ended = AttemptTransition(lifecycle=Lifecycle.FAILED, reason=why, ending=Ending.ERROR)
            await self._commit(
                task, ended, attempt=live, incarnation=await self._own_incarnation(live)
            )
        await self._commit(task, TaskTransition(lifecycle=Lifecycle.FAILED, reason=why))

    async def _own_incarnation(self, attempt: int) -> int | None:
        """Return the incarnation under which this turn may end an attempt.

        Raises StaleIncarnationError if another process has taken it over since the turn began.
        """
        held, now = self._held.get(attempt), await self._bundles.lease_of(attempt)
        if now is None or now == held or name_of(now.holder) == self._node:
            return None if now is None else now.incarnation
        raise StaleIncarnationError(f"attempt {attempt} was taken over by {now.holder}")

    async def _read_faults(self, task: Task) -> list[Fault]:
        said = await self._read_entries(task, Fault)
        return [each.record for each in said if isinstance(each.record, Fault)]

    async def _read_entries(self, task: Task, *kinds: type[Record]) -> list[Entry]:
        """Return a task's transitions and these records, since it was last begun or begun again."""
        wanted, found = (TaskTransition, *kinds), list[Entry]()
        async for each in self._journal.all_entries(task=task.id, kinds=wanted):
            if isinstance(each.record, TaskTransition) and each.record.lifecycle.over:
                found.clear()
            else:
                found.append(each)
        return found

    async def _commit(
        self,
        task: Task,
        record: Record,
        *,
        attempt: int | None = None,
        incarnation: int | None = None,
    ) -> None:
        of = task.id if attempt is None else (await self._journal.attempt(attempt)).task
        draft = Draft(record=record, at=self._clock(), task=of, attempt=attempt)
        voice = None if incarnation is None else attempt
        await self._journal.commit(Commit(drafts=(draft,), attempt=voice, incarnation=incarnation))


def unable_since(entries: Iterable[Entry]) -> dict[str, datetime]:
    """Return since when each node has been unable to run a task that nobody has worked on. Pure."""
    since: dict[str, datetime] = {}
    for each in entries:
        if _is_at_work(each.record):
            since.clear()
        elif isinstance(each.record, TaskTransition) and (
            found := _CANNOT.match(each.record.reason)
        ):
            since.setdefault(found[1], each.at)
    return since


def able_nodes(nodes: Iterable[NodeStatus], labels: Iterable[str]) -> set[str]:
    """Return the names of the nodes that are up and have these labels. Pure."""
    wanted = set(labels)
    return {
        node.name for node in nodes if node.state is NodeState.UP and wanted <= set(node.labels)
    }


def _is_at_work(record: Record) -> bool:
    return isinstance(record, AttemptTransition) and record.lifecycle is not Lifecycle.SUBMITTED
