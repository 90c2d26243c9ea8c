"""The tools that `Watch` gives a worker: `reflect`, `set_plan` and `finish_plan_step`."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field
from pydantic_ai import FunctionToolset
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import ModelResponse
from pydantic_ai.tools import RunContext

from midwatch_monitor.words import Checkpoint, Course, Step, StepKind
from midwatch_tools.acts import Acts, checkpoint_step
from midwatch_tools.guidance import answer, outline
from midwatch_tools.revision import change, with_current_done, with_remaining

Percent = Annotated[int, Field(ge=0, le=100)]
Titles = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=30)]

_PATIENCE = 1000
"""Wrong calls of these tools never end a run: the budget does."""

UNWATCHED = "Nobody watches just now; go on with the work."
"""The answer while the journal cannot be written: the work goes on without the watch."""

NAMES = ("reflect", "set_plan", "finish_plan_step")


class OwnTools:
    """The worker's own words, bound to one run so that two workers never mix."""

    def __init__(self, present: Callable[[], Acts | None]) -> None:
        self._present = present

    def toolset(self) -> FunctionToolset[Any]:
        """The three tools as pydantic-ai wants them."""
        toolset = FunctionToolset[Any](id="midwatch", max_retries=_PATIENCE)
        toolset.add_function(self.reflect)
        toolset.add_function(self.set_plan)
        toolset.add_function(self.finish_plan_step)
        return toolset

    async def reflect(
        self,
        ctx: RunContext[Any],
        progress_percent: Percent,
        confidence: Percent,
        decision: Course,
        files_done: list[str] | None = None,
        blockers: list[str] | None = None,
        notes: str = "",
        estimated_steps_left: Annotated[int, Field(ge=0)] | None = None,
    ) -> str:
        """Report how the work goes. Call it together with your next work call, in the same turn.

        Args:
            ctx: The run.
            progress_percent: Progress toward the current plan step, 0 to 100.
            confidence: How sure you are that the current approach will work, 0 to 100.
            decision: `continue`, `pivot` (another approach), or `escalate` (you need help).
            files_done: Files created or modified for this plan step so far.
            blockers: Obstacles that stop you, one each; empty if there are none.
            notes: Why progress and confidence are what they are.
            estimated_steps_left: How many more steps this plan step will take.
        """
        acts = self._present()
        if acts is None:
            return UNWATCHED
        plan = acts.session.recorder.plan
        checkpoint = Checkpoint(
            progress_percent=progress_percent,
            confidence=confidence,
            decision=decision,
            blockers=tuple(blockers or ()),
            files_done=tuple(files_done or ()),
            notes=notes,
            estimated_steps_left=estimated_steps_left,
            plan_step=plan.current,
        )
        said = len(acts.session.recorder.checkpoints)
        if said >= acts.session.settings.reflect.max_reflections:
            raise ModelRetry(
                f"{said} checkpoints on this plan step are enough: do the work, or finish it."
            )
        acts.stash(_call(ctx), checkpoint_step(checkpoint))
        return answer(checkpoint, acts.session.settings.reflect, alone=_alone(ctx))

    async def set_plan(self, ctx: RunContext[Any], steps: Titles) -> str:
        """Write the remaining plan steps anew; finished ones stay.

        Args:
            ctx: The run.
            steps: What remains, in order, each so that one can check whether it is done.
        """
        acts = self._present()
        if acts is None:
            return UNWATCHED
        plan = with_remaining(acts.session.recorder.plan, steps)
        acts.stash(_call(ctx), _said("set_plan", outline(plan)), plan, change(plan))
        return f"The plan is now:\n{outline(plan)}"

    async def finish_plan_step(self, ctx: RunContext[Any], evidence: str) -> str:
        """Mark the current plan step as done.

        Args:
            ctx: The run.
            evidence: What proves it: the check that passes, the file that is there.
        """
        acts = self._present()
        if acts is None:
            return UNWATCHED
        before = acts.session.recorder.plan
        if not before.open_titles:
            raise ModelRetry("Every plan step is done: end your work, or `set_plan` what remains.")
        plan = with_current_done(before)
        acts.stash(_call(ctx), _said("finish_plan_step", evidence), plan, change(plan))
        return f"The plan is now:\n{outline(plan)}"


def _call(ctx: RunContext[Any]) -> str:
    return ctx.tool_call_id or ""


def _alone(ctx: RunContext[Any]) -> bool:
    """Whether the turn holds nothing but Midwatch's own tools."""
    for message in reversed(ctx.messages):
        if isinstance(message, ModelResponse):
            return all(call.tool_name in NAMES for call in message.tool_calls)
    return False


def _said(tool: str, output: str) -> Step:
    return Step(number=0, kind=StepKind.TOOL, tool=tool, ok=True, output=output)
