"""`report_error`: how a worker explains a failure before it tries again."""

from typing import Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import RunContext

from midwatch_monitor.config.settings import ErrorSettings
from midwatch_monitor.records import (
    Analysis,
    Cause,
)
from midwatch_tools.gate.gate import LastFailure, backoff
from midwatch_tools.tools.arguments import (
    Category,
    TextArgument,
)
from midwatch_tools.tools.proof import ErrorReport
from midwatch_tools.tools.toolset import WorkerTool


class ReportErrorTool(WorkerTool):
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
