"""The worker's own words about its work as a whole: `reflect` and `set_plan`."""

from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext

from midwatch_monitor.config.settings import Approver
from midwatch_monitor.records import Checkpoint, Step, StepKind
from midwatch_tools.instructions import answer, outline
from midwatch_tools.observation import last_response
from midwatch_tools.plan_change import (
    WANTING,
    StepsWanted,
    is_written,
    plan_change,
    revisions_made,
    steps_wanted,
    with_remaining,
)
from midwatch_tools.tool_calls import ToolCallWatch
from midwatch_tools.tools.arguments import (
    CourseArgument,
    Estimate,
    Note,
    PercentArgument,
    Strings,
    Texts,
)
from midwatch_tools.tools.toolset import WorkerTool

NAMES = (
    *("reflect", "report_error", "check_plan", "complete_step", "set_plan"),
    *("request_budget", "read_board", "record_fact", "search_facts"),
)
"""All tools that `Watch` may give to a worker."""


class OwnTools(WorkerTool):
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

    async def set_plan(self, ctx: RunContext[Any], steps: Texts) -> str:
        """Write the remaining plan steps anew, in order, each so that one can check it."""
        acts = self._present()
        await _may_revise(acts)
        plan = acts.session.share_requests(with_remaining(acts.session.recorder.plan, steps))
        acts.report(ctx, outline(plan), plan, plan_change(plan))
        return f"The plan is now:\n{outline(plan)}"


async def _may_revise(acts: ToolCallWatch) -> None:
    """Refuse a revision that is one too many, or that the supervisor must approve first."""
    settings, recorder = acts.session.settings.plan, acts.session.recorder
    wanting = steps_wanted(await acts.session.all_of(WANTING))
    if wanting is StepsWanted.ORDERED:
        return  # ordered plan steps are always allowed
    made = await revisions_made(recorder)
    if made >= settings.max_revisions:
        raise ModelRetry(
            f"{made} of {settings.max_revisions} revisions of this task's plan are used: go on "
            "with the plan as it is, or ask for help with `reflect` and `escalate`."
        )
    approves = settings.approval is Approver.SUPERVISOR and wanting is StepsWanted.NOTHING
    if approves and is_written(recorder.plan):
        raise ModelRetry(
            "Your supervisor approves changes of the plan: propose them with `check_plan`, as "
            "`remaining`."
        )


def _is_only_own_calls(ctx: RunContext[Any]) -> bool:
    """Whether the turn calls only Midwatch's own tools."""
    turn = last_response(ctx.messages)
    return turn is not None and all(call.tool_name in NAMES for call in turn.tool_calls)
