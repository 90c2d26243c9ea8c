"""Turns of tasks: one runs attempts until the task is over or waits; a pool runs one per slot."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from midwatch_agents.model_retries import Breakers
from midwatch_agents.sandbox import SandboxKind
from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings, settings_of
from midwatch_monitor.errors import (
    ElsewhereError,
    JournalError,
    JournalTooNewError,
    MachineError,
    MidwatchError,
    StaleIncarnationError,
    UsageError,
)
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Run, Task
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.fleet.nodes.task_failures import TaskFailures
from midwatch_supervisor.fleet.process import Identity
from midwatch_supervisor.fleet.queue.dispatch import UnfinishedRuns
from midwatch_supervisor.fleet.queue.queue import PUT_BACK, Queue, QueuedTurn
from midwatch_supervisor.fleet.queue.ready_tasks import ReadyTasks
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import JobStage
from midwatch_supervisor.run.launch import load_job, new_job
from midwatch_supervisor.run.runner import Runner

if TYPE_CHECKING:
    from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore

log = logging.getLogger(__name__)


class TurnOutcome(StrEnum):
    """The result of a turn. Only the journal says what became of the task."""

    OVER = "over"
    WAITS = "waits"
    """For a person, or for tasks that run elsewhere."""
    TAKEN = "taken"
    """Another process has taken over the task."""
    FAILED = "failed"
    """Something failed that is not the task's fault; another turn may succeed."""
    UNREACHABLE = "unreachable"
    """This node cannot fetch what the task needs, or make its workspace; another may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResources:
    """The resources that all turns of one node share."""

    journal: Journal
    bus: Bus
    settings: Settings
    """The node's own settings; a turn uses only those that concern the machine."""
    identity: Identity
    home: Path
    sandbox_kind: SandboxKind
    breakers: Breakers
    unfinished_runs: UnfinishedRuns
    snapshot_store: "SnapshotStore | None"
    clock: Clock


async def take_turn(machine: NodeResources, task: int) -> TurnOutcome:
    """Run a task's attempts until it is over, or waits. Cancelling this leaves it resumable."""
    try:
        found = await machine.journal.tasks_with([task])
        return (
            await _take_turn(machine, found[0]) if found else TurnOutcome.OVER
        )  # the task was erased
    except StaleIncarnationError:
        return TurnOutcome.TAKEN
    except MidwatchError as error:
        log.warning("a turn of task %s failed: %s", task, error)
        return TurnOutcome.FAILED
    except Exception:  # must not stop the node's other turns
        log.exception("a turn of task %s failed unexpectedly", task)
        return TurnOutcome.FAILED


async def _take_turn(machine: NodeResources, task: Task) -> TurnOutcome:
    run = await machine.journal.run(task.run)
    ready_tasks = await machine.unfinished_runs.of(run.id)
    failures = TaskFailures(
        machine.journal,
        node=machine.identity.name,
        fleet=machine.settings.fleet.name,
        clock=machine.clock,
    )
    if why := _why_unreadable(run, ready_tasks, task.id):
        await failures.unreadable(task, why)
        return TurnOutcome.FAILED  # a newer Midwatch wrote it, so newer nodes can run it
    if ready_tasks.over(task.id):
        return TurnOutcome.OVER
    if task.id not in ready_tasks.ready():
        return TurnOutcome.WAITS
    await failures.begin(ready_tasks.live(task.id))
    try:
        return await _run_task(machine, run, task, ready_tasks.concerns(task.id))
    except ElsewhereError:
        return TurnOutcome.WAITS
    except (UsageError, MachineError) as error:
        return await _note_failure(machine, failures, task, error)
    except MidwatchError:
        raise
    except Exception as error:  # must not stop the node's other turns
        log.exception("a turn of task %s failed unexpectedly", task.id)
        return await _note_failure(machine, failures, task, error)


async def _note_failure(
    machine: NodeResources, failures: TaskFailures, task: Task, error: Exception
) -> TurnOutcome:
    """Record why a turn failed, and return its outcome; this may end the task."""
    ready_tasks = await machine.unfinished_runs.of(task.run)
    live, labels = ready_tasks.live(task.id), ready_tasks.labels(task.id)
    if isinstance(error, UsageError | MachineError):
        over = await failures.unable(task, str(error), labels=labels, live=live)
    else:
        over = await failures.broke(task, error, live=live)
    if over:
        return TurnOutcome.OVER
    unplaced = isinstance(error, MachineError)
    return TurnOutcome.UNREACHABLE if unplaced else TurnOutcome.FAILED


def _why_unreadable(run: Run, ready_tasks: ReadyTasks, task: int) -> str:
    """Return why this version of Midwatch cannot run a task; empty if it can."""
    if not ready_tasks.knows(task):
        return "cannot read this task"
    try:
        settings_of(run)
    except JournalTooNewError as error:
        return str(error)
    return ""


