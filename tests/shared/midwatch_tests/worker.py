"""A worker that follows a list of turns, alone or under watch."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.run import AgentRunResult

from midwatch_monitor import records as r
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_tests.reading import records_of
from midwatch_tools.attempt_watch import AttemptWatch

R = TypeVar("R", bound=r.Record)

Perform = Callable[..., Coroutine[Any, Any, AgentRunResult[str]]]
Build = Callable[..., Agent[None, str]]
Claim = Callable[..., Awaitable[Recorder]]
Write = Callable[[r.Record], Awaitable[int]]
"""The fixtures `perform`, `worker`, `claim` and `write`."""

SOON = Settings(monitor=MonitorSettings(poll_seconds=0.01))
"""The built-in settings, but asking the journal so often that no test waits for it."""


def scripted(*turns: Any) -> FunctionModel:
    """A model that says one turn after the other, and `Done.` after the last.

    A turn is a text, a list of `(tool, arguments)`, a whole response, or a function that makes
    one of these at the moment of the request. It keeps no state: the history says where it is.
    """

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        number = sum(isinstance(message, ModelResponse) for message in messages)
        turn = turns[number] if number < len(turns) else "Done."
        return _response(turn() if callable(turn) else turn, number)

    return FunctionModel(answer)


def _response(turn: Any, number: int) -> ModelResponse:
    if isinstance(turn, ModelResponse):
        return turn
    if isinstance(turn, str):
        return ModelResponse(parts=[TextPart(turn)])
    calls = [ToolCallPart(tool, args, f"call-{number}-{n}") for n, (tool, args) in enumerate(turn)]
    return ModelResponse(parts=[TextPart("I call."), *calls])


def worker(
    *turns: Any, workspace: Path, tools: tuple[Callable[..., Any], ...] = ()
) -> Agent[None, str]:
    """An agent that follows turns, with a few tools over the workspace, and more if given."""

    def put(path: str, text: str) -> str:
        (workspace / path).write_text(text)
        return "written"

    def run_command(command: str) -> str:
        name, _, text = command.partition(" ")
        (workspace / name).write_text(text)
        return "[exit code: 1]" if text == "broken" else "ran"

    return Agent(scripted(*turns), tools=[put, run_command, *tools], retries=5)


@dataclass(frozen=True, kw_only=True)
class Performer:
    """Works through turns as a runner would have it, or goes on where the history ends."""

    claim: Callable[..., Awaitable[Recorder]]
    journal: Journal
    bus: LocalBus
    workspace: Path
    attempt: r.Attempt
    write: Write
    until: Callable[[r.Record], Awaitable[r.Entry]]

    async def records(self, kind: type[R]) -> list[R]:
        """The records of a kind, in the order of the journal."""
        return await records_of(self.journal, kind)

    async def __call__(
        self,
        *turns: Any,
        settings: Settings = SOON,
        budget: r.Budget | None = None,
        tools: tuple[Callable[..., Any], ...] = (),
        of: r.Attempt | None = None,
        plan: tuple[r.PlanStep, ...] = (r.PlanStep(title="find it"), r.PlanStep(title="fix it")),
        **watching: Any,
    ) -> AgentRunResult[str]:
        """Work through `turns` at the attempt, or at another one."""
        attempt = of or self.attempt
        recorder = await self.claim(settings, of=attempt)
        if recorder.lifecycle is r.Lifecycle.SUBMITTED:
            begun = r.Change(
                reflect=True, plan_step=1, plan_steps=len(plan), revision=0, budget=budget
            )
            await recorder.record(working_transition(), r.Plan(steps=plan), begun)
        watch = AttemptWatch(
            recorder,
            root=self.workspace,
            settings=settings,
            bus=self.bus,
            seconds=lambda: 0.0,
            **watching,
        )
        history = [
            message
            for each in await self.journal.messages(attempt.id)
            for message in ModelMessagesTypeAdapter.validate_json(each.body)
        ]
        agent = worker(*turns, workspace=self.workspace, tools=tools)
        return await agent.run(
            None if history else "Fix it.", message_history=history or None, capabilities=[watch]
        )
