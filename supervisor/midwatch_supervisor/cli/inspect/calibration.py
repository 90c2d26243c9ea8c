"""`midwatch calibration`: what the stated confidence of each model was worth so far."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from midwatch_monitor.metrics.calibration import MIN_ATTEMPTS, TrackRecord, track_records
from midwatch_supervisor.cli.journals import JournalOption, journal_to_read
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.decide.calibration import Calibrator

REPORTED = (20, 40, 60, 80, 90, 100)
"""The stated confidences that are told, in percent; most reports are high."""

_HEADINGS = ("model", "attempts", "tasks", "succeeded", "error before", "error after")
_EXPLAINED = (
    "Under each stated confidence: how often attempts that said so succeeded.",
    "The error is the expected calibration error, 0.00 at best, weighted by attempt; after: by "
    "curves that had not seen the task.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointLine:
    """One stated confidence and what it was worth, in percent."""

    reported: int
    calibrated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationLine:
    """One model; errors go from 0 to 1, and what is not claimed is `None` or empty."""

    type: Literal["calibration"] = "calibration"
    model: str
    attempts: int
    attempts_needed: int = MIN_ATTEMPTS
    succeeded: int
    tasks: int
    checkpoints: int
    error_before: float | None
    error_after: float | None
    curve: tuple[PointLine, ...]


async def calibration(*, journal: JournalOption = None, json: JsonOption = False) -> None:
    """Print how far each model's stated confidence can be trusted, over all runs."""
    async with await journal_to_read(journal) as opened:
        records = track_records(await Calibrator(opened).samples())
        if json:
            for record in records:
                write_json(asdict(calibration_line(record)))
        elif records:
            _print(records)
        else:
            write_line(f"no attempt that reported its confidence is over in {opened.name}")


def calibration_line(record: TrackRecord) -> CalibrationLine:
    """What is said of one model."""
    fitted = record.calibration
    curve = (
        PointLine(reported=reported, calibrated=fitted.percent(reported))
        for reported in REPORTED
        if fitted is not None
    )
    return CalibrationLine(
        model=record.model,
        attempts=record.attempts,
        succeeded=record.succeeded,
        tasks=record.tasks,
        checkpoints=record.checkpoints,
        error_before=_rounded(record.error_before),
        error_after=_rounded(record.error_after),
        curve=tuple(curve),
    )


def _rounded(error: float | None) -> float | None:
    return None if error is None else round(error, 4)


def _print(records: Sequence[TrackRecord]) -> None:
    heads = (*_HEADINGS, *(f"{reported} %" for reported in REPORTED))
    rows = [heads, *(_row(record) for record in records)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(heads))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        write_line("  ".join(cells).rstrip())
    for record in records:
        if record.calibration is None:
            few = f"{record.attempts} of {MIN_ATTEMPTS}"
            write_line(f"{record.model}: not enough attempts ({few})")
    if any(record.calibration for record in records):
        for line in _EXPLAINED:
            write_line(line)


def _row(record: TrackRecord) -> tuple[str, ...]:
    fitted = record.calibration
    return (
        record.model,
        str(record.attempts),
        str(record.tasks),
        str(record.succeeded),
        _error(record.error_before),
        _error(record.error_after),
        *(f"{fitted.percent(reported)} %" if fitted else "-" for reported in REPORTED),
    )


def _error(error: float | None) -> str:
    return "-" if error is None else f"{error:.2f}"
