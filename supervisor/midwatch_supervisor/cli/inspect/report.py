"""`midwatch report`, `calibration` and `metrics`: figures on tasks, on what was learned, and on how
far models' stated confidence can be trusted.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import JournalError, MissingExtraError, UsageError
from midwatch_monitor.journal.core.clock import now
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.metrics.calibration import (
    MIN_ATTEMPTS,
    Separation,
    TrackRecord,
    track_records,
)
from midwatch_supervisor.cli.inspect.web import host_and_port
from midwatch_supervisor.cli.interrupts import run_until_stopped
from midwatch_supervisor.cli.journals import JournalOption, OnlyRunOption, journal_to_read
from midwatch_supervisor.cli.learn.options import project_named
from midwatch_supervisor.cli.output import (
    output_stream,
    refuse_existing,
    write_error,
    write_json,
    write_line,
)
from midwatch_supervisor.cli.settings import (
    ConfigOption,
    JsonOption,
    StdoutOrFile,
    settings_in_force,
)
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.report.html import page
from midwatch_supervisor.report.learning import learning_lines, learning_sections
from midwatch_supervisor.report.reading import Selection, moment, read_learning, read_runs
from midwatch_supervisor.report.runs import run_lines, run_sections
from midwatch_supervisor.report.section import (
    FigureLine,
    ReportSection,
    TableCell,
    fields,
    rounded,
    table,
    table_lines,
    text_lines,
)
from midwatch_supervisor.telemetry.metrics import JournalMetrics


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Which tasks are counted, and how the report is printed."""

    since: Annotated[
        str | None,
        Parameter(
            help="Only tasks with anything recorded since then, each from its beginning: "
            "a duration (90m, 2h, 7d, 2w), a date (2026-11-21) or a time (2026-11-21T20:00)."
        ),
    ] = None
    run: OnlyRunOption = None
    html: Annotated[bool, Parameter(help="Print one HTML page with charts.")] = False
    output: Annotated[StdoutOrFile, Parameter(help="File for the page; - is stdout.")] = "-"
    force: Annotated[bool, Parameter(help="Overwrite the file if it exists.")] = False
    journal: JournalOption = None
    json: JsonOption = False

    def check(self) -> None:
        """Raise UsageError if options exclude each other."""
        if self.html and self.json:
            raise UsageError("choose one of --html and --json")
        if self.output != "-" and not self.html:
            raise UsageError("--output is for --html")

    def selection(self, now: datetime) -> Selection:
        """Return which tasks count. Raises UsageError."""
        since = None if self.since is None else moment(self.since, now=now)
        return Selection(run=self.run, since=since)


_OPTIONS = ReportOptions()

AnyProject = Annotated[
    str | None,
    Parameter(
        name="--project",
        help="The project: its name, a unique prefix of it, or its folder's name. "
        "Default: all of them.",
    ),
]

app = App(name="report")


@app.default
async def report(options: ReportOptions = _OPTIONS) -> None:
    """Print figures on tasks: detection, recovery, retries, plans, confidence, spending."""
    options.check()
    now = datetime.now().astimezone()
    selection = options.selection(now)
    async with await journal_to_read(options.journal) as opened:
        reading = await read_runs(opened, selection)
    head = selection.description(len(reading.tasks), opened.name, now)
    _print_report(options, "Midwatch report", head, run_lines(reading), run_sections(reading))


@app.command
async def lessons(*, project: AnyProject = None, options: ReportOptions = _OPTIONS) -> None:
    """Print figures on what was learned: verdicts, lessons and their use, facts, guidelines."""
    options.check()
    now = datetime.now().astimezone()
    selection = options.selection(now)
    async with await journal_to_read(options.journal) as opened:
        if project is not None:
            selection = replace(selection, project=await project_named(Learned(opened), project))
        reading = await read_learning(opened, selection)
    head = selection.description(len(reading.tasks), opened.name, now)
    found = learning_sections(reading)
    if not (found or options.html):
        head += " Nothing has been judged or learned yet."
    _print_report(options, "Midwatch: what was learned", head, learning_lines(reading), found)


def _print_report(
    options: ReportOptions,
    title: str,
    head: str,
    lines: Iterable[FigureLine],
    sections: Sequence[ReportSection],
) -> None:
    """Print the report as JSON objects, as a page or as text."""
    if options.json:
        write_json(*lines)
        return
    if options.html:
        _write_page(page(title, head, sections), options.output, force=options.force)
        return
    write_line(head, *[""] * bool(sections), *text_lines(sections))


