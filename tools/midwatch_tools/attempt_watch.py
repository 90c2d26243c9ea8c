"""`AttemptWatch`: the capability that watches one run of an agent for an attempt in the journal."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AgentToolset

from midwatch_monitor.budget import meters
from midwatch_monitor.bus import Bus, LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Activity, Budget, PermissionRequest
from midwatch_monitor.state.intervention import InterventionState
from midwatch_tools.data_blocks import code
from midwatch_tools.final_look import ask_before_end
from midwatch_tools.gate.gate import gate_of
from midwatch_tools.inbox import Inbox, stamp
from midwatch_tools.instructions import code_in, protocol, without_reminders
from midwatch_tools.model_switch import ModelFor, Switch, model_before
from midwatch_tools.observation import as_called
from midwatch_tools.pauses import Pause, listen
from midwatch_tools.plan_change import is_written
from midwatch_tools.session import Hold, Session, WatchScope
from midwatch_tools.tool_calls import CallUnderWay, KeptResults, ToolCallWatch
from midwatch_tools.tools.board import Board, ReadBoard
from midwatch_tools.tools.facts import Facts, FactTools, look_up
from midwatch_tools.tools.plan_tools import PlanTools
from midwatch_tools.tools.reflect import ReflectTool
from midwatch_tools.tools.report_error import ReportErrorTool
from midwatch_tools.tools.request_budget import RequestBudgetTool
from midwatch_tools.tools.toolset import PLAN_TOOLS, WorkerToolset, useful_tools
from midwatch_tools.tree import Ignored, Tree, ignored_below
from midwatch_tools.workspace_checks import RunChecks, WorkspaceChecks


class AttemptWatch(AbstractCapability[Any]):
    """Watches, records and delivers for an attempt that a runner owns; decides nothing.

    Errors in the watch are raised: the runner decides what happens to the attempt.
    """

    prompt = False
    """Whether each act is stored before the work continues, even if the attempt is not resumable.
    """

    def __init__(
        self,
        recorder: Recorder | None,
        *,
        root: Path | None = None,
        settings: Settings | None = None,
        bus: Bus | None = None,
        seconds: Callable[[], float] = time.monotonic,
        check: RunChecks | None = None,
        model_for: ModelFor | None = None,
        board: Board | None = None,
        facts: Facts | None = None,
        ignored_by_git: Ignored | None = None,
        draw: Callable[[], str] = code,
        reach: WatchScope | None = None,
    ) -> None:
        """Set up the watch of one run.

        Args:
            recorder: Writes the records of the attempt.
            root: The folder whose files the agent works on; without it, edits are only read from
                the arguments of tools.
            settings: Thresholds; by default the built-in ones.
            bus: Where hints are published.
            seconds: A monotonic clock, for the minutes of the budget.
            check: Runs acceptance commands of plan steps in the attempt's workspace.
            model_for: Finds a model by name, for interventions that switch to another one.
            board: What other agents have reported, for the worker to read.
            facts: What is known about the project.
            ignored_by_git: Which files below `root` do not count as edits; by default, git says.
            draw: Eight random hexadecimal digits, which mark Midwatch's messages to the worker.
            reach: How much the watch does; by default everything.
        """
        super().__init__()
        self.settings = settings or Settings()
        self._recorder = recorder
        self._root = root
        self._bus = bus or LocalBus()
        self._seconds = seconds
        self._check = check
        self._model_for = model_for
        self._board = board
        self._facts = facts
        self._ignored_by_git = ignored_by_git
        self._draw = draw
        self._code = draw()
        self._acts: ToolCallWatch | None = None
        self._tools: frozenset[str] = frozenset()
        self._reach = reach or WatchScope()
        self.hold: Hold | None = None
        """Pauses a worker that would otherwise continue while its work waits for a person."""
        self.call_person: Callable[[str], None] | None = None
        """Gets the questions of a supervisor to a person; without it, the work waits for answers.
        """

    def budget(self) -> Budget | None:
        """Return the budget used so far by the run, with grants; `None` before it begins."""
        return None if self._acts is None else self._acts.session.allowed_budget()

    async def permit(self, tool: str, what: str, withdrawn: "asyncio.Future[bool | None]") -> bool:
        """Return whether a person lets the worker do something; the attempt waits for the answer.

        What was allowed before an interruption is allowed once more without asking. Returns False
        if nobody can be asked, or if `withdrawn` is done before there is an answer.
        """
        if self._acts is None or (inbox := self._acts.session.inbox) is None:
            return False
        session, recorder = self._acts.session, self._acts.session.recorder
        asked = PermissionRequest(tool=tool, what=what, step=recorder.last_step)
        asked = recorder.journal.masker.record(asked)  # as the journal has it
        await inbox.due()
        if (given := inbox.interventions.allowance(asked)) is not None:
            await recorder.record(stamp(given.id, recorder.last_step))
            return True
        await session.stand_still(f"asks to {asked.what}", asked)
        answer = await _wait_for_answer(inbox, withdrawn)
        if answer is None:
            await session.go_on(Activity.COMMAND, why="the worker no longer asks")
            return False
        allowed = answer.intervention.permits
        # A refusal is delivered as guidance, in the person's own words.
        stamps = (stamp(answer.id, recorder.last_step),) if allowed else ()
        await session.go_on(Activity.COMMAND, *stamps)
        return allowed

    @property
    def tools(self) -> Collection[str]:
        """The tools that this run can use.

        They are fixed when it begins, so that the provider's cache stays valid; the plan tools are
        added once a supervisor has written a plan.
        """
        if self._acts is None or self._reach.tools != "all":
            return self._tools
        plan = self._acts.session.recorder.plan
        return self._tools | PLAN_TOOLS if is_written(plan) else self._tools

    def get_instructions(self) -> Callable[[], str] | str:
        """Return the short protocol that follows the agent's own instructions."""
        return self._instructions

    def _instructions(self) -> str:
        tools = self.tools
        if not tools:
            return ""
        return protocol(self.settings.reflect, self._code, tools, gated=self._reach.gated)

    def get_toolset(self) -> AgentToolset[Any]:
        """Return Midwatch's tools; a run is offered the ones that it can use."""
        present = self._tool_call_watch
        plans = PlanTools(present)
        facts = FactTools(self._known_facts, present)
        return WorkerToolset(
            {
                "reflect": ReflectTool(present).reflect,
                "set_plan": plans.set_plan,
                "report_error": ReportErrorTool(present).report_error,
                "check_plan": plans.check_plan,
                "complete_step": plans.complete_step,
                "request_budget": RequestBudgetTool(present).request_budget,
                "read_board": ReadBoard(self._board).read_board,
                "record_fact": facts.record_fact,
                "search_facts": facts.search_facts,
            },
            watched=lambda: self._acts is not None,
            offered=lambda: self.tools,
        )

    def _tool_call_watch(self) -> ToolCallWatch:
        assert self._acts is not None  # else the toolset answers
        return self._acts

    def _known_facts(self) -> Facts:
        assert self._facts is not None  # set before the first act
        return self._facts

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Start the watch, run the agent, and stop the clock at the end."""
        assert self._recorder is not None
        self._code = code_in(ctx.messages) or self._draw()
        await self._open_session(ctx, self._recorder)
        try:
            return await handler()
        finally:
            # Time between two runs of an attempt, such as an outage, is not work.
            if self._acts is not None:
                self._acts.session.stop_clock()

    async def _open_session(self, ctx: RunContext[Any], recorder: Recorder) -> None:
        journal, attempt = recorder.journal, recorder.attempt.id
        saved = await journal.messages(attempt) if self._reach.resumable else []
        tree = await self._tree()
        steered, poll = self._reach.steered, self.settings.monitor.poll_seconds
        switch = Switch(self._model_for)
        if (model := await model_before(recorder)) and (fault := switch.turn_to(model)):
            await recorder.record(fault)
        session = Session(
            recorder=recorder,
            inbox=Inbox(journal, self._bus, attempt, poll_seconds=poll) if steered else None,
            settings=self.settings,
            code=self._code,
            saved=len(saved),
            # A conversation that the agent brings along is not part of this attempt.
            requests=sum(isinstance(each, ModelResponse) for each in ctx.messages) if saved else 0,
            seconds=self._seconds,
            site=WorkspaceChecks(self._root, tree, self._check),
            switch=switch,
            reach=self._reach,
            prompt=self.prompt,
            hold=self.hold,
            call_person=self.call_person,
        )
        if ctx.messages and not saved:
            await session.bring_along(ctx.messages)
        self._tools = await self._useful_tools(recorder)
        self._acts = ToolCallWatch(
            session,
            KeptResults(await journal.results(attempt) if self._reach.resumable else ()),
            tree,
            resumed=bool(saved),
            foreign=self._reach.foreign,
            tolerate=self._tolerate,
            entrance=await gate_of(
                recorder, self.settings, sees_files=tree is not None, gated=self._reach.gated
            ),
        )

    async def _tree(self) -> Tree | None:
        if self._root is None:
            return None
        tree = Tree(
            self._root,
            max_files=self.settings.run.max_watched_files,
            ignored_by_git=self._ignored_by_git or ignored_below(self._root.resolve()),
        )
        await tree.begin()
        return tree

    async def _useful_tools(self, recorder: Recorder) -> frozenset[str]:
        """Return the tools that this run can use, except the plan tools."""
        facts = self._facts
        kept = facts is not None and bool(facts.project) and self.settings.learning.facts.enabled
        return useful_tools(
            gated=self._reach.gated,
            limited=any(meter.limit is not None for _, meter in meters(recorder.budget)),
            others=self._board is not None and await self._board.others(),
            facts=kept,
            known=kept and await self._knows_facts(recorder),
        )

    async def _knows_facts(self, recorder: Recorder) -> bool:
        """Whether anything is already known about the project."""
        return bool(await look_up(self._known_facts().search("", ()), recorder))

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Deliver what is due, waiting here if paused, and switch the model if ordered."""
        if self._acts is not None:
            session = self._acts.session
            await self._tolerate(self._acts.before_request(ctx))
            if session.forgets:
                session.forgets = False
                messages = without_reminders(request_context.messages)
                request_context = replace(request_context, messages=messages)
            listen(self._pause)
        model = None if self._acts is None else self._acts.session.switch.model
        return request_context if model is None else replace(request_context, model=model)

    async def _pause(self, pause: Pause | None) -> None:
        if self._acts is not None:
            await self._tolerate(self._acts.session.note_pause(pause))

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        """Append new messages to the history after every node."""
        if self._acts is not None:
            await self._tolerate(self._acts.session.after_node(node, ctx.messages))
            ask_before_end(ctx, result, self.settings.completion, self.budget(), self._code)
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
        made = as_called(call)
        if made is call:
            return await self._acts.around(CallUnderWay(ctx=ctx, call=call, args=args), handler)
        act = CallUnderWay(ctx=ctx, call=made, args=made.args_as_dict())
        return await self._acts.around(act, lambda _: handler(args))

    async def on_tool_validate_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: Any,
        error: Any,
    ) -> dict[str, Any]:
        """Record a call that was refused because of its arguments; the model is told why."""
        if self._acts is not None and isinstance(error, Exception | ModelRetry):
            await self._tolerate(self._acts.record_invalid(ctx, call, error))
        raise error

    async def _tolerate(self, work: Awaitable[object]) -> None:
        """Await work of the watch itself; `Watch` overrides this to survive its errors."""
        await work


async def _wait_for_answer(
    inbox: Inbox, withdrawn: "asyncio.Future[bool | None]"
) -> InterventionState | None:
    """Wait for the answer to the newest question; `None` if the question is withdrawn first."""
    waiting = asyncio.create_task(inbox.wait())
    try:
        await asyncio.wait({waiting, withdrawn}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            return None
        waiting.result()
    finally:
        waiting.cancel()
    return inbox.interventions.answer(inbox.interventions.permission)
