"""The tool `check_plan`: a look at the rest of the plan between two plan steps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext

from midwatch_monitor.config.settings import Approver, PlanSettings
from midwatch_monitor.records import (
    Action,
    Entry,
    Intervention,
    Plan,
    PlanCheck,
    Record,
    Ruling,
)
from midwatch_tools.instructions import outline
from midwatch_tools.plan_change import plan_change, revisions_made, with_remaining
from midwatch_tools.session import Session
from midwatch_tools.tool_calls import ToolCallWatch
from midwatch_tools.tools.arguments import SomeTexts, TextArgument, Texts
from midwatch_tools.tools.toolset import WorkerTool, has_unanswered

_CHECKED = (
    "This plan step's check is in: go on with the work. If the plan does not hold any more, {how}, "
    "or ask for help with `reflect` and `escalate`."
)


class CheckPlan(WorkerTool):
    async def check_plan(
        self,
        ctx: RunContext[Any],
        assumption: TextArgument,
        reality: TextArgument,
        impact: TextArgument,
        options: Texts,
        choice: TextArgument,
        remaining: SomeTexts = (),
    ) -> str:
        """Check the rest of the plan as a plan step begins, with its first work in the same turn.

        What the plan assumes, what the work has shown of that, its impact on the remaining plan
        steps, and your choice among the options: the simplest, with the fewest new files. Give
        `remaining` only if the plan should change.
        """
        acts = self._present()
        recorder, settings = acts.session.recorder, acts.session.settings.plan
        await _ask_once(acts, remaining)
        made = await revisions_made(recorder) if remaining else 0
        plan = recorder.plan
        if plan.in_hand is None:
            raise ModelRetry("Every plan step is done: end your work, or `set_plan` what remains.")
        check = PlanCheck(
            plan_step=plan.current,
            assumption=assumption,
            reality=reality,
            impact=impact,
            options=options,
            choice=choice,
            proposed=() if remaining == plan.open_titles else remaining,
        )
        check = rule_on_check(check, made=made, settings=settings)
        plan, records = _carried_out(acts.session, check)
        acts.report(ctx, choice, check, *records)
        return f"{_ruling_answer(check)} The plan is now:\n{outline(plan)}"


async def _ask_once(acts: ToolCallWatch, proposed: tuple[str, ...]) -> None:
    """Refuse a second check of a plan step, unless it is the way to propose another plan."""
    recorder = acts.session.recorder
    entries = await acts.session.all_of((PlanCheck, Intervention))
    if not answered(entries, recorder.plan.current):
        return
    if acts.session.settings.plan.approval is not Approver.SUPERVISOR:
        raise ModelRetry(_CHECKED.format(how="say so with `set_plan`"))
    if has_unanswered(entries, _is_pending):
        raise ModelRetry(
            "Your supervisor has not answered your last proposal yet: until then go on with "
            "the present plan."
        )
    if not proposed or proposed == recorder.plan.open_titles:
        raise ModelRetry(_CHECKED.format(how="propose another one here, as `remaining`"))


def _is_pending(record: Record) -> bool:
    return isinstance(record, PlanCheck) and record.ruling is Ruling.PENDING


def answered(entries: Sequence[Entry], plan_step: int) -> bool:
    """Whether a plan step was checked without its proposal being refused."""
    last: Entry | None = None
    for entry in entries:
        record = entry.record
        if isinstance(record, PlanCheck) and record.plan_step == plan_step:
            last = None if record.ruling is Ruling.REFUSED else entry
        elif isinstance(record, Intervention) and last is not None and record.petition == last.id:
            last = None if record.action is Action.NUDGE else last
    return last is not None


def rule_on_check(check: PlanCheck, *, made: int, settings: PlanSettings) -> PlanCheck:
    """Return the check with the policy's ruling on its proposal, after `made` earlier revisions."""
    if not check.proposed:
        return check
    if made >= settings.max_revisions:
        reason = f"{made} of {settings.max_revisions} revisions of this task's plan are used"
        return replace(check, ruling=Ruling.REFUSED, reason=reason)
    if settings.approval is Approver.SUPERVISOR:
        return replace(check, ruling=Ruling.PENDING)
    return replace(check, ruling=Ruling.GRANTED, reason="within the caps")


def _carried_out(session: Session, check: PlanCheck) -> tuple[Plan, tuple[Record, ...]]:
    """Return the plan after the check, and the records for it."""
    plan = session.recorder.plan
    if not check.proposed or check.ruling is not Ruling.GRANTED:
        return plan, ()
    plan = session.share_requests(with_remaining(plan, check.proposed))
    return plan, (plan, plan_change(plan))


def _ruling_answer(check: PlanCheck) -> str:
    if not check.proposed:
        return "Recorded."
    match check.ruling:
        case Ruling.GRANTED:
            return "Recorded, and the plan is revised."
        case Ruling.PENDING:
            return (
                "Recorded. Your supervisor is asked about the new plan; until an answer comes, go "
                "on with the present one."
            )
        case Ruling.REFUSED:
            return (
                f"Recorded, but the revision is refused: {check.reason}. Go on with the present "
                "plan, or ask for help with `reflect` and `escalate`."
            )