def _write_page(text: str, output: str, *, force: bool) -> None:
    if output != "-":
        refuse_existing(Path(output), force=force)
    with output_stream(output) as stream:
        stream.write(text.encode("utf-8", "replace"))
    if output != "-":
        write_line(f"wrote {Path(output)}")


REPORTED = (20, 40, 60, 80, 90, 100)
"""Stated confidences that are listed, in percent; most reports are high."""

_HEADINGS = ("model", "attempts", "tasks", "succeeded", "error before", "error after")
_EXPLAINED = (
    "Under each stated confidence: how often attempts that stated it succeeded.",
    "The error is the expected calibration error, 0.00 at best, weighted by attempt; after: with "
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
            write_json(*(_line(record, useful) for record in records))
        elif records:
            _print_records(records, useful)
        else:
            write_line(
                "no attempt of a known model that reported its confidence has succeeded or failed "
                f"in {opened.name}; `{command('feedback')}` judges one that nothing checked"
            )


def _line(record: TrackRecord, useful: float) -> dict[str, object]:
    """Return one model's line. Errors range from 0 to 1; what is not claimed is null or empty."""
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
        **_separation_fields(record.separation, useful),
    }


def _separation_fields(found: Separation | None, useful: float) -> dict[str, object]:
    if found is None:
        return {"separation": None, "separation_interval": None, "worthless": False}
    ends = (found.interval.low, found.interval.high)
    return {
        "separation": rounded(found.area),
        "separation_interval": [rounded(end) for end in ends],
        "worthless": found.worthless(useful),
    }


def _print_records(records: Sequence[TrackRecord], useful: float) -> None:
    heads = (*_HEADINGS, *(f"{reported} %" for reported in REPORTED))
    rows = table(heads, map(_row, records), words=tuple(range(len(heads))))
    write_line(*table_lines(rows))
    for record in records:
        if record.calibration is None:
            few = f"{record.attempts} of {MIN_ATTEMPTS}"
            write_line(f"{record.model}: not enough attempts ({few})")
        if record.separation is not None and record.separation.worthless(useful):
            write_line(f"{record.model}: {_worthless_text(record.separation)}")
    if any(record.calibration for record in records):
        write_line(*_EXPLAINED)


def _worthless_text(found: Separation) -> str:
    low, high = found.interval.low, found.interval.high
    return (
        "its stated confidence is worthless. Of an attempt that succeeded and one that failed, the "
        f"former stated more in {found.area:.2f} of the cases ({low:.2f} to {high:.2f}; chance is "
        "0.50). low_confidence and declining_confidence are silent in its new attempts."
    )


def _row(record: TrackRecord) -> tuple[TableCell, ...]:
    fitted = record.calibration
    errors = (record.error_before, record.error_after)
    return (
        *(record.model, record.attempts, record.tasks, record.succeeded),
        *("-" if error is None else f"{error:.2f}" for error in errors),
        *(f"{fitted.percent(reported)} %" if fitted else "-" for reported in REPORTED),
    )


_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def metrics(
    *,
    serve: Annotated[
        str | None,
        Parameter(
            help="Serve them under /metrics at HOST:PORT, or at PORT of 127.0.0.1, "
            "until interrupted. Anybody who can reach that address can read them."
        ),
    ] = None,
    journal: JournalOption = None,
) -> None:
    """Print figures of all runs in Prometheus' text format, once or on each request (`--serve`)."""
    place = None if serve is None else host_and_port("--serve", serve)
    async with await journal_to_read(journal) as opened:
        figures = JournalMetrics(opened, clock=now)
        if place is None:
            write_line(*(await figures.text()).splitlines())
        else:
            served = _serve_metrics(figures, *place)
            await run_until_stopped(served, lambda: write_line("The metrics are no longer served"))


async def _serve_metrics(figures: JournalMetrics, host: str, port: int) -> None:
    """Serve until canceled. Raises UsageError if it cannot listen there, and MissingExtraError."""
    try:
        from aiohttp import web

        from midwatch_supervisor.telemetry.http_listener import serve
    except ImportError as error:
        raise MissingExtraError("`metrics --serve`", "otel") from error

    async def answer(_request: web.Request) -> web.Response:
        try:
            return web.Response(body=await figures.text(), headers={"Content-Type": _TYPE})
        except JournalError as error:
            write_error(f"warning: {error}")
            return web.Response(status=503)

    async with serve(host, port, web.get("/metrics", answer)) as taken:
        at = f"[{host}]" if ":" in host else host
        write_line(f"Metrics at http://{at}:{taken}/metrics, until you press Ctrl-C")
        await asyncio.get_running_loop().create_future()
