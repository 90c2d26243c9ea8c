"""`Watch`: the capability that puts a pydantic-ai agent under watch."""

import asyncio
import copy
import logging
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AgentToolset

from midwatch_monitor.bus import Bus, LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import journal_clock
from midwatch_monitor.recorder import Clock, Recorder
from midwatch_monitor.records import AttemptTransition, Budget, Ending, Lifecycle, TaskTransition
from midwatch_monitor.secrets.masking import known_secrets
from midwatch_tools.data_blocks import code
from midwatch_tools.embedding import begin_attempt, title_of
from midwatch_tools.final_look import look_again
from midwatch_tools.gate.gate import gate_of
from midwatch_tools.inbox import Inbox
from midwatch_tools.instructions import code_in, protocol
from midwatch_tools.journal_location import journal_location
from midwatch_tools.pauses import Pause, listen
from midwatch_tools.session import ModelFor, Session, Switch, model_before
from midwatch_tools.site import Check, Site
from midwatch_tools.tool_calls import UNWATCHED, Acts, Remembered
from midwatch_tools.tools.board import Board, ReadBoard
from midwatch_tools.tools.check_plan import CheckPlan
from midwatch_tools.tools.complete_step import CompleteStep
from midwatch_tools.tools.facts import Facts
from midwatch_tools.tools.record_fact import RecordFact
from midwatch_tools.tools.reflect import NAMES, OwnTools
from midwatch_tools.tools.report_error import ReportFailure
from midwatch_tools.tools.request_budget import RequestBudget
from midwatch_tools.tools.search_facts import SearchFacts
from midwatch_tools.tools.toolset import WorkerToolset
from midwatch_tools.tree import Ignored, Tree, ignored_below

_CANCELLED = (Lifecycle.CANCELED, Ending.CANCELED, "cancelled")

log = logging.getLogger(__name__)


def now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)


