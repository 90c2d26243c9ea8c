"""The composition root: stores or loads a run, and starts everything it needs."""

import gc
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from midwatch_agents.model_retries import Breakers
from midwatch_agents.sandbox import SandboxKind, find_sandbox
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.cancellation import finish_before_cancel, meanwhile
from midwatch_monitor.config.settings import Settings, settings_of
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import now
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Ending, Entry, Run, Task
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_supervisor.decide.supervision import Supervision
from midwatch_supervisor.present.assignment import Assignment, assignment_in, branch_of, whole_of
from midwatch_supervisor.run.context import LearningFrom, RunResources
from midwatch_supervisor.run.job import Job, JobStage, latest_state
from midwatch_supervisor.run.runner import Runner
from midwatch_supervisor.run.task_agents import TaskAgents
from midwatch_supervisor.telemetry.exporting import export_spans
from midwatch_supervisor.workspaces.workspace import free_label

YOUNG = 50_000
"""New containers per collection of the youngest generation; Python's default: 700 (3.14: 2,000)."""


def collect_garbage_seldom() -> None:
    """Make the garbage collector run less often, on fewer objects. Call it once, after the start.

    Each attempt keeps a few thousand objects alive: its history, its agent, its rules. A full
    collection visits all of them, and nearly all are still needed; with a thousand attempts, that
    took much of the CPU time. Objects that exist at this point never become garbage, so they are
    excluded for good. The rest is visited once per fifty thousand new objects, which delays
    freeing at most a few tens of megabytes.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)


Follow = Callable[[Sequence[Entry]], Coroutine[Any, Any, None]]
"""Receives every entry of the run, in order."""


async def begin_run(
    journal: Journal,
    wanted: Sequence[Assignment],
    *,
    source: str,
    settings: Settings,
    home: Path,
    learning: LearningFrom,
    clock: Clock = now,
    attended: bool = False,
) -> tuple[RunResources, tuple[Job, ...]]:
    """Store a new run with its tasks. Nothing is stored if a worker could not be built.

    `attended` means that a person watches the start.
    """
    breakers = _build_breakers(settings)
    # Before the sandbox: an error about a worker is more useful than one about the sandbox.
    agents_of = [TaskAgents(each, settings=settings, breakers=breakers) for each in wanted]
    sandbox_kind = await find_sandbox(settings.run.sandbox, attended=attended)
    at = clock()
    run = await journal.add_run(source=source, settings=settings.for_run(), at=at)
    resources = _build_resources(
        journal,
        run,
        settings,
        home=home,
        sandbox_kind=sandbox_kind,
        breakers=breakers,
        clock=clock,
        learning=learning,
    )
    jobs = [
        Job(task=await _store_task(resources, assignment, at), assignment=assignment, agents=agents)
        for assignment, agents in zip(wanted, agents_of, strict=True)
    ]
    label = await free_label(run.id, home, [each.workspace for each in wanted])
    return replace(resources, label=label), tuple(jobs)


async def load_run(
    journal: Journal,
    run: Run,
    *,
    home: Path,
    learning: LearningFrom,
    clock: Clock = now,
    attended: bool = False,
    settings: Settings | None = None,
) -> tuple[RunResources, tuple[Job, ...]]:
    """Load a run from the journal, to resume it; by default with the settings stored there."""
    settings = settings or settings_of(run)
    resources = _build_resources(
        journal,
        run,
        settings,
        home=home,
        sandbox_kind=await find_sandbox(settings.run.sandbox, attended=attended),
        breakers=_build_breakers(settings),
        clock=clock,
        learning=learning,
    )
    jobs = await load_jobs(resources)
    known = [job.workspace for job in jobs if job.workspace is not None]
    sources = [job.assignment.workspace for job in jobs]
    label = known[0].parent.name if known else await free_label(run.id, home, sources)
    return replace(resources, label=label), jobs


async def load_jobs(resources: RunResources) -> tuple[Job, ...]:
    """Load the tasks of a run from the journal, to resume them."""
    tasks = await resources.journal.tasks(resources.run.id)
    return tuple([await load_job(resources, task) for task in tasks])


def _build_breakers(settings: Settings) -> Breakers:
    return Breakers(settings.provider, refusing=not settings.provider.wait_for_first_answer)


async def new_job(resources: RunResources, assignment: Assignment, *, built: bool = True) -> Job:
    """Store a new task of a run and return its job; its agents are built at once only if `built`.

    Raises UsageError for agents that cannot be built.
    """
    settings, breakers = resources.settings, resources.breakers
    agents = TaskAgents(assignment, settings=settings, breakers=breakers, built=built)
    task = await _store_task(resources, assignment, resources.clock())
    return Job(task=task, assignment=assignment, agents=agents)


async def _store_task(resources: RunResources, assignment: Assignment, at: datetime) -> Task:
    return await resources.journal.add_task(
        run=resources.run.id,
        name=assignment.task.id,
        title=assignment.task.label,
        spec=assignment.model_dump_json(),
        at=at,
        project=assignment.project,
    )


async def load_job(resources: RunResources, task: Task, *, built: bool = True) -> Job:
    """Load one task of a run from the journal; its agents are built at once only if `built`.

    Raises UsageError for a task of an embedded agent.
    """
    if task.embedded:
        started = f"run {task.run} was not started by `midwatch run`"
        raise UsageError(f"{started}, so it cannot be resumed")
    journal, assignment = resources.journal, assignment_in(task)
    state = await latest_state(journal, task)
    attempts = await journal.attempts(task.id)
    workspace = Path(attempts[-1].workspace) if attempts else None
    last = await AttemptEvidence.read(journal, attempts[-1]) if attempts else None
    ending = last.state.transition.ending if last else None
    if workspace is not None and ending is Ending.SPLIT and state.lifecycle.over:
        workspace = whole_of(workspace)
    return Job(
        task=task,
        assignment=assignment,
        agents=TaskAgents(
            assignment, settings=resources.settings, breakers=resources.breakers, built=built
        ),
        place=JobStage.OVER if state.lifecycle.over else JobStage.BLOCKED,
        state=state,
        ending=ending,
        workspace=workspace,
        branch=branch_of(workspace) if workspace and not assignment.bare else "",
    )


def _build_resources(
    journal: Journal,
    run: Run,
    settings: Settings,
    *,
    home: Path,
    sandbox_kind: SandboxKind,
    breakers: Breakers,
    clock: Clock,
    learning: LearningFrom,
) -> RunResources:
    """Return everything except the label, which depends on the tasks."""
    node, bus = socket.gethostname(), LocalBus()
    return RunResources(
        journal=journal,
        bus=bus,
        settings=settings,
        run=run,
        home=home,
        label="",
        sandbox_kind=sandbox_kind,
        breakers=breakers,
        node=node,
        holder=f"{node}:{os.getpid()}",
        clock=clock,
        learning=learning(journal, settings=settings, clock=clock, bus=bus),
        calibrator=Calibrator(journal),
    )


async def conduct(
    resources: RunResources, jobs: tuple[Job, ...], follow: Follow, *, attended: bool = False
) -> int:
    """Run the jobs under the monitor and the supervisor; return the exit code.

    If `attended`, a person is at the console, so the run does not end when a task waits for one.
    Cancelling it leaves everything resumable.
    """
    telemetry, run = resources.settings.telemetry, resources.run.id
    async with export_spans(telemetry, resources.journal, bus=resources.bus, run=run):
        return await _conduct_run(resources, jobs, follow, attended=attended)


async def _conduct_run(
    resources: RunResources, jobs: tuple[Job, ...], follow: Follow, *, attended: bool
) -> int:
    # With a time limit for persons, no task waits forever.
    patient = attended or resources.settings.policy.person.timeout_minutes > 0
    runner = Runner(resources, jobs, hire=partial(new_job, resources), patient=patient)
    monitor = Monitor(
        journal=resources.journal,
        bus=resources.bus,
        settings=resources.settings,
        run=resources.run.id,
        clock=resources.clock,
    )
    supervision = Supervision(
        journal=resources.journal,
        bus=resources.bus,
        settings=resources.settings,
        run=resources.run.id,
        clock=resources.clock,
        hire=lambda task: runner.jobs[task.name].agents.supervisor,
    )
    follower = _Follower(resources, follow)
    # Lessons belong to a project, so nothing is learned without one.
    learns = any(job.task.project for job in jobs)
    await monitor.try_to_look()
    works = [monitor.run(), supervision.run(), follower.run()]
    works += [resources.learning.run()] if learns else []
    try:
        async with meanwhile(*works):
            await runner.run()
            # Lessons contain outcomes, so the last outcomes are judged first.
            await monitor.try_to_look(everything=True)
            if learns:
                await resources.learning.finish(job.task.project for job in runner.jobs.values())
    finally:
        await monitor.try_to_look(everything=True)
        await follower.look()
    return runner.exit_code


class _Follower:
    """Passes new entries of the run to a callback."""

    def __init__(self, resources: RunResources, follow: Follow) -> None:
        self._resources = resources
        self._follow = follow
        self._after = 0

    async def run(self) -> None:
        async with self._resources.bus.subscribe() as hints:
            while True:
                await self.look()
                await hints.wait(self._resources.settings.monitor.poll_seconds)

    async def look(self) -> None:
        """Pass on all new entries; a page that is being passed on is not interrupted."""
        while page := await self._resources.journal.entries(
            self._after, run=self._resources.run.id
        ):
            self._after = page[-1].id
            await finish_before_cancel(self._follow(page))