async def _run_task(
    machine: NodeResources, run: Run, task: Task, concerns: Collection[int]
) -> TurnOutcome:
    runner = await _build_runner(machine, run, concerns)
    mine = next(job for job in runner.jobs.values() if job.task.id == task.id)
    mine.agents.build_workers()
    await runner.run()
    return TurnOutcome.OVER if mine.place is JobStage.OVER else TurnOutcome.WAITS


async def _build_runner(machine: NodeResources, run: Run, concerns: Collection[int]) -> Runner:
    """Return a runner of some tasks of a run. Those that are over are only built upon."""
    resources = resources_for(machine, run)
    jobs = [
        await load_job(resources, each, built=False)
        for each in await resources.journal.tasks(run.id)
        if each.id in concerns
    ]

    async def abroad() -> Mapping[str, Iterable[str]]:
        waiting = (await machine.unfinished_runs.of(run.id)).waiting
        return {name: awaits for name, awaits in waiting.items() if name not in runner.jobs}

    hire = partial(new_job, resources, built=False)
    runner = Runner(resources, tuple(jobs), hire=hire, abroad=abroad)
    return runner


def resources_for(machine: NodeResources, run: Run) -> RunResources:
    """Return the resources that the attempts of a run share on this node.

    The run's own settings apply, except those of the machine: sandbox and fleet. Raises
    JournalTooNewError if they cannot be read.
    """
    settings, own = settings_of(run), machine.settings
    machines = {"sandbox": own.run.sandbox, "sandbox_read": own.run.sandbox_read}
    walled = settings.run.model_copy(update=machines)
    settings = settings.model_copy(update={"run": walled, "fleet": own.fleet})
    return RunResources(
        journal=machine.journal,
        bus=machine.bus,
        settings=settings,
        run=run,
        home=machine.home,
        label=label_of(run),
        sandbox_kind=machine.sandbox_kind,
        breakers=machine.breakers,
        node=machine.identity.name,
        holder=machine.identity.holder,
        clock=machine.clock,
        learning=RunLearning(
            machine.journal, settings=settings, clock=machine.clock, bus=machine.bus
        ),
        calibrator=Calibrator(machine.journal),
        snapshot_store=machine.snapshot_store,
    )


def label_of(run: Run) -> str:
    """Return the name of a run's folders and branches, the same on every node.

    It contains the start time, because a new journal begins with run number 1 again while branches
    of an old one remain.
    """
    return f"r{run.id}-{run.started_at:%m%d%H%M%S}"


FULL_SECONDS = 1.5
"""Seconds that a turn waits for a slot of this node before it is put back into its queue."""
FAILED_SECONDS = 5.0
"""Seconds until a failed turn is offered again; doubled with each further failure."""
MAX_FAILED_SECONDS = 60.0
REST_SECONDS = 1.0
"""Seconds that a slot stays closed after something was unreachable; doubled each time.

Otherwise a node without a network would take turn after turn ahead of nodes that can run them.
"""
MAX_REST_SECONDS = 30.0
_AGAIN = frozenset({TurnOutcome.FAILED, TurnOutcome.UNREACHABLE})

