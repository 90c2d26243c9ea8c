"""Who takes part: what can be run here, and what cannot and why."""

from collections.abc import Callable, Sequence
from pathlib import Path

from midwatch_monitor.records import Step, StepKind
from midwatch_peers import (
    deep_stuck_loop,
    gemini_loops,
    loop_guard_scores,
    midwatch_judge,
    openhands_stuck,
)
from midwatch_peers.detector import Absent, Detector

_PROBE = (
    Step(number=1, kind=StepKind.TOOL, tool="bash", args="ls", output="a", exit_code=0, text="b"),
    Step(number=2, kind=StepKind.TOOL, tool="edit", args="a", output="refused", ok=False),
    Step(number=3, kind=StepKind.MESSAGE, text="done", output="no call"),
)
"""One step of each shape: a package that has changed shows it here, not after minutes."""


def lineup(modules: Path | None, only: Sequence[str]) -> list[Detector | Absent]:
    """Every detector in the order of the tables, ours first; `only` keeps those names."""
    makers: dict[str, Callable[[], Detector]] = {
        midwatch_judge.NAME: midwatch_judge.detector,
        midwatch_judge.LOOPS: midwatch_judge.loop_detector,
        openhands_stuck.NAME: lambda: openhands_stuck.detector(thoughts=True),
        openhands_stuck.PLAIN: lambda: openhands_stuck.detector(thoughts=False),
        gemini_loops.NAME: lambda: gemini_loops.detector(modules, texts=True),
        gemini_loops.CALLS: lambda: gemini_loops.detector(modules, texts=False),
        deep_stuck_loop.NAME: deep_stuck_loop.detector,
        loop_guard_scores.NAME: lambda: loop_guard_scores.detector(outputs=True),
        loop_guard_scores.CALLS: lambda: loop_guard_scores.detector(outputs=False),
    }
    return [
        _tried(name, make)
        for name, make in makers.items()
        if not only or name == midwatch_judge.NAME or name in only
    ]


def _tried(name: str, make: Callable[[], Detector]) -> Detector | Absent:
    made = None
    try:
        made = make()
        made.start().feed(_PROBE, seconds=10, halt=False)
    except Exception as error:
        # Other people's packages break in ways of their own; the row says how.
        if made is not None:
            made.close()
        return Absent(name=name, reason=f"{type(error).__name__}: {error}")
    return made
