"""How often each whole number occurred."""

from collections import Counter
from dataclasses import dataclass


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
