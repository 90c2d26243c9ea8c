"""`reflect`: how a worker says that its work goes."""

from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext

from midwatch_monitor.records import (
    Checkpoint,
    Step,
    StepKind,
)
from midwatch_tools.instructions import answer
from midwatch_tools.observation import last_response
from midwatch_tools.plan_change import is_written
from midwatch_tools.tools.arguments import (
    CourseArgument,
    Estimate,
    Note,
    PercentArgument,
    Strings,
)
from midwatch_tools.tools.toolset import NAMES, WorkerTool


class ReflectTool(WorkerTool):
    async def reflect(
        self,
        ctx: RunContext[Any],
        progress_percent: PercentArgument,
        confidence: PercentArgument,
        decision: CourseArgument,
        files_done: Strings = (),
        blockers: Strings = (),
        notes: Note = "",
        estimated_steps_left: Estimate = None,
    ) -> str:
        """Report how the work goes, in the same turn as your next work call.

        Progress (0 to 100) is of the current plan step only; confidence (0 to 100) is that the
        approach will work. `pivot`: you try another approach; `escalate`: you need help.
        """
        acts = self._present()
        plan = acts.session.recorder.plan
        checkpoint = Checkpoint(
            progress_percent=progress_percent,
            confidence=confidence,
            decision=decision,
            blockers=blockers,
            files_done=files_done,
            notes=notes,
            estimated_steps_left=estimated_steps_left,
            plan_step=plan.current,
        )
        said = len(acts.session.recorder.checkpoints)
        if said >= acts.session.settings.reflect.max_reflections:
            raise ModelRetry(
                f"{said} checkpoints on this plan step are enough: do the work, or finish it."
            )
        step = Step(
            number=0, kind=StepKind.CHECKPOINT, tool="reflect", ok=True, checkpoint=checkpoint
        )
        acts.stash(ctx, step)
        said_back = answer(
            checkpoint,
            acts.session.settings.reflect,
            alone=_is_only_own_calls(ctx),
            plans=is_written(plan),
        )
        return "\n".join(
            filter(None, (said_back, acts.session.budget_line(within=progress_percent)))
        )


def _is_only_own_calls(ctx: RunContext[Any]) -> bool:
    """Whether the turn calls only Midwatch's own tools."""
    turn = last_response(ctx.messages)
    return turn is not None and all(call.tool_name in NAMES for call in turn.tool_calls)
