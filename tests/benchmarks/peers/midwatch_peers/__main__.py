"""The command: every detector over the same runs, and what came of it."""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from midwatch_peers.delay import Delay, delays
from midwatch_peers.detector import Detector
from midwatch_peers.footprint import footprints
from midwatch_peers.lineup import lineup
from midwatch_peers.midwatch_judge import LOOPS
from midwatch_peers.recorded import Run, Score, runs, score, watch
from midwatch_peers.report import Report, as_object, as_text
from midwatch_peers.timing import Cost, calibration, growth, no_collection, over_runs

PAIRS = 9
RUNS_TIMED = 3 * PAIRS


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured. Seconds are those that one detector may take for one part."""

    runs: int
    """Recorded runs; 0 is all."""
    seeds: int
    marks: tuple[int, ...]
    seconds: float
    timing_seconds: float


FULL = Effort(runs=0, seeds=60, marks=(10, 100, 1_000, 10_000), seconds=40, timing_seconds=20)
QUICK = Effort(runs=24, seeds=3, marks=(10, 100, 1_000), seconds=1, timing_seconds=1)


def measure(given: argparse.Namespace) -> Report:
    """Run all parts one after the other. The processes of the detectors end with it."""
    began = time.perf_counter()
    effort = QUICK if given.quick else FULL
    with ExitStack() as stack:
        found = lineup(given.node_modules, given.only)
        detectors = [each for each in found if isinstance(each, Detector)]
        for detector in detectors:
            stack.callback(detector.close)
        ours = next((each for each in detectors if each.name == LOOPS), detectors[0])
        timed, scores = _recorded(given, effort, detectors)
        late = _delays(detectors, effort)
        before = calibration()
        costs = _costs(ours, detectors, timed, effort)
        return Report(
            lineup=found,
            reference=ours.name,
            scores=scores,
            delays=late,
            costs=costs,
            footprints=footprints(effort.marks),
            calibration=(before, calibration()),
            seconds=time.perf_counter() - began,
        )


def _recorded(
    given: argparse.Namespace, effort: Effort, detectors: Sequence[Detector]
) -> tuple[list[Run], list[Score]]:
    """The first runs, which are timed later, and the scores over all."""
    if given.traces is None:
        return [], []
    _say("recorded runs")
    found = runs(given.traces, effort.runs)
    timed = list(itertools.islice(found, RUNS_TIMED))
    words = watch(itertools.chain(timed, found), detectors, effort.seconds)
    scores = [score(name, each, given.index, given.evaluate) for name, each in words.items()]
    return timed, scores


def _delays(detectors: Sequence[Detector], effort: Effort) -> list[Delay]:
    found: list[Delay] = []
    for detector in detectors:
        _say(f"seeded loops: {detector.name}")
        found.extend(delays(detector, effort.seeds, effort.seconds))
    return found


def _costs(
    ours: Detector, detectors: Sequence[Detector], timed: Sequence[Run], effort: Effort
) -> list[Cost]:
    found: list[Cost] = []
    with no_collection():
        for detector in detectors:
            _say(f"time: {detector.name}")
            found.extend(growth(ours, detector, effort.marks, PAIRS, effort.timing_seconds))
            if timed:
                found.extend(over_runs(ours, detector, timed, PAIRS, effort.timing_seconds))
    return found


def _say(part: str) -> None:
    print(part, file=sys.stderr, flush=True)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="midwatch-peers", description=__doc__)
    parser.add_argument("--traces", type=Path, help="a folder of recorded runs in known formats")
    parser.add_argument("--index", type=Path, help="the table of those runs with their outcomes")
    parser.add_argument("--evaluate", type=Path, help="the program that scores alarms against it")
    parser.add_argument("--node-modules", type=Path, help="where @google/gemini-cli-core is")
    parser.add_argument("--only", nargs="*", default=[], help="names of detectors, beside ours")
    parser.add_argument("--quick", action="store_true", help="less of everything: a minute")
    parser.add_argument("--json", action="store_true", help="one object instead of tables")
    return parser


def main() -> None:
    """Entry point of `midwatch-peers`."""
    parser = _arguments()
    given = parser.parse_args()
    if given.traces and not (given.index and given.evaluate):
        parser.error("--traces needs --index and --evaluate")
    report = measure(given)
    print(json.dumps(as_object(report)) if given.json else as_text(report))


if __name__ == "__main__":
    main()
