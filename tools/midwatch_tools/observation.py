"""Turns a tool call and its result into a step. Pure."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, UserPromptPart

from midwatch_monitor.shell.claimed_edits import changing, digest, named_path, refused

FOREIGN = "agent_tool"
"""The single tool that stands for all tools of a third-party agent; its arguments are `tool` and
`args`.
"""


def as_called(call: ToolCallPart) -> ToolCallPart:
    """Return the call as its agent made it."""
    if call.tool_name != FOREIGN:
        return call
    args = call.args_as_dict()
    return replace(call, tool_name=str(args.get("tool", "")), args=args.get("args") or {})


_EXIT_CODE = re.compile(r"\[exit code: (-?\d+)\]\s*(?:\[[^\]]*\]\s*)?$")
_SUCCESS = re.compile(r"\n?\[exit code: 0\]$")
"""Our own shell does not print it, third-party agents report it."""
_TIMED_OUT = re.compile(r"\[Command timed out[^\]]*\]\s*$")
_STATE_FAILURE = frozenset({"run_command", "shell", "bash"})
"""Tools whose results state every exit code but 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a call went, according to its result."""

    ok: bool
    exit_code: int | None
    output: str
    digest: str


def read_result(
    tool: str, result: object, *, failed: bool, max_chars: int, masked: Callable[[str], str] = str
) -> Reading:
    """Read a tool's return value: the exit code overrides words, and long output loses its middle.

    It is `masked` first: half a secret at the cut, or its digest, would still give it away.
    """
    text = masked(result if isinstance(result, str) else to_json(result))
    exit_code = _exit_code(tool, text, failed=failed)
    if exit_code == 0:
        text = _SUCCESS.sub("", text)
    refuses = exit_code is None and changing(tool) and refused(text)
    return Reading(
        ok=not failed and not refuses and exit_code in (None, 0),
        exit_code=exit_code,
        output=cut(text, max_chars),
        digest=digest(text),
    )


def _exit_code(tool: str, text: str, *, failed: bool) -> int | None:
    if match := _EXIT_CODE.search(text):
        return int(match[1])
    if tool not in _STATE_FAILURE or failed:
        return None
    # 124 is what coreutils' timeout reports.
    return 124 if _TIMED_OUT.search(text) else 0


def act_words(call: ToolCallPart) -> str:
    """Return a tool call in a few words: the tool and its file or command, or only the tool."""
    try:
        call = as_called(call)
        args = call.args_as_dict()
    except ValueError:  # not JSON: the model is told so in its turn
        return call.tool_name
    what = named_path(args) or args.get("command")
    return f"{call.tool_name} {what}".strip() if isinstance(what, str) else call.tool_name


def cut(text: str, max_chars: int) -> str:
    """Return the text, or its head and tail around a note of what was left out."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def cut_line(text: str, max_chars: int) -> str:
    """Return a line, or its beginning with an ellipsis."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def canonical(args: Mapping[str, object]) -> str:
    """Return arguments as JSON that is equal for equal arguments."""
    return to_json(dict(args))


def to_json(value: object) -> str:
    """Return JSON with sorted keys; values that JSON cannot express become text."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys of mixed types, or a cycle
        return str(value)


def last_response(messages: Sequence[ModelMessage]) -> ModelResponse | None:
    """Return the model's last turn; `None` before its first."""
    turns = (each for each in reversed(messages) if isinstance(each, ModelResponse))
    return next(turns, None)


def prompt_texts(messages: Iterable[ModelMessage]) -> list[str]:
    """Return the texts of the prompts in the messages."""
    contents = (
        part.content for each in messages for part in each.parts if isinstance(part, UserPromptPart)
    )
    texts = (text for each in contents for text in ([each] if isinstance(each, str) else each))
    return [each for each in texts if isinstance(each, str) and each]


def said_with(messages: Sequence[ModelMessage], call: ToolCallPart) -> ModelResponse | None:
    """Return the response that a call belongs to if it is the first call, with which the text of
    the response is recorded.
    """
    response = last_response(messages)
    first = next(iter(response.tool_calls), None) if response is not None else None
    same = first is not None and first.tool_call_id == call.tool_call_id
    return response if same else None


def cost(response: ModelResponse) -> float:
    """Return the cost of a response in US dollars; 0 if it is unknown."""
    return known_cost(response) or 0.0


def known_cost(response: ModelResponse) -> float | None:
    """Return the cost of a response in US dollars: the one it states, or by published prices;
    `None` for a model without a price.
    """
    said = (response.provider_details or {}).get("cost_usd")
    if isinstance(said, int | float):
        return float(said)
    try:
        return float(response.cost().total_price)
    except (LookupError, AssertionError, ValueError):
        return None
