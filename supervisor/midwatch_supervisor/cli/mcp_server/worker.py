"""Workers that Midwatch did not start: a connection is an attempt, and its calls are the steps.

pydantic-ai asks a model, runs the tools that it calls, and asks again. Here the client takes the
model's place: its answer is its next call, and the next request holds the result of that call and
any guidance. So the tools, their validation and the watch are the same as for every worker.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from itertools import count
from typing import Any, NamedTuple, cast

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.messages import (
    ERROR_OUTCOMES,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_core import ErrorDetails

from midwatch_monitor.config.problem import error_line
from midwatch_monitor.config.settings import Settings
from midwatch_tools.data_blocks import code
from midwatch_tools.session import UNCOUNTED
from midwatch_tools.tool_calls import UNWATCHED
from midwatch_tools.tools.toolset import NAMES
from midwatch_tools.watch import Watch

Context = ServerRequestContext[dict[str, Any]]
_CLOSED = "The connection was closed."
_END_SECONDS = 1.0
"""Seconds that a call in progress may take when the connection ends."""


class _ClientWatch(Watch):
    """Watches a client; all that is known about its end is that it disconnected."""

    finished = "the connection was closed"
    prompt = True  # the client is told that its report is recorded, and nothing else stores it


class _Call(NamedTuple):
    tool: str
    args: dict[str, Any]
    answer: asyncio.Future[CallToolResult]


class ClientModel(Model[None]):
    """The client of one connection as a model, from its first request for tools until it is gone.

    Its calls are handled one after the other.
    """

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch
        self._began = asyncio.Event()
        self._title = ""
        self._tools: asyncio.Future[Sequence[ToolDefinition]]
        self._tools = asyncio.get_running_loop().create_future()
        self._calls: asyncio.Queue[_Call | None] = asyncio.Queue()
        """Calls of the client; `None` once it is gone."""
        self._asked: _Call | None = None
        self._words: list[str] = []
        """Guidance to add to the next answer; the client may have abandoned a call."""
        self._ids = count(1)
        self._run = asyncio.create_task(self._work())

    @property
    def model_name(self) -> str:
        """The worker's name, to tell models apart."""
        return self._watch.name

    @property
    def system(self) -> str:
        """A provider name without prices."""
        return "mcp"

    async def _work(self) -> None:
        await self._began.wait()
        agent = Agent(self, capabilities=[self._watch])
        await agent.run(self._title, usage_limits=UsageLimits(request_limit=None))

    # -- requests of the run ---------------------------------------------------------------

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return the client's next call, after answering the last one."""
        del model_settings
        if not self._tools.done():
            offered = model_request_parameters.function_tools
            self._tools.set_result(sorted(offered, key=lambda each: NAMES.index(each.name)))
        self._answer(messages)
        asked = await self._calls.get()
        while asked is not None and asked.answer.cancelled():
            asked = await self._calls.get()
        self._asked = asked
        if asked is None:
            return ModelResponse(
                parts=[TextPart(_CLOSED)], model_name=self.model_name, metadata={UNCOUNTED: True}
            )
        part = ToolCallPart(asked.tool, asked.args, tool_call_id=f"mcp-{next(self._ids)}")
        return ModelResponse(parts=[part], model_name=self.model_name)

    def _answer(self, messages: Sequence[ModelMessage]) -> None:
        """Answer the last call with what was said since; at the start of the run there is none."""
        responses = (n for n, each in enumerate(messages, 1) if isinstance(each, ModelResponse))
        known, results, failed = max(responses, default=len(messages)), list[str](), False
        for part in (part for each in messages[known:] for part in each.parts):
            if isinstance(part, ToolReturnPart):
                results.append(_result_text(part))
                failed = failed or part.outcome in ERROR_OUTCOMES
            elif isinstance(part, UserPromptPart) and isinstance(part.content, str):
                self._words.append(part.content)
        if self._asked is not None and not self._asked.answer.done():
            text = "\n\n".join([*results, *self._words])
            self._words.clear()
            self._asked.answer.set_result(_result(text, failed=failed))

    # -- requests of the client ------------------------------------------------------------

    async def _offered_tools(self, context: Context) -> Sequence[ToolDefinition]:
        if not self._began.is_set():
            told = context.session.client_params
            self._title = f"MCP client {told.client_info.name}" if told else "an MCP client"
            self._began.set()
        await asyncio.wait({self._tools, self._run}, return_when=asyncio.FIRST_COMPLETED)
        return self._tools.result() if self._tools.done() else ()

    async def list_tools(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """Return the tools that this worker can use."""
        del params
        return ListToolsResult(
            tools=[_describe(each) for each in await self._offered_tools(context)]
        )

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Return the result of a call, and any guidance for the worker."""
        if params.name not in {each.name for each in await self._offered_tools(context)}:
            return _result(f"There is no tool {params.name!r}.", failed=True)
        answer: asyncio.Future[CallToolResult] = asyncio.get_running_loop().create_future()
        self._calls.put_nowait(_Call(params.name, dict(params.arguments or {}), answer))
        try:
            await asyncio.wait({answer, self._run}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            answer.cancel()
            raise
        return answer.result() if answer.done() else _result(UNWATCHED)

    async def close(self) -> None:
        """End the attempt because the client is gone. If it is held, it is canceled."""
        self._calls.put_nowait(None)
        if self._began.is_set():
            await asyncio.wait({self._run}, timeout=_END_SECONDS)
        self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)


def _describe(tool: ToolDefinition) -> Tool:
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters_json_schema,
        # Claude Code hides the tools of servers behind a search unless they say this.
        _meta={"anthropic/alwaysLoad": True},
    )


def _result_text(part: ToolReturnPart) -> str:
    """Return a call's result, with what is wrong with its arguments in words."""
    content: object = part.content
    if part.outcome == "retried" and isinstance(content, list):
        wrong = error_line(cast("list[ErrorDetails]", content))
        return f"`{part.tool_name}` cannot be called like this: {wrong}"
    return part.model_response_str(wrap_if_error=False)


def _result(text: str, *, failed: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


def watch_of(
    name: str,
    journal: str | None,
    settings: Settings,
    *,
    seconds: Callable[[], float] = time.monotonic,
) -> Watch:
    """Return the watch over a client with that name. It sees nothing but the client's reports.

    `seconds` is a monotonic clock.
    """
    # The end of a connection is not a result that can be reviewed.
    completion = settings.completion.model_copy(update={"refine": 0})
    settings = settings.model_copy(update={"completion": completion})
    drawn = code()  # once: the client is told it before the run exists
    return _ClientWatch(
        name=name,
        journal=journal,
        settings=settings,
        gates=True,
        seconds=seconds,
        draw=lambda: drawn,
    )


@asynccontextmanager
async def worker_server(watch: Watch) -> AsyncGenerator[Server[Any]]:
    """Return a server for one connection, whose attempt ends with the block."""
    watch.prepare(())
    client = ClientModel(watch)
    try:
        yield Server(
            "midwatch",
            version=version("midwatch"),
            instructions=watch.get_instructions(),
            on_list_tools=client.list_tools,
            on_call_tool=client.call_tool,
        )
    finally:
        await client.close()
