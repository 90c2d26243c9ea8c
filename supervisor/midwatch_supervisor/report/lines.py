"""Figures as the report's JSON lines. Pure."""

import dataclasses
from enum import Enum
from typing import Any

from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.metrics.work import SpendingFigures
from midwatch_monitor.state.usage import Usage

FigureLine = dict[str, Any]


def line(type: str, figures: object, **more: object) -> FigureLine:
    """One line: what more is said of it, then every figure under the name of its field.

    Collections have lines of their own, and are left out.
    """
    found: FigureLine = {"type": type, **more}
    for field in dataclasses.fields(figures):  # pyright: ignore[reportArgumentType]
        found |= _fields(field.name, getattr(figures, field.name))
    return found | more


def _fields(name: str, value: object) -> FigureLine:
    match value:
        case Share():
            return {"judged": value.of, name: value.hits, **rate_fields(value)}
        case Usage():
            return usage_fields(value)
        case Enum():
            return {name: value.value}
        case float():
            return {name: rounded(value)}
        case str() | int() | None:
            return {name: value}
        case _:
            return {}


def fields(figures: object, *names: str) -> FigureLine:
    """The attributes of these names."""
    return {name: getattr(figures, name) for name in names}


def rounded(value: float | None) -> float | None:
    """Four decimals, which no count of attempts bears out anyway."""
    return None if value is None else round(value, 4)


def rate_fields(share: Share) -> FigureLine:
    """A rate from 0 to 1 with the ends of its 95 % interval; nothing of nothing."""
    rate, spread = (share.rate, share.interval) if share.of else (None, None)
    return {"rate": rounded(rate), **interval_fields(spread)}


def interval_fields(spread: Interval | None, prefix: str = "") -> FigureLine:
    """The ends of an interval; `None` where there is none."""
    low, high = (spread.low, spread.high) if spread else (None, None)
    return {f"{prefix}low": rounded(low), f"{prefix}high": rounded(high)}


def usage_fields(usage: Usage) -> FigureLine:
    """What models used."""
    return {**fields(usage, "requests", "tokens"), "cost_usd": round(usage.cost_usd, 6)}


def role_line(figures: SpendingFigures, role: str, usage: Usage) -> FigureLine:
    """What one role used, and its tokens as a share of the workers'."""
    share = rounded(figures.share(usage))
    return {"type": "spending", "role": role, **usage_fields(usage), "share": share}
