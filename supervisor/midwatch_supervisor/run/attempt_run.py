"""One attempt from its start to its end: the worker works, and whoever may end it is heard."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from midwatch_agents.left_processes import end_all_leftovers, end_leftovers, process_mark
from midwatch_agents.prompt import PastAttempt, first_prompt
from midwatch_agents.worker import Station
from midwatch_monitor.errors import (
    BudgetSpentError,
    JournalCorruptError,
    MidwatchError,
    ProviderRefusedError,
    StaleIncarnationError,
    WorkerError,
    WorkspaceError,
)
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import (
    Acceptance,
    Activity,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Checkpoint,
    Completion,
    Ending,
    Fault,
    Keeper,
    Lifecycle,
    Plan,
    Record,
    Step,
    Task,
)
from midwatch_monitor.shielding import finish_before_cancel, heed
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.run.attempt_end import Ended, end_asked_for, overtime, result, undoable
from midwatch_supervisor.run.attempt_start import budget_of, circumstances, outline_plan, own_plan
from midwatch_supervisor.run.completion import FinishedWork, check_in, finish
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.parking import (
    ParkedQuestion,
    hung,
    park,
    park_refused,
    passes,
    raise_refusal,
    sit_out,
    tell_of,
)
from midwatch_supervisor.run.task_agents import TaskAgents
from midwatch_supervisor.workspaces.changes import changed_files, list_files, records
from midwatch_supervisor.workspaces.snapshot_writer import SnapshotWriter
from midwatch_supervisor.workspaces.workspace import Workspace, keep
from midwatch_tools.attempt_watch import AttemptWatch, Reach
from midwatch_tools.data_blocks import DataBlocks
from midwatch_tools.inbox import Inbox
from midwatch_tools.instructions import outline
from midwatch_tools.pauses import listen
from midwatch_tools.tools.board import Board
from midwatch_tools.tools.facts import Facts
from midwatch_tools.tree import ignored_in

log = logging.getLogger(__name__)

_LEFT = frozenset({Ending.RESTARTED, Ending.SPLIT, Ending.UNACCEPTED})
"""Endings after which others go on; nothing of the work may get lost by that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """The work does not go on by itself: it has ended, or it hangs and a person is asked."""

    ended: Ended | None
    questions: tuple[ParkedQuestion, ...] = ()
    budget: Budget | None = None
    """What was used by then."""
    abandoned: bool = False
    """Whether the worker had to be given up, because it does not let go."""


