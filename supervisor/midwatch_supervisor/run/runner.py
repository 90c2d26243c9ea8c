"""Runs the tasks of one run in the order of their dependencies, each until it is over."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace

from midwatch_monitor.budget import renew
from midwatch_monitor.errors import (
    ElsewhereError,
    JournalError,
    MachineError,
    MidwatchError,
    ProviderRefusedError,
    StaleIncarnationError,
    WorkspaceError,
)
from midwatch_monitor.journal.core.encoding import hint_of
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Budget,
    Commit,
    Draft,
    Ending,
    Lifecycle,
    Plan,
    Record,
    SupervisedBy,
    TaskTransition,
)
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_supervisor.present.assignment import Assignment, folder_of
from midwatch_supervisor.run.attempt_end import Ended, recorded_end
from midwatch_supervisor.run.attempt_run import AttemptRun
from midwatch_supervisor.run.attempt_start import budget_of
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import Job, JobStage, latest_state
from midwatch_supervisor.run.next_attempt import (
    AGAIN,
    NextAttempt,
    circular,
    end_terms,
    may_follow,
    next_attempt,
    wanted_again,
)
from midwatch_supervisor.run.split import assemble, carry_budget, keeps_work, parts
from midwatch_supervisor.workspaces.workspace import Workspace, WorkspacePlan, reopen_workspace

Hire = Callable[[Assignment], Awaitable[Job]]
"""Stores a new task of the run and returns its job."""
Abroad = Callable[[], Awaitable[Mapping[str, Iterable[str]]]]
"""Returns, for unfinished tasks that run elsewhere, the names of the tasks each waits for."""


async def all_here() -> Mapping[str, Iterable[str]]:
    """Return an empty mapping, because all tasks of the run are in this process."""
    return {}


class Runner:
    """Runs jobs concurrently, as many at a time as the configuration allows."""

    def __init__(
        self,
        resources: RunResources,
        jobs: tuple[Job, ...],
        *,
        hire: Hire,
        patient: bool = False,
        abroad: Abroad = all_here,
    ) -> None:
        """Prepare to run `jobs`. If `patient`, the run continues while tasks wait for a person."""
        self._resources = resources
        self._hire = hire
        self._patient = patient
        self._abroad = abroad
        self.jobs = {job.name: job for job in jobs}
        self._slots = asyncio.Semaphore(resources.settings.run.concurrency)
        self._tasks: list[asyncio.Task[None]] = []
        self._states: dict[int, TaskTransition] = {}
        """Last transitions of tasks by journal id, read to see which were begun again."""
        self._read = 0
        """Id of the newest entry read for that."""

    async def run(self) -> None:
        """Run until every task is over, or until all that remain wait for a person.

        Cancelling it leaves everything resumable. Raises StaleIncarnationError when another process
        has taken over the run, JournalError when nothing can be stored any more, ElsewhereError
        when a task waits for others that run elsewhere, ProviderRefusedError when a provider
        refuses even the first request, and in a fleet MachineError.
        """
        self._tasks = [asyncio.create_task(self._run_job(job)) for job in self.jobs.values()]
        try:
            while await self._begun_again() or self._pending_work():
                await asyncio.wait(
                    self._pending_work(),
                    timeout=self._resources.settings.monitor.poll_seconds,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waits = self._waits_for_a_person() and not self._patient
                if waits or any(_has_failed(task) for task in self._tasks):
                    break
        finally:
            for task in self._tasks:
                task.cancel()
            results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    def _pending_work(self) -> list["asyncio.Task[None]"]:
        return [task for task in self._tasks if not task.done()]

    async def _begun_again(self) -> bool:
        """Run the tasks that a person has begun again; return whether there are any.

        In a fleet, the task's next turn does this.
        """
        over = {job.task.id: job for job in self.jobs.values() if job.place is JobStage.OVER}
        if not over or self._resources.run.supervised_by is SupervisedBy.MONITOR:
            return False
        # Read only now, so that what is read includes the ends of these tasks.
        kinds, run = (TaskTransition,), self._resources.run.id
        async for entry in self._resources.journal.all_entries(self._read, run=run, kinds=kinds):
            self._read = entry.id
            if isinstance(entry.record, TaskTransition):
                self._states[entry.task] = entry.record
        states = {id: state for id, state in self._states.items() if not state.lifecycle.over}
        found = [over[id] for id in states if id in over]
        for job in found:
            job.reopen(states[job.task.id])
        self._tasks += [asyncio.create_task(self._run_job(job)) for job in found]
        return bool(found)

    def _waits_for_a_person(self) -> bool:
        for job in self.jobs.values():
            if job.parked:
                self._release_slot(job)
        running = [job for job in self.jobs.values() if job.place is JobStage.RUNNING]
        next_ones = any(self._has_its_turn(job) for job in self.jobs.values())
        return bool(running) and not next_ones and all(job.parked for job in running)

    def _has_its_turn(self, job: Job) -> bool:
        """Whether a job can continue by itself, even if it has not noticed that yet."""
        if job.place is JobStage.BLOCKED:
            return all(self.jobs[name].place is JobStage.OVER for name in job.awaits)
        return job.place is JobStage.QUEUED

    @property
    def exit_code(self) -> int:
        """Exit code: 0 all completed, 3 waits for a person, 4 stuck or out of budget, 1 failed.

        A split task that failed because of a part counts like that part.
        """
        if any(job.place is not JobStage.OVER for job in self.jobs.values()):
            return 3
        failed = [job for job in self.jobs.values() if not job.completed]
        if not failed:
            return 0
        blamed = {job.assignment.parent for job in failed}
        spent = {Ending.STUCK, Ending.OUT_OF_BUDGET}
        return 4 if all(job.ending in spent or job.name in blamed for job in failed) else 1

    # -- from the queue to the end ---------------------------------------------------------

    async def _run_job(self, job: Job) -> None:
        if job.place is JobStage.OVER:
            job.over.set()
            return
        try:
            await self._wait_for(job, job.assignment.task.depends_on)
            await self._store_state(job, await self._end_of(job))
        except StaleIncarnationError:
            state = await latest_state(self._resources.journal, job.task)
            if state.lifecycle is not Lifecycle.CANCELED:
                raise  # another process has taken it over
            job.state, job.ending = state, Ending.CANCELED
        finally:
            self._release_slot(job)
        job.place = JobStage.OVER
        job.over.set()

    async def _end_of(self, job: Job) -> TaskTransition:
        """Run a task whose turn has come, and return its final transition."""
        try:
            ended = self._refuse_unmet(job) or await self._make_attempts(job)
        except (StaleIncarnationError, JournalError, ElsewhereError, ProviderRefusedError):
            raise  # nothing can be stored, or the task is not over yet
        except MidwatchError as error:
            if self._may_run_elsewhere(error):
                raise
            return TaskTransition(lifecycle=Lifecycle.FAILED, reason=str(error))
        job.ending = ended.ending
        return ended.task_state

    async def _wait_for(self, job: Job, names: Iterable[str]) -> None:
        """Give up the slot until these tasks are over, then wait for a slot."""
        self._release_slot(job)
        job.awaits = frozenset(names)
        # A task that was over may be begun again during either wait.
        while not job.slot or not all(self.jobs[name].over.is_set() for name in job.awaits):
            self._release_slot(job)
            job.place = JobStage.BLOCKED
            for name in job.awaits:
                await self.jobs[name].over.wait()
            job.place = JobStage.QUEUED
            await self._slots.acquire()
            job.slot = True
        job.place, job.awaits = JobStage.RUNNING, frozenset()

    def _release_slot(self, job: Job) -> None:
        """Release the slot of a job, if it has one."""
        if job.slot:
            job.slot = False
            self._slots.release()

    def _refuse_unmet(self, job: Job) -> Ended | None:
        """Return the end of a task whose dependencies did not succeed, or `None` if they did."""
        for name in job.assignment.task.depends_on:
            other = self.jobs[name]
            if not other.completed:
                reason = f"it depends on {name}, which is {other.state.lifecycle}"
                return Ended(ending=other.failure, reason=reason)
        return None

    async def _make_attempts(self, job: Job) -> Ended:
        """Make one attempt after another, until one succeeds or no other may follow."""
        if job.state.lifecycle is not Lifecycle.WORKING:
            await self._store_state(job, TaskTransition(lifecycle=Lifecycle.WORKING))
        journal = self._resources.journal
        earlier = [
            await AttemptEvidence.read(journal, each)
            for each in await journal.attempts(job.task.id)
        ]
        ended = recorded_end(earlier[-1].state.transition, earlier[-1].checks) if earlier else None
        while ended is None or ended.ending in AGAIN or wanted_again(earlier):
            unfinished = earlier.pop() if earlier and ended is None else None
            following = next_attempt(job.agents, earlier)
            if unfinished is None:
                if not may_follow(earlier, most=job.assignment.task.max_attempts):
                    break
                await self._wait_for_others(job, following)
                attempt = await self._next_attempt(job, len(earlier) + 1, following)
                unfinished = await AttemptEvidence.read(journal, attempt)
            ended = await self._run_attempt(job, unfinished, earlier, following)
            earlier.append(await AttemptEvidence.read(journal, unfinished.attempt))
        if ended is None:
            return Ended(ending=Ending.ERROR, reason="no attempt was allowed")
        return await self._run_parts(job, earlier[-1]) if ended.ending is Ending.SPLIT else ended

    async def _wait_for_others(self, job: Job, following: NextAttempt) -> None:
        """Wait for the tasks that a restart put before this one, except those that wait for it.

        Raises ElsewhereError if one of them runs elsewhere.
        """
        if not following.after:
            return
        abroad = await self._abroad()
        waits = dict(abroad) | {
            name: each.awaits or frozenset(each.assignment.task.depends_on)
            for name, each in self.jobs.items()
            if each.place is not JobStage.OVER
        }
        names = [
            name
            for name in following.after
            if name in waits and not circular(waits, job.name, name)
        ]
        if away := [name for name in names if name in abroad]:
            raise ElsewhereError(f"{job.name} waits for {', '.join(away)}")
        if names:
            await self._wait_for(job, names)

    async def _next_attempt(self, job: Job, number: int, following: NextAttempt) -> Attempt:
        return await self._resources.journal.add_attempt(
            task=job.task.id,
            number=number,
            worker=following.worker,
            model=following.model,
            node=self._resources.node,
            workspace=str(folder_of(self._resources.home, self._resources.label, job.name, number)),
            at=self._resources.clock(),
        )

    # -- one attempt -----------------------------------------------------------------------

    async def _run_attempt(
        self,
        job: Job,
        evidence: AttemptEvidence,
        before: list[AttemptEvidence],
        following: NextAttempt,
    ) -> Ended:
        attempt = evidence.attempt
        last = before[-1] if before else None
        try:
            plan = await self._plan_workspace(job, last, following)
            workspace, kept = await self._make_workspace(plan, evidence)
        except WorkspaceError as error:
            if self._may_run_elsewhere(error):
                raise
            return await self._end_unplaced(attempt, str(error))
        # Not earlier: until now, the task's state says why a node could not run it.
        await self._store_state(job, TaskTransition(lifecycle=Lifecycle.WORKING))
        job.branch, job.workspace = workspace.branch, workspace.folder
        past = [each.past for each in before]
        if past:
            past[-1] = replace(past[-1], kept=kept)
        job.attempt_run = AttemptRun(
            resources=self._resources,
            task=job.task,
            assignment=job.assignment,
            agents=job.agents,
            attempt=attempt,
            workspace=workspace,
            past=tuple(past),
            spent=self._budget_left(job, last) if last else await self._budget_carried(job),
            plan=Plan(steps=last.plan.steps) if last and kept else None,
        )
        try:
            return await job.attempt_run.attend()
        finally:
            if not job.attempt_run.parked:
                job.attempt_run = None

    def _budget_left(self, job: Job, last: AttemptEvidence) -> Budget:
        """Return the budget after the last attempt, renewed if the task was begun again."""
        if not wanted_again([last]):
            return last.budget
        return renew(last.budget, budget_of(job.assignment.task, None))

    def _may_run_elsewhere(self, error: MidwatchError) -> bool:
        """Whether another node may succeed where this one failed."""
        return self._resources.snapshot_store is not None and isinstance(error, MachineError)

    async def _end_unplaced(self, attempt: Attempt, reason: str) -> Ended:
        """Store the end of an attempt that got no workspace and so never began."""
        state = AttemptTransition(lifecycle=Lifecycle.FAILED, reason=reason, ending=Ending.ERROR)
        await self._write_records(attempt.task, state, attempt=attempt.id)
        return Ended(ending=Ending.ERROR, reason=reason)

    async def _make_workspace(
        self, plan: WorkspacePlan, evidence: AttemptEvidence
    ) -> tuple[Workspace, tuple[str, ...]]:
        """Return the attempt's workspace, and the files that it keeps from the attempt before."""
        if evidence.begun:
            return await self._resources.placement.reopen(plan, evidence.attempt)
        folder = self._resources.placement.local_folder(evidence.attempt.workspace)
        workspace = await self._resources.placement.make(plan, folder)
        return workspace, await self._resources.placement.inherit(plan, workspace)

    async def _plan_workspace(
        self, job: Job, last: AttemptEvidence | None, following: NextAttempt
    ) -> WorkspacePlan:
        """Return the plan for the workspace of the next attempt."""
        after = [name for name in following.after if name in self.jobs]
        below = [self.jobs[name] for name in (*job.assignment.task.depends_on, *after)]
        done = [each for each in below if each.completed]
        branches = [each.branch for each in done]
        folders = [each.workspace for each in done if each.sibling_of(job)]
        parent = self.jobs.get(job.assignment.parent) if job.assignment.part == 1 else None
        if parent is not None and (split := await self._split_attempt(parent)) is not None:
            branches.append(split.branch)
            folders.append(split.folder)
        plan = WorkspacePlan(
            source=job.assignment.workspace,
            merges=tuple(dict.fromkeys(branch for branch in branches if branch)),
            copied=folders[-1] if folders else None,
            inherits_from=last.attempt if last else None,
            keep=following.keep,
        )
        return await self._resources.placement.locate(job.assignment, plan)

    async def _budget_carried(self, job: Job) -> Budget | None:
        """Return the budget of a part: its share, and the unused budget of the part before it.

        `None` if there is no part before it.
        """
        before = next((each for each in self.jobs.values() if each.precedes(job)), None)
        attempts = await self._resources.journal.attempts(before.task.id) if before else []
        if not attempts:
            return None
        left = (await AttemptEvidence.read(self._resources.journal, attempts[-1])).budget
        return carry_budget(budget_of(job.assignment.task, None), left)

    # -- a split ---------------------------------------------------------------------------

    async def _split_attempt(self, parent: Job) -> Workspace | None:
        """Return the workspace of the split attempt if its parts continue there, else `None`."""
        attempts = await self._resources.journal.attempts(parent.task.id)
        last = await AttemptEvidence.read(self._resources.journal, attempts[-1])
        if not keeps_work(end_terms(last), last.plan):
            return None
        plan = WorkspacePlan(source=parent.assignment.workspace)
        plan = await self._resources.placement.locate(parent.assignment, plan)
        return await self._resources.placement.find(plan, last.attempt)

    async def _run_parts(self, job: Job, last: AttemptEvidence) -> Ended:
        """Run the parts of a split task and put them together. The task gets no further attempt."""
        job.workspace = self._resources.placement.local_folder(last.attempt.workspace)
        terms = end_terms(last)
        wanted = parts(
            job.assignment,
            terms,
            last.budget,
            taken=[name for name, each in self.jobs.items() if not each.part_of(job)],
        )
        if not wanted:
            reason = f"too little of its budget is left for {len(terms.parts)} parts"
            return Ended(ending=Ending.OUT_OF_BUDGET, reason=reason)
        for each in wanted:
            if each.task.id not in self.jobs:
                child = self.jobs[each.task.id] = await self._hire(each)
                self._tasks.append(asyncio.create_task(self._run_job(child)))
        children = [self.jobs[each.task.id] for each in wanted]
        await self._wait_for(job, [child.name for child in children])
        below = [self.jobs[name] for name in job.assignment.task.depends_on] + children
        plan = WorkspacePlan(
            source=job.assignment.workspace,
            merges=tuple(dict.fromkeys(each.branch for each in below if each.branch)),
            copied=children[-1].workspace,
        )
        plan = await self._resources.placement.locate(job.assignment, plan)
        ended = await assemble(self._resources, job, children, plan)
        if ended.ending is Ending.DONE:
            whole = await reopen_workspace(job.workspace, plan.source, branch=job.branch)
            await self._resources.placement.save_whole(last.attempt, replace(whole, base=plan.base))
        await self._write_records(job.task.id, *ended.records)
        return ended

    # -- the journal -----------------------------------------------------------------------

    async def _store_state(self, job: Job, state: TaskTransition) -> None:
        if job.state == state:
            return
        job.state = state
        await self._write_records(job.task.id, state)

    async def _write_records(self, task: int, *records: Record, attempt: int | None = None) -> None:
        """Store these records together, and publish them."""
        at = self._resources.clock()
        drafts = (Draft(record=each, at=at, task=task, attempt=attempt) for each in records)
        for entry in await self._resources.journal.commit(Commit(drafts=tuple(drafts))):
            self._resources.bus.publish(hint_of(entry))


def _has_failed(task: "asyncio.Task[None]") -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None
