"""How far apart two groups are, with the range in which that difference may as well lie. Pure."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, variance

from midwatch_monitor.replay.tune.figures import Share
from midwatch_monitor.replay.tune.peers import Interval

_Z = 1.96
"""The normal quantile of a 95 % interval."""


def difference(first: Share, second: Share) -> Interval | None:
    """The first rate minus the second, as a 95 % interval; `None` where one of them is of none.

    Newcombe's interval out of Wilson's of each rate, which holds for few cases and for rates of 0
    and 1 too. Both ends are from -1 to 1.
    """
    if not (first.of and second.of):
        return None
    apart = first.rate - second.rate
    one, other = first.interval, second.interval
    below = sqrt((first.rate - one.low) ** 2 + (other.high - second.rate) ** 2)
    above = sqrt((one.high - first.rate) ** 2 + (second.rate - other.low) ** 2)
    return Interval(low=apart - below, high=apart + above)


def mean_difference(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """The first mean minus the second, as a 95 % interval; `None` with fewer than two in one.

    Welch's: the two may vary differently, and be of different size.
    """
    if min(len(first), len(second)) < 2:
        return None
    one, other = variance(first) / len(first), variance(second) / len(second)
    apart = fmean(first) - fmean(second)
    if not one + other:
        return Interval(low=apart, high=apart)
    freedom = (one + other) ** 2 / (one**2 / (len(first) - 1) + other**2 / (len(second) - 1))
    spread = _quantile(freedom) * sqrt(one + other)
    return Interval(low=apart - spread, high=apart + spread)


def _quantile(freedom: float) -> float:
    """Student's quantile of a 95 % interval, by the first terms of its expansion around 1.96.

    Within 0.01 of the tables from 4 degrees of freedom up.
    """
    return (
        _Z
        + (_Z**3 + _Z) / (4 * freedom)
        + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)
        + (3 * _Z**7 + 19 * _Z**5 + 17 * _Z**3 - 15 * _Z) / (384 * freedom**3)
    )
