"""What the tools of Midwatch have in common: one run that they belong to, and one guard."""

from collections.abc import Callable
from typing import Any

from pydantic_ai import FunctionToolset
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import ToolsetTool

from midwatch_tools.tool_calls import UNWATCHED, Acts

_PATIENCE = 1000
"""Wrong calls of Midwatch's own tools never end a run: the budget does."""


class WorkerToolset(FunctionToolset[Any]):
    """The tools that `Watch` gives to a worker; while nobody watches, that is all that they say."""

    def __init__(self, watched: Callable[[], bool]) -> None:
        super().__init__(id="midwatch", max_retries=_PATIENCE)
        self._watched = watched

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:
        """Call a tool, if there is a run under watch that it can speak of."""
        if not self._watched():
            return UNWATCHED
        return await super().call_tool(name, tool_args, ctx, tool)


class WorkerTool:
    """A tool that is bound to one run, so that two workers never mix."""

    def __init__(self, present: Callable[[], Acts]) -> None:
        """Bind it to the run whose calls `present` gives, once that has begun."""
        self._present = present
