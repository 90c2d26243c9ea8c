"""Runs one attempt, and stops it when a person, the policy or the budget says so."""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from functools import partial

from pydantic_ai.messages import ModelMessage

from midwatch_agents.left_processes import end_all_leftovers, end_leftovers, process_mark
from midwatch_agents.prompt import PastAttempt, first_prompt
from midwatch_agents.worker import WorkerPlace
from midwatch_monitor.cancellation import finish_before_cancel, retrieve_exception
from midwatch_monitor.errors import (
    AgentDiedError,
    BudgetSpentError,
    MidwatchError,
    ProviderRefusedError,
    StaleIncarnationError,
    WorkerError,
    WorkspaceError,
)
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import (
    Activity,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Checkpoint,
    CheckpointDecision,
    Completion,
    Delivery,
    Ending,
    Fault,
    Intervention,
    Lifecycle,
    OutcomeReport,
    Plan,
    Record,
    Step,
    SupervisedBy,
    Task,
)
from midwatch_monitor.state.intervention import Interventions
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.run import parking
from midwatch_supervisor.run.attempt_end import (
    Ended,
    end_asked_for,
    end_out_of_minutes,
    reject_impossible_splits,
    result,
)
from midwatch_supervisor.run.attempt_start import (
    budget_of,
    circumstances,
    outline_plan,
    own_plan,
    saved_history,
)
from midwatch_supervisor.run.completion import (
    FinishedWork,
    check_in,
    check_unfinished,
    finish,
    was_help_answered,
)
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.task_agents import TaskAgents
from midwatch_supervisor.workspaces.changes import changed_files, list_files
from midwatch_supervisor.workspaces.snapshot_store import SnapshotWriter
from midwatch_supervisor.workspaces.workspace import Workspace, commit_work
from midwatch_tools.attempt_watch import AttemptWatch
from midwatch_tools.data_blocks import DataBlocks
from midwatch_tools.inbox import Inbox
from midwatch_tools.instructions import outline
from midwatch_tools.pauses import listen
from midwatch_tools.session import WatchScope
from midwatch_tools.tools.board import Board
from midwatch_tools.tools.facts import Facts
from midwatch_tools.tree import ignored_in

log = logging.getLogger(__name__)

_LEFT = frozenset({Ending.RESTARTED, Ending.SPLIT, Ending.UNACCEPTED})
"""Endings after which another attempt or task continues, so the work must be saved."""
_MOST_DEATHS = 3
"""How often the process of a third-party agent is started again in an attempt after it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Why an attempt stopped: it ended, or it hung and a person was asked."""

    ended: Ended | None
    questions: tuple[parking.ParkedQuestion, ...] = ()
    budget: Budget | None = None
    """Budget used at that point."""
    abandoned: bool = False
    """Whether the worker is still running because it did not end when it was canceled."""


