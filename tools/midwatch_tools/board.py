"""What others on the same files or task reported: last checkpoints, analyses, flags."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from midwatch_monitor.journal import Journal
from midwatch_monitor.neighbours import project_of
from midwatch_monitor.words import (
    Analysis,
    Attempt,
    AttemptState,
    Checkpoint,
    Completion,
    Entry,
    Plan,
    Record,
    Step,
    Task,
    Teller,
    Writer,
)
from midwatch_tools.quotation import EVIDENCE, framed, plain

LONGEST = 2_000
"""Characters of a whole board."""
_ATTEMPTS = 12
"""Attempts that are looked at, the newest ones."""
_ANALYSES = 3
"""Analyses that are kept of one attempt, the newest ones."""
_LINE = 240
"""Characters of a line of one report."""
_PART = 110
"""Characters of each part of a line, so that a long one does not push out what comes after it."""
_FILES = 6

_TOLD: tuple[type[Record], ...] = (Step, Plan, Analysis, Completion, AttemptState)
_HEADING = "## What other agents on this work report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What is shown of a board."""

    text: str = ""
    """A part of a prompt; empty where nobody reported anything."""
    tasks: frozenset[int] = frozenset()
    """The journal ids of the tasks that it tells of."""


@dataclass(slots=True, kw_only=True)
class Reported:
    """What one attempt has to tell others."""

    name: str
    """Of its task, with the number of the attempt."""
    task: int = 0
    """The journal id of its task."""
    newest: int = 0
    """The journal id of its last report."""
    state: str = ""
    checkpoint: Checkpoint | None = None
    analyses: list[Analysis] = field(default_factory=list[Analysis])
    flags: list[str] = field(default_factory=list[str])
    files: set[str] = field(default_factory=set[str])
    """Those that it changed, and those that its plan expects."""

    def take(self, entry: Entry) -> None:
        """Take in one entry of the attempt."""
        record = entry.record
        if isinstance(record, Step):
            self.files |= {edit.path for edit in record.edits if edit.writer is Writer.WORKER}
            if record.checkpoint is None:
                return
            self.checkpoint = record.checkpoint
        elif isinstance(record, Plan):
            self.files |= {path for step in record.steps for path in step.files}
            return
        elif isinstance(record, AttemptState):
            self.state = f"{record.lifecycle}: {record.reason}" if record.reason else ""
            self.state = self.state or str(record.lifecycle)
            return
        elif isinstance(record, Analysis):
            if record.by is Teller.WATCH:
                return
            self.analyses = [*self.analyses, record][-_ANALYSES:]
        elif isinstance(record, Completion):
            if not record.flag:
                return
            self.flags.append(record.flag)
        self.newest = entry.id

    @property
    def lines(self) -> list[str]:
        """What it reported, a line each; nothing where it reported nothing."""
        found: list[str] = []
        if self.checkpoint is not None:
            found.append(_checkpoint(self.checkpoint))
        found += map(_analysis, self.analyses)
        found += [f"not sure of: {plain(flag, _LINE)}" for flag in self.flags[-_ANALYSES:]]
        return found


class Board:
    """Reads what others report, for one attempt: of its task before, of its project in its run."""

    def __init__(self, *, journal: Journal, task: Task, attempt: Attempt) -> None:
        self._journal = journal
        self._task = task
        self._attempt = attempt

    async def section(self) -> str:
        """The whole board as a part of a prompt; empty where nobody reported anything."""
        return (await self._section(await self._attempts())).text

    async def beside(self) -> Section:
        """The board without the earlier attempts at the same task: their heir is told otherwise."""
        attempts = await self._attempts()
        return await self._section([each for each in attempts if each[0].task != self._task.id])

    async def _section(self, attempts: Iterable[tuple[Attempt, str]]) -> Section:
        own = await self._reported(self._attempt, "")
        others = [await self._reported(each, name) for each, name in attempts]
        return rendered(others, own.files)

    async def _attempts(self) -> list[tuple[Attempt, str]]:
        project = project_of(self._task)
        found: list[tuple[Attempt, str]] = []
        for each in await self._journal.tasks(self._task.run):
            if each.id == self._task.id or (project and project_of(each) == project):
                found += [
                    (attempt, f"{each.name}, attempt {attempt.number}")
                    for attempt in await self._journal.attempts(each.id)
                    if attempt.id != self._attempt.id
                ]
        return sorted(found, key=lambda each: each[0].id)[-_ATTEMPTS:]

    async def _reported(self, attempt: Attempt, name: str) -> Reported:
        reported = Reported(name=name, task=attempt.task)
        async for entry in self._journal.all_entries(attempt=attempt.id, kinds=_TOLD):
            reported.take(entry)
        return reported


def rendered(others: Iterable[Reported], files: set[str], *, longest: int = LONGEST) -> Section:
    """The reports of others, those on the same files first, then the newest; bounded."""
    telling = [each for each in others if each.lines]
    telling.sort(key=lambda each: (bool(each.files & files), each.newest), reverse=True)
    kept = list(_fitting(telling, files, longest - len(_framed([]))))
    if not kept:
        return Section()
    return Section(
        text=_framed([line for lines in kept for line in lines[1]]),
        tasks=frozenset(task for task, _ in kept),
    )


def _framed(lines: Sequence[str]) -> str:
    block = framed("reports of other agents", "\n".join(lines), note=EVIDENCE)
    return f"{_HEADING}\n\n{block}"


def _fitting(
    telling: Sequence[Reported], files: set[str], room: int
) -> Iterable[tuple[int, list[str]]]:
    """The lines that fit, attempt by attempt, with their task; a heading alone says nothing."""
    for each in telling:
        heading, *lines = _block(each, files)
        room -= len(heading) + 1
        fitting: list[str] = []
        for line in lines:
            if len(line) + 1 > room:
                break
            fitting.append(line)
            room -= len(line) + 1
        if fitting:
            yield each.task, [heading, *fitting]
        if len(fitting) < len(lines):
            return


def _block(reported: Reported, files: set[str]) -> list[str]:
    same = sorted(reported.files & files) or sorted(reported.files)
    which = f"; files: {', '.join(same[:_FILES])}" if same else ""
    heading = f"{reported.name} ({plain(reported.state, _PART)}){which}"
    return [
        f"- {plain(heading, _LINE)}",
        *(f"  - {plain(line, 2 * _LINE)}" for line in reported.lines),
    ]


def _analysis(found: Analysis) -> str:
    # What failed may be a whole traceback: what others can use comes before it.
    remedy = f" → {plain(found.remedy, _PART)}" if found.remedy else ""
    return f"found: {plain(found.root, _PART)}{remedy}; after: {plain(found.what, _PART)}"


def _checkpoint(said: Checkpoint) -> str:
    blockers = f"; blocked by {plain(', '.join(said.blockers), _PART)}" if said.blockers else ""
    notes = f"; {plain(said.notes, _LINE)}" if said.notes else ""
    return (
        f"{said.progress_percent} % of plan step {said.plan_step}, confidence {said.confidence}"
        f"{blockers}{notes}"
    )
