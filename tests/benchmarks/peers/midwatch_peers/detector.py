"""What every detector is to the bench: steps in, the first alarm and the time out."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from midwatch_monitor.records import Step

P = TypeVar("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """The first time that a detector spoke up in a run: a warning, a nudge, a stop."""

    step: int
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """What came of feeding steps to a detector."""

    steps: int
    """How many it took: fewer than given if it halted or its time was up."""
    preparing: float | None
    """Seconds to bring all the given steps into its own form; `None` where that is not ours."""
    checking: float
    """Seconds in its rules for the steps that it took, the reading of the clock included."""
    alarm: Alarm | None


class Watching(Protocol):
    """A detector's state over one run."""

    def feed(self, steps: Sequence[Step], *, seconds: float, halt: bool) -> Fed:
        """Feed steps until they end, the time is up or, with `halt`, the first alarm."""
        ...


class Sensor(Protocol[P]):
    """A detector in this process. What it is fed is prepared before its time counts."""

    def prepare(self, step: Step) -> P:
        """The step in the detector's own form."""
        ...

    def check(self, prepared: P) -> str:
        """The rule that speaks up at this step, or nothing."""
        ...


class InProcess(Generic[P]):
    """Watches one run with a sensor."""

    def __init__(self, sensor: Sensor[P]) -> None:
        self._sensor = sensor

    def feed(self, steps: Sequence[Step], *, seconds: float, halt: bool) -> Fed:
        """See Watching."""
        clock, check = time.perf_counter, self._sensor.check
        began = clock()
        prepared = [self._sensor.prepare(step) for step in steps]
        start = clock()
        alarm, taken, end = None, 0, start + seconds
        for each in prepared:
            rule = check(each)
            taken += 1
            if rule and alarm is None:
                alarm = Alarm(step=steps[taken - 1].number, rule=rule)
                if halt:
                    break
            if clock() >= end:
                break
        return Fed(steps=taken, preparing=start - began, checking=clock() - start, alarm=alarm)


def _nothing() -> None:
    """There is nothing to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """A detector that can be run."""

    name: str
    version: str
    note: str
    """How it is run, where that could be done in more than one way."""
    start: Callable[[], Watching]
    close: Callable[[], None] = _nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A detector that cannot be run here, and why."""

    name: str
    reason: str