@dataclass(slots=True, kw_only=True)
class AttemptRun:
    """Runs one attempt. It owns the worker's asyncio task and can cancel it."""

    resources: RunResources
    task: Task
    assignment: Assignment
    agents: TaskAgents
    attempt: Attempt
    workspace: Workspace
    past: tuple[PastAttempt, ...] = ()
    spent: Budget | None = None
    """Budget to continue with, including grants; `None` to begin with the task's own limits."""
    plan: Plan | None = None
    """Plan to continue with if work was kept; `None` to begin with the task's own plan."""
    recorder: Recorder | None = None
    """Writes the records of the attempt; set as soon as `attend` has claimed it."""
    inbox: Inbox | None = None
    """Inbox of the attempt, once it has been read while the attempt waits for a person."""
    busy: Recorder | None = None
    """Recorder of the worker that is running; `None` while the planner or the checks run."""
    snapshot_writer: SnapshotWriter = field(init=False)

    def __post_init__(self) -> None:
        self.snapshot_writer = SnapshotWriter(self.resources.snapshot_store, self.workspace)

    @property
    def parked(self) -> bool:
        """Whether the attempt waits for a person who has not answered yet."""
        if self.recorder is None or self.inbox is None or self.inbox.answered:
            return False
        return self.recorder.lifecycle is Lifecycle.INPUT_REQUIRED

    async def attend(self) -> Ended:
        """Run or resume the attempt until it has ended and its end is in the journal.

        Cancelling this leaves the attempt as it is, so that it can be resumed.
        """
        recorder = self.recorder = await self._claim_attempt()
        await end_all_leftovers(str(self.workspace.folder))  # left by a process that was killed
        if self.resources.snapshot_store is not None:  # nobody else writes its steps now
            await self.resources.snapshot_store.tell(
                self.attempt, self.workspace, incarnation=recorder.incarnation
            )
        fleet = self.resources.run.supervised_by is SupervisedBy.MONITOR
        # The attempt may have run on another node or in another sandbox before.
        here = Change(
            node=self.resources.node if fleet else None, sandbox=self.resources.sandbox_kind.value
        )
        if recorder.lifecycle is Lifecycle.SUBMITTED:
            await recorder.record(*self._begin_records(), here, *await self._ignored_confidence())
        elif recorder.lifecycle is Lifecycle.WORKING:
            # So that the rules do not mistake the break for silence.
            await recorder.record(Change(lifecycle=Lifecycle.WORKING), here)
        else:
            await recorder.record(here)
        while (halt := await self._until_halted(recorder)).ended is None:
            recorder = self.recorder = await self._park_hung(halt, recorder)
        return await self._store_end(halt.ended, recorder, abandoned=halt.abandoned)

    @property
    def _process_mark(self) -> str:
        """Mark of the processes that this incarnation starts.

        It differs from that of other incarnations, so that a process that has lost the attempt ends
        only what it started itself.
        """
        incarnation = 0 if self.recorder is None else self.recorder.incarnation
        return process_mark(str(self.workspace.folder), incarnation)

    async def _claim_attempt(self) -> Recorder:
        recorder = await Recorder.claim(
            journal=self.resources.journal,
            bus=self.resources.bus,
            attempt=self.attempt,
            settings=self.resources.settings,
            holder=self.resources.holder,
            clock=self.resources.clock,
        )
        if recorder.lifecycle.over:
            raise StaleIncarnationError(f"attempt {self.attempt.id} is already over")
        self.snapshot_writer.follow(recorder)
        return recorder

    # -- the beginning ---------------------------------------------------------------------

    def _begin_records(self) -> tuple[Record, ...]:
        budget = budget_of(self.assignment.task, self.spent)
        if self.assignment.planned and self.plan is None:
            planning = Change(
                lifecycle=Lifecycle.WORKING,
                activity=Activity.MODEL,
                doing="the planner writes the plan",
                budget=budget,
            )
            return working_transition(), planning
        plan = self.plan or own_plan(self.assignment.task)
        return working_transition(), *circumstances(plan, budget, self.resources.settings)

    async def _ignored_confidence(self) -> tuple[Change, ...]:
        """Return a change that makes the rules ignore stated confidence, if that is worthless."""
        found = await self.resources.calibrator.separation(self.attempt.model)
        useful = self.resources.settings.reflect.useful_confidence
        if found is None or not found.worthless(useful):
            return ()
        return (Change(confidence_counts=False),)

    async def _first_prompt(self, recorder: Recorder, board: Board) -> str:
        """Store which lessons and facts the worker is given, and return its first prompt.

        Has the planner write the plan first if there is none; the planner sees the lessons and
        facts too.
        """
        blocks, learning = DataBlocks.with_new_code(), self.resources.learning
        learned, records = await learning.recall(
            self.task, self.assignment, self.attempt, recorder.plan, blocks
        )
        if records:
            await recorder.record(*records)
        if not recorder.plan.steps:
            await self._outline_plan(recorder, learned)
        # The planner has read the precedents, and its plan reflects them.
        before = not self.assignment.planned
        return first_prompt(
            self.assignment.task,
            outline(recorder.plan),
            number=self.attempt.number,
            past=self.past,
            blocks=blocks,
            learned=learned,
            board=await board.beside(blocks),
            precedents=await learning.precedents(self.task) if before else "",
            provisional=self.assignment.provisional,
        )

    async def _outline_plan(self, recorder: Recorder, learned: str) -> None:
        went = await self.resources.learning.precedents(self.task)
        plan, records = await outline_plan(
            self.agents.planner,
            self.assignment,
            past=self.past,
            precedents="\n\n".join(filter(None, (went, learned))),
            listing=await list_files(self.workspace),
            settings=self.resources.settings,
        )
        begun = circumstances(plan, recorder.budget, self.resources.settings)
        await recorder.record(*records, *begun)

    # -- the work --------------------------------------------------------------------------

    def _build_watch(self, recorder: Recorder, board: Board) -> AttemptWatch:
        foreign = self.agents.worker(self.attempt.worker, self.attempt.model).foreign
        return AttemptWatch(
            recorder,
            root=self.workspace.folder,
            settings=self.resources.settings,
            bus=self.resources.bus,
            check=partial(check_in, self.resources, self.workspace),
            model_for=self.agents.model_named(self.attempt.worker),
            board=board,
            facts=Facts(
                journal=self.resources.journal,
                task=self.task,
                attempt=self.attempt,
                reviewed=self.resources.learning.reviews_facts(self.assignment),
            ),
            ignored_by_git=ignored_in(self.workspace.worktree),
            # A foreign agent reports a call only after it ran, so the gate cannot refuse it.
            reach=WatchScope(gated=not foreign, foreign=foreign),
        )

    async def _work_and_check(self, watch: AttemptWatch, recorder: Recorder, board: Board) -> Ended:
        """Run the worker, then the acceptance checks and the review."""
        listen(parking.pause_recorder(recorder))
        try:
            history = await self._saved_history()
            prompt = None if history else await self._first_prompt(recorder, board)
            self.busy = recorder
            await self._run_worker(prompt, history, watch, recorder)
        except ProviderRefusedError as error:
            await parking.park_refused(recorder, error)
            raise
        except BudgetSpentError as error:
            return Ended(ending=Ending.OUT_OF_BUDGET, reason=str(error))
        except WorkerError as error:
            return Ended(ending=Ending.ERROR, reason=str(error))
        finally:
            if self.busy is recorder:  # an abandoned worker may end while its successor runs
                self.busy = None
        await recorder.record(Change(activity=Activity.COMMAND, doing="the acceptance checks"))
        try:
            done = await self._read_work(recorder)
        except WorkspaceError as error:
            return Ended(ending=Ending.ERROR, reason=str(error))
        return await finish(
            self.resources, self.assignment, self.workspace, done, self.agents.reviewer
        )

    async def _run_worker(
        self,
        prompt: str | None,
        history: list[ModelMessage],
        watch: AttemptWatch,
        recorder: Recorder,
    ) -> None:
        """Run the worker; if its provider fails or its process ends, resume where it stopped.

        Raises like `Worker.run`, but for an outage only after `max_outages` in a row without
        progress. Raises ProviderRefusedError if the provider refuses the first request.
        """
        worker = self.agents.worker(self.attempt.worker, self.attempt.model)
        station = WorkerPlace(
            paths=self.resources.sandbox_paths(self.workspace),
            sandbox_kind=self.resources.sandbox_kind,
            network=self.resources.settings.run.network,
            mark=self._process_mark,
        )
        outages = deaths = 0
        while True:
            try:
                await worker.run(prompt, station=station, watch=watch, history=history)
                return
            except WorkerError as error:
                known, history = len(history), await self._saved_history()
                if not history and worker.own_model is not None:
                    parking.raise_refusal(error, self.resources.breakers, worker.own_model)
                prompt = None if history else prompt
                if isinstance(error, AgentDiedError) and deaths < _MOST_DEATHS:
                    deaths += 1
                    log.warning("%s: %s; it is started again", self.attempt.worker, error)
                    continue
                outages = 1 if len(history) > known else outages + 1
                if (
                    outages >= self.resources.settings.provider.max_outages
                    or not parking.is_temporary(error)
                ):
                    raise
                seconds = self.resources.settings.provider.breaker_seconds
                await parking.wait_for_provider(recorder, error, seconds)

    async def _saved_history(self) -> list[ModelMessage]:
        return await saved_history(self.resources.journal, self.attempt.id)

    async def _read_work(self, recorder: Recorder) -> FinishedWork:
        """Return the worker's finished work, with the confidence that it stated last."""
        stated: int | None = None
        asked: Step | None = None
        acts = Interventions()
        kinds = (Step, Completion, Intervention, Delivery, OutcomeReport)
        async for entry in self.resources.journal.all_entries(attempt=self.attempt.id, kinds=kinds):
            acts.fold(entry)
            match entry.record:
                case Step(checkpoint=Checkpoint(confidence=confidence, decision=course)) as step:
                    stated = confidence
                    asked = step if course is CheckpointDecision.ESCALATE else asked
                case Completion(confidence=confidence):
                    stated = confidence
                case _:
                    pass
        bare = self.assignment.bare
        files = await changed_files(self.resources.journal, self.attempt, self.workspace, bare=bare)
        alone = asked if asked and not was_help_answered(asked, acts.delivered) else None
        return FinishedWork(plan=recorder.plan, changed=files, stated=stated, unheard=alone)

    # -- until it ends ---------------------------------------------------------------------

    async def _until_halted(self, recorder: Recorder) -> Halt:
        """Run the work until it ends, or until it hangs and a person is asked."""
        board = Board(journal=self.resources.journal, task=self.task, attempt=self.attempt)
        watch = self._build_watch(recorder, board)
        work = asyncio.create_task(self._work_and_check(watch, recorder, board))
        # Otherwise asyncio logs its error if both fail at once.
        work.add_done_callback(retrieve_exception)
        try:
            reached = await self._wait_for_end(work, watch, recorder)
            self.inbox = None  # while the answer is carried out, it is not parked
            budget = watch.budget()
            gone = await self._cancel_work(work)
            await end_leftovers(self._process_mark)
        except StaleIncarnationError:
            await self._cancel_work(work)  # but end no leftovers: another process has the attempt
            raise
        except BaseException:
            await finish_before_cancel(self._save_for_successor(work))
            raise
        ended, questions = (reached, ()) if isinstance(reached, Ended) else (None, reached)
        return Halt(ended=ended, questions=questions, budget=budget, abandoned=not gone)

    async def _wait_for_end(
        self, work: "asyncio.Task[Ended]", watch: AttemptWatch, recorder: Recorder
    ) -> Ended | tuple[parking.ParkedQuestion, ...]:
        """Wait until the work ends, or an intervention, the budget or a question must end it."""
        poll_seconds = self.resources.settings.monitor.poll_seconds
        inbox = Inbox(
            self.resources.journal, self.resources.bus, self.attempt.id, poll_seconds=poll_seconds
        )
        divisible = not self.assignment.parent
        async with self.resources.bus.subscribe(self.attempt.id) as hints:
            while True:
                waits = recorder.lifecycle is Lifecycle.INPUT_REQUIRED
                due = await inbox.due()
                self.inbox = inbox if waits else None
                if refused := reject_impossible_splits(
                    due, recorder.last_step, divisible=divisible
                ):
                    await recorder.record(*refused)
                    continue
                ended = end_asked_for(due, recorder.last_step, divisible=divisible)
                ended = ended or end_out_of_minutes(watch.budget(), due)
                if ended is not None:
                    return ended
                # A busy worker that hangs cannot deliver a question.
                hanging = self.busy is recorder and recorder.lifecycle is Lifecycle.WORKING
                if hanging and (questions := parking.silence_questions(due)):
                    return questions
                heard = asyncio.create_task(hints.wait(poll_seconds))
                await asyncio.wait({work, heard}, return_when=asyncio.FIRST_COMPLETED)
                heard.cancel()
                if work.done():
                    return result(work)
                self.snapshot_writer.wake()
                if not heard.result():
                    await recorder.record()  # raises if another process has taken it over

    async def _save_for_successor(self, work: "asyncio.Task[Ended]") -> None:
        """End the work and save its files for the process that continues the attempt."""
        await self._cancel_work(work)
        await end_leftovers(self._process_mark)
        await self.snapshot_writer.leave()

    async def _cancel_work(self, work: "asyncio.Task[Ended]") -> bool:
        """Cancel the work if it still runs; return whether it has really ended."""
        work.cancel()
        _, pending = await asyncio.wait({work}, timeout=self.resources.settings.run.grace_seconds)
        return not pending

    async def _park_hung(self, halt: Halt, recorder: Recorder) -> Recorder:
        """Store that a hung attempt waits for a person; return the recorder to use from here on."""
        # After the claim, a write that was under way is in the journal or refused.
        recorder = await self._claim_attempt()
        inbox = Inbox(self.resources.journal, self.resources.bus, self.attempt.id, poll_seconds=0)
        due = {id for id, _ in await inbox.due()}
        # The worker may have reached its next request after all, and have parked itself.
        if questions := [each for each in halt.questions if each[0] in due]:
            history = await self._saved_history()
            await parking.park(recorder, questions, budget=halt.budget, history=history)
        return recorder

    # -- the end ---------------------------------------------------------------------------

    async def _store_end(self, ended: Ended, recorder: Recorder, *, abandoned: bool) -> Ended:
        """Store the end. If the worker still runs, claim the attempt again so it cannot write."""
        if ended.ending is Ending.OUT_OF_BUDGET:
            await recorder.record(Change(activity=Activity.COMMAND, doing="the acceptance checks"))
            ended = await check_unfinished(self.resources, self.assignment, self.workspace, ended)
        if ended.ending is Ending.DONE and (fault := await self._commit_work("By Midwatch,")):
            ended = replace(
                ended, ending=Ending.ERROR, reason=f"its work could not be committed: {fault}"
            )
        elif ended.ending in _LEFT:
            await self._commit_work("Not accepted: by Midwatch,")
        more = ended.records
        if abandoned:
            recorder = await self._claim_attempt()
            more = (*more, Fault(part="worker", error="it did not end when it was canceled"))
        state = AttemptTransition(
            lifecycle=ended.lifecycle, reason=ended.reason, ending=ended.ending
        )
        await recorder.end(state, *more)
        return ended

    async def _commit_work(self, by: str) -> str:
        """Commit the work on its branch; return why that failed, or an empty string."""
        task = self.assignment.task
        message = f"{task.label}\n\n{by} attempt {self.attempt.number} of {task.id}."
        try:
            await commit_work(self.workspace, message)
        except MidwatchError as error:
            log.error("the work stays uncommitted in %s: %s", self.workspace.folder, error)
            return str(error)
        return ""
