"""Figures as fields of the report's objects. Pure."""

from midwatch_monitor.metrics.spending import Usage
from midwatch_monitor.replay.tune.figures import Share

Line = dict[str, object]


def usage_fields(usage: Usage) -> Line:
    """What was used of models."""
    return {
        "requests": usage.requests,
        "tokens": usage.tokens,
        "cost_usd": round(usage.cost_usd, 6),
    }


def rate_fields(share: Share) -> Line:
    """A rate from 0 to 1 with the ends of its 95 % interval; nothing of nothing."""
    if not share.of:
        return {"rate": None, "low": None, "high": None}
    spread = share.interval
    return {
        "rate": rounded(share.rate),
        "low": rounded(spread.low),
        "high": rounded(spread.high),
    }


def rounded(value: float | None) -> float | None:
    """Four decimals, which no count of attempts bears out anyway."""
    return None if value is None else round(value, 4)
