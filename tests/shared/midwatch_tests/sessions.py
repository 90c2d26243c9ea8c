"""Lines of sessions as coding agents keep them, each in its own format."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

Line = dict[str, object]
Lines = list[Line]
NOON = "2026-11-21T12:00:00Z"


def write(path: Path, lines: Iterable[object]) -> Path:
    """A file with one JSON value a line."""
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    return path


def claude_line(kind: str, content: object, *, at: str = NOON, **message: object) -> Line:
    """A message of Claude Code."""
    told = {"role": kind, "content": content, **message}
    return {"type": kind, "sessionId": "s1", "cwd": "/repo", "timestamp": at, "message": told}


def claude_stopped() -> Line:
    """A line of Claude Code that says that a hook ended its turn."""
    stopped = {"type": "hook_stopped_continuation", "message": "no", "hookEvent": "PostToolBatch"}
    return {"type": "attachment", "sessionId": "s1", "timestamp": NOON, "attachment": stopped}


def codex_line(kind: str, at: str = NOON, **payload: object) -> Line:
    """A line of a Codex rollout."""
    return {"timestamp": at, "type": kind, "payload": payload}


def codex_item(kind: str, at: str = NOON, **item: object) -> Line:
    """What Codex saw to its end."""
    return codex_line("event_msg", at, type="item_completed", item={"type": kind, **item})


def gemini_line(
    kind: str, id: str, content: object = "", *, at: str = NOON, **more: object
) -> Line:
    """A message of Gemini CLI."""
    return {"id": id, "timestamp": at, "type": kind, "content": content, **more}


def gemini_call(tool: str, given: Line, output: str, *, call: str = "c1", **more: object) -> Line:
    """A call that has succeeded, as it stands in a message of Gemini CLI."""
    result = [{"functionResponse": {"id": call, "name": tool, "response": {"output": output}}}]
    done: Line = {"status": "success", "result": result}
    return {"id": call, "name": tool, "args": given, **done, **more}


def qwen_line(kind: str, *parts: Mapping[str, object], at: str = NOON, **more: object) -> Line:
    """A record of qwen-code."""
    told = {"cwd": "/repo", "sessionId": "s1", "message": {"parts": list(parts)}}
    return {"type": kind, "timestamp": at, **told, **more}


def qwen_result(output: str, told: Line | None = None, *, call: str = "c1") -> Line:
    """What a call of qwen-code returned; `told` is what is kept of it beside."""
    response = {"functionResponse": {"id": call, "response": {"output": output}}}
    result = {"callId": call, "status": "success", **(told or {})}
    return qwen_line("tool_result", response, toolCallResult=result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One format: the lines for what happens in every session."""

    head: Lines
    prompt: Callable[[str, str], Lines]
    """What a person typed, and when."""
    called: Callable[[str, str], Lines]
    """A command that the model runs, and the call's id."""
    came: Callable[[str, str, str, int], Lines]
    """The command, the call's id, its output and its exit code."""
    said: Callable[[str, str], Lines]
    """The answer that ends a turn, and when."""


def _claude_came(command: str, call: str, output: str, code: int) -> Lines:
    told = f"Exit code {code}\n{output}" if code else output
    block = {"type": "tool_result", "tool_use_id": call, "content": told, "is_error": code != 0}
    return [claude_line("user", [block])]


def _claude_called(command: str, call: str) -> Lines:
    block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
    return [claude_line("assistant", [block], id=f"m-{call}", stop_reason="tool_use")]


def _claude_said(text: str, at: str) -> Lines:
    block = {"type": "text", "text": text}
    return [claude_line("assistant", [block], at=at, id=f"m-{text}", stop_reason="end_turn")]


def _codex_prompt(text: str, at: str) -> Lines:
    started = codex_line("event_msg", at, type="task_started")
    return [started, codex_item("UserMessage", at, content=[{"type": "text", "text": text}])]


def _codex_called(command: str, call: str) -> Lines:
    told = {"name": "exec_command", "arguments": json.dumps({"cmd": command}), "call_id": call}
    return [codex_line("response_item", type="function_call", **told)]


def _codex_came(command: str, call: str, output: str, code: int) -> Lines:
    shell = ["/bin/bash", "-lc", command]
    told = f"Process exited with code {code}\nOutput:\n{output}"
    return [
        codex_item(
            "CommandExecution", id=call, command=shell, aggregated_output=output, exit_code=code
        ),
        codex_line("response_item", type="function_call_output", call_id=call, output=told),
    ]


def _codex_said(text: str, at: str) -> Lines:
    content = [{"type": "output_text", "text": text}]
    message = codex_line("response_item", at, type="message", role="assistant", content=content)
    return [message, codex_line("event_msg", at, type="task_complete")]


def _gemini_called(command: str, call: str) -> Lines:
    waiting = {"id": call, "name": "run_shell_command", "args": {"command": command}}
    return [gemini_line("gemini", f"m-{call}", toolCalls=[waiting])]


def _gemini_came(command: str, call: str, output: str, code: int) -> Lines:
    told = (
        f"Output: {output}\n" + (f"Exit Code: {code}\n" if code else "") + "Process Group PGID: 7"
    )
    done = gemini_call(
        "run_shell_command", {"command": command}, told, call=call, resultDisplay=output
    )
    return [gemini_line("gemini", f"m-{call}", toolCalls=[done]), {"$set": {"lastUpdated": NOON}}]


def _qwen_called(command: str, call: str) -> Lines:
    told = {"id": call, "name": "run_shell_command", "args": {"command": command}}
    return [qwen_line("assistant", {"functionCall": told})]


def _qwen_came(command: str, call: str, output: str, code: int) -> Lines:
    return [qwen_result("", {"resultDisplay": {"output": output, "exitCode": code}}, call=call)]


DIALECTS: Mapping[str, Dialect] = {
    "claude-code": Dialect(
        head=[],
        prompt=lambda text, at: [claude_line("user", text, at=at)],
        called=_claude_called,
        came=_claude_came,
        said=_claude_said,
    ),
    "codex": Dialect(
        head=[codex_line("session_meta", id="s1", cwd="/repo")],
        prompt=_codex_prompt,
        called=_codex_called,
        came=_codex_came,
        said=_codex_said,
    ),
    "gemini": Dialect(
        head=[{"sessionId": "s1", "projectHash": "h", "kind": "main", "directories": ["/repo"]}],
        prompt=lambda text, at: [gemini_line("user", f"u-{text}", [{"text": text}], at=at)],
        called=_gemini_called,
        came=_gemini_came,
        said=lambda text, at: [gemini_line("gemini", f"m-{text}", text, at=at)],
    ),
    "qwen": Dialect(
        head=[],
        prompt=lambda text, at: [qwen_line("user", {"text": text}, at=at, provenance="real_user")],
        called=_qwen_called,
        came=_qwen_came,
        said=lambda text, at: [qwen_line("assistant", {"text": text}, at=at)],
    ),
}
"""By the format's name."""
