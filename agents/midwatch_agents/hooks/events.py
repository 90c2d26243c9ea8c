"""Reads hook events from agents, and writes the answers in each agent's format."""

import json
import re

from midwatch_agents.hooks.adapters import ADAPTERS, HookEvent, HookKind, StopForm
from midwatch_monitor.traces.foreign import JsonNode
from midwatch_monitor.traces.session_reader import typed_text


def read_event(agent: str, payload: JsonNode) -> HookEvent | None:
    """Return the event that a hook was called with.

    `None` if it names no session or the agent is unknown.
    """
    adapter, session = ADAPTERS.get(agent), payload["session_id"].text
    if adapter is None or not session:
        return None
    kind = adapter.events.get(payload["hook_event_name"].text, HookKind.OTHER)
    if kind is HookKind.PROMPT and not typed_text(payload["prompt"].text):
        kind = HookKind.OTHER  # results of tools, which qwen-code sends as a prompt without text
    return HookEvent(
        agent=agent,
        kind=kind,
        session=session,
        transcript=payload["transcript_path"].text,
        folder=payload["cwd"].text,
        sub_agent=payload["agent_id"].text,
        payload=payload,
    )


def passes_guidance(event: HookEvent) -> bool:
    """Whether guidance at this event reaches the agent's model."""
    return event.name in ADAPTERS[event.agent].guidance_at


def can_stop(event: HookEvent) -> bool:
    """Whether the agent can be stopped, or its call refused, at this event."""
    return event.name in ADAPTERS[event.agent].stop_at


def answer(event: HookEvent, *, guidance: str, stop: str) -> str:
    """Return the JSON for the agent to read; empty if nothing in it would have an effect.

    `stop` is the reason for stopping; guidance is left out if the agent is stopped. The end of a
    turn is never prevented: two of the agents would then continue forever.
    """
    if stop and can_stop(event):
        return json.dumps(_stop_answer(event.name, ADAPTERS[event.agent].stop_at[event.name], stop))
    if guidance and passes_guidance(event):
        said = {"hookEventName": event.name, "additionalContext": guidance}
        return json.dumps({"hookSpecificOutput": said})
    return ""


def _stop_answer(name: str, form: StopForm, reason: str) -> dict[str, object]:
    match form:
        case StopForm.END_TURN:
            return {"continue": False, "stopReason": reason}
        case StopForm.DENY_TOOL:
            decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
            return {"hookSpecificOutput": {"hookEventName": name, **decision}}
        case StopForm.DENY_AND_END:
            end = _stop_answer(name, StopForm.END_TURN, reason)
            return end | _stop_answer(name, StopForm.DENY_TOOL, reason)
        case StopForm.DENY:
            return {"decision": "deny", "reason": reason}


def as_lines(event: HookEvent, *, opened: bool = True) -> tuple[JsonNode, ...]:
    """Return the equivalent lines of a transcript, for `midwatch_monitor.traces.claude_code`.

    For a result whose call was not `opened` before, a line for the call comes first. Empty for
    events that are not part of a conversation, and for agents whose hooks differ from Claude
    Code's. The cost and the model's text before a call are not known.
    """
    said = event.payload
    match event.name:
        case "UserPromptSubmit":
            return (_line(event, "user", said["prompt"].text),)
        case "PreToolUse":
            return (_call_line(event),)
        case "PostToolUse" | "PostToolUseFailure":
            return (_result(event),) if opened else (_call_line(event), _result(event))
        case "Stop" if text := said["last_assistant_message"].text:
            return (_line(event, "assistant", [{"type": "text", "text": text}]),)
        case _:
            return ()


def _call_line(event: HookEvent) -> JsonNode:
    said, tools = event.payload, ADAPTERS[event.agent].tools
    name = said["tool_name"].text
    call = {
        "type": "tool_use",
        "id": said["tool_use_id"].value,
        "name": tools.get(name, name),
        "input": said["tool_input"].value,
    }
    return _line(event, "assistant", [call])


def _result(event: HookEvent) -> JsonNode:
    said, pattern = event.payload, ADAPTERS[event.agent].exit_code
    response = said["tool_response"]
    thrown = event.name == "PostToolUseFailure"
    failed = thrown or bool(response["isError"])
    text, kept = _output(said["error"] if thrown else response), response.value
    if pattern:
        found = re.search(pattern, text, re.MULTILINE)
        if found and int(found[1]):
            failed, text = True, f"Exit code {found[1]}\n{text}"
        # The reader assumes that a result stored as text has no exit code.
        kept = kept if found else text
    result = {
        "type": "tool_result",
        "tool_use_id": said["tool_use_id"].value,
        "content": text,
        "is_error": failed,
    }
    return _line(event, "user", [result], kept=kept)


def _output(response: JsonNode) -> str:
    """Return a tool's output as the model sees it, as far as hooks report it."""
    if "stdout" in response:
        return "\n".join(filter(None, [response["stdout"].text, response["stderr"].text]))
    shown = (response, response["llmContent"], response["content"], response["file"]["content"])
    return next(filter(None, (each.said for each in shown)), "") or response.canonical


def _line(event: HookEvent, role: str, content: object, *, kept: object = None) -> JsonNode:
    ends = "end_turn" if event.kind is HookKind.TURN_END else None
    return JsonNode(
        {
            "type": role,
            "sessionId": event.session,
            "cwd": event.folder,
            "timestamp": event.payload["timestamp"].value,
            "isSidechain": bool(event.sub_agent),
            "message": {"role": role, "content": content, "stop_reason": ends},
            "toolUseResult": kept,
        }
    )
