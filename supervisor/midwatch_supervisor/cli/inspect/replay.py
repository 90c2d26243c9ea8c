"""`midwatch replay`: today's rules over recorded runs."""

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
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.present.numbers import counted


def replay(
    *paths: Annotated[
        Path, Parameter(help="Traces; a folder means every known one below it.", required=True)
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
    """Print every alert that today's rules would raise over recorded runs."""
    if format not in (AUTO, *FORMATS):
        raise UsageError(f"no trace format is called {format!r}: {AUTO}, {', '.join(FORMATS)}")
    settings = settings_in_force(config)
    if together:
        runs = [replay_together(paths, settings, format=format, worker=worker)]
    else:
        # All named files are opened before the first line: a wrong one leaves stdout empty.
        runs = [replay_trace(path, settings, format=format, worker=worker) for path in paths]
    for run in runs:
        for line in run:
            _print(line, json=json)


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
