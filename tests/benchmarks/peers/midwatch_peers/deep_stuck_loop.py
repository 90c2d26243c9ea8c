"""pydantic-deep's `StuckLoopDetection`, called as pydantic-ai calls it after a tool."""

from collections.abc import Coroutine
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from midwatch_monitor.records import Step, StepKind
from midwatch_peers.detector import Detector, InProcess

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition
    from pydantic_deep.deps import DeepAgentDeps

NAME = "pydantic-deep"

Prepared = tuple["ToolCallPart", "ToolDefinition", dict[str, Any], str] | None


class _StuckLoopSensor:
    def __init__(self) -> None:
        from pydantic_deep.features.stuck_loop.capability import StuckLoopDetection, StuckLoopError

        self._error = StuckLoopError
        self._capability = StuckLoopDetection(action="error")  # an error names its pattern

    def prepare(self, step: Step) -> Prepared:
        """The call as the hook is given it; it is given no messages."""
        from pydantic_ai.messages import ToolCallPart
        from pydantic_ai.tools import ToolDefinition

        if step.kind is StepKind.MESSAGE:
            return None
        tool, args = step.tool or "reflect", {"args": step.args}
        return ToolCallPart(tool, args), ToolDefinition(name=tool), args, step.output

    def check(self, prepared: Prepared) -> str:
        """The pattern of the error that the hook raises."""
        if prepared is None:
            return ""
        call, definition, args, result = prepared
        # The hook never looks at its context.
        context = cast("RunContext[DeepAgentDeps]", None)
        try:
            _finish(
                self._capability.after_tool_execute(
                    context, call=call, tool_def=definition, args=args, result=result
                )
            )
        except self._error as error:
            return error.pattern
        return ""


def _finish(work: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine that never waits, without the price of a loop."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise RuntimeError("the hook waits for something")


def detector() -> Detector:
    """The capability with its default thresholds."""
    return Detector(
        name=NAME,
        version=version("pydantic-deep"),
        note="the hook is called without an event loop",
        start=lambda: InProcess(_StuckLoopSensor()),
    )
