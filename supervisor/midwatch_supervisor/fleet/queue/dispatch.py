"""Hands out tasks that can continue, and takes from lost nodes what they were running."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.util import find_spec

from midwatch_monitor.bus import Bus, Subscription
from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import JournalError, MissingExtraError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.journal.fleet.submission import Moves, moves, runs_of
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import (
    Change,
    Commit,
    Draft,
    Fault,
    NodeStatus,
    Record,
    Run,
    name_of,
)
from midwatch_monitor.state.run import OPEN_QUESTION_KINDS
from midwatch_supervisor.fleet.queue.queue import (
    Queue,
    QueuedTurn,
    TurnQueue,
    TurnUnderWay,
    run_key,
    system_url,
)
from midwatch_supervisor.fleet.queue.ready_tasks import ReadyTasks
from midwatch_supervisor.present.numbers import list_names
from midwatch_supervisor.present.waiting import fleet_of

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class _Kept:
    ready_tasks: ReadyTasks = field(default_factory=ReadyTasks)
    after: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class UnfinishedRuns:
    """Keeps the runs that are not over; reads every entry of the journal only once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept: dict[int, _Kept] = {}
        self._looking = asyncio.Lock()
        self._after = 0
        self._erasure = 0
        self._tasks: dict[int, int] = {}
        """The run of each task that is not over."""
        self._runs: dict[int, Run] = {}

    async def open(self) -> list[Run]:
        """Return the runs that have tasks to hand out and are not over, oldest first.

        Others are forgotten. The first call reads the state of every task, later ones only what is
        new.
        """
        async with self._looking:
            self._fold_moves(await self._journal.read(moves, self._after, self._erasure))
            wanted = set(self._tasks.values())
            self._kept = {id: kept for id, kept in self._kept.items() if id in wanted}
            known = {id: run for id, run in self._runs.items() if id in wanted}
            if new := sorted(wanted - known.keys()):
                known |= {run.id: run for run in await self._journal.read(runs_of, new)}
            self._runs = known
            return [known[id] for id in sorted(known)]

    def _fold_moves(self, new: Moves) -> None:
        if new.afresh:
            self._tasks, self._runs, self._kept = {}, {}, {}
        for task in new.over:
            self._tasks.pop(task, None)
        self._tasks |= new.open
        self._after, self._erasure = new.last, new.erasure

    async def of(self, run: int) -> ReadyTasks:
        """Return the current state of a run's tasks."""
        kept = self._kept.setdefault(run, _Kept())
        async with kept.lock:
            new = self._journal.all_entries(kept.after, run=run, kinds=OPEN_QUESTION_KINDS)
            async for entry in new:
                if kept.ready_tasks.lacks(entry):
                    kept.ready_tasks.meet(await self._journal.tasks(run))
                kept.ready_tasks.take(entry)
                kept.after = entry.id
        return kept.ready_tasks


