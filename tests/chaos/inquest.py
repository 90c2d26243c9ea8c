"""What is left after a storm, read from the journal and from the marks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, UserPromptPart
from sqlalchemy import Connection, select

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.records import Attempt, Task
from midwatch_stage.aftermath import Evidence, Mark, Standing


async def evidence(journal: Journal, marks: Path, standing: Standing | None) -> Evidence:
    """All of it."""
    tasks = [task for run in await journal.runs() for task in await journal.tasks(run.id)]
    attempts = [each for task in tasks for each in await journal.attempts(task.id)]
    return Evidence(
        tasks=tasks,
        attempts=attempts,
        entries=[entry async for entry in journal.all_entries()],
        incarnations=await journal.read(_incarnations),
        prompts={each.id: await _prompts(journal, each.id) for each in attempts},
        marks=_marks(marks, tasks, attempts),
        standing=standing,
    )


def write_down(evidence: Evidence, file: Path) -> None:
    """Write the whole log for people who look for what went wrong, an entry a line."""
    with file.open("w") as lines:
        for each in evidence.entries:
            place = f"{each.id} {each.at:%H:%M:%S.%f} task={each.task} attempt={each.attempt}"
            lines.write(f"{place} seq={each.seq} {each.record!r}\n")


def _incarnations(connection: Connection) -> dict[int, int]:
    lease = tables.lease
    rows = connection.execute(select(lease.c.attempt, lease.c.incarnation))
    return {row.attempt: row.incarnation for row in rows}


async def _prompts(journal: Journal, attempt: int) -> list[str]:
    return [
        str(part.content)
        for each in await journal.messages(attempt)
        for message in ModelMessagesTypeAdapter.validate_json(each.body)
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


def _marks(
    folder: Path, tasks: Sequence[Task], attempts: Sequence[Attempt]
) -> Mapping[int, list[Mark]]:
    """By attempt. A log is called as its worktree is: the task and the attempt's number."""
    names = {task.id: task.name for task in tasks}
    found: dict[int, list[Mark]] = {}
    for attempt in attempts:
        log = folder / f"{names[attempt.task]}-{attempt.number}.log"
        lines = log.read_text().splitlines() if log.exists() else []
        found[attempt.id] = [_mark(line) for line in lines]
    return found


def _mark(line: str) -> Mark:
    label, _, process = line.partition(" ")
    return Mark(label=label, process=process)
