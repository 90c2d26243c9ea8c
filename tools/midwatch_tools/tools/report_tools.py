"""What a worker reports and asks for: `reflect`, `report_error` and `request_budget`."""

from typing import Any

from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.tools import RunContext

from midwatch_monitor.config.settings import ErrorSettings
from midwatch_monitor.records import (
    Analysis,
    Budget,
    BudgetRequest,
    Cause,
    Checkpoint,
    Grant,
    Intervention,
    Step,
    StepKind,
)
from midwatch_tools.gate.gate import LastFailure, backoff
from midwatch_tools.instructions import answer
from midwatch_tools.observation import last_response
from midwatch_tools.plan_change import is_written
from midwatch_tools.tools.arguments import (
    AmountArgument,
    Category,
    CountArgument,
    CourseArgument,
    Estimate,
    Note,
    PercentArgument,
    Strings,
    TextArgument,
)
from midwatch_tools.tools.proof import ErrorReport
from midwatch_tools.tools.toolset import NAMES, WorkerTool, has_unanswered


class ReportTools(WorkerTool):
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

    async def report_error(
        self,
        ctx: RunContext[Any],
        what_happened: TextArgument,
        category: Category,
        root_cause: TextArgument,
        change: TextArgument,
    ) -> str:
        """Analyse a failure before you try again, which may be in the same turn.

        `transient` passes by itself, as a timeout does. `change`: what the next try does
        differently.
        """
        acts = self._present()
        report = ErrorReport(
            what_happened=what_happened, category=category, root_cause=root_cause, change=change
        )
        if lacks := report.lacks():
            raise ToolFailed(f"{lacks}.")
        failure = await acts.entrance.last_failure()
        analysis = Analysis(
            what=what_happened,
            cause=category,
            root=root_cause,
            remedy=change,
            about=failure.number if failure else 0,
        )
        acts.report(ctx, f"{category}: {root_cause}", analysis)
        return analysis_answer(category, failure, acts.session.settings.errors)

    async def request_budget(
        self,
        ctx: RunContext[Any],
        reason: TextArgument,
        requests: CountArgument = 0,
        tokens: CountArgument = 0,
        cost_usd: AmountArgument = 0.0,
        minutes: AmountArgument = 0.0,
    ) -> str:
        """Ask for more budget, when it will not last although the work goes well."""
        acts = self._present()
        session = acts.session
        wanted = Grant(requests=requests, tokens=tokens, cost_usd=cost_usd, minutes=minutes)
        if not _is_limited(session.recorder.budget, wanted):
            raise ToolFailed("Ask for more of something that is limited, and say how much.")
        entries = await session.all_of((BudgetRequest, Intervention))
        if has_unanswered(entries, lambda record: isinstance(record, BudgetRequest)):
            raise ToolFailed("You have asked already; go on until the answer comes.")
        acts.report(ctx, reason, BudgetRequest(wanted=wanted, reason=reason))
        return "Your supervisor is asked. Go on meanwhile as if the answer were no."


def _is_only_own_calls(ctx: RunContext[Any]) -> bool:
    """Whether the turn calls only Midwatch's own tools."""
    turn = last_response(ctx.messages)
    return turn is not None and all(call.tool_name in NAMES for call in turn.tool_calls)


def analysis_answer(cause: Cause, failure: LastFailure | None, settings: ErrorSettings) -> str:
    """Return what follows from an analysis, as the worker reads it."""
    if cause is Cause.UNKNOWN and settings.unknown is Cause.UNKNOWN:
        return (
            "Recorded. One more try is allowed as it is; after that the cause counts as permanent. "
            f"Use it to learn the cause. {_where_to_look(failure)}"
        )
    if Cause.TRANSIENT in (cause, settings.unknown if cause is Cause.UNKNOWN else cause):
        waits = [f"{backoff(n + 1, settings):g} s" for n in range(settings.transient_tries)]
        counted = "" if cause is Cause.TRANSIENT else " An unknown cause counts as transient here."
        return (
            f"Recorded.{counted} Change nothing; try again: Midwatch waits before each try "
            f"({', '.join(waits)}). If it still fails then, analyse it again."
        )
    counted = "" if cause is Cause.PERMANENT else " An unknown cause counts as permanent here."
    return (
        f"Recorded.{counted} Change the approach before you try again: the same act unchanged will "
        f"be refused. {_where_to_look(failure)}"
    )


def _where_to_look(failure: LastFailure | None) -> str:
    if failure is None:
        return "Look first at what the approach took for granted: versions, paths, settings."
    if failure.blocked:
        return f"Look first at the surroundings ({failure.blocked}), not at the code."
    words = f" (`{failure.words}`)" if failure.words else ""
    return (
        f"Look first at the output of {failure.act}{words} and at the settings and "
        "versions that it depends on, then at the code."
    )


def _is_limited(budget: Budget, wanted: Grant) -> bool:
    """Whether anything that is wanted has a limit."""
    return any(
        more and meter.limit is not None
        for more, meter in (
            (wanted.requests, budget.requests),
            (wanted.tokens, budget.tokens),
            (wanted.cost_usd, budget.cost_usd),
            (wanted.minutes, budget.minutes),
        )
    )
