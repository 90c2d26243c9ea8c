"""A pydantic-ai model that follows a script, for demos and tests without an API key.

Wherever a model's name is shown, `scripted:…` distinguishes it from a real one. It keeps no state:
after a crash, the history shows where it was.
"""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
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

from midwatch_agents.worker import import_named
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import MidwatchError, UsageError

_GUIDANCE = re.compile(r"\[midwatch (?:[0-9a-f]{8} )?#(\d+)")
_ATTEMPT = re.compile(r"This is attempt (\d+) of this task")
_COUNT = re.compile(r"interventions so far: (\d+)(?:, turned down: (\d+))?", re.IGNORECASE)


class Cue(StrEnum):
    """What starts the next phase of a script."""

    GUIDANCE = "guidance"
    """A message `[midwatch … #…]` to the worker, but not a plain reminder."""
    COUNT = "count"
    """The first prompt says `interventions so far: N`, which selects phase N, counted from 0.

    Rejected interventions count, too: the script continues after them, as a model would.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    tool: str = ""
    """Empty for the agent's output tool, whatever its name."""
    args: str = "{}"
    """A JSON object; in a repeating turn, `{n}` is replaced by the number of the repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model. Without a call, its text is the last message of the run."""

    say: str = ""
    calls: tuple[Call, ...] = ()

    def __post_init__(self) -> None:
        if not self.say and not self.calls:
            raise ValueError("a turn must say or call something")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A sequence of turns."""

    turns: tuple[Turn, ...]
    repeat: int = 1
    """How many of the last turns are repeated forever once all have been given."""

    def __post_init__(self) -> None:
        if not 1 <= self.repeat <= len(self.turns):
            raise ValueError(f"repeat is {self.repeat}, but there are {len(self.turns)} turns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The answers of one model. After the last phase, further cues change nothing."""

    phases: tuple[Phase, ...]
    again: tuple[Phase, ...] = ()
    """The phases of later attempts; empty for the same ones."""
    taught: tuple[Phase, ...] = ()
    """The phases of a first attempt that is given a lesson to follow; empty for the same ones."""
    heeds: str = ""
    """A regular expression that finds such a lesson in the first prompt."""
    cue: Cue = Cue.GUIDANCE

    def __post_init__(self) -> None:
        if not self.phases:
            raise ValueError("a script needs at least one phase")
        if self.taught and not self.heeds:
            raise ValueError("a script with `taught` phases must say which lesson it heeds")


def next_turn(script: Script, messages: Sequence[ModelMessage]) -> Turn:
    """Return the turn that follows a history; the same history always gives the same turn."""
    opening = _first_words(messages)
    phases = _choose_phases(script, opening)
    if script.cue is Cue.COUNT:
        index, given = _count_answered(opening), replies(messages)
    else:
        index, given = _find_phase(messages, last=len(phases) - 1)
    return _choose_turn(phases[min(index, len(phases) - 1)], given)


def _choose_phases(script: Script, opening: str) -> tuple[Phase, ...]:
    if script.again and _number(_ATTEMPT, opening, 1) > 1:
        return script.again
    if script.taught and re.search(script.heeds, opening):
        return script.taught
    return script.phases


def replies(messages: Sequence[ModelMessage]) -> int:
    """Return how often the model has answered."""
    return sum(isinstance(each, ModelResponse) for each in messages)


def _first_words(messages: Sequence[ModelMessage]) -> str:
    """Return what the model was told before its first answer."""
    first = takewhile(lambda each: isinstance(each, ModelRequest), messages)
    return "\n".join(map(_prompt_text, first))


def _count_answered(opening: str) -> int:
    """Return how many of the script's answers were carried out or rejected."""
    match = _COUNT.search(opening)
    return sum(int(count or 0) for count in match.groups()) if match else 0


def _number(pattern: re.Pattern[str], text: str, default: int) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else default


def _find_phase(messages: Sequence[ModelMessage], *, last: int) -> tuple[int, int]:
    """Return the phase, and how many of its turns were given.

    Guidance in the opening belongs to the first phase. After a crash, the same guidance may be
    given twice; it counts once.
    """
    phase, given, begun = 0, 0, False
    seen: set[str] = set()
    for message in messages:
        if isinstance(message, ModelResponse):
            begun, given = True, given + 1
            continue
        new = set(_GUIDANCE.findall(_prompt_text(message))) - seen
        seen |= new
        if new and begun and phase < last:
            phase, given = phase + 1, 0
    return phase, given


def _choose_turn(phase: Phase, given: int) -> Turn:
    steady = len(phase.turns) - phase.repeat
    if given < steady:
        return phase.turns[given]
    turns, index = divmod(given - steady, phase.repeat)
    return _with_count(phase.turns[steady + index], turns + 1)


def _with_count(turn: Turn, count: int) -> Turn:
    return Turn(
        say=turn.say.replace("{n}", str(count)),
        calls=tuple(
            Call(tool=call.tool, args=call.args.replace("{n}", str(count))) for call in turn.calls
        ),
    )


DEFAULT_PACE = 0.05
"""Seconds before each answer, so that people can follow."""

_SHORT = {"demo": "midwatch_supervisor.demo"}


def scripted_model(name: str, *, role: Role, key: str) -> Model:
    """Return the model `scripted:NAME`, where NAME is `demo` or a module.

    The module has `script_for(role, key)` or, if a script is not enough, `model_for(role, key)`,
    which returns a model. `NAME@SECONDS` sets the pause before each answer of a script. Raises
    UsageError if there is no such module, if it has neither function, or if that fails.
    """
    module, pace = find_script(name)
    source = name.partition("@")[0]
    own: Callable[[Role, str], Model] | None = getattr(module, "model_for", None)
    try:
        if own is not None:
            return own(role, key)
        return play(module.script_for(role, key), name=f"scripted:{source}", pace=pace)
    except MidwatchError:
        raise
    except Exception as error:  # somebody else's module may do anything
        raise UsageError(
            f"scripted:{source}: it has nothing for the {role} of {key}: "
            f"{type(error).__name__}: {error}"
        ) from error


def find_script(name: str) -> tuple[ModuleType, float]:
    """Import the module of the model `scripted:NAME`; return it and the pause before answers.

    Raises UsageError like `scripted_model`.
    """
    source, _, seconds = name.partition("@")
    pace = _seconds(name, seconds) if seconds else DEFAULT_PACE
    module = import_named(_SHORT.get(source, source), f"scripted:{source}")
    if not hasattr(module, "script_for") and not hasattr(module, "model_for"):
        raise UsageError(
            f"scripted:{source}: the module {module.__name__!r} has neither `script_for` nor "
            "`model_for`"
        )
    return module, pace


def play(script: Script, *, name: str = "scripted", pace: float = 0.0) -> Model:
    """Return a model that follows one script, with or without streaming."""

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


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 60:
        raise UsageError(f"scripted:{name}: the pause must be 0 to 60 seconds, such as @0.5")
    return seconds


def _response(script: Script, messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
    turn, number = next_turn(script, messages), replies(messages) + 1
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
        raise UsageError("the script answers through an output tool, but this agent has none")
    return info.output_tools[0].name


def _prompt_text(request: ModelMessage) -> str:
    """Return the prompts of a request, without tool results: a file could contain any text."""
    texts: list[str] = []
    for part in request.parts:
        if isinstance(part, SystemPromptPart):
            texts.append(part.content)
        elif isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            texts.extend(item for item in content if isinstance(item, str))
    return "\n".join(texts)
