"""The tool `request_budget`: a worker asks for more than its task was given."""

from collections.abc import Iterable
from typing import Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import RunContext

from midwatch_monitor.records import (
    Budget,
    BudgetRequest,
    Entry,
    Grant,
    Intervention,
    Record,
)
from midwatch_tools.tools.arguments import AmountArgument, CountArgument, TextArgument
from midwatch_tools.tools.toolset import WorkerTool

ASKING: tuple[type[Record], ...] = (BudgetRequest, Intervention)
"""The records that tell whether a request is open."""


class RequestBudget(WorkerTool):
    """Holds `request_budget`."""

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
        if not limited(session.recorder.budget, wanted):
            raise ToolFailed("Ask for more of something that is limited, and say how much.")
        if is_open(await session.all_of(ASKING)):
            raise ToolFailed("You have asked already; go on until the answer comes.")
        acts.report(ctx, reason, BudgetRequest(wanted=wanted, reason=reason))
        return "Your supervisor is asked. Go on meanwhile as if the answer were no."


def limited(budget: Budget, wanted: Grant) -> bool:
    """Whether something that is wanted has a limit at all."""
    return any(
        more and meter.limit is not None
        for more, meter in (
            (wanted.requests, budget.requests),
            (wanted.tokens, budget.tokens),
            (wanted.cost_usd, budget.cost_usd),
            (wanted.minutes, budget.minutes),
        )
    )


def is_open(entries: Iterable[Entry]) -> bool:
    """Whether a request of an attempt has no answer yet."""
    asked: set[int] = set()
    for entry in entries:
        if isinstance(entry.record, BudgetRequest):
            asked.add(entry.id)
        elif isinstance(entry.record, Intervention) and entry.record.petition is not None:
            asked.discard(entry.record.petition)
    return bool(asked)
