"""`request_budget`: how a worker asks for more budget."""

from typing import Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import RunContext

from midwatch_monitor.records import (
    Budget,
    BudgetRequest,
    Grant,
    Intervention,
)
from midwatch_tools.tools.arguments import (
    AmountArgument,
    CountArgument,
    TextArgument,
)
from midwatch_tools.tools.toolset import WorkerTool, has_unanswered


class RequestBudgetTool(WorkerTool):
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
