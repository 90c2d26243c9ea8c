"""`midwatch calibration`: what the stated confidence of each model was worth so far."""

from collections.abc import Sequence

from midwatch_monitor.metrics.calibration import (
    MIN_ATTEMPTS,
    Separation,
    TrackRecord,
    track_records,
)
from midwatch_supervisor.cli.journals import JournalOption, journal_to_read
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.report.lines import fields, rounded
from midwatch_supervisor.report.section import Cell, table
from midwatch_supervisor.report.text import table_lines

REPORTED = (20, 40, 60, 80, 90, 100)
"""The stated confidences that are told, in percent; most reports are high."""

_HEADINGS = ("model", "attempts", "tasks", "succeeded", "error before", "error after")
_EXPLAINED = (
    "Under each stated confidence: how often attempts that said so succeeded.",
    "The error is the expected calibration error, 0.00 at best, weighted by attempt; after: by "
    "curves that had not seen the task.",
)


async def calibration(
    *, journal: JournalOption = None, config: ConfigOption = None, json: JsonOption = False
) -> None:
    """Print how far each model's stated confidence can be trusted, over all runs."""
    useful = settings_in_force(config).reflect.useful_confidence
    async with await journal_to_read(journal) as opened:
        records = track_records(await Calibrator(opened).samples())
        if json:
            for record in records:
                write_json(_line(record, useful))
        elif records:
            _print(records, useful)
        else:
            write_line(f"no attempt that reported its confidence is over in {opened.name}")


def _line(record: TrackRecord, useful: float) -> dict[str, object]:
    """One model. Errors go from 0 to 1, and what is not claimed is null or empty."""
    fitted = record.calibration
    curve = [
        {"reported": reported, "calibrated": fitted.percent(reported)}
        for reported in REPORTED
        if fitted is not None
    ]
    return {
        "type": "calibration",
        "attempts_needed": MIN_ATTEMPTS,
        **fields(record, "model", "attempts", "succeeded", "tasks", "checkpoints"),
        "error_before": rounded(record.error_before),
        "error_after": rounded(record.error_after),
        "curve": curve,
        **_separation(record.separation, useful),
    }


def _separation(found: Separation | None, useful: float) -> dict[str, object]:
    if found is None:
        return {"separation": None, "separation_interval": None, "worthless": False}
    ends = (found.interval.low, found.interval.high)
    return {
        "separation": rounded(found.area),
        "separation_interval": [rounded(end) for end in ends],
        "worthless": found.worthless(useful),
    }


def _print(records: Sequence[TrackRecord], useful: float) -> None:
    heads = (*_HEADINGS, *(f"{reported} %" for reported in REPORTED))
    rows = table(heads, map(_row, records), words=tuple(range(len(heads))))
    for line in table_lines(rows):
        write_line(line)
    for record in records:
        if record.calibration is None:
            few = f"{record.attempts} of {MIN_ATTEMPTS}"
            write_line(f"{record.model}: not enough attempts ({few})")
        if record.separation is not None and record.separation.worthless(useful):
            write_line(f"{record.model}: {_worthless(record.separation)}")
    if any(record.calibration for record in records):
        for line in _EXPLAINED:
            write_line(line)


def _worthless(found: Separation) -> str:
    low, high = found.interval.low, found.interval.high
    return (
        "its stated confidence is worth nothing. Of an attempt that succeeded and one that failed, "
        f"the first stated more in {found.area:.2f} of the cases ({low:.2f} to {high:.2f}; chance "
        "is 0.50). low_confidence and declining_confidence are silent in its new attempts."
    )


def _row(record: TrackRecord) -> tuple[Cell, ...]:
    fitted = record.calibration
    errors = (record.error_before, record.error_after)
    return (
        *(record.model, record.attempts, record.tasks, record.succeeded),
        *("-" if error is None else f"{error:.2f}" for error in errors),
        *(f"{fitted.percent(reported)} %" if fitted else "-" for reported in REPORTED),
    )
