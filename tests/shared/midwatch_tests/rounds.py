"""Several ways to do the same, side by side in one run, in turns: only so do ratios compare."""

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

Way = Callable[[], Awaitable[float]]
"""Does a round's worth of work; answers how much of it a second."""

_UNITS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """What each way did a second in each round, and what the machine did meanwhile."""

    rates: Mapping[str, Sequence[float]]
    calibration: Sequence[float]
    """Microseconds of one unit of a fixed loop in plain Python: the machine has several speeds."""

    def rate(self, way: str) -> float:
        """The median of all rounds."""
        return statistics.median(self.rates[way])

    def ratio(self, way: str, other: str) -> tuple[float, float, float]:
        """How often as fast a way was as another: the median of the rounds, lowest, highest."""
        pairs = zip(self.rates[way], self.rates[other], strict=True)
        ratios = [one / two for one, two in pairs]
        return statistics.median(ratios), min(ratios), max(ratios)


async def alternate(ways: Mapping[str, Way], pairs: int) -> Rounds:
    """Every way once in each round, beginning with another one each time.

    One more round than `pairs` goes first, and counts for nothing.
    """
    names = list(ways)
    rates: dict[str, list[float]] = {name: [] for name in names}
    calibration: list[float] = []
    for number in range(pairs + 1):
        calibration.append(calibrated())
        begin = number % len(names)
        for name in names[begin:] + names[:begin]:
            rates[name].append(await ways[name]())
    return Rounds(rates={name: rates[name][1:] for name in names}, calibration=calibration[1:])


def calibrated() -> float:
    """Microseconds of one unit now."""
    began, number, seen = time.perf_counter(), 1, dict[int, int]()
    for _ in range(_UNITS):
        number = (number * 1103515245 + 12345) & 0x7FFFFFFF
        seen[number & 255] = seen.get(number & 255, 0) + 1
    return (time.perf_counter() - began) / _UNITS * 1e6
