"""The worker's own words about its work as a whole: `reflect` and `set_plan`."""

from typing import Annotated, Any

from pydantic import Field
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import ModelResponse
from pydantic_ai.tools import RunContext

from midwatch_monitor.config.settings import Approver
from midwatch_monitor.records import Checkpoint, Course
from midwatch_tools.instructions import answer, outline
from midwatch_tools.plan_change import (
    WANTING,
    Wanting,
    change,
    revisions_made,
    wanted,
    with_remaining,
    written,
)
from midwatch_tools.tool_calls import Acts, checkpoint_step
from midwatch_tools.tools.toolset import WorkerTool

Percent = Annotated[int, Field(ge=0, le=100)]
Titles = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=30)]

NAMES = (
    *("reflect", "report_error", "check_plan", "complete_step", "set_plan"),
    *("request_budget", "read_board", "record_fact", "search_facts"),
)
"""All the tools that `Watch` may give to a worker."""


class OwnTools(WorkerTool):
    """The two tools, `reflect` and `set_plan`."""

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
        acts.stash(ctx, checkpoint_step(checkpoint))
        said_back = answer(checkpoint, acts.session.settings.reflect, alone=_alone(ctx))
        return "\n".join(
            filter(None, (said_back, acts.session.budget_line(within=progress_percent)))
        )

    async def set_plan(self, ctx: RunContext[Any], steps: Titles) -> str:
        """Write the remaining plan steps anew; finished ones stay.

        Args:
            ctx: The run.
            steps: What remains, in order, each so that one can check whether it is done.
        """
        acts = self._present()
        await _may_revise(acts)
        plan = acts.session.shared(with_remaining(acts.session.recorder.plan, steps))
        acts.report(ctx, outline(plan), plan, change(plan))
        return f"The plan is now:\n{outline(plan)}"


async def _may_revise(acts: Acts) -> None:
    """Refuse a revision that is one too many, or that the supervisor is to approve first."""
    settings, recorder = acts.session.settings.plan, acts.session.recorder
    wanting = wanted(await acts.session.all_of(WANTING))
    if wanting is Wanting.ORDERED:
        return  # who asks for new plan steps gets them
    made = await revisions_made(recorder)
    if made >= settings.max_revisions:
        raise ModelRetry(
            f"{made} of {settings.max_revisions} revisions of this task's plan are used: go on "
            "with the plan as it is, or ask for help with `reflect` and `escalate`."
        )
    approves = settings.approval is Approver.SUPERVISOR and wanting is Wanting.NOTHING
    if approves and written(recorder.plan):
        raise ModelRetry(
            "Your supervisor approves changes of the plan: propose them with `check_plan`, as "
            "`remaining`."
        )


def _alone(ctx: RunContext[Any]) -> bool:
    """Whether the turn holds nothing but Midwatch's own tools."""
    for message in reversed(ctx.messages):
        if isinstance(message, ModelResponse):
            return all(call.tool_name in NAMES for call in message.tool_calls)
    return False
