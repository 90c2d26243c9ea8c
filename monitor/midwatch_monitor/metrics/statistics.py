"""Shares, differences and distributions, with their 95 % intervals. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median, variance

_Z = 1.96
"""The normal quantile of a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A 95 % confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    hits: int
    of: int

    @property
    def rate(self) -> float:
        """From 0 to 1; 0 if `of` is 0."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> Interval:
        """Wilson's score interval, which also holds for few hits and few cases."""
        if not self.of:
            return Interval(low=0.0, high=1.0)
        spread = _Z * sqrt(self.rate * (1 - self.rate) / self.of + _Z**2 / (4 * self.of**2))
        middle, scale = self.rate + _Z**2 / (2 * self.of), 1 + _Z**2 / self.of
        return Interval(
            low=max(0.0, (middle - spread) / scale), high=min(1.0, (middle + spread) / scale)
        )


def difference(first: Share, second: Share) -> Interval | None:
    """Return the 95 % interval of the first rate minus the second; `None` if one has no cases.

    Newcombe's interval from Wilson's for each rate, which also holds for few cases and for rates of
    0 and 1. Both ends are from -1 to 1.
    """
    if not (first.of and second.of):
        return None
    apart = first.rate - second.rate
    one, other = first.interval, second.interval
    below = sqrt((first.rate - one.low) ** 2 + (other.high - second.rate) ** 2)
    above = sqrt((one.high - first.rate) ** 2 + (second.rate - other.low) ** 2)
    return Interval(low=apart - below, high=apart + above)


def mean_difference(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of the first mean minus the second; `None` with too few values.

    Each sample needs at least two. Welch's interval: the samples may differ in variance and size.
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


def area_under_curve(
    successes: Sequence[float], failures: Sequence[float], *, of: tuple[int, int]
) -> tuple[float, Interval] | None:
    """Return how often a success has a higher score than a failure; a tie counts half.

    This is the area under the ROC curve: 0.5 if the score separates nothing. The interval is that
    of Hanley and McNeil (Radiology 143, 1982, p. 29). `of` says how many successes and failures
    count as independent. Returns `None` if either number is 0.
    """
    one, other = of
    if not (one and other):
        return None
    higher = sum((s > f) + (s == f) / 2 for s in successes for f in failures)
    area = higher / (len(successes) * len(failures))
    pairs_of_failures = area / (2 - area) - area**2
    pairs_of_successes = 2 * area**2 / (1 + area) - area**2
    spread = (other - 1) * pairs_of_failures + (one - 1) * pairs_of_successes
    error = _Z * sqrt((area * (1 - area) + spread) / (one * other))
    return area, Interval(low=max(0.0, area - error), high=min(1.0, area + error))


def _quantile(freedom: float) -> float:
    """Return Student's quantile of a 95 % interval, by the first terms of its expansion at 1.96.

    Within 0.01 of the tables from 4 degrees of freedom up.
    """
    return (
        _Z
        + (_Z**3 + _Z) / (4 * freedom)
        + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)
        + (3 * _Z**7 + 19 * _Z**5 + 17 * _Z**3 - 15 * _Z) / (384 * freedom**3)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Whole numbers, and how often each occurred."""

    counts: tuple[tuple[int, int], ...] = ()
    """Pairs of a number and how often it occurred, by increasing number."""

    @property
    def of(self) -> int:
        """Number of values."""
        return sum(count for _, count in self.counts)

    @property
    def median(self) -> float | None:
        """The middle value, or the mean of the two in the middle; `None` without values."""
        return float(median(Counter(dict(self.counts)).elements())) if self.of else None

    def between(self, low: int, high: int | None) -> int:
        """Return how many values are from `low` to `high`, inclusive; `None` means no upper end."""
        return sum(
            count
            for value, count in self.counts
            if low <= value and (high is None or value <= high)
        )


def distribution(counts: Counter[int]) -> Distribution:
    """Return the distribution of these counts."""
    return Distribution(counts=tuple(sorted(counts.items())))