@dataclass(slots=True, kw_only=True)
class AttemptRun:
    """Attends one attempt. It holds the worker's task and the means to cancel it."""

    resources: RunResources
    task: Task
    assignment: Assignment
    agents: TaskAgents
    attempt: Attempt
    workspace: Workspace
    past: tuple[PastAttempt, ...] = ()
    spent: Budget | None = None
    """What the attempt before left of the task's budget, with what it was granted."""
    plan: Plan | None = None
    """The plan to go on with, where work was kept; else the task's own."""
    recorder: Recorder | None = None
    """The attempt's voice, once it is attended."""
    inbox: Inbox | None = None
    """What was said to it, once that was read since it waits for a person."""
    busy: Recorder | None = None
    """By whose voice the worker is at work, and not its planner or the checks."""
    snapshot_writer: SnapshotWriter = field(init=False)

    def __post_init__(self) -> None:
        self.snapshot_writer = SnapshotWriter(self.resources.snapshot_store, self.workspace)

    @property
    def parked(self) -> bool:
        """Whether the attempt waits for a person who has not spoken yet."""
        if self.recorder is None or self.inbox is None or self.inbox.answered:
            return False
        return self.recorder.lifecycle is Lifecycle.INPUT_REQUIRED

    async def attend(self) -> Ended:
        """Run the attempt, or go on with it, until it has ended; the end is in the journal.

        Cancelling this leaves the attempt as it is, to be resumed.
        """
        recorder = self.recorder = await self._claim()
        await end_all_leftovers(str(self.workspace.folder))  # of a process that was killed
        if self.resources.snapshot_store is not None:  # by now nobody else writes its steps
            await self.resources.snapshot_store.tell(
                self.attempt, self.workspace, incarnation=recorder.incarnation
            )
        fleet = self.resources.run.keeper is Keeper.MONITOR
        # It may have been elsewhere.
        here = Change(
            node=self.resources.node if fleet else None, sandbox=self.resources.sandbox_kind.value
        )
        if recorder.lifecycle is Lifecycle.SUBMITTED:
            await recorder.record(*self._begin_records(), here, *await self._confidence())
        elif recorder.lifecycle is Lifecycle.WORKING:
            # It goes on after a break: that time was no silence.
            await recorder.record(Change(lifecycle=Lifecycle.WORKING), here)
        else:
            await recorder.record(here)
        while (halt := await self._until_halted(recorder)).ended is None:
            recorder = self.recorder = await self._park(halt, recorder)
        return await self._close(halt.ended, recorder, abandoned=halt.abandoned)

    @property
    def _mark(self) -> str:
        """Of what this incarnation starts: whoever has lost the attempt must end nothing else."""
        incarnation = 0 if self.recorder is None else self.recorder.incarnation
        return process_mark(str(self.workspace.folder), incarnation)

    async def _claim(self) -> Recorder:
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

    async def _confidence(self) -> tuple[Change, ...]:
        """Whether the rules must not go by what the worker will state of its confidence."""
        found = await self.resources.calibrator.separation(self.attempt.model)
        useful = self.resources.settings.reflect.useful_confidence
        if found is None or not found.worthless(useful):
            return ()
        return (Change(confidence_counts=False),)

    async def _first_prompt(self, recorder: Recorder, board: Board) -> str:
        """What introduces the worker to its work; what is in it of lessons and facts is in the
        journal by then.

        Has the planner write the plan first, unless there is one; it reads what was learned too.
        """
        blocks, learning = DataBlocks.with_new_code(), self.resources.learning
        learned, records = await learning.recall(
            self.task, self.assignment, self.attempt, recorder.plan, blocks
        )
        if records:
            await recorder.record(*records)
        if not recorder.plan.steps:
            await self._outline(recorder, learned)
        # A planner has read how similar tasks went; its plan says what follows from it.
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

    async def _outline(self, recorder: Recorder, learned: str) -> None:
        """Have the planner write the plan."""
        went = await self.resources.learning.precedents(self.task)
        plan, record = await outline_plan(
            self.agents.planner,
            self.assignment,
            past=self.past,
            precedents="\n\n".join(filter(None, (went, learned))),
            listing=await list_files(self.workspace),
            settings=self.resources.settings,
        )
        begun = circumstances(plan, recorder.budget, self.resources.settings)
        await recorder.record(record, *begun)

    # -- the work --------------------------------------------------------------------------

    def _watch(self, recorder: Recorder, board: Board) -> AttemptWatch:
        foreign = self.agents.worker(self.attempt.worker, self.attempt.model).foreign
        return AttemptWatch(
            recorder,
            root=self.workspace.folder,
            settings=self.resources.settings,
            bus=self.resources.bus,
            check=self._check,
            model_for=self.agents.model_named(self.attempt.worker),
            board=board,
            facts=self._facts(),
            ignored_by_git=ignored_in(self.workspace.worktree),
            # What an agent of another maker does, it has done when we hear of it.
            reach=Reach(gated=not foreign, foreign=foreign),
        )

    def _facts(self) -> Facts:
        """What is known about the project. New facts wait for a review, or for a person."""
        return Facts(
            journal=self.resources.journal,
            task=self.task,
            attempt=self.attempt,
            reviewed=self.resources.learning.reviews_facts(self.assignment),
        )

    async def _check(self, commands: Sequence[str]) -> tuple[Acceptance, ...]:
        """Run the acceptance commands of a plan step where the attempt works."""
        return await check_in(self.resources, self.workspace, commands)

    async def _work(self, watch: AttemptWatch, recorder: Recorder, board: Board) -> Ended:
        """The worker's work and the acceptance checks after it."""
        listen(tell_of(recorder))
        try:
            history = await self._history()
            prompt = None if history else await self._first_prompt(recorder, board)
            self.busy = recorder
            await self._run(prompt, history, watch, recorder)
        except ProviderRefusedError as error:
            await park_refused(recorder, error)
            raise
        except BudgetSpentError as error:
            return Ended(ending=Ending.OUT_OF_BUDGET, reason=str(error))
        except WorkerError as error:
            return Ended(ending=Ending.ERROR, reason=str(error))
        finally:
            if self.busy is recorder:  # who was given up may end when its successor is at work
                self.busy = None
        await recorder.record(Change(activity=Activity.COMMAND, doing="the acceptance checks"))
        try:
            done = await self._read_work(recorder)
        except WorkspaceError as error:
            return Ended(ending=Ending.ERROR, reason=str(error))
        return await finish(
            self.resources, self.assignment, self.workspace, done, self.agents.reviewer
        )

    async def _run(
        self,
        prompt: str | None,
        history: list[ModelMessage],
        watch: AttemptWatch,
        recorder: Recorder,
    ) -> None:
        """The worker's run; after an outage of its provider it goes on where it was.

        Raises as `Worker.run` does, for an outage only when there are too many in a row.
        """
        worker = self.agents.worker(self.attempt.worker, self.attempt.model)
        outages = 0
        while True:
            try:
                await worker.run(prompt, station=self._station(), watch=watch, history=history)
                return
            except WorkerError as error:
                known, history = len(history), await self._history()
                if not history and worker.own_model is not None:
                    raise_refusal(error, self.resources.breakers, worker.own_model)
                outages = 1 if len(history) > known else outages + 1
                if outages >= self.resources.settings.provider.max_outages or not passes(error):
                    raise
                prompt = None if history else prompt
                seconds = self.resources.settings.provider.breaker_seconds
                await sit_out(recorder, error, seconds)

    def _station(self) -> Station:
        return Station(
            paths=self.resources.sandbox_paths(self.workspace),
            sandbox_kind=self.resources.sandbox_kind,
            network=self.resources.settings.run.network,
            mark=self._mark,
        )

    async def _history(self) -> list[ModelMessage]:
        """What was said so far. Raises WorkerError where it cannot be gone on with."""
        journal, attempt = self.resources.journal, self.attempt.id
        try:
            saved = await journal.messages(attempt)
            await journal.results(attempt)  # the watch gives them to the worker
            return [
                message
                for each in saved
                for message in ModelMessagesTypeAdapter.validate_json(each.body)
            ]
        except JournalCorruptError as error:
            raise WorkerError(f"the attempt cannot go on where it was: {error}") from error
        except ValidationError as error:  # which says what stands there
            broken = f"its history holds no messages ({count_noun(error.error_count(), 'error')})"
            raise WorkerError(f"the attempt cannot go on where it was: {broken}") from None

    async def _read_work(self, recorder: Recorder) -> FinishedWork:
        """What the worker leaves, and how sure it last said it was."""
        stated: int | None = None
        async for record in records(self.resources.journal, self.attempt, (Step, Completion)):
            match record:
                case Step(checkpoint=Checkpoint(confidence=confidence)):
                    stated = confidence
                case Completion(confidence=confidence):
                    stated = confidence
                case _:
                    pass
        bare = self.assignment.bare
        files = await changed_files(self.resources.journal, self.attempt, self.workspace, bare=bare)
        return FinishedWork(plan=recorder.plan, changed=files, stated=stated)

    # -- until it ends ---------------------------------------------------------------------

    async def _until_halted(self, recorder: Recorder) -> Halt:
        """Have the work done until it ends, or hangs and a person is asked."""
        board = Board(journal=self.resources.journal, task=self.task, attempt=self.attempt)
        watch = self._watch(recorder, board)
        work = asyncio.create_task(self._work(watch, recorder, board))
        work.add_done_callback(heed)  # the journal may fail it and us at the same time
        try:
            heard = await self._wait_for_end(work, watch, recorder)
            self.inbox = None  # it waits for nobody while what was heard is carried out
            budget = watch.budget()
            gone = await self._gone(work)
            await end_leftovers(self._mark)
        except StaleIncarnationError:
            await self._gone(work)  # and what bears the mark now is the other process's
            raise
        except BaseException:
            await finish_before_cancel(self._leave(work))
            raise
        ended, questions = (heard, ()) if isinstance(heard, Ended) else (None, heard)
        return Halt(ended=ended, questions=questions, budget=budget, abandoned=not gone)

    async def _wait_for_end(
        self, work: "asyncio.Task[Ended]", watch: AttemptWatch, recorder: Recorder
    ) -> Ended | tuple[ParkedQuestion, ...]:
        """Wait for the work, or for what ends it at once."""
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
                if refused := undoable(due, recorder.last_step, divisible=divisible):
                    await recorder.record(*refused)
                    continue
                ended = end_asked_for(due, recorder.last_step, divisible=divisible)
                ended = ended or overtime(watch.budget(), due)
                if ended is not None:
                    return ended
                if self._hangs(recorder) and (questions := hung(due)):
                    return questions
                heard = asyncio.create_task(hints.wait(poll_seconds))
                await asyncio.wait({work, heard}, return_when=asyncio.FIRST_COMPLETED)
                heard.cancel()
                if work.done():
                    return result(work)
                self.snapshot_writer.wake()
                if not heard.result():
                    await recorder.record()  # refused if another process has taken it over

    async def _leave(self, work: "asyncio.Task[Ended]") -> None:
        """End what is under way, and save it for whoever goes on with the attempt."""
        await self._gone(work)
        await end_leftovers(self._mark)
        await self.snapshot_writer.leave()

    async def _gone(self, work: "asyncio.Task[Ended]") -> bool:
        """Cancel the work if it still runs; answers whether it has really ended."""
        work.cancel()
        _, pending = await asyncio.wait({work}, timeout=self.resources.settings.run.grace_seconds)
        return not pending

    def _hangs(self, recorder: Recorder) -> bool:
        """Whether a question to a person would not be heard in time by the worker itself."""
        return self.busy is recorder and recorder.lifecycle is Lifecycle.WORKING

    async def _park(self, halt: Halt, recorder: Recorder) -> Recorder:
        """Store that a hung attempt waits for a person; its voice from here on."""
        # What was being written as it was cut off is in the journal by then, or refused.
        recorder = await self._claim()
        inbox = Inbox(self.resources.journal, self.resources.bus, self.attempt.id, poll_seconds=0)
        due = {id for id, _ in await inbox.due()}
        # It may have come to its next request after all, and have parked itself.
        if questions := [each for each in halt.questions if each[0] in due]:
            history = await self._history()
            await park(recorder, questions, budget=halt.budget, history=history)
        return recorder

    # -- the end ---------------------------------------------------------------------------

    async def _close(self, ended: Ended, recorder: Recorder, *, abandoned: bool) -> Ended:
        """Store the end. A worker that does not let go loses its voice first."""
        if ended.ending is Ending.DONE and (fault := await self._keep("By Midwatch,")):
            ended = replace(ended, ending=Ending.ERROR, reason=f"its work is on no branch: {fault}")
        elif ended.ending in _LEFT:
            await self._keep("Not accepted: by Midwatch,")
        more = ended.records
        if abandoned:
            recorder = await self._claim()
            more = (*more, Fault(part="worker", error="it did not end when it was canceled"))
        state = AttemptTransition(
            lifecycle=ended.lifecycle, reason=ended.reason, ending=ended.ending
        )
        await recorder.end(state, *more)
        return ended

    async def _keep(self, by: str) -> str:
        """Commit the work on its branch; why that could not be, or nothing."""
        task = self.assignment.task
        message = f"{task.label}\n\n{by} attempt {self.attempt.number} of {task.id}."
        try:
            await keep(self.workspace, message)
        except MidwatchError as error:
            log.exception("the work stays uncommitted in %s", self.workspace.folder)
            return str(error)
        return ""
