"""`midwatch export`: write recorded attempts as traces, which `midwatch replay` reads."""

import re
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, AttemptTransition, Change, Entry, Event, Plan, Step
from midwatch_monitor.traces.native import write_event
from midwatch_supervisor.cli.journals import JournalOption, RunOption, journal_to_read
from midwatch_supervisor.cli.output import output_stream, refuse_existing, write_either
from midwatch_supervisor.cli.settings import JsonOption, StdoutOrFile
from midwatch_supervisor.present.lookup import chosen_runs, find
from midwatch_supervisor.present.numbers import count_noun

OneAttempt = Annotated[
    str | None,
    Parameter(
        name="ATTEMPT",
        help="An attempt's id, TASK#N for attempt number N of a task, or a task's id or a unique "
        "prefix of it, for the task's latest attempt. The latest run that has it is used.",
    ),
]
OutputOption = Annotated[StdoutOrFile, Parameter(help="File to write; - is stdout.")]
Everything = Annotated[
    Path | None,
    Parameter(
        name="--all",
        help="Write every attempt of the run into this folder instead, as "
        "TASK-N.jsonl. It is created if missing; its parent must exist.",
    ),
]
Force = Annotated[bool, Parameter(help="Overwrite existing files.")]

_PAGE = 200
"""Entries held in memory at a time; a step may carry its whole output."""
_LONGEST = 100
"""Characters of a task's name used in its file's name."""
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]")


async def export(
    attempt: OneAttempt = None,
    /,
    *,
    output: OutputOption = "-",
    folder: Everything = None,
    force: Force = False,
    run: RunOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Write an attempt as a trace: its steps, and whatever else the rules received."""
    if (attempt is None) == (folder is None) or (folder is not None and output != "-"):
        raise UsageError("name either an ATTEMPT, perhaps with --output, or a folder with --all")
    async with await journal_to_read(journal) as opened:
        if folder is not None:
            wanted = await _attempts_by_file(opened, run=run, folder=folder)
        else:
            wanted = {output: await _find_attempt(opened, attempt or "", run=run)}
        for target in wanted:
            if target != "-":
                refuse_existing(Path(target), force=force)
        if folder is not None and wanted:
            _make_folder(folder)
        for target, each in wanted.items():
            with output_stream(target) as stream:
                steps = await _write_attempt(opened, each, stream)
            if target != "-":
                fields = {"type": "export", "file": target, "attempt": each.id, "steps": steps}
                write_either(fields, f"wrote {target}: {count_noun(steps, 'step')}", json=json)


def _make_folder(folder: Path) -> None:
    """Create a folder, but not its parents. Raises UsageError."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError)
        why = f"the folder {folder.parent} does not exist" if gone else error.strerror
        raise UsageError(f"{folder} cannot be created: {why}") from error


async def _find_attempt(journal: Journal, id: str, *, run: int | None) -> Attempt:
    found = await find(journal, id, run=run)
    if found.attempt is not None:
        return found.attempt
    attempts = await journal.attempts(found.task.id)
    if not attempts:
        raise UsageError(f"{found.task.name} has no attempt yet")
    return attempts[-1]


async def _attempts_by_file(
    journal: Journal, *, run: int | None, folder: Path
) -> dict[str, Attempt]:
    """Return all attempts of the run by the file each is written to."""
    runs = await chosen_runs(journal, run)
    if not runs:
        raise UsageError("nothing has run yet")
    wanted: dict[str, Attempt] = {}
    for task in await journal.tasks(runs[0].id):
        # The task of an agent that has no task file may have any name, of any length.
        name = _NO_NAME.sub("_", task.name)[:_LONGEST]
        for each in await journal.attempts(task.id):
            target = str(folder / f"{name}-{each.number}.jsonl")
            if target in wanted:
                target = str(folder / f"{name}-{each.number}-{each.id}.jsonl")
            wanted[target] = each
    return wanted


async def _write_attempt(journal: Journal, attempt: Attempt, stream: BinaryIO) -> int:
    """Write one attempt and return its number of steps."""
    after, steps = 0, 0
    files: tuple[str, ...] | None = ()
    while page := await journal.entries(
        after, attempt=attempt.id, kinds=(Step, Change, Plan, AttemptTransition), limit=_PAGE
    ):
        for entry in page:
            event = _trace_event(entry)
            if isinstance(entry.record, Plan) and isinstance(event, Change):
                # Most plans name no files, and most of their records do not change these.
                before, files = files, event.plan_step_files
                event = None if before == files else event
            if event is not None:
                stream.write(write_event(event).encode() + b"\n")
                steps += isinstance(event, Step)
        after = page[-1].id
    return steps


def _trace_event(entry: Entry) -> Event | None:
    """Return a trace's event for an entry: what the rules received, and when the attempt ended."""
    match entry.record:
        case Step() | Change() as event:
            return event
        case Plan(in_hand=in_hand):
            # Concurrent attempts are told which files it plans to change.
            return Change(at=entry.at, plan_step_files=in_hand.files if in_hand else ())
        case AttemptTransition(lifecycle=lifecycle) if lifecycle.over:
            # Otherwise the silence before the end of an attempt would be lost.
            return Change(at=entry.at, lifecycle=lifecycle)
        case _:
            return None