_KEPT = timedelta(days=7)
"""Time for which ended turns are kept; the journal keeps their results."""
_TIDY_EVERY = timedelta(hours=1)
_MOST_NAMED = 10
"""Tasks named in one line of the log."""
_LOOK_SECONDS = 1.0
"""Seconds between two looks without a hint."""
_BREATH = 0.25
"""Seconds between two looks, however many hints there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTasks:
    """What must be done about the tasks of one run."""

    begin: tuple[int, ...] = ()
    """Tasks whose next turn must be handed out."""
    rescue: tuple[TurnUnderWay, ...] = ()
    """Turns held by a process that is gone."""
    drop: tuple[TurnUnderWay, ...] = ()
    """Unneeded turns without a process: a later one is under way, or the task is over."""


def due(
    ready: Sequence[int],
    handed: Sequence[TurnUnderWay],
    nodes: Sequence[NodeStatus],
    *,
    over: Collection[int] = (),
) -> DueTasks:
    """Return what to do, given the tasks that can continue and the turns under way. Pure.

    A turn whose process is not among the nodes is lost, like one of a lost node.
    """
    alive = {node.holder for node in nodes if not node.state.gone}
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
    return DueTasks(
        begin=tuple(task for task in ready if task not in last),
        rescue=tuple(each for each in stranded if each not in old),
        drop=(*old, *left),
    )


def find_unneeded(
    handed: Iterable[TurnUnderWay], runs: Iterable[Run], nodes: Iterable[NodeStatus]
) -> list[TurnUnderWay]:
    """Return turns of runs that are over, if no living process has them. Pure.

    Their process was killed or left just before the end of the turn could be recorded.
    """
    alive = {node.holder for node in nodes if not node.state.gone}
    known = {run_key(run) for run in runs}
    return [each for each in handed if each.ticket.run not in known and each.holder not in alive]


async def take_back(location: str, run: Run, tasks: Collection[int]) -> None:
    """Remove the turns of tasks that are over from their queues.

    If that fails, the node that takes such a turn ends it. Raises as `TurnQueue.open` does.
    """
    async with await TurnQueue.open(location, fleet=fleet_of(run)) as turn_queue:
        for each in await turn_queue.under_way():
            if not each.holder and _is_of_run(each, run) and each.ticket.task in tasks:
                await turn_queue.drop(each.ticket)


class Dispatcher:
    """Hands out turns of the tasks that `midwatch submit` stored.

    Several may run at the same time: handing out the same turn twice makes one turn.
    """

    def __init__(
        self,
        journal: Journal,
        turn_queue: Queue,
        nodes: Nodes,
        *,
        settings: FleetSettings,
        clock: Clock,
        unfinished_runs: UnfinishedRuns | None = None,
    ) -> None:
        """Hand out turns; `unfinished_runs` may be shared with others."""
        self._journal = journal
        self._turn_queue = turn_queue
        self._nodes = nodes
        self._settings = settings
        self._clock = clock
        self._unfinished_runs = unfinished_runs or UnfinishedRuns(journal)
        self._tidied_at: datetime | None = None
        self._handed = True
        """Whether turns may be under way."""
        self._rescued: dict[TurnUnderWay, datetime] = {}
        """When each turn was taken from its holder."""

    async def look(self) -> None:
        """Hand out what can continue now, and what lost nodes had. Raises JournalError."""
        lost = await self._nodes.lose(
            after_seconds=self._settings.lost_after_seconds,
            beat_seconds=self._settings.beat_seconds,
        )
        for each in lost:
            log.warning(loss_line(each))
        await self._delete_old_turns()
        if not (self._handed or await self._open_runs()):
            return
        # The queue is read before the journal, so the journal already has the run of every turn,
        # and the result of every turn that is no longer listed.
        handed = await self._turn_queue.under_way()
        nodes = await self._nodes.starts()
        runs = await self._open_runs()
        self._handed = bool(handed or runs)
        for each in find_unneeded(handed, runs, nodes):
            await self._turn_queue.drop(each.ticket)
        for run in runs:
            ready_tasks = await self._unfinished_runs.of(run.id)
            mine = [
                each
                for each in handed
                if _is_of_run(each, run) and ready_tasks.knows(each.ticket.task)
            ]
            over = {each.ticket.task for each in mine if ready_tasks.over(each.ticket.task)}
            await self._hand_out_due(
                run, ready_tasks, due(ready_tasks.ready(), mine, nodes, over=over)
            )

    async def _open_runs(self) -> list[Run]:
        fleet = self._turn_queue.fleet
        return [run for run in await self._unfinished_runs.open() if fleet_of(run) == fleet]

    async def _delete_old_turns(self) -> None:
        """Delete old turns, once an hour."""
        now = self._clock()
        if self._tidied_at is None or now - self._tidied_at > _TIDY_EVERY:
            self._tidied_at = now
            await self._turn_queue.forget(now - _KEPT)

    async def _hand_out_due(self, run: Run, ready_tasks: ReadyTasks, what: DueTasks) -> None:
        for each in what.drop:
            await self._turn_queue.drop(each.ticket)
        await self._rescue_turns(
            ready_tasks, [each for each in what.rescue if not self._just_rescued(each)]
        )
        await self._hand_out_turns(run, ready_tasks, what.begin)

    async def _hand_out_turns(
        self, run: Run, ready_tasks: ReadyTasks, tasks: Collection[int]
    ) -> None:
        if not tasks:
            return
        last = await self._turn_queue.last_numbers(run)
        # Other dispatchers may have handed out some of these. Read after the numbers: a turn that
        # is not listed yet gets the same number from them, and is the same turn.
        there = await self._turn_queue.under_way()
        taken = {each.ticket.task for each in there if _is_of_run(each, run)}
        for task in tasks:
            if task not in taken:
                ticket = QueuedTurn.of(self._turn_queue.fleet, run, task, last.get(task, 0) + 1)
                await self._turn_queue.hand_out(ticket, labels=ready_tasks.labels(task))

    async def _rescue_turns(
        self, ready_tasks: ReadyTasks, stranded: Sequence[TurnUnderWay]
    ) -> None:
        left: dict[str, list[int]] = defaultdict(list)
        try:
            for each in stranded:
                await self._record_takeover(ready_tasks, each)
                labels = ready_tasks.labels(each.ticket.task)
                # Another dispatcher may have rescued it meanwhile, and another node may have it.
                ours = await self._turn_queue.rescue(each.ticket, labels=labels, holder=each.holder)
                self._rescued[each] = self._clock()
                if ours:
                    left[name_of(each.holder)].append(each.ticket.task)
        finally:
            for node, tasks in left.items():
                log.warning(rescue_line(node, [ready_tasks.name(task) for task in tasks]))

    def _just_rescued(self, handed: TurnUnderWay) -> bool:
        """Whether a turn was just taken from this process, which has taken it again.

        Such a process does not run turns, but may keep taking them from others.
        """
        pause = timedelta(seconds=self._settings.lost_after_seconds)
        now = self._clock()
        self._rescued = {each: at for each, at in self._rescued.items() if now - at < pause}
        return handed in self._rescued

    async def _record_takeover(self, ready_tasks: ReadyTasks, handed: TurnUnderWay) -> None:
        """Record why another node continues an attempt, once per node."""
        attempt = ready_tasks.live(handed.ticket.task)
        if attempt is None:
            return
        name = name_of(handed.holder)
        fault = Fault(part="node", error=f"{name} is gone: another node continues it")
        if await self._is_last_fault(attempt, fault):
            return
        task = (await self._journal.attempt(attempt)).task
        draft = Draft(record=fault, at=self._clock(), task=task, attempt=attempt)
        await self._journal.commit(Commit(drafts=(draft,)))

    async def _is_last_fault(self, attempt: int, fault: Fault) -> bool:
        """Whether this fault is the last thing that happened to an attempt."""
        last: Record | None = None
        async for each in self._journal.all_entries(attempt=attempt, kinds=(Fault, Change)):
            if not isinstance(each.record, Change) or each.record.node is not None:
                last = each.record
        return last == fault


def loss_line(status: NodeStatus) -> str:
    """Return the log line about a lost node. Pure."""
    why = "its broker says that it is gone" if status.doubted_at else "no heartbeat came in time"
    return f"node {status.name} is lost: {why}, last at {status.beat_at:%H:%M:%S} (UTC)"


def rescue_line(node: str, tasks: Sequence[str]) -> str:
    """Return the log line about the tasks of a lost node. Pure."""
    return f"other nodes take over the tasks of node {node}: {list_names(tasks, _MOST_NAMED)}"


def _is_of_run(handed: TurnUnderWay, run: Run) -> bool:
    return handed.ticket.run == run_key(run)


def no_dispatch(location: str) -> str:
    """Return why nothing can be handed out from a journal; empty if it can."""
    try:
        system_url(location)
        if find_spec("dbos") is None:
            raise MissingExtraError("to hand out tasks", "fleet")
    except UsageError as error:
        return str(error)
    return ""


@asynccontextmanager
async def _open_dispatcher(
    journal: Journal, location: str, settings: FleetSettings, clock: Clock
) -> AsyncGenerator[Dispatcher]:
    """Yield a dispatcher of a fleet, with its queue open. Raises as `TurnQueue.open` does."""
    async with await TurnQueue.open(location, fleet=settings.name) as turn_queue:
        nodes = Nodes(journal, fleet=settings.name)
        yield Dispatcher(journal, turn_queue, nodes, settings=settings, clock=clock)


async def dispatch(
    journal: Journal, location: str, *, bus: Bus, settings: FleetSettings, clock: Clock
) -> None:
    """Hand out tasks every second and on hints, until canceled. Raises like `TurnQueue.open`."""
    async with (
        _open_dispatcher(journal, location, settings, clock) as dispatcher,
        bus.subscribe() as hints,
    ):
        failing = False
        while True:
            try:
                await dispatcher.look()
                failing = False
            except JournalError as error:  # the next look tries again
                if not failing:
                    log.warning("cannot hand out tasks at present: %s", error)
                failing = True
            await asyncio.sleep(_BREATH)
            await wait_for_hint(hints, _LOOK_SECONDS - _BREATH)


async def wait_for_hint(hints: Subscription, seconds: float) -> None:
    """Wait for a hint that may let a task continue, for at most `seconds`."""
    kinds = {kind_of(kind) for kind in OPEN_QUESTION_KINDS}
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not hints.closed:
                if any(hint.kind in kinds for hint in await hints.wait()):
                    return


async def dispatch_once(
    journal: Journal, location: str, *, settings: FleetSettings, clock: Clock
) -> None:
    """Hand out what can continue now. Raises as `TurnQueue.open` and `Dispatcher.look` do."""
    async with _open_dispatcher(journal, location, settings, clock) as dispatcher:
        await dispatcher.look()
