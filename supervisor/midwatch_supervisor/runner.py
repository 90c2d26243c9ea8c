"""Runs the tasks of one run: in the order of their dependencies, each until it is over."""

import asyncio
import logging
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from midwatch_agents.worker import Worker
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import (
    JournalError,
    MidwatchError,
    StaleIncarnationError,
    WorkspaceError,
)
from midwatch_monitor.journal.records import kind_of
from midwatch_monitor.words import (
    Attempt,
    AttemptState,
    Budget,
    Commit,
    Draft,
    Ending,
    Hint,
    Lifecycle,
    Task,
    TaskState,
)
from midwatch_supervisor.assignment import Assignment, branch_of, folder_of
from midwatch_supervisor.attendance import Attendance, Ended
from midwatch_supervisor.decide import Supervisor
from midwatch_supervisor.deck import Deck
from midwatch_supervisor.dossier import Dossier
from midwatch_supervisor.workspace import Ground, clear, is_repository, prepare

log = logging.getLogger(__name__)

_AGAIN = frozenset({Ending.RESTARTED, Ending.UNACCEPTED})
"""Endings after which another attempt may succeed. The others have a reason that stays."""


class Place(StrEnum):
    """Where a task is on its way."""

    BLOCKED = "blocked"
    """Waits for the tasks that it depends on."""
    QUEUED = "queued"
    RUNNING = "running"
    OVER = "over"


@dataclass(slots=True, kw_only=True)
class Job:
    """One task under way."""

    task: Task
    assignment: Assignment
    worker: Worker
    supervisor: Supervisor
    place: Place = Place.BLOCKED
    state: TaskState = field(default_factory=lambda: TaskState(lifecycle=Lifecycle.SUBMITTED))
    ending: Ending | None = None
    workspace: Path | None = None
    """Of the newest attempt of an earlier process."""
    branch: str = ""
    slot: bool = False
    """Whether it counts against the concurrency. A parked one does not, nor when it goes on."""
    attendance: Attendance | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def parked(self) -> bool:
        """Whether its attempt waits for a person."""
        return self.attendance is not None and self.attendance.parked


