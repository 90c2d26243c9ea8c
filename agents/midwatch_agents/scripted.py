"""The scripted model: a pydantic-ai model that follows a script, for demos and tests without a key.

It is told apart from a real one by its name, `scripted:…`, wherever a model's name is shown. It
keeps no state: after a crash the history says where it was.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import anyio
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from midwatch_agents.script import Line, Replied, Script, Told, next_turn, replies
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import UsageError

DEFAULT_PACE = 0.05
"""Seconds before each answer, so that people can watch."""

_SHORT = {"demo": "midwatch_supervisor.demo"}


def scripted_model(name: str, *, role: Role, key: str, pace: float | None = None) -> Model:
    """The model `scripted:NAME`, where NAME is `demo` or a module.

    The module has `script_for(role, key)`, or `model_for(role, key)` where a script is not enough:
    that answers a model of its own making. `NAME@SECONDS` sets the pause before each answer of a
    script where `pace` does not. Raises UsageError if there is no such module or neither function.
    """
    source, _, seconds = name.partition("@")
    if pace is None:
        pace = _seconds(name, seconds) if seconds else DEFAULT_PACE
    module = _module(source)
    own: Callable[[Role, str], Model] | None = getattr(module, "model_for", None)
    if own is not None:
        return own(role, key)
    script_for: Callable[[Role, str], Script] | None = getattr(module, "script_for", None)
    if script_for is None:
        raise UsageError(
            f"scripted:{source}: the module {module.__name__!r} has no `script_for` and no "
            "`model_for`"
        )
    return play(script_for(role, key), name=f"scripted:{source}", pace=pace)


def play(script: Script, *, name: str = "scripted", pace: float = 0.0) -> Model:
    """A model that follows one script, for runs that stream and runs that do not."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await anyio.sleep(pace)
        return _response(script, messages, info)

    async def stream(
        messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        for index, part in enumerate((await answer(messages, info)).parts):
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                yield {
                    index: DeltaToolCall(
                        name=part.tool_name,
                        json_args=part.args_as_json_str(),
                        tool_call_id=part.tool_call_id,
                    )
                }

    return FunctionModel(answer, stream_function=stream, model_name=name)


def _module(source: str) -> ModuleType:
    path = _SHORT.get(source, source)
    try:
        known = find_spec(path) is not None
    except (ValueError, ModuleNotFoundError):
        known = False
    if not known:
        raise UsageError(f"scripted:{source}: there is no module {path!r}")
    return import_module(path)


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 60:
        raise UsageError(f"scripted:{name}: write the pause as seconds from 0 to 60, such as @0.5")
    return seconds


def _response(script: Script, messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
    lines = [_line(message) for message in messages]
    turn, number = next_turn(script, lines), replies(lines) + 1
    calls = [
        ToolCallPart(
            tool_name=call.tool or _output_tool(info),
            args=call.args,
            tool_call_id=f"call-{number}-{index}",
        )
        for index, call in enumerate(turn.calls, start=1)
    ]
    text = [TextPart(turn.say)] if turn.say else []
    return ModelResponse(parts=[*text, *calls])


def _output_tool(info: AgentInfo) -> str:
    if not info.output_tools:
        raise UsageError("the script answers through an output tool, and this agent has none")
    return info.output_tools[0].name


def _line(message: ModelMessage) -> Line:
    if isinstance(message, ModelResponse):
        return Replied()
    return Told(text=_told(message))


def _told(request: ModelRequest) -> str:
    """The prompts of a request. Results of tools are left out: a file could hold any text."""
    texts: list[str] = []
    for part in request.parts:
        if isinstance(part, SystemPromptPart):
            texts.append(part.content)
        elif isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            texts.extend(item for item in content if isinstance(item, str))
    return "\n".join(texts)
