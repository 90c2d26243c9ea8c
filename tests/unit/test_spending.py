"""What is used adds up, and a limit that is reached is named."""

import pytest

from midwatch_monitor.words import Budget, Meter
from midwatch_tools.spending import exhausted, spend

LIMITED = Budget(
    requests=Meter(limit=2),
    tokens=Meter(limit=100),
    cost_usd=Meter(limit=0.5),
    minutes=Meter(limit=1.5),
)


def test_what_is_used_adds_up_and_limits_stay() -> None:
    spent = spend(spend(LIMITED, requests=1, tokens=40), tokens=2, cost_usd=0.25, minutes=1)
    assert spent == Budget(
        requests=Meter(used=1, limit=2),
        tokens=Meter(used=42, limit=100),
        cost_usd=Meter(used=0.25, limit=0.5),
        minutes=Meter(used=1, limit=1.5),
    )


@pytest.mark.parametrize(
    ("used", "gone"),
    [
        (spend(LIMITED, requests=1, tokens=99, cost_usd=0.4, minutes=1), ""),
        (spend(LIMITED, requests=2), "2 of 2 requests"),
        (spend(LIMITED, tokens=101, cost_usd=0.5), "101 of 100 tokens, 0.5 of 0.5 US dollars"),
        (spend(LIMITED, minutes=1.5), "1.5 of 1.5 minutes"),
        (spend(Budget(), requests=10_000, minutes=10_000), ""),
        (Budget(requests=Meter(limit=0)), "0 of 0 requests"),
    ],
)
def test_a_limit_that_is_reached_is_named(used: Budget, gone: str) -> None:
    assert exhausted(used) == gone
