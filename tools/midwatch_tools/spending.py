"""What an attempt has used of its task's budget. Pure."""

from dataclasses import replace

from midwatch_monitor.words import Budget, Meter


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


def exhausted(budget: Budget) -> str:
    """Which limits are reached, in words; empty while there is something left of each."""
    meters = {
        "requests": budget.requests,
        "tokens": budget.tokens,
        "US dollars": budget.cost_usd,
        "minutes": budget.minutes,
    }
    gone = [
        f"{meter.used:g} of {meter.limit:g} {name}" for name, meter in meters.items() if meter.spent
    ]
    return ", ".join(gone)
