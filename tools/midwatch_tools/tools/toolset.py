"""What Midwatch's tools have in common: the run that they belong to, and one guard."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

from pydantic_ai import FunctionToolset
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import ToolsetTool

from midwatch_monitor.records import Entry, Intervention, Record
from midwatch_tools.tool_calls import UNWATCHED, ToolCallWatch
from midwatch_tools.tools.arguments import FlatSchema

_PATIENCE = 1000
"""Wrong calls of Midwatch's own tools never end a run; only the budget does."""

_PARALLEL = frozenset({"reflect", "read_board", "search_facts"})
"""Tools that change nothing that other calls in the same turn ask about."""


class WorkerToolset(FunctionToolset[Any]):
    """The tools that `Watch` gives to a worker; while nothing is watching, they only say that."""

    def __init__(
        self,
        tools: Mapping[str, Callable[..., Awaitable[str]]],
        *,
        watched: Callable[[], bool],
        offered: Callable[[], Collection[str]],
    ) -> None:
        """Hold the `offered` ones of some tools.

        They are called in order, so later calls in a turn know what earlier ones did.
        """
        super().__init__(id="midwatch", max_retries=_PATIENCE, schema_generator=FlatSchema)
        self._known = tools
        self._watched = watched
        self._offered = offered

    @property
    def label(self) -> str:
        """The name of the toolset in pydantic-ai's errors, for a user who did not make it."""
        return "Midwatch's `Watch`"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools that this run can use."""
        for name in self._offered():
            if name not in self.tools:  # building a schema takes a millisecond or two
                self.add_function(self._known[name], sequential=name not in _PARALLEL)
        return await super().get_tools(ctx)

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:
        """Call a tool, if there is a watched run that it belongs to."""
        if not self._watched():
            return UNWATCHED
        return await super().call_tool(name, tool_args, ctx, tool)


NAMES = (
    *("reflect", "report_error", "check_plan", "complete_step", "set_plan"),
    *("request_budget", "read_board", "record_fact", "search_facts"),
)
"""All tools that `Watch` may give to a worker."""

PLAN_TOOLS = frozenset({"set_plan", "check_plan", "complete_step"})
"""Offered if there is a written plan."""


def useful_tools(
    *, gated: bool, limited: bool, others: bool, facts: bool, known: bool
) -> frozenset[str]:
    """Return the tools that an attempt can use from its start, besides those for a plan.

    Args:
        gated: Whether calls may be refused until a failure is analysed.
        limited: Whether its budget has a limit that somebody could raise.
        others: Whether anybody else may report on the same files or task.
        facts: Whether the facts it finds out are kept.
        known: Whether any facts are known already.
    """
    wanted = {
        "reflect": True,
        "report_error": gated,
        "request_budget": limited,
        "read_board": others,
        "record_fact": facts,
        "search_facts": known,
    }
    return frozenset(name for name, use in wanted.items() if use)


def has_unanswered(entries: Iterable[Entry], asks: Callable[[Record], bool]) -> bool:
    """Whether any record that asks for something is still unanswered."""
    asked: set[int] = set()
    for entry in entries:
        if asks(entry.record):
            asked.add(entry.id)
        elif isinstance(entry.record, Intervention) and entry.record.petition is not None:
            asked.discard(entry.record.petition)
    return bool(asked)


class WorkerTool:
    """Tools that are bound to one run, so that two workers never mix."""

    def __init__(self, present: Callable[[], ToolCallWatch]) -> None:
        """Bind it to the run whose calls `present` returns once the run has begun."""
        self._present = present