class Watch(AbstractCapability[Any]):
    """Watches, records and delivers; it decides nothing.

    `Agent(model, capabilities=[Watch()])` is all that an agent needs: each of its runs becomes an
    attempt in the journal. If the journal cannot be used, the agent works on unwatched, and a log
    line says so. A runner that owns the attempt passes its `recorder`; then nothing is swallowed.
    """

    def __init__(
        self,
        *,
        name: str = "agent",
        root: Path | None = None,
        journal: str | None = None,
        settings: Settings | None = None,
        recorder: Recorder | None = None,
        bus: Bus | None = None,
        clock: Clock = now,
        seconds: Callable[[], float] = time.monotonic,
        check: Check | None = None,
        model_for: ModelFor | None = None,
        board: Board | None = None,
        facts: Facts | None = None,
        ignored_by_git: Ignored | None = None,
        draw: Callable[[], str] = code,
    ) -> None:
        """Set up the watch; nothing is opened before a run begins.

        Args:
            name: What the task is called in the journal when Midwatch did not start it.
            root: The folder whose files the agent works on; without it, edits are read from the
                arguments of tools only.
            journal: Path or URL; by default found as everywhere in Midwatch.
            settings: Thresholds; by default the built-in ones.
            recorder: The voice of an attempt that somebody else has begun.
            bus: Where hints go.
            clock: What time it is here; over PostgreSQL, the database's time counts.
            seconds: A clock that never goes back, for the minutes of the budget.
            check: Runs acceptance commands of plan steps in the attempt's workspace.
            model_for: A model by its name, for an intervention that switches to another one.
            board: What other agents reported, for the worker to read.
            facts: What is known about the project, where somebody else has begun the attempt.
            ignored_by_git: Which files below `root` are nobody's edit, where somebody else has
                made the workspace.
            draw: Eight random hexadecimal digits, which Midwatch's messages to the worker bear.
        """
        super().__init__()
        self.name = name
        self._root = root
        self._journal = journal
        self.settings = settings or Settings()
        self._recorder = recorder
        self._bus = bus or LocalBus()
        self._clock = clock
        self._seconds = seconds
        self._check = check
        self._model_for = model_for
        self._board = board
        self._facts = facts
        self._ignored_by_git = ignored_by_git
        self._draw = draw
        self._code = draw()
        self._acts: Acts | None = None

    async def for_run(self, ctx: RunContext[Any]) -> "Watch":
        """A fresh instance for each run, so that two runs never mix; one attempt is one run."""
        return self if self._recorder is not None else copy.copy(self)

    def budget(self) -> Budget | None:
        """What the run has used by this moment, with what was granted; `None` before it begins."""
        return None if self._acts is None else self._acts.session.allowed()

    def get_instructions(self) -> Callable[[], str]:
        """The short protocol, after the agent's own instructions."""
        return lambda: protocol(self.settings.reflect, self._code, facts=self._with_facts)

    @property
    def _with_facts(self) -> bool:
        """Whether the worker may record facts: an attempt of its own gets them as it begins."""
        there = self._recorder is None or (self._facts is not None and self._facts.project != "")
        return there and self.settings.learning.facts.enabled

    def get_toolset(self) -> AgentToolset[Any]:
        """What the worker says of its work; more where somebody is there to answer."""
        toolset = WorkerToolset(lambda: self._acts is not None)
        own = OwnTools(self._present)
        toolset.add_function(own.reflect)
        # In order, that what follows in the turn knows of it.
        toolset.add_function(own.set_plan, sequential=True)
        toolset.add_function(ReportFailure(self._present).report_error, sequential=True)
        toolset.add_function(CheckPlan(self._present).check_plan, sequential=True)
        toolset.add_function(CompleteStep(self._present).complete_step, sequential=True)
        if self._recorder is not None:
            toolset.add_function(RequestBudget(self._present).request_budget, sequential=True)
        if self._board is not None:
            toolset.add_function(ReadBoard(self._board).read_board)
        if self._with_facts:
            record = RecordFact(self._known, self._present)
            toolset.add_function(record.record_fact, sequential=True)
            toolset.add_function(SearchFacts(self._known, self._present).search_facts)
        return toolset

    def _present(self) -> Acts:
        assert self._acts is not None  # else the toolset answers
        return self._acts

    def _known(self) -> Facts:
        assert self._facts is not None  # there before the first act
        return self._facts

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Open what the watch needs, and close it whatever happens."""
        if self._recorder is not None:
            await self._begin(ctx, self._recorder)
            try:
                return await handler()
            finally:
                self._stand_still()
        async with AsyncExitStack() as stack:
            recorder = await self._own_attempt(stack, ctx)
            if recorder is None:
                return await handler()
            return await self._until_the_end(recorder, handler)

    def _stand_still(self) -> None:
        """What comes between two runs of an attempt, an outage perhaps, is no work."""
        if self._acts is not None:
            self._acts.session.stop_clock()

    async def _own_attempt(self, stack: AsyncExitStack, ctx: RunContext[Any]) -> Recorder | None:
        """Begin an attempt of its own for an agent that Midwatch did not start."""
        where = journal_location(self._journal, os.environ, Path.cwd())
        try:
            journal = await stack.enter_async_context(
                await Journal.open(
                    where,
                    patience_seconds=self.settings.journal.patience_seconds,
                    secrets=known_secrets(os.environ, self.settings.secrets.patterns),
                )
            )
            recorder, self._facts = await begin_attempt(
                journal,
                name=self.name,
                title=title_of(ctx.prompt) or self.name,
                root=self._root,
                settings=self.settings,
                bus=self._bus,
                clock=await stack.enter_async_context(journal_clock(journal, self._clock)),
            )
            try:
                await self._begin(ctx, recorder)
            except asyncio.CancelledError:  # to look at a large workspace takes its time
                await self._tolerating(_ended(recorder, *_CANCELLED))
                raise
        except Exception:  # the watch may fail; the work must not
            log.exception("unwatched: the journal cannot be used")
            return None
        return recorder

    async def _until_the_end(
        self, recorder: Recorder, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Run an agent of somebody else, and store how it ended; its errors stay its own."""
        lifecycle, ending, reason = _CANCELLED
        try:
            result = await handler()
            lifecycle, ending, reason = Lifecycle.COMPLETED, Ending.DONE, "the agent finished"
            return result
        except Exception as error:
            lifecycle, ending = Lifecycle.FAILED, Ending.ERROR
            reason = f"{type(error).__name__}: {error}"
            raise
        finally:
            await self._tolerating(_ended(recorder, lifecycle, ending, reason))

    async def _begin(self, ctx: RunContext[Any], recorder: Recorder) -> None:
        journal, attempt = recorder.journal, recorder.attempt.id
        saved = await journal.messages(attempt)
        tree = None
        if self._root is not None:
            tree = Tree(
                self._root,
                max_files=self.settings.run.max_watched_files,
                ignored_by_git=self._ignored_by_git or ignored_below(self._root.resolve()),
            )
            await tree.begin()
        self._code = code_in(ctx.messages) or self._draw()
        switch = Switch(self._model_for)
        if (model := await model_before(recorder)) and (fault := switch.turn_to(model)):
            await recorder.record(fault)
        session = Session(
            recorder=recorder,
            inbox=Inbox(
                journal,
                self._bus,
                attempt,
                poll_seconds=self.settings.monitor.poll_seconds,
            ),
            settings=self.settings,
            code=self._code,
            saved=len(saved),
            # A conversation that the agent brings along was not made in this attempt.
            requests=sum(isinstance(each, ModelResponse) for each in ctx.messages) if saved else 0,
            seconds=self._seconds,
            site=Site(self._root, tree, self._check),
            switch=switch,
        )
        if ctx.messages and not saved:
            await session.bring_along(ctx.messages)
        remembered = Remembered(await journal.results(attempt))
        self._acts = Acts(
            session,
            remembered,
            tree,
            resumed=bool(saved),
            tolerate=self._tolerating,
            gate=await gate_of(recorder, self.settings, sees_files=tree is not None),
        )

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Deliver what is due; a pause holds here, and from here on another model may answer."""
        if self._acts is not None:
            await self._tolerating(self._acts.before_request(ctx))
            listen(self._pause)
        model = None if self._acts is None else self._acts.session.switch.model
        return request_context if model is None else replace(request_context, model=model)

    async def _pause(self, pause: Pause | None) -> None:
        if self._acts is not None:
            await self._tolerating(self._acts.session.paused(pause))

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        """Append the history after every node."""
        if self._acts is not None:
            await self._tolerating(self._acts.session.after_node(node, ctx.messages))
            look_again(ctx, result, self.settings.completion, self.budget(), self._code)
        return result

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Record the call, and have the rules judge it, before the model sees its result."""
        if self._acts is None:
            return await handler(args)
        try:
            return await self._acts.around(ctx, call, args, handler)
        except JournalError:
            # Its own tools read the journal: for somebody else's agent that is no reason to end.
            if self._recorder is not None or call.tool_name not in NAMES:
                raise
            log.exception("unwatched from here on: the journal cannot be read")
            self._acts = None
            return UNWATCHED

    async def on_tool_validate_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: Any,
        error: Any,
    ) -> dict[str, Any]:
        """Record a call that was refused for its arguments; the model is told why."""
        if self._acts is not None and isinstance(error, Exception | ModelRetry):
            await self._tolerating(self._acts.refused(ctx, call, error))
        raise error

    async def _tolerating(self, work: Awaitable[object]) -> None:
        """Do it; a failure here ends the watch of somebody else's agent, not its work."""
        try:
            await work
        except Exception:
            if self._recorder is not None:
                raise
            log.exception("unwatched from here on: the journal cannot be written")
            self._acts = None


async def _ended(recorder: Recorder, lifecycle: Lifecycle, ending: Ending, reason: str) -> None:
    """Store how an attempt ended that is all of its task."""
    await recorder.end(
        AttemptTransition(lifecycle=lifecycle, reason=reason, ending=ending),
        TaskTransition(lifecycle=lifecycle, reason=reason),
    )
