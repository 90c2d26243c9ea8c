"""One turn of a task: runs its attempts until it is over, or has to wait."""

import logging
from collections.abc import Collection, Iterable, Mapping
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
