"""`midwatch replay`: today's rules over recorded runs."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.replay.replay import (
    AlertLine,
    DamageLine,
    FaultLine,
    ReplayLine,
    TraceLine,
    replay_together,
)
from midwatch_monitor.replay.replay import replay as replay_trace
from midwatch_monitor.traces import AUTO, FORMATS
from midwatch_supervisor.cli.inspect.replay_table import replayed_sessions, session_table
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.present.numbers import counted


def replay(
    *paths: Annotated[
        Path,
        Parameter(
            help="Traces; a folder means every known one below it. FILE:STEP, as the table of "
            "several names a place, means FILE.",
            required=True,
        ),
    ],
    format: Annotated[str, Parameter(help=f"The traces' format: {AUTO}, {', '.join(FORMATS)}.")] = (
        AUTO
    ),
    worker: Annotated[str, Parameter(help="Judge by the thresholds of this worker.")] = "",
    together: Annotated[
        bool,
        Parameter(
            negative="", help="Judge the traces as attempts that ran side by side on one project."
        ),
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Say what today's rules see in recorded runs.

    Of one file every alert is printed, of several a table of those that went wrong.
    """
    if format not in (AUTO, *FORMATS):
        raise UsageError(f"no trace format is called {format!r}: {AUTO}, {', '.join(FORMATS)}")
    settings = settings_in_force(config)
    files = [_without_step(path) for path in paths]
    if together:
        runs = [replay_together(files, settings, format=format, worker=worker)]
    else:
        # All named files are opened before the first line: a wrong one leaves stdout empty.
        runs = [replay_trace(path, settings, format=format, worker=worker) for path in files]
    if not json and (len(files) > 1 or files[0].is_dir()):
        _print_table(files, runs)
        return
    for run in runs:
        for line in run:
            _print(line, json=json)


_PLACE = re.compile(r"(.+):\d+", re.DOTALL)


def _without_step(path: Path) -> Path:
    """The file of `FILE:STEP`; a path that exists is meant as it is."""
    place = _PLACE.fullmatch(str(path))
    if place is None or path.exists() or not Path(place[1]).is_file():
        return path
    return Path(place[1])


def _print_table(paths: Sequence[Path], runs: Sequence[Iterator[ReplayLine]]) -> None:
    sessions = [each for run in runs for each in replayed_sessions(_found(run))]
    skipped = max(0, sum(map(_count_files, paths)) - len(sessions))
    width = shutil.get_terminal_size().columns
    for text in session_table(sessions, skipped=skipped, width=width):
        write_line(text)


def _found(run: Iterator[ReplayLine]) -> Iterator[AlertLine | TraceLine]:
    """What was found; what went wrong in reading is printed as it is met."""
    for line in run:
        if isinstance(line, AlertLine | TraceLine):
            yield line
        else:
            _print(line, json=False)


def _count_files(path: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(path)) if path.is_dir() else 1


def _print(line: ReplayLine, *, json: bool) -> None:
    match line:
        case DamageLine():
            write_error(f"{line.trace}:{line.line}: skipped: {line.problem}")
        case FaultLine():
            write_error(f"{line.trace}: the rule {line.rule} broke and was off: {line.error}")
        case _ if json:
            write_json(asdict(line))
        case AlertLine():
            write_line(_alert(line))
        case TraceLine():
            write_line(_trace(line))


def _alert(line: AlertLine) -> str:
    seen = f" (steps {', '.join(str(step) for step in line.evidence)})" if line.evidence else ""
    return f"{line.trace}: step {line.step}: {line.severity} {line.rule}: {line.summary}{seen}"


def _trace(line: TraceLine) -> str:
    first = line.first_alarm_step
    alarm = "no alarm" if first is None else f"first alarm at step {first}"
    return f"{line.trace}: {counted(line.steps, 'step')}, {counted(line.alerts, 'alert')}, {alarm}"
