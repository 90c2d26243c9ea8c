"""What the models cost: those of the workers, and those around them."""

from collections import defaultdict
from dataclasses import dataclass

from midwatch_monitor.records import Budget, Change, Entry, Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What was used of models."""

    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, more: "Usage") -> "Usage":
        return Usage(
            requests=self.requests + more.requests,
            tokens=self.tokens + more.tokens,
            cost_usd=self.cost_usd + more.cost_usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingFigures:
    """What workers used, and what was used on their behalf."""

    workers: Usage = Usage()
    roles: tuple[tuple[str, Usage], ...] = ()
    """The supervisor, the planner and the others, by name. The policy uses no model."""

    @property
    def around(self) -> Usage:
        """All that was not the workers'."""
        return sum((usage for _, usage in self.roles), Usage())

    def share(self, usage: Usage) -> float | None:
        """Tokens as a share of the workers', from 0 up; `None` where the workers used none."""
        return usage.tokens / self.workers.tokens if self.workers.tokens else None


class Outlay:
    """Follows budgets and spending."""

    def __init__(self) -> None:
        self._meters: dict[int, Usage] = {}
        """By task: what its meters showed last. Its attempts share one budget."""
        self._tasks: dict[int, Usage] = defaultdict(Usage)
        self._roles: dict[str, Usage] = defaultdict(Usage)

    def observe(self, entry: Entry) -> None:
        """Take in the next entry of a task."""
        match entry.record:
            case Change(budget=Budget() as budget):
                self._meter(entry.task, budget)
            case Spending() as spent:
                self._roles[spent.role] += Usage(
                    requests=spent.requests, tokens=spent.tokens, cost_usd=spent.cost_usd
                )
            case _:
                pass

    def _meter(self, task: int, budget: Budget) -> None:
        shown = Usage(
            requests=int(budget.requests.used),
            tokens=int(budget.tokens.used),
            cost_usd=budget.cost_usd.used,
        )
        before = self._meters.get(task, Usage())
        # Meters only rise; one that fell was begun anew.
        if shown.requests < before.requests or shown.tokens < before.tokens:
            before = Usage()
        self._tasks[task] += Usage(
            requests=shown.requests - before.requests,
            tokens=shown.tokens - before.tokens,
            cost_usd=max(0.0, shown.cost_usd - before.cost_usd),
        )
        self._meters[task] = shown

    def of(self, task: int) -> Usage:
        """What a task's workers used."""
        return self._tasks.get(task, Usage())

    def figures(self) -> SpendingFigures:
        """How it stands."""
        return SpendingFigures(
            workers=sum(self._tasks.values(), Usage()),
            roles=tuple((role, self._roles[role]) for role in sorted(self._roles)),
        )
