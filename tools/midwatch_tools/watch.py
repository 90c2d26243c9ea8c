"""`Watch`: the capability that watches a pydantic-ai agent."""

import asyncio
import copy
import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial
from importlib import import_module
from inspect import isawaitable
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic_ai import FunctionToolset
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ToolCallPart
from pydantic_ai.models import Model, infer_model
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext, ToolDefinition

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.section import LONGEST_NAME
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import Clock, journal_clock, now
from midwatch_monitor.journal.fleet.run_lock import forget_lock, hold_run
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Alert,
    AttemptTransition,
    Ending,
    Entry,
    Lifecycle,
    Severity,
    TaskTransition,
)
from midwatch_monitor.secrets.masking import known_secrets
from midwatch_tools.attempt_watch import AttemptWatch
from midwatch_tools.data_blocks import code
from midwatch_tools.embedding import Embedded, begin_attempt, parent_of_run, title_of
from midwatch_tools.instructions import code_in, protocol
from midwatch_tools.journal_location import journal_location
from midwatch_tools.session import WatchScope
from midwatch_tools.tool_calls import UNWATCHED
from midwatch_tools.tools.toolset import NAMES, WorkerToolset, useful_tools

_CANCELED = (Lifecycle.CANCELED, Ending.CANCELED, "canceled")
_LEVELS = {
    Severity.NOTICE: logging.INFO,
    Severity.WARNING: logging.WARNING,
    Severity.CRITICAL: logging.ERROR,
}

_LATER = frozenset({"search_facts"})
"""Offered with `record_fact`, once there are facts."""

_REST_SECONDS = 0.25
"""Seconds between two looks for guidance, so at most four a second."""

OnAlert = Callable[[Alert], object]
OnWaiting = Callable[[str], object]

log = logging.getLogger(__name__)
T = TypeVar("T")


