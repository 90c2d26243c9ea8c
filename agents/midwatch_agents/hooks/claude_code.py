"""The hooks of Claude Code, and what they tell as the lines that its transcripts have."""

import re

from midwatch_agents.hooks.adapter import HookAdapter, HookEvent, HookKind, StopForm
from midwatch_monitor.traces.foreign import Node

CLAUDE_CODE = HookAdapter(
    name="claude-code",
    folder=".claude",
    folder_variable="CLAUDE_CONFIG_DIR",
    events={
        "SessionStart": HookKind.SESSION_START,
        "UserPromptSubmit": HookKind.PROMPT,
        "PreToolUse": HookKind.BEFORE_TOOL,
        "PostToolUse": HookKind.AFTER_TOOL,
        "PostToolUseFailure": HookKind.AFTER_TOOL,
        "SubagentStop": HookKind.OTHER,
        "Stop": HookKind.TURN_END,
        "SessionEnd": HookKind.SESSION_END,
    },
    guidance_at=frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"}),
    stop_at={"PreToolUse": StopForm.END_TURN, "PostToolUse": StopForm.END_TURN},
)


def lines_of(event: HookEvent, adapter: HookAdapter) -> tuple[Node, ...]:
    """The lines of a transcript that tell the same; see `midwatch_agents.hooks.events.as_lines`."""
    said = event.payload
    match event.name:
        case "UserPromptSubmit":
            return (_line(event, "user", said["prompt"].text),)
        case "PreToolUse":
            name = said["tool_name"].text
            call = {
                "type": "tool_use",
                "id": said["tool_use_id"].value,
                "name": adapter.tools.get(name, name),
                "input": said["tool_input"].value,
            }
            return (_line(event, "assistant", [call]),)
        case "PostToolUse" | "PostToolUseFailure":
            return (_result(event, adapter),)
        case "Stop" if text := said["last_assistant_message"].text:
            block = {"type": "text", "text": text}
            return (_line(event, "assistant", [block], stop_reason="end_turn"),)
        case _:
            return ()


def _result(event: HookEvent, adapter: HookAdapter) -> Node:
    said = event.payload
    response = said["tool_response"]
    thrown = event.name == "PostToolUseFailure"
    failed = thrown or bool(response["isError"])
    text, kept = _output(said["error"] if thrown else response), response.value
    if adapter.exit_code:
        found = re.search(adapter.exit_code, text, re.MULTILINE)
        if found and int(found[1]):
            failed, text = True, f"Exit code {found[1]}\n{text}"
        # To the reader a result that is kept as a text has no exit code.
        kept = kept if found else text
    result = {
        "type": "tool_result",
        "tool_use_id": said["tool_use_id"].value,
        "content": text,
        "is_error": failed,
    }
    return _line(event, "user", [result], kept=kept)


def _output(response: Node) -> str:
    """What came back, as far as hooks tell what the model is shown."""
    streams = "\n".join(filter(None, [response["stdout"].text, response["stderr"].text]))
    if "stdout" in response:
        return streams
    shown = (response, response["llmContent"], response["content"], response["file"]["content"])
    return next(filter(None, (each.said for each in shown)), "") or response.canonical


def _line(
    event: HookEvent,
    role: str,
    content: object,
    *,
    stop_reason: str | None = None,
    kept: object = None,
) -> Node:
    return Node(
        {
            "type": role,
            "sessionId": event.session,
            "cwd": event.folder,
            "timestamp": event.payload["timestamp"].value,
            "isSidechain": bool(event.sub_agent),
            "message": {"role": role, "content": content, "stop_reason": stop_reason},
            "toolUseResult": kept,
        }
    )
