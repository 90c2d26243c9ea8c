"""`midwatch tune`: what every threshold would have cost and found, and thresholds from that."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.replay.tune.labels import SPENT, Recordings, read_labels, recordings
from midwatch_monitor.traces import AUTO, FORMATS
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force

if TYPE_CHECKING:
    from midwatch_monitor.replay.tune.study import Aim, Study

MIN_RESOLVED = 20
"""Resolved runs below which a share of them says little."""
_MAX_FOLDS = 50


def tune(
    *paths: Annotated[
        Path, Parameter(help="Traces; a folder means every known one below it.", required=True)
    ],
    outcomes: Annotated[
        Path,
        Parameter(
            help="CSV with the columns path and outcome (resolved, unresolved, unknown), and "
            "perhaps task, source and exit_status."
        ),
    ],
    format: Annotated[str, Parameter(help=f"The traces' format: {AUTO}, {', '.join(FORMATS)}.")] = (
        AUTO
    ),
    config: ConfigOption = None,
    max_false_alarms: Annotated[
        float, Parameter(help="Percent of the resolved runs that may be alarmed.")
    ] = 3.0,
    folds: Annotated[int, Parameter(help="Parts of the tasks, each judged by the others.")] = 5,
    spent: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            help="An exit_status that means out of budget; may be given again. "
            f"Default: {', '.join(SPENT)}.",
        ),
    ] = None,
    seed: Annotated[int, Parameter(help="Of the resampling: the same gives the same.")] = 1,
    output: Annotated[Path | None, Parameter(help="A new file for the proposal.")] = None,
    json: JsonOption = False,
) -> None:
    """Print what each rule's thresholds cost and found over recorded runs, and propose some.

    Only thresholds are looked at: windows, weights, hold and cooldown stay as configured, and so
    does what single workers and tools have of their own.
    """
    from midwatch_monitor.replay.tune.study import proposal_text, study

    if format not in (AUTO, *FORMATS):
        raise UsageError(f"no trace format is called {format!r}: {AUTO}, {', '.join(FORMATS)}")
    aim = _aim(max_false_alarms, folds, seed)
    _check_new(output)
    settings = settings_in_force(config)
    found = recordings(paths, read_labels(outcomes, spent=spent or SPENT), format=format)
    result = study(found, settings, aim)
    _warn(found, result)
    text = proposal_text(result)
    if output is not None:
        _write(output, text)
    _tell(result, text, json=json)


def _tell(result: "Study", text: str, *, json: bool) -> None:
    from midwatch_supervisor.cli.inspect.thresholds import json_lines, text_lines

    if json:
        for fields in json_lines(result, text):
            write_json(fields)
    else:
        for line in (*text_lines(result), "", *text.splitlines()):
            write_line(line)


def _aim(max_false_alarms: float, folds: int, seed: int) -> "Aim":
    from midwatch_monitor.replay.tune.study import Aim

    if not 0 < max_false_alarms <= 100:
        raise UsageError(f"--max-false-alarms is a percentage above 0; is {max_false_alarms:g}")
    if not 2 <= folds <= _MAX_FOLDS:
        raise UsageError(f"--folds is 2 to {_MAX_FOLDS}; is {folds}")
    return Aim(allowed=max_false_alarms / 100, folds=folds, seed=seed)


def _warn(found: Recordings, result: "Study") -> None:
    """Say what makes the figures weaker than they look."""
    from midwatch_monitor.replay.tune.runs import Target
    from midwatch_monitor.replay.tune.study import MIN_TARGETS

    resolved = result.scores.present.resolved.of
    if found.unlabelled:
        write_error(f"traces without an outcome, left out: {found.unlabelled}")
    if resolved < MIN_RESOLVED:
        write_error(f"resolved runs: only {resolved}, so the intervals are wide")
    if result.target is Target.UNRESOLVED:
        few = f"fewer than {MIN_TARGETS} runs ran out of budget"
        write_error(f"{few}: thresholds are chosen to find unresolved ones")
    if result.scores.held_out is None:
        write_error("all tasks are in one fold: nothing can be held out")


def _check_new(output: Path | None) -> None:
    if output is not None and (output.exists() or output.is_symlink()):
        raise UsageError(f"{output} exists already, so nothing was written")


def _write(output: Path, text: str) -> None:
    try:
        with output.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from error
