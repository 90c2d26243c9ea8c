"""Usage of models, folded from budgets and spending. Pure."""

from dataclasses import dataclass, field

from midwatch_monitor.records import Budget, Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Requests, tokens and US dollars; the dollars are 0 if no price is known."""

    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, more: "Usage") -> "Usage":
        return Usage(
            requests=self.requests + more.requests,
            tokens=self.tokens + more.tokens,
            cost_usd=self.cost_usd + more.cost_usd,
        )


def spent_usage(spent: Spending) -> Usage:
    """Return the usage of a model call that was not the worker's."""
    return Usage(requests=spent.requests, tokens=spent.tokens, cost_usd=spent.cost_usd)


@dataclass(slots=True, kw_only=True)
class WorkerUsage:
    """Adds up the usage of one task, whose attempts share one budget."""

    used: Usage = field(default_factory=Usage)
    _shown: Usage = field(default_factory=Usage)

    def fold(self, budget: Budget) -> Usage:
        """Take in the current meters, and return the usage since they were last seen."""
        shown = Usage(
            requests=int(budget.requests.used),
            tokens=int(budget.tokens.used),
            cost_usd=budget.cost_usd.used,
        )
        before = self._shown
        # Meters only rise; one that fell was reset.
        if shown.requests < before.requests or shown.tokens < before.tokens:
            before = Usage()
        more = Usage(
            requests=shown.requests - before.requests,
            tokens=shown.tokens - before.tokens,
            cost_usd=max(0.0, shown.cost_usd - before.cost_usd),
        )
        self.used, self._shown = self.used + more, shown
        return more
