"""OpenHands' `StuckDetector`, fed as its conversation loop feeds it: nudge first, then stuck."""

import logging
import os
from collections import deque
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

from midwatch_monitor.records import Step, StepKind
from midwatch_peers.detector import Detector, InProcess

if TYPE_CHECKING:
    from openhands.sdk.conversation.state import ConversationState
    from openhands.sdk.event import Event

NAME = "openhands-sdk"
PLAIN = "openhands-sdk, no thoughts"
_KEPT = 64
"""Events that the holder keeps; the detector asks for the last 20."""

Prepared = tuple["Event", ...]


class _Branch:
    """Holds events in memory, where the original writes each to a file: that favours it here."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=_KEPT)

    def append(self, event: "Event") -> None:
        self._events.append(event)

    def active_branch(self, limit: int) -> "list[Event]":
        """The last events, as the detector asks its conversation for them."""
        return list(self._events)[-limit:]


class _StuckSensor:
    def __init__(self, prepare: Callable[[Step], Prepared]) -> None:
        from openhands.sdk.conversation.stuck_detector import StuckDetector

        self._branch = _Branch()
        # The detector asks its conversation for `active_branch` and nothing else.
        self._detector = StuckDetector(cast("ConversationState", self._branch))
        self._prepare = prepare

    def prepare(self, step: Step) -> Prepared:
        """The events that the step is in OpenHands."""
        return self._prepare(step)

    def check(self, prepared: Prepared) -> str:
        """What the conversation loop does before the agent's next step."""
        for event in prepared:
            self._branch.append(event)
        nudge = self._detector.get_action_error_nudge()
        if nudge is not None:
            self._branch.append(_message("environment", nudge))
            return "nudge"
        return "stuck" if self._detector.is_stuck() else ""


def detector(*, thoughts: bool) -> Detector:
    """The detector with its default thresholds; without thoughts, equal calls compare as equal."""
    os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network
    logging.disable(logging.WARNING)  # it logs each detection

    def prepare(step: Step) -> Prepared:
        return _events(step, thoughts=thoughts)

    said = "what the model said is part of a call's identity" if thoughts else "calls without text"
    return Detector(
        name=NAME if thoughts else PLAIN,
        version=version("openhands-sdk"),
        note=f"{said}; events held in memory",
        start=lambda: InProcess(_StuckSensor(prepare)),
    )


def _events(step: Step, *, thoughts: bool) -> Prepared:
    """A refused act is an agent error, a failed command an observation, as in the original."""
    if step.kind is StepKind.MESSAGE:
        said = _message("agent", step.text)
        return (said, _message("environment", step.output)) if step.output else (said,)
    return (_action(step, step.text if thoughts else ""), _result(step))


def _action(step: Step, thought: str) -> "Event":
    from openhands.sdk.event import ActionEvent
    from openhands.sdk.llm import MessageToolCall, TextContent
    from openhands.sdk.mcp.definition import MCPToolAction

    call = f"call-{step.number}"
    return ActionEvent(
        thought=[TextContent(text=thought)] if thought else [],
        action=MCPToolAction(data={"args": step.args}),
        tool_name=_tool(step),
        tool_call_id=call,
        tool_call=MessageToolCall(
            id=call, name=_tool(step), arguments=step.args, origin="completion"
        ),
        llm_response_id=f"response-{step.request or step.number}",
    )


def _result(step: Step) -> "Event":
    from openhands.sdk.event import AgentErrorEvent, ObservationEvent
    from openhands.sdk.mcp.definition import MCPToolObservation

    call = f"call-{step.number}"
    if step.ok is False and step.exit_code is None:
        return AgentErrorEvent(error=step.output, tool_name=_tool(step), tool_call_id=call)
    failed = step.exit_code not in (0, None)
    return ObservationEvent(
        observation=MCPToolObservation.from_text(
            step.output, is_error=failed, tool_name=_tool(step)
        ),
        tool_name=_tool(step),
        tool_call_id=call,
        action_id=f"action-{step.number}",
    )


def _message(source: str, text: str) -> "Event":
    from openhands.sdk.event import MessageEvent
    from openhands.sdk.llm import Message, TextContent

    role = "assistant" if source == "agent" else "user"
    content = [TextContent(text=text)]
    return MessageEvent.model_validate(
        {"source": source, "llm_message": Message(role=role, content=content)}
    )


def _tool(step: Step) -> str:
    return step.tool or "reflect"
