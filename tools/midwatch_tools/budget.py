"""What an attempt has used of its task's budget, and how that is told. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from midwatch_monitor.outlook import Outlook, done_percent, meters, outlook
from midwatch_monitor.records import Budget, Grant, Meter, Plan


def spend(
    budget: Budget, *, requests: int = 0, tokens: int = 0, cost_usd: float = 0, minutes: float = 0
) -> Budget:
    """The budget after some more was used."""
    return Budget(
        requests=_add(budget.requests, requests),
        tokens=_add(budget.tokens, tokens),
        cost_usd=_add(budget.cost_usd, cost_usd),
        minutes=_add(budget.minutes, minutes),
    )


def _add(meter: Meter, more: float) -> Meter:
    return replace(meter, used=meter.used + more) if more else meter


def raised(budget: Budget, grants: Iterable[Grant]) -> Budget:
    """The budget with its limits raised by what was granted; what has no limit gets none."""
    for grant in grants:
        budget = Budget(
            requests=_raise(budget.requests, grant.requests),
            tokens=_raise(budget.tokens, grant.tokens),
            cost_usd=_raise(budget.cost_usd, grant.cost_usd),
            minutes=_raise(budget.minutes, grant.minutes),
        )
    return budget


def _raise(meter: Meter, more: float) -> Meter:
    return meter if meter.limit is None or not more else replace(meter, limit=meter.limit + more)


def exhausted(budget: Budget) -> str:
    """Which limits are reached, in words; empty while there is something left of each."""
    gone = [
        f"{_number(meter.used)} of {_number(meter.limit)} "
        f"{'US dollars' if name == 'dollars' else name}"
        for name, meter in meters(budget)
        if meter.spent and meter.limit is not None
    ]
    return ", ".join(gone)


def told(budget: Budget, plan: Plan, within: int | None, *, made: int, slack: float) -> str:
    """The budget in one line, for the worker: used, left, and whether it lasts at this rate.

    Only what has a limit is in it; empty where nothing has.

    Args:
        budget: As the rules see it.
        plan: The plan as it stands.
        within: The progress of the plan step in hand as last reported, in percent.
        made: Model requests made for the plan step in hand.
        slack: How many points the work may lag behind what is used.
    """
    # Unknown is not 0 %: nothing was reported, and no plan step is closed.
    silent = within is None and plan.current <= 1
    done = None if silent else done_percent(plan.current, len(plan.steps), within)
    ahead = outlook(budget, done, slack=slack)
    if ahead is None:
        return ""
    parts = [
        f"{_number(meter.used)} of {_number(meter.limit)} {name} "
        f"({_number(max(meter.limit - meter.used, 0.0))} left)"
        for name, meter in meters(budget)
        if meter.limit
    ]
    given = plan.in_hand.requests if plan.in_hand is not None else None
    share = "" if given is None else f" This plan step: {made} of {given} requests."
    return f"Budget: {'; '.join(parts)}.{share} {_ahead(ahead)}"


def _number(value: float) -> str:
    """Two decimals or, below one, two digits; and no exponent: the worker counts with it."""
    if 0.0001 <= value < 1:
        return f"{value:.2g}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _ahead(ahead: Outlook) -> str:
    if ahead.done is None:
        return f"{ahead.percent:.0f} % of the {ahead.resource} are used."
    shares = f"{ahead.percent:.0f} % of the {ahead.resource} for {ahead.done:.0f} % of the work"
    if ahead.enough:
        return f"At this rate enough: {shares}."
    advice = "simplify what remains, or call `request_budget`"
    return f"At this rate NOT enough: {shares}; {advice}."