Take = Callable[[int], Awaitable[TurnOutcome]]
"""Runs the attempts of a task, by its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """A turn that a node no longer runs."""

    task: int
    outcome: TurnOutcome | None
    """`None` if it was given back before its end."""


def delay(first: float, times: int, *, most: float) -> float:
    """Return how long to wait after this many failures in a row. Pure."""
    return min(most, first * 2 ** min(times - 1, 30))


class TurnPool:
    """Runs turns concurrently, one for each task, and gives back those without a slot."""

    def __init__(
        self,
        take: Take,
        turn_queue: Queue,
        *,
        slots: int,
        changed: Callable[[], None],
        heard: Callable[[], bool],
        stands: Callable[[], Awaitable[bool]],
        ended: Callable[[TurnEnded], None],
    ) -> None:
        """Call `changed` when a turn begins or ends, and `ended` with its outcome.

        No turn begins unless the node was `heard` from in time: others would run it, too. No turn
        is given back unless the journal says that the node still `stands`: others may already have
        it.
        """
        self._stands = stands
        self._dropped = 0
        """How often all turns were dropped."""
        self._take = take
        self._turn_queue = turn_queue
        self._slots = slots
        self._changed = changed
        self._ended = ended
        self._turns: dict[int, asyncio.Future[TurnOutcome]] = {}
        self._heard = heard
        self._resting = 0
        """Slots that stay closed for a while."""
        self._waiting: dict[int, object] = {}
        """The turn of each task that waits for a slot."""
        self._freed = asyncio.Event()
        self._failed: Counter[int] = Counter()
        """How often a task's turns have failed here in a row."""
        self._unreachable = 0
        self._closed = False

    @property
    def tasks(self) -> frozenset[int]:
        """Ids of the tasks whose turns are running."""
        return frozenset(self._turns)

    @property
    def busy(self) -> int:
        """Number of running turns."""
        return len(self._turns)

    def close(self) -> None:
        """Take no more turns; running ones continue."""
        self._closed = True
        self._freed.set()

    async def do(self, ticket: QueuedTurn, labels: Sequence[str]) -> str:
        """Run a turn; return its outcome, for readers of DBOS's own list.

        `PUT_BACK` if it is in its queue again.
        """
        era = self._dropped
        await self._end_older(ticket.task)
        if not await self._has_slot(ticket.task) or era != self._dropped:
            return await self._put_back(ticket, labels, era)
        turn = self._turns[ticket.task] = asyncio.ensure_future(self._take_turns(ticket.task))
        self._changed()
        try:
            # Not `await turn`: a canceled turn must not raise CancelledError here.
            await asyncio.wait({turn})
        finally:
            turn.cancel()
            if self._turns.get(ticket.task) is turn:
                del self._turns[ticket.task]
            self._freed.set()
            self._changed()
        if turn.cancelled():
            return "given back"
        await self._retry_later(turn.result(), ticket, labels, era)
        return turn.result().value

    async def _take_turns(self, task: int) -> TurnOutcome:
        outcome: TurnOutcome | None = None
        try:
            outcome = await self._take(task)
            return outcome
        finally:
            self._ended(TurnEnded(task=task, outcome=outcome))

    @property
    def _can_take(self) -> bool:
        return len(self._turns) + self._resting < self._slots and self._heard()

    async def _has_slot(self, task: int) -> bool:
        """Wait for a slot, and return whether one is free. The caller must take it at once."""
        me = self._waiting[task] = object()
        try:
            async with asyncio.timeout(FULL_SECONDS):
                while not (self._closed or self._can_take):
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError:
            pass
        finally:
            mine = self._waiting.get(task) is me  # else the turn was lost and has come back
            if mine:
                del self._waiting[task]
        return mine and not self._closed and task not in self._turns and self._can_take

    async def _is_our_era(self, era: int) -> bool:
        """Whether turns of that era are still ours. Raises JournalError.

        A process that was suspended for a while notices late that others have them.
        """
        return era == self._dropped and await self._stands() and era == self._dropped

    async def _put_back(self, ticket: QueuedTurn, labels: Sequence[str], era: int) -> str:
        """Put a turn back into its place in the queue, for other nodes."""
        if ticket.task in self._turns or ticket.task in self._waiting:
            return "it came back"
        try:
            if not await self._is_our_era(era):
                return "given back: declared lost"
            await self._turn_queue.rescue(ticket, labels=labels)
        except JournalError as error:  # the next dispatcher hands out another turn
            log.warning("a turn of task %s could not be given back: %s", ticket.task, error)
            return "given back: no slot"
        return PUT_BACK

    async def _retry_later(
        self, outcome: TurnOutcome, ticket: QueuedTurn, labels: Sequence[str], era: int
    ) -> None:
        """Offer a failed turn again, after a longer time with each failure."""
        self._unreachable = self._unreachable + 1 if outcome is TurnOutcome.UNREACHABLE else 0
        if outcome not in _AGAIN:
            del self._failed[ticket.task]
            return
        self._failed[ticket.task] += 1
        seconds = delay(FAILED_SECONDS, self._failed[ticket.task], most=MAX_FAILED_SECONDS)
        if outcome is TurnOutcome.UNREACHABLE:
            # Before anything is awaited, because the slot is already free.
            rest = delay(REST_SECONDS, self._unreachable, most=MAX_REST_SECONDS)
            asyncio.get_running_loop().call_later(rest, self._end_rest)
            self._resting += 1
        await self._offer_again(ticket, labels, seconds, era)

    def _end_rest(self) -> None:
        self._resting -= 1
        self._freed.set()

    async def _end_older(self, task: int) -> None:
        """End an older turn of the same task, which was taken from us and has come back."""
        while (older := self._turns.get(task)) is not None:
            older.cancel()
            await asyncio.wait({older})
            await asyncio.sleep(0)

    async def _offer_again(
        self, ticket: QueuedTurn, labels: Sequence[str], seconds: float, era: int
    ) -> None:
        try:
            if await self._is_our_era(era):
                await self._turn_queue.hand_out(ticket.next, labels=labels, delay_seconds=seconds)
        except JournalError as error:  # the next dispatcher hands it out, only sooner
            log.warning("a turn of task %s could not be given back: %s", ticket.task, error)

    async def drop(self) -> None:
        """Cancel all running turns, and wait until they have ended. They are resumable."""
        self._dropped += 1
        turns = set(self._turns.values())
        for turn in turns:
            turn.cancel()
        if turns:
            await asyncio.wait(turns)

    async def rest(self) -> None:
        """Wait until no turn is running."""
        while turns := set(self._turns.values()):
            await asyncio.wait(turns)
            await asyncio.sleep(0)
