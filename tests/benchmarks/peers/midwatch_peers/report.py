"""What the bench found, as tables for people and as one object for programs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from midwatch_peers.delay import Delay
from midwatch_peers.detector import Absent, Detector
from midwatch_peers.footprint import Footprint
from midwatch_peers.recorded import Score
from midwatch_peers.seeded import CYCLES, HEALTHY_STEPS, Loop
from midwatch_peers.timing import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything of one run of the bench."""

    lineup: Sequence[Detector | Absent]
    reference: str
    """The detector that every cost is compared with."""
    scores: Sequence[Score]
    delays: Sequence[Delay]
    costs: Sequence[Cost]
    footprints: Sequence[Footprint]
    calibration: tuple[float, float]
    """Nanoseconds of the fixed loop before and after the timing."""
    seconds: float


def as_object(report: Report) -> dict[str, Any]:
    """The report with JSON's types alone."""
    return {
        "detectors": [_row(each) for each in report.lineup],
        "reference": report.reference,
        "scores": [asdict(each) for each in report.scores],
        "delays": [asdict(each) for each in report.delays],
        "costs": [asdict(each) for each in report.costs],
        "footprints": [asdict(each) for each in report.footprints],
        "calibration_ns": list(report.calibration),
        "seconds": round(report.seconds, 1),
    }


def as_text(report: Report) -> str:
    """The report as tables."""
    parts = [_who(report), _scores(report), _delays(report), _costs(report), _state(report)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _row(each: Detector | Absent) -> dict[str, Any]:
    if isinstance(each, Absent):
        return {"name": each.name, "not_run": each.reason}
    return {"name": each.name, "version": each.version, "note": each.note}


def _who(report: Report) -> list[str]:
    rows = [
        (each.name, "not run", each.reason)
        if isinstance(each, Absent)
        else (each.name, each.version, each.note)
        for each in report.lineup
    ]
    return _table(("detector", "version", "how"), rows)


def _scores(report: Report) -> list[str]:
    if not report.scores:
        return []
    rows = [
        (
            each.detector,
            str(each.runs),
            str(each.alarmed),
            f"{_percent(each.resolved_alarmed)} of {each.resolved}",
            f"{_percent(each.budget_found)} of {each.out_of_budget}",
            _number(each.lift, "+.2f"),
            str(each.miscounted),
        )
        for each in report.scores
    ]
    head = ("recorded runs", "runs", "alarmed", "resolved", "out of budget", "lift", "miscounted")
    told = (
        "resolved: share of those alarmed, false alarms; out of budget: share of those alarmed in"
        " their first 80 %; lift: out of budget if alarmed, less those still going at that step"
    )
    return [*_table(head, rows), told]


def _delays(report: Report) -> list[str]:
    if not report.delays:
        return []
    names = list(dict.fromkeys(each.detector for each in report.delays))
    by_case: dict[tuple[Loop, int], dict[str, Delay]] = {}
    for each in report.delays:
        by_case.setdefault((each.loop, each.period), {})[each.detector] = each
    rows = [
        (f"{loop} {period}", *(_found(by_name[name]) for name in names))
        for (loop, period), by_name in by_case.items()
    ]
    seeds = {each.detector: each.seeds for each in report.delays}
    early = {
        name: sum(each.early for each in report.delays if each.detector == name) for name in names
    }
    rows.append(("seeds", *(str(seeds[name]) for name in names)))
    rows.append(("too early", *(str(early[name]) for name in names)))
    told = (
        f"share of seeds found within {CYCLES} cycles, median cycles until the alarm;"
        f" too early: alarms in the {HEALTHY_STEPS} healthy steps before, over all cases"
    )
    return [*_table(("loop, period", *names), rows), told]


def _costs(report: Report) -> list[str]:
    if not report.costs:
        return []
    rows = [
        (
            each.detector,
            str(each.events) if each.events else "recorded runs",
            _number(each.microseconds, ".2f"),
            _number(each.preparing, ".2f"),
            _number(each.ratio, ".2f"),
            _number(each.strict_ratio, ".2f"),
            str(each.pairs),
        )
        for each in report.costs
    ]
    head = ("µs per event", "after events", "rules", "preparing", "ratio", "strict", "pairs")
    before, after = report.calibration
    told = (
        f"ratio: its rules by those of {report.reference}; strict: by those and preparing;"
        f" a fixed loop took {before:.1f} ns a turn before, {after:.1f} ns after"
    )
    return [*_table(head, rows), told]


def _state(report: Report) -> list[str]:
    rows = [
        (str(each.steps), f"{each.kilobytes:.1f}", str(each.pickled or "-"))
        for each in report.footprints
    ]
    return _table(("state of our judge after steps", "kB", "bytes pickled"), rows) if rows else []


def _found(delay: Delay) -> str:
    if not delay.seeds:
        return "-"
    cycles = "" if delay.cycles is None else f" {delay.cycles:.1f}"
    return f"{100 * delay.found / delay.seeds:.0f} %{cycles}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return list(_aligned(lines, widths))


def _aligned(lines: Iterable[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(cells).rstrip()
