"""Tool calls of an agent that brings its own tools, as a history holds them. Pure.

The names of its tools are known only as it calls them, and pydantic-ai wants to know them before:
so all of them are calls of one tool, whose arguments name the agent's.
"""

from dataclasses import replace

from pydantic_ai.messages import ToolCallPart

FOREIGN = "agent_tool"
"""The tool that stands for all of them: its arguments are `tool`, and the `args` of that."""


def as_called(call: ToolCallPart) -> ToolCallPart:
    """The call as its agent made it."""
    if call.tool_name != FOREIGN:
        return call
    args = call.args_as_dict()
    return replace(call, tool_name=str(args.get("tool", "")), args=args.get("args") or {})
