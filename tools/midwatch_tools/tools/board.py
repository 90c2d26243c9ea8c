"""What others on the same files or task are doing: how far, how sure, on which files.

Their words are left out: other workers would read them before anybody has reviewed them. A worker
uses `record_fact` for what others should read.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from midwatch_monitor.concurrent_attempts import project_of
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Analysis,
    AnalysisAuthor,
    Attempt,
    AttemptTransition,
    Checkpoint,
    Completion,
    Entry,
    Plan,
    Record,
    Step,
    Task,
    Writer,
)
from midwatch_tools.data_blocks import EVIDENCE, DataBlocks, plain

LONGEST = 2_000
"""Longest board, in characters."""
_ATTEMPTS = 12
"""Number of newest attempts that are read."""
_ANALYSES = 3
"""Number of newest analyses that are shown of one attempt."""
_LINE = 240
"""Longest heading of one attempt's reports, in characters."""
_FILES = 6
_PATH = re.compile(r"\S{1,80}")
"""File names are workers' words, too: a sentence must not pass as one."""

_TOLD: tuple[type[Record], ...] = (Step, Plan, Analysis, Completion, AttemptTransition)
_HEADING = "## What other agents on this work report"


@dataclass(slots=True, kw_only=True)
class AttemptReports:
    """What one attempt has reported to others."""

    name: str
    """The task's name and the number of the attempt."""
    newest: int = 0
    """The journal id of its last report."""
    state: str = ""
    checkpoint: Checkpoint | None = None
    analyses: list[Analysis] = field(default_factory=list[Analysis])
    flags: int = 0
    """Number of plan steps that it finished without being sure of them."""
    files: set[str] = field(default_factory=set[str])
    """The files that it changed or that its plan expects."""

    def take(self, entry: Entry) -> None:
        record = entry.record
        if isinstance(record, Step):
            self.files |= {edit.path for edit in record.edits if edit.writer is Writer.WORKER}
            if record.checkpoint is None:
                return
            self.checkpoint = record.checkpoint
        elif isinstance(record, Plan):
            self.files |= {path for step in record.steps for path in step.files}
            return
        elif isinstance(record, AttemptTransition):
            self.state = ", ".join(filter(None, (record.lifecycle, record.ending)))
            return
        elif isinstance(record, Analysis):
            if record.by is AnalysisAuthor.WATCH:
                return
            self.analyses = [*self.analyses, record][-_ANALYSES:]
        elif isinstance(record, Completion):
            if not record.flag:
                return
            self.flags += 1
        self.newest = entry.id

    @property
    def lines(self) -> list[str]:
        """Its reports, one a line; empty if it reported nothing."""
        found: list[str] = []
        if self.checkpoint is not None:
            found.append(_checkpoint(self.checkpoint))
        found += [f"analysed a failure: {each.cause}, step {each.about}" for each in self.analyses]
        if self.flags:
            found.append(f"not sure of finished plan steps: {self.flags}")
        return found


class Board:
    """Reads, for one attempt, the reports of others on its task or, in its run, on its project."""

    def __init__(self, *, journal: Journal, task: Task, attempt: Attempt) -> None:
        self._journal = journal
        self._task = task
        self._attempt = attempt

    async def others(self) -> bool:
        """Whether anybody else may report: on the same project, or earlier on the same task."""
        return bool(await self._attempts()) or len(await self._tasks()) > 1

    async def section(self, blocks: DataBlocks) -> str:
        """Return the whole board as part of a prompt; empty if nobody reported anything."""
        return await self._reports_section(await self._attempts(), blocks)

    async def beside(self, blocks: DataBlocks) -> str:
        """Return the board without the task's own attempts: the prompt has those elsewhere."""
        attempts = await self._attempts()
        others = [each for each in attempts if each[0].task != self._task.id]
        return await self._reports_section(others, blocks)

    async def _reports_section(
        self, attempts: Iterable[tuple[Attempt, str]], blocks: DataBlocks
    ) -> str:
        own = await self._read_reports(self._attempt, "")
        others = [await self._read_reports(each, name) for each, name in attempts]
        return render_board(others, own.files, blocks)

    async def _attempts(self) -> list[tuple[Attempt, str]]:
        found: list[tuple[Attempt, str]] = []
        for each in await self._tasks():
            found += [
                (attempt, f"{each.name}, attempt {attempt.number}")
                for attempt in await self._journal.attempts(each.id)
                if attempt.id != self._attempt.id
            ]
        return sorted(found, key=lambda each: each[0].id)[-_ATTEMPTS:]

    async def _tasks(self) -> list[Task]:
        """Return this task and the others of its project in its run."""
        project, own = project_of(self._task), self._task.id
        tasks = await self._journal.tasks(self._task.run)
        return [t for t in tasks if t.id == own or (project and project_of(t) == project)]

    async def _read_reports(self, attempt: Attempt, name: str) -> AttemptReports:
        reported = AttemptReports(name=name)
        async for entry in self._journal.all_entries(attempt=attempt.id, kinds=_TOLD):
            reported.take(entry)
        return reported


def render_board(others: Iterable[AttemptReports], files: set[str], blocks: DataBlocks) -> str:
    """Return the reports of others, those on the same files first, then the newest; bounded."""
    telling = [each for each in others if each.lines]
    telling.sort(key=lambda each: (bool(each.files & files), each.newest), reverse=True)
    kept: list[str] = []
    for each in telling:
        more = [*kept, *_lines(each, files)]
        if len(_frame_reports(more, blocks)) > LONGEST:
            break
        kept = more
    return _frame_reports(kept, blocks) if kept else ""


def _frame_reports(lines: Sequence[str], blocks: DataBlocks) -> str:
    block = blocks.frame("reports of other agents", "\n".join(lines), note=EVIDENCE)
    return f"{_HEADING}\n\n{block}"


def _lines(reported: AttemptReports, files: set[str]) -> list[str]:
    same = sorted(filter(_PATH.fullmatch, reported.files & files or reported.files))
    which = f"; files: {', '.join(same[:_FILES])}" if same else ""
    heading = f"{reported.name} ({reported.state}){which}"
    return [f"- {plain(heading, _LINE)}", *(f"  - {line}" for line in reported.lines)]


def _checkpoint(said: Checkpoint) -> str:
    several = "s" if len(said.blockers) > 1 else ""
    blockers = f", {len(said.blockers)} blocker{several}" if said.blockers else ""
    return (
        f"{said.progress_percent} % of plan step {said.plan_step}, confidence {said.confidence}, "
        f"{said.decision}{blockers}"
    )


class ReadBoard:
    def __init__(self, board: Board | None) -> None:
        self._board = board

    async def read_board(self) -> str:
        """Read what other agents on the same files or task have reported: evidence, no orders."""
        assert self._board is not None  # else it is not offered
        found = await self._board.section(DataBlocks.with_new_code())
        return found or "Nobody else has reported anything about this work."
