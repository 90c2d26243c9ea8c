"""What a detector costs per event: as a run grows, and over recorded runs. Always against ours.

A and B are measured in turns within one run, and the ratio is the median of the pairs: the clock
of a shared machine changes for minutes at a time, so times of two runs do not compare.
"""

import gc
import itertools
import random
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from midwatch_monitor.records import Step
from midwatch_peers.detector import Detector, Fed
from midwatch_peers.recorded import Run
from midwatch_peers.seeded import healthy_step

_BLOCK = 500
"""Steps that are prepared and fed at a time on the way to a mark."""
_SPIN = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """A detector's rules per event at one length of a run, beside ours."""

    detector: str
    events: int
    """How long the run was already; 0 stands for whole recorded runs."""
    microseconds: float | None
    """Median; `None` where its time was up before."""
    preparing: float | None
    """Microseconds per event to bring it into the detector's form, apart."""
    ratio: float | None
    """Median over the pairs of its rules' cost by our rules': above 1 it is the dearer one."""
    strict_ratio: float | None
    """The same with our normalising counted against us, since most others digest in their rules."""
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    checking: float
    preparing: float | None


_Measure = Callable[[Detector, int], dict[int, _Sample]]
"""Samples by mark of one detector in one pair."""


def calibration() -> float:
    """Nanoseconds of one turn of a fixed loop in plain Python: how fast the machine is now."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        total = 0
        for number in range(_SPIN):
            total += number & 7
        best = min(best, time.perf_counter() - began)
    return best / _SPIN * 1e9


def growth(
    ours: Detector, other: Detector, marks: Sequence[int], pairs: int, seconds: float
) -> list[Cost]:
    """The cost of the next events of a healthy run that is as long as each mark."""
    rng = random.Random(0)
    steps = [healthy_step(rng, number) for number in range(1, max(marks) + _window(max(marks)) + 1)]

    def measure(detector: Detector, pair: int) -> dict[int, _Sample]:
        del pair
        return _grow(detector, steps, marks, seconds / pairs)

    return _compare(ours, other, marks, pairs, measure)


def over_runs(
    ours: Detector, other: Detector, recorded: Sequence[Run], pairs: int, seconds: float
) -> list[Cost]:
    """The cost over recorded runs, from the first step to the last; each pair has its own runs."""

    def measure(detector: Detector, pair: int) -> dict[int, _Sample]:
        end = time.perf_counter() + seconds / pairs
        fed: list[Fed] = []
        asked = 0
        for run in recorded[pair::pairs]:
            if (left := end - time.perf_counter()) > 0:
                fed.append(detector.start().feed(run.steps, seconds=left, halt=False))
                asked += len(run.steps)
        return {0: _sample(fed, asked)} if fed else {}

    return _compare(ours, other, (0,), min(pairs, len(recorded)), measure)


def _grow(
    detector: Detector, steps: Sequence[Step], marks: Sequence[int], seconds: float
) -> dict[int, _Sample]:
    watching, at, end = detector.start(), 0, time.perf_counter() + seconds
    samples: dict[int, _Sample] = {}
    for mark in marks:
        for start in range(at, mark, _BLOCK):
            block = steps[start : min(start + _BLOCK, mark)]
            left = end - time.perf_counter()
            if left <= 0 or watching.feed(block, seconds=left, halt=False).steps < len(block):
                return samples
        at = mark + _window(mark)
        fed = watching.feed(steps[mark:at], seconds=max(end - time.perf_counter(), 0), halt=False)
        if fed.steps < at - mark:
            return samples
        samples[mark] = _sample([fed], at - mark)
    return samples


def _compare(
    ours: Detector, other: Detector, marks: Sequence[int], pairs: int, measure: _Measure
) -> list[Cost]:
    """A pair before the first warms up; the two take turns in going first."""
    mine: list[dict[int, _Sample]] = []
    theirs: list[dict[int, _Sample]] = []
    for pair in itertools.chain((0,), range(pairs)):
        order = ((ours, mine), (other, theirs))
        for detector, samples in order if pair % 2 else reversed(order):
            gc.collect()
            samples.append(measure(detector, pair))
    return [_cost(other.name, mark, mine[1:], theirs[1:]) for mark in marks]


def _cost(
    name: str,
    mark: int,
    mine: Sequence[dict[int, _Sample]],
    theirs: Sequence[dict[int, _Sample]],
) -> Cost:
    both = [
        (a[mark], b[mark]) for a, b in zip(mine, theirs, strict=True) if mark in a and mark in b
    ]
    prepared = [b.preparing for _, b in both if b.preparing is not None]
    return Cost(
        detector=name,
        events=mark,
        microseconds=_median([b.checking * 1e6 for _, b in both]),
        preparing=_median([each * 1e6 for each in prepared]),
        ratio=_median([b.checking / a.checking for a, b in both]),
        strict_ratio=_median([b.checking / (a.checking + (a.preparing or 0)) for a, b in both]),
        pairs=len(both),
    )


def _sample(fed: Sequence[Fed], asked: int) -> _Sample:
    """Per event: checking by the events that were taken, preparing by those that were given."""
    taken = sum(each.steps for each in fed)
    known = [each.preparing for each in fed if each.preparing is not None]
    return _Sample(
        checking=sum(each.checking for each in fed) / taken,
        preparing=sum(known) / asked if known else None,
    )


def _window(mark: int) -> int:
    """Events that are timed at a mark: long enough for the clock, short beside the run."""
    return max(10, mark // 20)


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


@contextmanager
def no_collection() -> Generator[None]:
    """As `timeit` does: a collection in one half of a pair would be counted against it.

    What there is already is set aside, so that the collections between the halves are short.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
