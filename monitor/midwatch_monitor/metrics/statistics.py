"""Shares, differences and distributions, with their 95 % intervals. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

_Z = 1.96
"""The normal quantile of a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Where a figure lies with 95 % confidence."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    hits: int
    of: int

    @property
    def rate(self) -> float:
        """From 0 to 1; 0 of none is 0."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> Interval:
        """Wilson's score interval, which holds for few hits and few runs too."""
        if not self.of:
            return Interval(low=0.0, high=1.0)
        spread = _Z * sqrt(self.rate * (1 - self.rate) / self.of + _Z**2 / (4 * self.of**2))
        middle, scale = self.rate + _Z**2 / (2 * self.of), 1 + _Z**2 / self.of
        return Interval(
            low=max(0.0, (middle - spread) / scale), high=min(1.0, (middle + spread) / scale)
        )


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


def area_under_curve(
    successes: Sequence[float], failures: Sequence[float], *, of: tuple[int, int]
) -> tuple[float, Interval] | None:
    """How often a success has the higher score of a success and a failure, a tie counting half.

    This is the area under the ROC curve: 0.5 where the score separates nothing. The interval is
    that of Hanley and McNeil (Radiology 143, 1982, p. 29). `of` says how many of each are counted
    as independent; `None` where that is none.
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
    """Student's quantile of a 95 % interval, by the first terms of its expansion around 1.96.

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
    """Whole numbers with how often each occurred."""

    counts: tuple[tuple[int, int], ...] = ()
    """Pairs of a number and how often it occurred, by rising number."""

    @property
    def of(self) -> int:
        """How many there are in all."""
        return sum(count for _, count in self.counts)

    @property
    def median(self) -> float | None:
        """The middle one, or the mean of the two in the middle; `None` of none."""
        if not self.of:
            return None
        return (self._at((self.of - 1) // 2) + self._at(self.of // 2)) / 2

    def between(self, low: int, high: int | None) -> int:
        """How many are from `low` to `high`, both included; `None` has no upper end."""
        return sum(
            count
            for value, count in self.counts
            if low <= value and (high is None or value <= high)
        )

    def _at(self, place: int) -> int:
        for value, count in self.counts:
            place -= count
            if place < 0:
                return value
        raise IndexError(place)


def distribution(counts: Counter[int]) -> Distribution:
    """The distribution that was counted."""
    return Distribution(counts=tuple(sorted(counts.items())))
