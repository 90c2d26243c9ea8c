"""Events of the OpenHands SDK, 1.x: an `ActionEvent`, and what answers it by `tool_call_id`."""

from midwatch_monitor.traces.node import Node
from midwatch_monitor.traces.openhands_act import CHANGES, Act, Answer, Command, Writing, exit_code

_SHELLS = frozenset({"terminal", "execute_bash", "bash"})
_EDITORS = frozenset({"file_editor", "str_replace_editor", "planning_file_editor"})
_OTHERS = frozenset({"Condensation", "CondensationRequest", "UserRejectObservation"})
_ASIDE = frozenset({"kind", "security_risk", "summary"})
"""Fields of an action that make it no other one."""


def is_event(node: Node) -> bool:
    """Whether it is an event of this kind: its class is called `…Event`, but for a few."""
    kind = node["kind"].text
    return kind in _OTHERS or (kind.endswith("Event") and kind != "Event")


def reading(event: Node) -> Act | Answer | None:
    """What an event says; `None` where it is no step and no result of one."""
    match event["kind"].text:
        case "ActionEvent":
            return _act(event)
        case "MessageEvent" if event["source"].text == "agent":
            return _message(event)
        case "ObservationEvent":
            return _observed(event)
        case "AgentErrorEvent":
            return _refused(event, event["error"].text)
        case "UserRejectObservation":
            return _refused(event, event["rejection_reason"].text)
        case _:
            return None


def _act(event: Node) -> Act:
    action, tool = event["action"], event["tool_name"].text or event["tool_call"]["name"].text
    # What the agent could not make an action of is known only as the model wrote it.
    given = action if action.is_object else event["tool_call"]["arguments"].decoded
    is_command = tool in _SHELLS
    return Act(
        key=_key(event),
        at=event["timestamp"].time,
        tool=tool,
        args=given["command"].text if is_command else given.without(_ASIDE).canonical,
        path=given["path"].text or given["file_path"].text,
        text=_texts(event["thought"]),
        call=event["tool_call_id"].text,
        response=event["llm_response_id"].text,
        doing=_doing(tool, given),
    )


def _doing(tool: str, given: Node) -> Command | Writing | None:
    command = given["command"].text
    if tool in _SHELLS:
        return None if given["is_input"] else Command(text=command)
    if tool not in _EDITORS or command not in CHANGES:
        return None
    return Writing(content=given["file_text"].text if command == "create" else None)


def _message(event: Node) -> Act:
    content = event["llm_message"]["content"]
    return Act(
        key=_key(event),
        at=event["timestamp"].time,
        text=content.text or _texts(content),
        response=event["llm_response_id"].text,
        waits=False,
    )


def _observed(event: Node) -> Answer:
    seen = event["observation"]
    code = seen["exit_code"].whole
    if code is None:
        code = seen["metadata"]["exit_code"].whole
    failed = bool(seen["is_error"] or seen["error"].text)
    content = seen["new_content"]
    return Answer(
        keys=_names(event),
        at=event["timestamp"].time,
        ok=not failed,
        exit_code=exit_code(code),
        output=_texts(seen["content"]) or seen["output"].text or seen["error"].text,
        content=content.text if isinstance(content.value, str) else None,
        cwd=seen["metadata"]["working_dir"].text,
    )


def _refused(event: Node, reason: str) -> Answer:
    return Answer(keys=_names(event), at=event["timestamp"].time, ok=False, output=reason)


def _names(event: Node) -> tuple[str, ...]:
    return event["tool_call_id"].text, event["action_id"].text


def _key(event: Node) -> str:
    return event["tool_call_id"].text or event["id"].text


def _texts(parts: Node) -> str:
    return parts.text or "\n".join(part["text"].text for part in parts if part["text"].text)