class Runner:
    """Runs jobs side by side, as many as the configuration allows."""

    def __init__(self, deck: Deck, jobs: tuple[Job, ...], *, attended: bool = False) -> None:
        """Run `jobs`; while a person attends, what waits for one is waited for."""
        self._deck = deck
        self._attended = attended
        self.jobs = {job.assignment.task.id: job for job in jobs}
        self._slots = asyncio.Semaphore(deck.settings.run.concurrency)

    async def run(self) -> None:
        """Run until every task is over, or nothing is left to do but to wait for a person.

        Cancelling it leaves everything resumable. Raises StaleIncarnationError when another process
        goes on with the run, and JournalError when nothing can be stored any more.
        """
        tasks = [asyncio.create_task(self._run_job(job)) for job in self.jobs.values()]
        try:
            while pending := [task for task in tasks if not task.done()]:
                await asyncio.wait(
                    pending,
                    timeout=self._deck.settings.monitor.poll_seconds,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waits = self._waits_for_a_person() and not self._attended
                if waits or any(_failed(task) for task in tasks):
                    break
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    def _waits_for_a_person(self) -> bool:
        for job in self.jobs.values():
            if job.parked:
                self._free(job)
        running = [job for job in self.jobs.values() if job.place is Place.RUNNING]
        queued = any(job.place is Place.QUEUED for job in self.jobs.values())
        return bool(running) and not queued and all(job.parked for job in running)

    @property
    def exit_code(self) -> int:
        """0 all completed, 3 waits for a person, 4 stuck or out of budget, 1 otherwise failed."""
        if any(job.place is not Place.OVER for job in self.jobs.values()):
            return 3
        failed = [
            job for job in self.jobs.values() if job.state.lifecycle is not Lifecycle.COMPLETED
        ]
        if not failed:
            return 0
        spent = {Ending.STUCK, Ending.OUT_OF_BUDGET}
        return 4 if all(job.ending in spent for job in failed) else 1

    async def _run_job(self, job: Job) -> None:
        if job.place is Place.OVER:
            job.over.set()
            return
        for name in job.assignment.task.depends_on:
            await self.jobs[name].over.wait()
        job.place = Place.QUEUED
        await self._slots.acquire()
        job.place, job.slot = Place.RUNNING, True
        try:
            await self._store(job, self._refused(job) or await self._attempts(job))
        except (StaleIncarnationError, JournalError):
            raise  # nothing that this process says would be stored
        except MidwatchError as error:
            await self._store(job, TaskState(lifecycle=Lifecycle.FAILED, reason=str(error)))
        finally:
            self._free(job)
        job.place = Place.OVER
        job.over.set()

    def _free(self, job: Job) -> None:
        """Let another job run in its place, once."""
        if job.slot:
            job.slot = False
            self._slots.release()

    def _refused(self, job: Job) -> TaskState | None:
        """The end of a task whose dependencies did not succeed."""
        for name in job.assignment.task.depends_on:
            if self.jobs[name].state.lifecycle is not Lifecycle.COMPLETED:
                reason = f"it depends on {name}, which is {self.jobs[name].state.lifecycle}"
                job.ending = self.jobs[name].ending
                return TaskState(lifecycle=Lifecycle.FAILED, reason=reason)
        return None

    async def _attempts(self, job: Job) -> TaskState:
        """One attempt after the other, until one succeeds or there is no reason for another."""
        await self._store(job, TaskState(lifecycle=Lifecycle.WORKING))
        earlier = [
            await Dossier.read(self._deck.journal, attempt)
            for attempt in await self._deck.journal.attempts(job.task.id)
        ]
        ended: Ended | None = _how_it_ended(earlier[-1]) if earlier else None
        while ended is None or ended.ending in _AGAIN:
            unfinished = earlier[-1] if earlier and ended is None else None
            before = earlier[:-1] if unfinished else earlier
            if unfinished is None:
                if len(earlier) >= job.assignment.task.max_attempts:
                    break
                unfinished = await self._next_attempt(job, len(earlier) + 1)
            elif not unfinished.begun:
                await self._clear(job, unfinished.attempt)
            ended = await self._attend(job, unfinished, before)
            earlier = [*before, await Dossier.read(self._deck.journal, unfinished.attempt)]
        job.ending = ended.ending if ended else None
        return _task_state(ended)

    async def _next_attempt(self, job: Job, number: int) -> Dossier:
        name = job.assignment.task.id
        model = job.assignment.model(Role.WORKER)
        attempt = await self._deck.journal.add_attempt(
            task=job.task.id,
            number=number,
            worker=job.assignment.worker,
            model=model.name if model else "",
            node=self._deck.node,
            workspace=str(folder_of(self._deck.home, self._deck.label, name, number)),
            at=self._deck.clock(),
        )
        return await Dossier.read(self._deck.journal, attempt)

    async def _attend(self, job: Job, dossier: Dossier, before: list[Dossier]) -> Ended:
        attempt = dossier.attempt
        try:
            ground = await self._ground(job, attempt, begun=dossier.begun)
        except WorkspaceError as error:
            return await self._unplaced(attempt, str(error))
        job.branch = ground.branch
        job.attendance = Attendance(
            deck=self._deck,
            assignment=job.assignment,
            attempt=attempt,
            ground=ground,
            worker=job.worker,
            past=tuple(each.past for each in before),
            spent=before[-1].budget if before else Budget(),
        )
        try:
            return await job.attendance.attend()
        finally:
            if not job.attendance.parked:
                job.attendance = None

    async def _unplaced(self, attempt: Attempt, reason: str) -> Ended:
        """The end of an attempt that got no workspace, and so never began."""
        state = AttemptState(lifecycle=Lifecycle.FAILED, reason=reason, ending=Ending.ERROR)
        draft = Draft(record=state, at=self._deck.clock(), task=attempt.task, attempt=attempt.id)
        await self._deck.journal.commit(Commit(drafts=(draft,)))
        return Ended(ending=Ending.ERROR, reason=reason)

    async def _ground(self, job: Job, attempt: Attempt, *, begun: bool) -> Ground:
        """The attempt's workspace: made now, or found where an earlier process made it."""
        folder, source = Path(attempt.workspace), job.assignment.workspace
        branch = branch_of(Path(attempt.workspace))
        if begun:
            if not await asyncio.to_thread(folder.is_dir):
                raise WorkspaceError(f"the workspace {folder} is gone, and the work in it")
            versioned = source is not None and is_repository(source)
            return Ground(folder=folder, branch=branch if versioned else "")
        merges = [self.jobs[other].branch for other in job.assignment.task.depends_on]
        return await prepare(
            folder, source, branch=branch, merges=[branch for branch in merges if branch]
        )

    async def _clear(self, job: Job, attempt: Attempt) -> None:
        """Remove what a killed process may have left half made."""
        await clear(
            Path(attempt.workspace),
            job.assignment.workspace,
            branch=branch_of(Path(attempt.workspace)),
        )

    async def _store(self, job: Job, state: TaskState) -> None:
        if job.state == state:
            return
        job.state = state
        entries = await self._deck.journal.commit(
            Commit(drafts=(Draft(record=state, at=self._deck.clock(), task=job.task.id),))
        )
        for entry in entries:
            self._deck.bus.publish(Hint(entry=entry.id, kind=kind_of(TaskState), task=job.task.id))


def _failed(task: "asyncio.Task[None]") -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


def _how_it_ended(dossier: Dossier) -> Ended | None:
    """The end of an attempt as the journal knows it; `None` if it has not ended."""
    state = dossier.state
    if not isinstance(state, AttemptState) or state.ending is None:
        return None
    return Ended(ending=state.ending, reason=state.reason, checks=tuple(dossier.checks))


def _task_state(ended: Ended | None) -> TaskState:
    if ended is None:
        return TaskState(lifecycle=Lifecycle.FAILED, reason="no attempt was allowed")
    done = ended.ending is Ending.DONE
    return TaskState(
        lifecycle=Lifecycle.COMPLETED if done else Lifecycle.FAILED,
        reason=ended.reason,
        passed=ended.passed,
        total=len(ended.checks),
    )
