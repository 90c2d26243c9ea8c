"""Hands out what can go on, and takes from lost nodes what they had in hand."""

import json
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import (
    Change,
    Commit,
    Draft,
    Fault,
    NodeState,
    NodeStatus,
    Record,
    Run,
)
from midwatch_supervisor.fleet.nodes.identity import name_of
from midwatch_supervisor.fleet.queue.queue import Handed, Handout, QueuedTurn, run_key
from midwatch_supervisor.fleet.queue.ready_tasks import ReadyTasks
from midwatch_supervisor.fleet.queue.unfinished_runs import UnfinishedRuns

log = logging.getLogger(__name__)

_KEPT = timedelta(days=7)
"""How long it is remembered who had which turn; the journal keeps what came of it."""
_TIDY_EVERY = timedelta(hours=1)
_GONE = frozenset({NodeState.DOWN, NodeState.LOST})
_MOST_NAMED = 10
"""Tasks that one line of the log names."""


class Hands(Protocol):
    """What a dispatcher needs of the hand-out; see `Handout`."""

    @property
    def fleet(self) -> str: ...
    async def under_way(self) -> list[Handed]: ...
    async def last_numbers(self, run: Run) -> dict[int, int]: ...
    async def hand_out(
        self, ticket: QueuedTurn, *, labels: Iterable[str] = (), delay_seconds: float = 0.0
    ) -> None: ...
    async def rescue(
        self, ticket: QueuedTurn, *, labels: Iterable[str] = (), holder: str = ""
    ) -> bool: ...
    async def drop(self, ticket: QueuedTurn) -> None: ...
    async def forget(self, before: datetime) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What is to be done about the tasks of one run."""

    begin: tuple[int, ...] = ()
    """Tasks whose next turn is to be handed out."""
    rescue: tuple[Handed, ...] = ()
    """Turns that are with a process which is gone."""
    drop: tuple[Handed, ...] = ()
    """Turns that nobody needs and no process has: a later one is under way, or the task is over."""


def due(
    ready: Sequence[int],
    handed: Sequence[Handed],
    nodes: Sequence[NodeStatus],
    *,
    over: Collection[int] = (),
) -> Due:
    """What is to be done, by the tasks that can go on and the turns that are under way. Pure.

    A turn whose process is not among the nodes is as lost as one of a lost node.
    """
    alive = {node.holder for node in nodes if node.state not in _GONE}
    last: dict[int, int] = {}
    for each in handed:
        last[each.ticket.task] = max(each.ticket.number, last.get(each.ticket.task, 0))
    stranded = [each for each in handed if each.holder and each.holder not in alive]
    left = [each for each in handed if each.ticket.task in over and not each.holder]
    old = [
        each
        for each in stranded
        if each.ticket.number < last[each.ticket.task] or each.ticket.task in over
    ]
    return Due(
        begin=tuple(task for task in ready if task not in last),
        rescue=tuple(each for each in stranded if each not in old),
        drop=(*old, *left),
    )


def outlived(
    handed: Iterable[Handed], runs: Iterable[Run], nodes: Iterable[NodeStatus]
) -> list[Handed]:
    """The turns of runs that are over, which no process has that lives. Pure.

    Whoever had one was killed, or left, just before it could be noted that the turn has ended.
    """
    alive = {node.holder for node in nodes if node.state not in _GONE}
    known = {run_key(run) for run in runs}
    return [each for each in handed if each.ticket.run not in known and each.holder not in alive]


async def take_back(location: str, run: Run, tasks: Collection[int]) -> None:
    """Take the turns of tasks that are over out of their queues.

    Where that fails, whoever takes one of them puts it away. Raises as `Handout.open` does.
    """
    handout = await Handout.open(location, fleet=fleet_of(run))
    try:
        for each in await handout.under_way():
            if not each.holder and _of(each, run) and each.ticket.task in tasks:
                await handout.drop(each.ticket)
    finally:
        await handout.close()


class Dispatcher:
    """Hands out turns of the tasks that `midwatch submit` stored.

    Several may look at the same time: two who hand out the same turn make one.
    """

    def __init__(
        self,
        journal: Journal,
        handout: Hands,
        nodes: Nodes,
        *,
        settings: FleetSettings,
        clock: Clock,
        dockets: UnfinishedRuns | None = None,
    ) -> None:
        """`dockets` may be shared with others who ask for them."""
        self._journal = journal
        self._handout = handout
        self._nodes = nodes
        self._settings = settings
        self._clock = clock
        self._dockets = dockets or UnfinishedRuns(journal)
        self._tidied_at: datetime | None = None
        self._handed = True
        """Whether turns may be under way."""
        self._rescued: dict[Handed, datetime] = {}
        """When which turn was taken from whom."""

    async def look(self) -> None:
        """Hand out what can go on now, and what lost nodes had. Raises JournalError."""
        lost = await self._nodes.lose(
            after_seconds=self._settings.lost_after_seconds,
            beat_seconds=self._settings.beat_seconds,
        )
        for each in lost:
            log.warning(loss(each))
        await self._tidy()
        if not (self._handed or await self._runs()):
            return
        # Asked before the journal is read: a turn that ends meanwhile has said so there by then,
        # and a run of which one is handed out is there.
        handed = await self._handout.under_way()
        nodes = await self._nodes.starts()
        runs = await self._runs()
        self._handed = bool(handed or runs)
        for each in outlived(handed, runs, nodes):
            await self._handout.drop(each.ticket)
        for run in runs:
            docket = await self._dockets.of(run.id)
            mine = [each for each in handed if _of(each, run) and docket.knows(each.ticket.task)]
            over = {each.ticket.task for each in mine if docket.over(each.ticket.task)}
            await self._do(run, docket, due(docket.ready(), mine, nodes, over=over))

    async def _runs(self) -> list[Run]:
        """The runs of this fleet that are not over."""
        fleet = self._handout.fleet
        return [run for run in await self._dockets.open() if fleet_of(run) == fleet]

    async def _tidy(self) -> None:
        """Forget turns of long ago, now and then."""
        now = self._clock()
        if self._tidied_at is None or now - self._tidied_at > _TIDY_EVERY:
            self._tidied_at = now
            await self._handout.forget(now - _KEPT)

    async def _do(self, run: Run, docket: ReadyTasks, what: Due) -> None:
        for each in what.drop:
            await self._handout.drop(each.ticket)
        await self._rescue(docket, [each for each in what.rescue if not self._just_rescued(each)])
        await self._begin(run, docket, what.begin)

    async def _begin(self, run: Run, docket: ReadyTasks, tasks: Collection[int]) -> None:
        """Hand out the next turns of tasks."""
        if not tasks:
            return
        last = await self._handout.last_numbers(run)
        # Others may have handed out some of these by now. Asked after the numbers: whose turn is
        # not there yet gets the number that the others give it, too.
        there = await self._handout.under_way()
        taken = {each.ticket.task for each in there if _of(each, run)}
        for task in tasks:
            if task not in taken:
                ticket = QueuedTurn.of(self._handout.fleet, run, task, last.get(task, 0) + 1)
                await self._handout.hand_out(ticket, labels=docket.labels(task))

    async def _rescue(self, docket: ReadyTasks, stranded: Sequence[Handed]) -> None:
        left: dict[str, list[int]] = defaultdict(list)
        try:
            for each in stranded:
                await self._tell(docket, each)
                labels = docket.labels(each.ticket.task)
                # Another look may have rescued it since this one read, and another node have it.
                ours = await self._handout.rescue(each.ticket, labels=labels, holder=each.holder)
                self._rescued[each] = self._clock()
                if ours:
                    left[name_of(each.holder)].append(each.ticket.task)
        finally:
            for node, tasks in left.items():
                log.warning(rescue(node, [docket.name(task) for task in tasks]))

    def _just_rescued(self, handed: Handed) -> bool:
        """Whether a turn was taken from this process a moment ago, which has it again.

        It does not work on it, but it may go on taking what it should leave to others.
        """
        pause = timedelta(seconds=self._settings.lost_after_seconds)
        now = self._clock()
        self._rescued = {each: at for each, at in self._rescued.items() if now - at < pause}
        return handed in self._rescued

    async def _tell(self, docket: ReadyTasks, handed: Handed) -> None:
        """Let people see why another node goes on, once for each that begins with it."""
        attempt = docket.live(handed.ticket.task)
        if attempt is None:
            return
        name = name_of(handed.holder)
        fault = Fault(part="node", error=f"{name} is gone: another node goes on with it")
        if await self._told(attempt, fault):
            return
        task = (await self._journal.attempt(attempt)).task
        draft = Draft(record=fault, at=self._clock(), task=task, attempt=attempt)
        await self._journal.commit(Commit(drafts=(draft,)))

    async def _told(self, attempt: int, fault: Fault) -> bool:
        """Whether that was the last that happened to an attempt."""
        last: Record | None = None
        async for each in self._journal.all_entries(attempt=attempt, kinds=(Fault, Change)):
            if not isinstance(each.record, Change) or each.record.node is not None:
                last = each.record
        return last == fault


def loss(status: NodeStatus) -> str:
    """What people hear of a node that is given up. Pure."""
    why = "its broker says that it is gone" if status.doubted_at else "it was not heard in time"
    return f"node {status.name} is lost: {why}, last at {status.beat_at:%H:%M:%S} (UTC)"


def rescue(node: str, tasks: Sequence[str]) -> str:
    """What people hear of the tasks that a node has left behind. Pure."""
    more = f" and {len(tasks) - _MOST_NAMED} more" if len(tasks) > _MOST_NAMED else ""
    listed = ", ".join(tasks[:_MOST_NAMED])
    return f"others go on with what node {node} had in hand: {listed}{more}"


def fleet_of(run: Run) -> str:
    """The fleet that a run was handed over to. Pure.

    Only that is read: a newer Midwatch may have written settings that this one does not know.
    """
    try:
        said: dict[str, dict[str, str]] = json.loads(run.settings)
        return said.get("fleet", {}).get("name", FleetSettings().name)
    except (ValueError, AttributeError, RecursionError):
        return ""  # of none: whoever looks at all runs goes on with the others


def _of(handed: Handed, run: Run) -> bool:
    return handed.ticket.run == run_key(run)
