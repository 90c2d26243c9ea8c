"""`midwatch report`: what came of the tasks, and of what was learned, in figures."""

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.private import private_file
from midwatch_supervisor.cli.journals import JournalOption, journal_to_read
from midwatch_supervisor.cli.learn.projects import project_named
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.report.learning.lines import learning_lines
from midwatch_supervisor.report.learning.reading import read_learning
from midwatch_supervisor.report.learning.sections import learning_sections
from midwatch_supervisor.report.lines import json_lines
from midwatch_supervisor.report.page import page
from midwatch_supervisor.report.reading import Reading, read
from midwatch_supervisor.report.section import Section
from midwatch_supervisor.report.sections import sections
from midwatch_supervisor.report.since import moment
from midwatch_supervisor.report.text import text_lines

Since = Annotated[
    str | None,
    Parameter(
        help="Only tasks of which anything was recorded since then, each from its beginning: a "
        "duration (90m, 2h, 7d, 2w), a date (2026-11-21) or a time (2026-11-21T20:00)."
    ),
]
OneRun = Annotated[
    int | None, Parameter(name="--run", help="Number of the run. Default: all of them.")
]
Html = Annotated[
    bool, Parameter(name="--html", negative="", help="One whole HTML page, with its charts.")
]
Output = Annotated[str, Parameter(name="--output", help="File for the page; - is stdout.")]
Force = Annotated[bool, Parameter(negative="", help="Overwrite the file if it is there already.")]


AnyProject = Annotated[
    str | None,
    Parameter(
        name="--project",
        help="The project: its name, the unique beginning of one, or its folder's name. "
        "Default: all of them.",
    ),
]

app = App(name="report")


@app.default
async def report(
    *,
    since: Since = None,
    run: OneRun = None,
    html: Html = False,
    output: Output = "-",
    force: Force = False,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print what came of the tasks: detection, recovery, retries, plans, confidence, spending."""
    _require_one(html=html, json=json, output=output)
    now = datetime.now().astimezone()
    from_when = None if since is None else moment(since, now=now)
    async with await journal_to_read(journal) as opened:
        reading = await read(opened, run=run, since=from_when)
    if json:
        for line in json_lines(reading):
            write_json(line)
        return
    found = sections(reading) if reading.figures.tasks else ()
    if html:
        _write(page("Midwatch report", whose(reading, now), found), output, force=force)
        return
    _print(whose(reading, now), found)


@app.command
async def lessons(
    *,
    project: AnyProject = None,
    since: Since = None,
    run: OneRun = None,
    html: Html = False,
    output: Output = "-",
    force: Force = False,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print what came of what is learned: verdicts, lessons and their worth, facts, guidelines."""
    _require_one(html=html, json=json, output=output)
    now = datetime.now().astimezone()
    from_when = None if since is None else moment(since, now=now)
    async with await journal_to_read(journal) as opened:
        one = None if project is None else await project_named(Learned(opened), project)
        reading = await read_learning(opened, project=one, run=run, since=from_when)
    if json:
        for line in learning_lines(reading):
            write_json(line)
        return
    head = _whose(reading.tasks, reading.journal, reading.run, reading.since, now, project=one)
    found = learning_sections(reading)
    if html:
        _write(page("Midwatch: what was learned", head, found), output, force=force)
        return
    _print(head if found else f"{head} Nothing was judged, and nothing was learned yet.", found)


def _require_one(*, html: bool, json: bool, output: str) -> None:
    if html and json:
        raise UsageError("choose one of --html and --json")
    if output != "-" and not html:
        raise UsageError("--output is for --html")


def whose(reading: Reading, now: datetime) -> str:
    """Whose figures they are, in a sentence; the times are those of the zone of `now`."""
    return _whose(len(reading.tasks), reading.journal, reading.run, reading.since, now)


def _whose(
    tasks: int,
    journal: str,
    run: int | None,
    since: datetime | None,
    now: datetime,
    *,
    project: str | None = None,
) -> str:
    what = {0: "No task", 1: "1 task"}.get(tasks, f"{tasks} tasks")
    of_run = "" if run is None else f" of run {run}"
    of_project = "" if project is None else f" of project {project}"
    active = ""
    if since is not None:
        active = f", active since {since.astimezone(now.tzinfo):%Y-%m-%d %H:%M}"
    return f"{what}{of_run}{of_project} in {journal}{active}, as of {now:%Y-%m-%d %H:%M}."


def _print(head: str, found: Sequence[Section]) -> None:
    write_line(head)
    if found:
        write_line("")
    for line in text_lines(found):
        write_line(line)


def _write(text: str, output: str, *, force: bool) -> None:
    """Write the page, which is UTF-8 whatever the terminal speaks; a file only once it is whole."""
    body = text.encode("utf-8", "replace")
    if output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(body)
        return
    target = Path(output)
    if not force and (target.exists() or target.is_symlink()):
        raise UsageError(f"{target} exists already; --force overwrites it")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        private_file(part)
        part.write_bytes(body)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"{target} cannot be written: {error.strerror}") from error
    write_line(f"wrote {target}")
