"""The same recorded runs for every detector, until its first alarm, scored by one function."""

import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from midwatch_monitor.records import Step
from midwatch_monitor.traces import find_traces, open_trace
from midwatch_peers.detector import Alarm, Detector


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A recorded run."""

    trace: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A detector's word on one run."""

    trace: str
    steps: int
    alarm: Alarm | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What the scorer makes of a detector's alarms. Shares are from 0 to 1."""

    detector: str
    runs: int
    alarmed: int
    """Runs with an alarm, whatever came of them: with few of them the lift says little."""
    resolved: int
    resolved_alarmed: float | None
    """Share of the resolved runs with an alarm: false alarms, as a user feels them."""
    out_of_budget: int
    budget_found: float | None
    """Share of the runs out of budget that were alarmed in the first 80 % of their steps."""
    lift: float | None
    """P(out of budget | alarmed) less the share among runs of its source still going then."""
    miscounted: int
    """Runs whose steps the index counts differently; anything but 0 spoils the rest."""


def runs(folder: Path, limit: int) -> Iterator[Run]:
    """The traces below a folder, in a fixed mixed order: a first part of them is a fair sample."""
    for path in sorted(find_traces(folder), key=_mixed)[: limit or None]:
        events = open_trace(path)
        steps = tuple(event for event in events if isinstance(event, Step))
        yield Run(trace=str(path), steps=steps)


def watch(
    recorded: Iterable[Run], detectors: Sequence[Detector], seconds: float
) -> dict[str, list[Watched]]:
    """Every detector over the runs; one that has used up its time sees no further run."""
    words: dict[str, list[Watched]] = {detector.name: [] for detector in detectors}
    left = {detector.name: seconds for detector in detectors}
    for run in recorded:
        for detector in detectors:
            if left[detector.name] <= 0:
                continue
            began = time.perf_counter()
            word = _watch(detector, run, left[detector.name])
            left[detector.name] -= time.perf_counter() - began
            if word is not None:
                words[detector.name].append(word)
    return words


def score(name: str, words: Sequence[Watched], index: Path, evaluate: Path) -> Score:
    """The scorer's word on one detector's alarms, written in the form that `replay` prints."""
    with tempfile.TemporaryDirectory() as folder:
        alerts = Path(folder) / "alerts.jsonl"
        alerts.write_text("".join(f"{json.dumps(line)}\n" for line in _lines(words)), "utf-8")
        command = [sys.executable, str(evaluate), str(index), str(alerts), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    pooled: dict[str, Any] = result["all"]
    return Score(
        detector=name,
        runs=pooled["runs"],
        alarmed=sum(word.alarm is not None for word in words),
        resolved=pooled["resolved"],
        resolved_alarmed=pooled["resolved_hit"],
        out_of_budget=pooled["out_of_budget"],
        budget_found=pooled["budget_recall"],
        lift=pooled["lift_budget"],
        miscounted=result["miscounted"],
    )


def _watch(detector: Detector, run: Run, seconds: float) -> Watched | None:
    """`None` where the time was up before the run or an alarm was."""
    fed = detector.start().feed(run.steps, seconds=seconds, halt=True)
    if fed.alarm is None and fed.steps < len(run.steps):
        return None
    return Watched(trace=run.trace, steps=len(run.steps), alarm=fed.alarm)


def _lines(words: Iterable[Watched]) -> Iterator[dict[str, Any]]:
    for word in words:
        if word.alarm is not None:
            yield {
                "type": "alert",
                "trace": word.trace,
                "step": word.alarm.step,
                "rule": word.alarm.rule,
                "severity": "warning",
            }
        yield {"type": "trace", "trace": word.trace, "steps": word.steps}


def _mixed(path: Path) -> bytes:
    name = "/".join(path.parts[-2:])
    return hashlib.blake2b(name.encode(), digest_size=8).digest()
