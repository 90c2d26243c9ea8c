"""The tools for a plan: `set_plan`, `check_plan` between two plan steps, and `complete_step`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext

from midwatch_monitor.config.settings import Approver, PlanSettings
from midwatch_monitor.records import (
    Action,
    Activity,
    Change,
    Completion,
    Entry,
    Intervention,
    Plan,
    PlanCheck,
    PlanStep,
    Record,
    Ruling,
)
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_tools.instructions import outline
from midwatch_tools.plan_change import (
    WANTING,
    StepsWanted,
    is_written,
    plan_change,
    revisions_made,
    steps_wanted,
    with_current_done,
    with_remaining,
)
from midwatch_tools.session import MAX_DOING, Session
from midwatch_tools.tool_calls import ToolCallWatch
from midwatch_tools.tools.arguments import (
    Claims,
    Note,
    PercentArgument,
    SomeTexts,
    Strings,
    TextArgument,
    Texts,
)
from midwatch_tools.tools.completion import (
    WORK,
    FilePresence,
    PlanStepEvidence,
    PlanStepWork,
    StepClaim,
    judge_completion,
    plan_step_work,
)
from midwatch_tools.tools.toolset import WorkerTool, has_unanswered

_CHECKED = (
    "This plan step's check is in: go on with the work. If the plan does not hold any more, {how}, "
    "or ask for help with `reflect` and `escalate`."
)


class PlanTools(WorkerTool):
    async def set_plan(self, ctx: RunContext[Any], steps: Texts) -> str:
        """Write the remaining plan steps anew, in order, each so that one can check it."""
        acts = self._present()
        await _may_revise(acts)
        plan = acts.session.share_requests(with_remaining(acts.session.recorder.plan, steps))
        acts.report(ctx, outline(plan), plan, plan_change(plan))
        return f"The plan is now:\n{outline(plan)}"

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
        _require_open(plan)
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

    async def complete_step(
        self,
        ctx: RunContext[Any],
        goal: Note,
        files: Strings,
        structural: Claims,
        functional: Claims,
        confidence: PercentArgument,
        flag: Note = "",
    ) -> str:
        """Say that the current plan step is done; it is checked against files, edits and commands.

        Claims read `passed: …`, `failed: …` or `unproven: … because …`; structural ones are about
        these files, functional ones about what works. `passed` needs a command that showed it after
        your last edit, in backquotes. `flag`: what a later check must look at.
        """
        acts = self._present()
        session = acts.session
        plan = session.recorder.plan
        step = _require_open(plan)
        said = StepClaim(
            goal=goal,
            files=files,
            structural=structural,
            functional=functional,
            confidence=confidence,
            flag=flag,
        )
        evidence = await _evidence(session, step, said)
        settings = session.settings.completion
        completion = judge_completion(plan.current, said, evidence, settings)
        after = with_current_done(plan, completion.flag) if completion.accepted else plan
        output = completion.flag if completion.accepted else "; ".join(completion.doubts)
        more = (after, plan_change(after)) if completion.accepted else ()
        acts.report(ctx, output, completion, *more, ok=completion.accepted)
        return completion_answer(completion, after, session.budget_line(after))


def _require_open(plan: Plan) -> PlanStep:
    """Return the current plan step. Raises ModelRetry if every plan step is done."""
    if plan.in_hand is None:
        raise ModelRetry("Every plan step is done: end your work, or `set_plan` what remains.")
    return plan.in_hand


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


def completion_answer(completion: Completion, plan: Plan, budget: str) -> str:
    """Return what the worker is told about its claim, with the resulting plan."""
    if not completion.accepted:
        doubts = "\n".join(f"- {doubt}" for doubt in completion.doubts)
        return (
            f"{HELD_BACK}the plan step stays open, because\n{doubts}\n"
            "Put it right, or show it, and call `complete_step` again."
        )
    lines = ["Done."]
    if completion.flag:
        lines = [f"Done with a flag, for a later check: {completion.flag}."]
    lines += [f"The plan is now:\n{outline(plan)}"]
    if plan.in_hand is not None:
        lines.append("Next: `check_plan`, in the same turn as your first work on the next step.")
    return "\n".join([*lines, budget] if budget else lines)


async def _evidence(session: Session, step: PlanStep, said: StepClaim) -> PlanStepEvidence:
    """Look at the files, run the checks, and gather what was observed."""
    done = plan_step_work(await session.all_of(WORK))
    named = tuple(dict.fromkeys((*said.files, *step.files)))
    runs = session.settings.completion.run_acceptance and session.site.checks
    results = ()
    if runs and step.acceptance:
        doing = f"checks the plan step: {', '.join(step.acceptance)}"[:MAX_DOING]
        await session.recorder.record(Change(activity=Activity.COMMAND, doing=doing))
        results = await session.site.run(step.acceptance)
    return PlanStepEvidence(
        files=tuple(_settle_presence(each, done) for each in await session.site.look(named)),
        planned=frozenset(step.files),
        deeds=done,
        acceptance=results,
        unrun=() if runs else step.acceptance,
    )


def _settle_presence(file: FilePresence, done: PlanStepWork) -> FilePresence:
    """Return the file's presence; if nobody can look, judged by the worker's observed edits."""
    if file.known or file.path not in done.edited:
        return file
    return FilePresence(path=file.path, fault="it was deleted" if file.path in done.gone else "")