def _require_known(argument: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise UsageError(f"Watch({argument}={given!r}): expected one of {', '.join(known)}")


def _require_callable(argument: str, given: object) -> None:
    if given is not None and not callable(given):
        raise UsageError(f"Watch({argument}={given!r}): expected something to call")


def _supervisor_model(given: str | Model | None) -> str | Model | None:
    """Return the model of a supervisor, so that a wrong name or a missing key is found at once."""
    if given is None or given == "policy":
        return given
    try:
        return infer_model(given)
    except UserError as error:
        if isinstance(given, Model) or ":" in given:
            raise
        raise UsageError(
            f"Watch(supervisor={given!r}): expected policy or the name of a model: {error}"
        ) from error


def _require_name(name: str) -> None:
    if not any(map(str.isalpha, name)):
        raise UsageError(f"Watch(name={name!r}): a name needs at least one letter")
    if len(name) > LONGEST_NAME:
        raise UsageError(f"Watch(name=…): a name has at most {LONGEST_NAME} characters")


class Watch(AttemptWatch):
    """Watches your agent: each of its runs becomes an attempt in the journal.

    `Agent(model, capabilities=[Watch()])` is all it needs. If the journal cannot be used, the agent
    continues unwatched, and a log line says so. A sub-agent with its own `Watch`, run by a tool of
    this agent, becomes a task of the same run.
    """

    finished = "the agent finished"
    """The reason stored for a run that ended without an error."""

    def __init__(
        self,
        *,
        name: str = "agent",
        root: Path | str | None = None,
        journal: Path | str | None = None,
        settings: Settings | None = None,
        mode: Literal["steer", "observe"] = "steer",
        tools: Literal["all", "reflect"] = "all",
        gates: bool = False,
        supervisor: str | Model | None = None,
        on_alert: OnAlert | None = None,
        on_waiting: OnWaiting | None = None,
        bus: Bus | None = None,
        clock: Clock = now,
        seconds: Callable[[], float] = time.monotonic,
        draw: Callable[[], str] = code,
    ) -> None:
        """Set up the watch; nothing is opened before a run begins.

        Raises UsageError for an unknown mode, set of tools or supervisor, a callback that cannot be
        called, a name without a letter or with more than 80 characters, or a root that is not a
        folder.

        Args:
            name: The task's name in the journal.
            root: The folder whose files the agent works on; without it, edits are only read from
                the arguments of tools.
            journal: Path or URL; by default found as everywhere in Midwatch.
            settings: Thresholds; by default the built-in ones.
            mode: `observe` only watches: no tools, no instructions, no messages to the agent.
            tools: `reflect` offers only that tool.
            gates: Whether calls may be refused until a failure is analysed.
            supervisor: Who answers alerts in this process: `policy`, or a model in any form that
                pydantic-ai takes. By default a running `midwatch monitor`, if there is one.
            on_alert: Called with each alert when it fires or gets worse. It may be asynchronous:
                the agent keeps working, and its run ends once the callback is done.
            on_waiting: Called likewise, with the reason, when a run starts waiting for a person, or
                with the question when its supervisor asks a person, for whom it does not wait.
            bus: Where hints are published.
            clock: The current time; with PostgreSQL, the database's time counts.
            seconds: A monotonic clock, for the minutes of the budget.
            draw: Eight random hexadecimal digits, which mark Midwatch's messages to the worker.
        """
        _require_known("mode", mode, ("steer", "observe"))
        _require_known("tools", tools, ("all", "reflect"))
        _require_callable("on_alert", on_alert)
        _require_callable("on_waiting", on_waiting)
        if gates not in (True, False):
            raise UsageError(f"Watch(gates={gates!r}): expected True or False")
        _require_name(name)
        root = None if root is None else Path(root)
        if root is not None and not root.is_dir():
            raise UsageError(f"Watch(root=…): {root} is not a folder")
        observes = mode == "observe"
        super().__init__(
            None,
            root=root,
            settings=settings,
            bus=bus,
            seconds=seconds,
            draw=draw,
            reach=WatchScope(
                tools="none" if observes else tools,
                gated=gates and not observes,
                steered=not observes,
                resumable=False,
                rest_seconds=_REST_SECONDS,
            ),
        )
        self.name = name
        self._journal = None if journal is None else str(journal)
        self._clock = clock
        self._supervisor = _supervisor_model(supervisor)
        self._on_alert = on_alert
        self._on_waiting = on_waiting

    async def for_run(self, ctx: RunContext[Any]) -> "Watch":
        """Return a fresh instance for each run, so that two runs never mix."""
        fresh = copy.copy(self)
        fresh.prepare(ctx.messages)
        fresh.observe_if_names_clash(_own_tools(ctx.agent))
        return fresh

    def prepare(self, messages: Sequence[ModelMessage]) -> None:
        """Choose the instructions and tools of a run, independently of the journal.

        A continued conversation keeps its code, so that the provider's cache stays valid.
        """
        self._code = code_in(messages) or self._draw()
        if self._reach.tools == "all":
            facts, gated = self.settings.learning.facts.enabled, self._reach.gated
            self._tools = useful_tools(
                gated=gated, limited=False, others=False, facts=facts, known=False
            )
        elif self._reach.tools == "reflect":
            self._tools = frozenset({"reflect"})

    def observe_if_names_clash(self, names: Collection[str]) -> None:
        """Only observe an agent whose own tools have the names of Midwatch's."""
        may_offer = self._tools | _LATER if "record_fact" in self._tools else self._tools
        if taken := sorted(may_offer.intersection(names)):
            log.warning(
                "%s has its own tool %s, so it is only observed: it gets no tools and no messages",
                *(self.name, ", ".join(taken)),
            )
            self._reach = replace(self._reach, tools="none", gated=False, steered=False)
            self._tools = frozenset()

    async def _useful_tools(self, recorder: Recorder) -> frozenset[str]:
        facts = "record_fact" in self._tools and await self._knows_facts(recorder)
        return self._tools | _LATER if facts else self._tools

    def get_instructions(self) -> str:
        """Return the short protocol as constant text: pydantic-ai treats dynamic instructions
        differently.
        """
        if not self._tools:
            return ""
        return protocol(self.settings.reflect, self._code, self._tools, gated=self._reach.gated)

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Open what the watch needs, run the agent, and close everything whatever happens."""
        async with AsyncExitStack() as stack:
            recorder = await self._own_attempt(stack, ctx)
            if recorder is None:
                return await handler()
            return await self._until_the_end(recorder, handler)

    async def _own_attempt(self, stack: AsyncExitStack, ctx: RunContext[Any]) -> Recorder | None:
        """Begin an attempt for an agent that Midwatch did not start; `None` if that fails."""
        self._calls: list[asyncio.Future[Any]] = []
        self._exited = ""
        stack.push_async_callback(self._finish_calls)
        try:
            embedded = await self._open_embedded(stack, title_of(ctx.prompt) or self.name)
            recorder, self._facts = embedded.recorder, embedded.facts
            recorder.listeners.append(self._tell_owner)
            if self._supervisor is not None:
                self.call_person = self._pass_on_question
            stack.enter_context(parent_of_run(embedded))
            try:
                await self._open_session(ctx, recorder)
            except asyncio.CancelledError:  # looking at a large workspace takes time
                await self._tolerate(_record_end(recorder, *_CANCELED))
                raise
            if self._supervisor is not None and embedded.parent is None:
                await stack.enter_async_context(self._supervise(embedded))
        except Exception:  # the watch may fail; the work must not
            log.exception("unwatched: the journal cannot be used")
            self._acts = None
            return None
        return recorder

    async def _open_embedded(self, stack: AsyncExitStack, title: str) -> Embedded:
        where = journal_location(self._journal, os.environ, Path.cwd())
        parent = Embedded.around(where)
        if parent is None:
            journal = await stack.enter_async_context(
                await Journal.open(
                    where,
                    patience_seconds=self.settings.journal.patience_seconds,
                    secrets=known_secrets(os.environ, self.settings.secrets.patterns),
                )
            )
            clock = await stack.enter_async_context(journal_clock(journal, self._clock))
        else:
            journal, clock = parent.recorder.journal, parent.recorder.clock
        embedded = await begin_attempt(
            journal,
            where=where,
            parent=parent,
            name=self.name,
            title=title,
            root=self._root,
            settings=self.settings,
            bus=self._bus,
            clock=clock,
            reflects=self._reach.tools != "none",
            supervised=self._supervisor is not None,
        )
        if parent is None:
            # This shows other processes whether this one is alive.
            run, seconds = embedded.run.id, self.settings.fleet.lease_seconds
            stack.push_async_callback(forget_lock, journal, run)
            await stack.enter_async_context(hold_run(journal, run, lease_seconds=seconds))
        return embedded

    def _supervise(self, embedded: Embedded) -> AbstractAsyncContextManager[None]:
        """Answer the alerts of the run in this process."""
        # Imported by name: the supervisor package depends on this one, not the other way round.
        module = import_module("midwatch_supervisor.run.embedded")
        return module.supervision(
            embedded, bus=self._bus, settings=self.settings, model=self._supervisor
        )

    def _tell_owner(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            match entry.record:
                case Alert() as alert if alert.firing:
                    log.log(
                        _LEVELS[alert.severity],
                        "%s, step %d: %s %s: %s",
                        *(self.name, alert.step, alert.severity, alert.key.rule, alert.summary),
                    )
                    self._call_back("on_alert", self._on_alert, alert)
                case AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED, reason=why):
                    self._call_back("on_waiting", self._on_waiting, why)
                case _:
                    pass

    def _pass_on_question(self, question: str) -> None:
        log.warning("%s needs a person: %s", self.name, question)
        self._call_back("on_waiting", self._on_waiting, question)

    def _call_back(self, name: str, call: Callable[[T], object] | None, about: T) -> None:
        if call is None:
            return
        try:
            answer = call(about)
        except Exception:  # a failing callback stops neither the watch nor the work
            log.exception("%s failed", name)
            return
        if isawaitable(answer):
            self._calls.append(asyncio.ensure_future(answer))
            self._calls[-1].add_done_callback(partial(_log_failure, name))

    async def _finish_calls(self) -> None:
        """Wait until the owner's asynchronous callbacks are done."""
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def _until_the_end(
        self, recorder: Recorder, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Run the agent and store how it ended; its own errors are raised unchanged."""
        lifecycle, ending, reason = _CANCELED
        try:
            result = await handler()
            if self._acts is not None:  # a stream ends without its last node
                seen = result.all_messages()
                await self._tolerate(self._acts.session.after_node(None, seen))
            lifecycle, ending, reason = Lifecycle.COMPLETED, Ending.UNCHECKED, self.finished
            return result
        except Exception as error:
            lifecycle, ending = Lifecycle.FAILED, Ending.ERROR
            reason = f"{type(error).__name__}: {error}"
            raise
        except asyncio.CancelledError:
            if self._exited:
                lifecycle, ending, reason = Lifecycle.FAILED, Ending.ERROR, self._exited
            raise
        finally:
            await self._tolerate(_record_end(recorder, lifecycle, ending, reason))

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
        try:
            return await super().wrap_tool_execute(
                ctx, call=call, tool_def=tool_def, args=args, handler=handler
            )
        except SystemExit as error:  # it stops the event loop, and only then is the run canceled
            self._exited = f"the tool {call.tool_name} ended the program: SystemExit: {error}"
            raise
        except JournalError:
            # Midwatch's own tools read the journal; their failure must not end the owner's agent.
            if call.tool_name not in NAMES:
                raise
            log.exception("unwatched from here on: the journal cannot be read")
            self._acts = None
            return UNWATCHED

    async def _tolerate(self, work: Awaitable[object]) -> None:
        """Await work of the watch; a failure here ends the watch, not the agent's work."""
        try:
            await work
        except Exception:
            log.exception("unwatched from here on: the journal cannot be written")
            self._acts = None


def _own_tools(agent: AbstractAgent[Any, Any] | None) -> set[str]:
    """Return the names of an agent's own tools, as far as they are known before it runs."""
    return {
        name
        for each in (() if agent is None else agent.toolsets)
        if isinstance(each, FunctionToolset) and not isinstance(each, WorkerToolset)
        for name in each.tools
    }


def _log_failure(name: str, call: asyncio.Future[Any]) -> None:
    if not call.cancelled() and (error := call.exception()) is not None:
        log.error("%s failed", name, exc_info=error)


async def _record_end(
    recorder: Recorder, lifecycle: Lifecycle, ending: Ending, reason: str
) -> None:
    """Store the end of an attempt and of its task, which has no other attempts."""
    await recorder.end(
        AttemptTransition(lifecycle=lifecycle, reason=reason, ending=ending),
        TaskTransition(lifecycle=lifecycle, reason=reason),
    )
