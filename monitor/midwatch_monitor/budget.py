"""What a budget allows: usage, limits, and whether the remainder will be enough. Pure.

Both the reminders to the worker and the rule `budget_burn` use it, so both see the same numbers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from midwatch_monitor.records import Budget, Change, Event, Grant, Lifecycle, Meter


def spend(
    budget: Budget, *, requests: int = 0, tokens: int = 0, cost_usd: float = 0, minutes: float = 0
) -> Budget:
    """Return the budget after further usage."""
    return Budget(
        requests=_add(budget.requests, requests),
        tokens=_add(budget.tokens, tokens),
        cost_usd=_add(budget.cost_usd, cost_usd),
        minutes=_add(budget.minutes, minutes),
    )


def work_minutes(
    events: Iterable[Event], since: datetime | None, now: datetime
) -> tuple[float, datetime | None]:
    """Return the minutes of work since then, and since when the next ones count.

    That is `None` while the session waits for its person, which is no work. An event without a time
    counts as one of `now`.
    """
    seconds = 0.0
    for each in events:
        at, lifecycle = each.at or now, each.lifecycle if isinstance(each, Change) else None
        if since is None or lifecycle is Lifecycle.WORKING:
            since = at
        seconds += max((at - since).total_seconds(), 0.0)
        since = None if lifecycle is Lifecycle.INPUT_REQUIRED else max(at, since)
    return seconds / 60, since


def _add(meter: Meter, more: float) -> Meter:
    return replace(meter, used=meter.used + more) if more else meter


def raise_limits(budget: Budget, grants: Iterable[Grant]) -> Budget:
    """Return the budget with its limits raised by grants; a resource without a limit gets none."""
    for grant in grants:
        budget = Budget(
            requests=_raise_limit(budget.requests, grant.requests),
            tokens=_raise_limit(budget.tokens, grant.tokens),
            cost_usd=_raise_limit(budget.cost_usd, grant.cost_usd),
            minutes=_raise_limit(budget.minutes, grant.minutes),
        )
    return budget


def renew(budget: Budget, whole: Budget) -> Budget:
    """Return the budget of a task that is begun again: its whole budget is allowed once more.

    Usage so far stays counted, so that no reader of the meters sees them fall.
    """
    return Budget(
        requests=_renew(budget.requests, whole.requests),
        tokens=_renew(budget.tokens, whole.tokens),
        cost_usd=_renew(budget.cost_usd, whole.cost_usd),
        minutes=_renew(budget.minutes, whole.minutes),
    )


def _renew(meter: Meter, whole: Meter) -> Meter:
    limit = None if whole.limit is None else meter.used + whole.limit
    return replace(meter, limit=limit)


def _raise_limit(meter: Meter, more: float) -> Meter:
    return meter if meter.limit is None or not more else replace(meter, limit=meter.limit + more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The resource with the largest share used, and whether it will last."""

    resource: str
    used: float
    limit: float
    done: float | None
    """Percent of the whole work that is done; `None` if unknown."""
    enough: bool
    """Whether it will last at the current rate; also true if that is unknown."""

    @property
    def left(self) -> float:
        """Amount that may still be used; never below 0."""
        return max(self.limit - self.used, 0.0)

    @property
    def percent(self) -> float:
        """Percent of the limit that is used."""
        return 100 * self.used / self.limit if self.limit else 100.0

    @property
    def needed(self) -> float | None:
        """Amount that the rest of the work needs at the current rate; `None` if unknown."""
        if not self.done:
            return None
        return self.used * (100 - self.done) / self.done


def outlook(budget: Budget, done: float | None, *, slack: float = 0.0) -> Outlook | None:
    """Return the outlook of the tightest limit, or `None` for a budget without limits.

    `done` is the percentage of the whole work that is done. It may lag behind the percentage used
    by `slack` points, because work goes faster towards its end.
    """
    limited = [(_percent_used(meter), name, meter) for name, meter in meters(budget) if meter.limit]
    if not limited:
        return None
    share, name, meter = max(limited, key=lambda each: each[0])
    return Outlook(
        resource=name,
        used=meter.used,
        limit=meter.limit or 0.0,
        done=done,
        enough=done is None or done + slack >= share,
    )


def share_used(budget: Budget) -> float:
    """Return the share of the tightest limit that is used, from 0; 0 if nothing has a limit."""
    return max(_used_share(meter.used, meter.limit) for _, meter in meters(budget))


def forecast(began: Budget, now: Budget, *, steps: int, ahead: int) -> float:
    """Return the share of the tightest limit that will be used `ahead` steps from now.

    Assumes the average rate since the attempt began, `steps` steps ago. Before the first step the
    rate counts as 0.
    """
    if steps <= 0:
        return share_used(now)
    pairs = zip(meters(began), meters(now), strict=True)
    return max(
        _used_share(meter.used + ahead * max(0.0, meter.used - before.used) / steps, meter.limit)
        for (_, before), (_, meter) in pairs
    )


def done_percent(plan_step: int, plan_steps: int, within: int | None) -> float | None:
    """Return the percentage of the whole work that is done, or `None` if unknown.

    Args:
        plan_step: Number of the current plan step, from 1.
        plan_steps: Number of plan steps; 0 without a plan.
        within: Last reported percentage of that plan step, or of the work if there is no plan.
    """
    if not plan_steps:
        return within
    share = min(within or 0, 100) / 100
    return 100 * min(1.0, (plan_step - 1 + share) / plan_steps)


def meters(budget: Budget) -> tuple[tuple[str, Meter], ...]:
    """Return the four resources with their display names."""
    return (
        ("requests", budget.requests),
        ("tokens", budget.tokens),
        ("dollars", budget.cost_usd),
        ("minutes", budget.minutes),
    )


def _percent_used(meter: Meter) -> float:
    return 100 * _used_share(meter.used, meter.limit)


def _used_share(amount: float, limit: float | None) -> float:
    return amount / limit if limit else 0.0
