"""The scripted model's answers as two APIs have them: OpenAI's chat completions, Gemini's."""

import json
from collections.abc import Iterator
from typing import Any

from midwatch_stage.model_script import Conversation, ToolCall

NAME = "stub-model"
"""The model, as the list of models names it."""
_GEMINI_TOOLS: dict[str, tuple[str, dict[str, str]]] = {
    "bash": ("run_shell_command", {}),
    "write": ("write_file", {"filePath": "file_path"}),
}
"""The scripts' tools and those of their arguments that Gemini CLI names otherwise."""
_SCRIPT_TOOLS = {name: tool for tool, (name, _) in _GEMINI_TOOLS.items()}


def read_chat(body: Any) -> Conversation:
    """The conversation in a request for chat completions."""
    messages: list[Any] = body["messages"]
    calls = [call for each in messages for call in each.get("tool_calls") or ()]
    return Conversation(
        user_messages=tuple(_text(each["content"]) for each in messages if each["role"] == "user"),
        called=tuple(each["function"]["name"] for each in calls),
        results=sum(each["role"] == "tool" for each in messages),
        offered=tuple(each["function"]["name"] for each in body.get("tools") or ()),
    )


def chat_events(model: str, answer: ToolCall | str, step: int) -> Iterator[str]:
    """The events of the answer's stream; the last one but the end has the usage."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    for delta in _deltas(answer, step):
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        yield json.dumps({**head, "choices": [choice]})
    reason = "stop" if isinstance(answer, str) else "tool_calls"
    end: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": reason}
    yield json.dumps({**head, "choices": [end]})
    yield json.dumps({**head, "choices": [], "usage": usage})
    yield "[DONE]"


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def _deltas(answer: ToolCall | str, step: int) -> Iterator[dict[str, Any]]:
    """A tool's arguments come in two pieces, as models send them."""
    if isinstance(answer, str):
        yield {"role": "assistant", "content": answer}
        return
    begun = {"name": answer.tool, "arguments": ""}
    call = {"index": 0, "id": f"call_{step}", "type": "function", "function": begun}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}
    arguments = json.dumps(answer.arguments)
    half = len(arguments) // 2
    for piece in (arguments[:half], arguments[half:]):
        yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def read_gemini(body: Any) -> Conversation:
    """The conversation in a request to generate content."""
    parts = [(each["role"], part) for each in body["contents"] for part in each["parts"]]
    calls: list[str] = [part["functionCall"]["name"] for _, part in parts if "functionCall" in part]
    declared: list[str] = [
        each["name"]
        for tool in body.get("tools") or ()
        for each in tool.get("functionDeclarations") or ()
    ]
    return Conversation(
        user_messages=tuple(part.get("text", "") for role, part in parts if role == "user"),
        called=tuple(_SCRIPT_TOOLS.get(each, each) for each in calls),
        results=sum("functionResponse" in part for _, part in parts),
        offered=tuple(_SCRIPT_TOOLS.get(each, each) for each in declared),
    )


def gemini_answer(answer: ToolCall | str) -> str:
    """The whole answer as one event."""
    if isinstance(answer, str):
        part: dict[str, Any] = {"text": answer}
    else:
        name, renamed = _GEMINI_TOOLS.get(answer.tool, (answer.tool, {}))
        arguments = {renamed.get(key, key): value for key, value in answer.arguments.items()}
        part = {"functionCall": {"name": name, "args": arguments}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100}
    candidate = {"index": 0, "content": content, "finishReason": "STOP"}
    return json.dumps({"candidates": [candidate], "usageMetadata": usage})
