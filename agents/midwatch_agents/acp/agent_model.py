"""Presents an ACP agent as a model, so that it is watched and steered like our own workers.

pydantic-ai asks a model, runs the tools it calls, and asks again. Here, it asks the agent: the
answer is the next tool call that the agent has begun, and "running" that tool means waiting until
the agent reports its end. So steps, edits, budgets, guidance and history work as for any worker.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai import FunctionToolset
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    ERROR_OUTCOMES,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RequestUsage

from midwatch_agents.acp.client import (
    AgentEvent,
    AgentSession,
    CallStart,
    PermissionQuestion,
    TurnEnd,
)
from midwatch_agents.acp.tool_server import Answered, ToolServer
from midwatch_agents.sandbox import unseen_hint
from midwatch_monitor.errors import AgentDiedError, WorkerError
from midwatch_monitor.rules.identity import END_UNKNOWN
from midwatch_tools.instructions import is_reminder
from midwatch_tools.observation import FOREIGN, act_words, cut, prompt_texts

_SESSION, _COST = "acp_session", "cost_usd"
_GO_ON = "[midwatch] Your work was interrupted. Look at what is there, and go on with the task."
_LIMITS = frozenset({"max_tokens", "max_turn_requests"})
_MOST_CUTS = 3
_SILENT = "The agent ended its turn without an answer."
_TOLD_CALLS = 40
_TOLD_CHARS = 200
_COMPLAINT_CHARS = 600
_COMPLAINT_LINES = 3

Permit = Callable[[str, str, PermissionQuestion], Awaitable[bool]]
"""Asks whether a tool may do something, described in words; the question may be withdrawn."""


class AgentModel(Model[None]):
    """One session with an agent, for one run of an attempt."""

    def __init__(
        self,
        session: AgentSession,
        server: ToolServer,
        *,
        name: str,
        folder: Path,
        complaints: Iterable[str],
        how_ended: Callable[[], Awaitable[str]],
    ) -> None:
        """Let a session's agent work in a folder; `complaints` is its standard error."""
        super().__init__()
        self._session = session
        self._server = server
        self._name = name
        self._folder = folder
        self._complaints = complaints
        self._how_ended = how_ended
        """Tells how the agent's process ended; empty while it runs."""
        self._begun: dict[str, CallStart] = {}
        self._held: list[str] = []
        """Reminders that would have interrupted the agent's turn, kept for the next message."""
        self._paid = 0.0
        """The part of the session's cost that has already been reported."""
        self._cut = 0
        """Consecutive turns that ended at one of the agent's own limits without a tool call."""
        self.hold = session.cancel
        """Pauses the agent while its work waits for a person."""
        self.permit: Permit | None = None
        """Asks a person; if `None`, nothing that needs permission is allowed."""
        self.toolset: FunctionToolset[Any] = FunctionToolset(id="agent")
        self.toolset.add_function(self._run, name=FOREIGN, takes_ctx=True)

    @property
    def model_name(self) -> str:
        """The worker's name, in place of the model's."""
        return self._name

    @property
    def system(self) -> str:
        """Not a provider with published prices."""
        return "acp"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Pass new messages to the agent, and return what it does next.

        Raises WorkerError if the agent breaks off.
        """
        del model_settings
        tools = [each for each in model_request_parameters.function_tools if each.name != FOREIGN]
        self._server.tools, self._session.ours = tools, [each.name for each in tools]
        responses = (n for n, each in enumerate(messages, 1) if isinstance(each, ModelResponse))
        known = max(responses, default=0)
        self._hand_back(messages[known:])
        if self._session.id:
            await self._send_texts(prompt_texts(messages[known:]))
        else:
            await self._open_session(messages, known)
        event, text = await self._session.events.get()
        while self._was_cut(event):
            await self._session.say(_GO_ON)
            event, text = await self._session.events.get()
        if isinstance(event, TurnEnd) and event.error is not None:
            raise await self._explain_error(event.error)
        return self._response(event, text)

    def _was_cut(self, event: AgentEvent) -> bool:
        """Whether the agent ended its turn at one of its own limits, and should continue."""
        if not isinstance(event, TurnEnd):
            self._cut = 0
            return False
        self._cut += event.reason in _LIMITS
        return event.reason in _LIMITS and self._cut <= _MOST_CUTS

    def _hand_back(self, fresh: Sequence[ModelMessage]) -> None:
        """Give the agent the results of Midwatch's tools that it is waiting for."""
        for part in (part for each in fresh for part in each.parts):
            if isinstance(part, ToolReturnPart):
                answer = self._session.answers.pop(part.tool_call_id, None)
                if answer is not None and not answer.done():
                    text = part.model_response_str(wrap_if_error=False)
                    failed = part.outcome in ERROR_OUTCOMES
                    answer.set_result(Answered(text=text, failed=failed))

    async def _send_texts(self, words: list[str]) -> None:
        session = self._session
        if session.working:
            self._held += filter(is_reminder, words)
            words = [each for each in words if not is_reminder(each)]
        elif session.events.empty():  # its turn was canceled: nothing more will come
            words = words or [_GO_ON]
        if not words:
            return
        if not session.working and not all(map(is_reminder, words)):
            session.forget_ends()  # else the run would end before the agent reads the words
        told, self._held = "\n\n".join([*words, *self._held]), []
        await session.say(told)

    async def _open_session(self, messages: Sequence[ModelMessage], known: int) -> None:
        """Open the session and send the task, or resume the session of the `known` messages."""
        history = messages[:known]
        told = [each.provider_details or {} for each in history if isinstance(each, ModelResponse)]
        before = str(told[-1].get(_SESSION, "")) if told else ""
        calls = {each.tool_call_id for each in _calls(history)}
        try:
            same = await self._session.open(
                self._folder, self._server.command, before=before, known=calls
            )
        except WorkerError as error:
            raise WorkerError(str(await self._explain_error(error))) from None
        words = [*([_GO_ON] if history else []), *prompt_texts(messages[known:])]
        if same:
            self._paid = sum(float(each.get(_COST, 0.0)) for each in told)
        else:
            rules = (each.instructions for each in messages if isinstance(each, ModelRequest))
            words = [*[*filter(None, rules)][:1], *_history_texts(history), *words]
        await self._session.say("\n\n".join(words))

    def _response(self, event: AgentEvent, text: str) -> ModelResponse:
        session = self._session
        parts: list[ModelResponsePart] = [TextPart(text)] if text else []
        usage = RequestUsage()
        match event:
            case CallStart(call=call):
                self._begun[call.id] = event
                args = {"tool": call.tool, "args": call.arguments()}
                parts.append(ToolCallPart(FOREIGN, args, tool_call_id=call.id))
            case ToolCallPart():
                parts.append(event)
            case TurnEnd(tokens=(read, written)):
                usage = RequestUsage(input_tokens=read, output_tokens=written)
                parts = parts or [TextPart(_SILENT)]
        paid = max(session.cost_usd - self._paid, 0.0)
        self._paid += paid
        return ModelResponse(
            parts=parts,
            usage=usage,
            model_name=self._name,
            provider_name=self.system,
            provider_details={_SESSION: session.id, _COST: paid},
        )

    async def _explain_error(self, error: WorkerError) -> WorkerError:
        """Return the error with how the agent ended, if it has, and what it wrote last."""
        how = await self._how_ended() if isinstance(error, AgentDiedError) else ""
        lines = [line for line in "".join(self._complaints).splitlines() if line.strip()]
        # Indented lines are tracebacks and context.
        last = [line for line in lines if not line[0].isspace()] or lines
        said = cut("\n".join(last[-_COMPLAINT_LINES:]), _COMPLAINT_CHARS)
        wrote = f"it wrote: {said}" if said else ""
        told = " ".join(filter(None, (str(error), how)))
        return type(error)("; ".join(filter(None, (told, wrote, unseen_hint(said)))))

    async def _run(self, ctx: RunContext[Any], tool: str, args: dict[str, Any]) -> str:
        """Wait for the result of one of the agent's own tools, which the agent itself runs."""
        del tool, args  # they are only for the history
        begun = self._begun.pop(ctx.tool_call_id or "", None)
        if begun is None:
            raise ToolFailed(END_UNKNOWN)
        call = begun.call
        while (asked := await begun.asked.get()) is not None:
            asks = self.permit if not asked.done() else None
            allowed = asks is not None and await asks(call.tool, call.words(), asked)
            if not asked.done():
                asked.set_result(allowed)
        if not call.over:
            raise ToolFailed(END_UNKNOWN)
        if call.failed:
            raise ToolFailed(call.result())
        return call.result()


def _calls(history: Sequence[ModelMessage]) -> list[ToolCallPart]:
    """Return the calls in the messages."""
    responses = (each for each in history if isinstance(each, ModelResponse))
    return [call for each in responses for call in each.tool_calls]


def _history_texts(history: Sequence[ModelMessage]) -> list[str]:
    """Return the task and what was done, for an agent that does not remember."""
    calls = [cut(act_words(call), _TOLD_CHARS) for call in _calls(history)]
    done = "\n".join(f"- {each}" for each in calls[-_TOLD_CALLS:])
    told = f"Before you, another session has done this, the last {_TOLD_CALLS} acts of it:\n{done}"
    return [*prompt_texts(history), *([told] if done else [])]
