"""How soon a detector finds a loop whose beginning is known."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from midwatch_peers.detector import Detector
from midwatch_peers.seeded import CASES, HEALTHY_STEPS, Case, Loop, sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """A detector on one kind of loop, over many seeds."""

    detector: str
    loop: Loop
    period: int
    seeds: int
    early: int
    """Seeds with an alarm before the loop began: false ones."""
    found: int
    """Seeds with the first alarm within the loop; for healthy runs, false ones too."""
    cycles: float | None
    """Median over those: how often the loop had gone round at the first alarm."""


def delays(detector: Detector, seeds: int, seconds: float) -> list[Delay]:
    """Every case with as many seeds as the time allows; the cases have the same seeds."""
    end = time.perf_counter() + seconds
    alarms: dict[Case, list[int | None]] = {case: [] for case in CASES}
    for seed in range(seeds):
        steps = {case: _first_alarm(detector, case, seed, end) for case in CASES}
        if time.perf_counter() >= end:
            break
        for case, step in steps.items():
            alarms[case].append(step)
    return [_delay(detector.name, case, steps) for case, steps in alarms.items()]


def _first_alarm(detector: Detector, case: Case, seed: int, end: float) -> int | None:
    left = end - time.perf_counter()
    if left <= 0:
        return None
    alarm = detector.start().feed(sequence(case, seed), seconds=left, halt=True).alarm
    return None if alarm is None else alarm.step


def _delay(name: str, case: Case, alarms: Sequence[int | None]) -> Delay:
    steps = [alarm - HEALTHY_STEPS for alarm in alarms if alarm is not None]
    late = [step / case.period for step in steps if step > 0]
    return Delay(
        detector=name,
        loop=case.loop,
        period=case.period,
        seeds=len(alarms),
        early=len(steps) - len(late),
        found=len(late),
        cycles=statistics.median(late) if late else None,
    )
