"""The tool `complete_step`: a plan step is done once there is evidence."""

from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext

from midwatch_monitor.records import (
    Activity,
    Change,
    Completion,
    Plan,
    PlanStep,
)
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_tools.instructions import outline
from midwatch_tools.plan_change import plan_change, with_current_done
from midwatch_tools.session import MAX_DOING, Session
from midwatch_tools.tools.arguments import Claims, Note, PercentArgument, Strings
from midwatch_tools.tools.completion import (
    WORK,
    FilePresence,
    PlanStepEvidence,
    PlanStepWork,
    StepClaim,
    judge_completion,
    plan_step_work,
)
from midwatch_tools.tools.toolset import WorkerTool


class CompleteStep(WorkerTool):
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
        step = plan.in_hand
        if step is None:
            raise ModelRetry("Every plan step is done: end your work, or `set_plan` what remains.")
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
        return answer(completion, after, session.budget_line(after))


def answer(completion: Completion, plan: Plan, budget: str) -> str:
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
