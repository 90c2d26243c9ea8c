"""Reads one ended attempt from the journal as a case, from which lessons and summaries are made."""

from collections import deque
from dataclasses import dataclass, field, replace

from midwatch_agents.learning.case import Case
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Acceptance,
    Alert,
    AlertKey,
    Analysis,
    AnalysisAuthor,
    Attempt,
    AttemptTransition,
    Entry,
    Feedback,
    LearnedQuery,
    Origin,
    Record,
    Step,
    Task,
    Writer,
)
from midwatch_monitor.records.verdict import verdict_of, weight
from midwatch_monitor.state.intervention import InterventionState
from midwatch_supervisor.decide.history import History
from midwatch_supervisor.decide.prompt import describe_steps
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_tools.data_blocks import cut

_RECENT = 30
"""Number of last steps that a case shows."""
_STEP_CHARS = 1_000
_TRANSCRIPT_CHARS = 20_000
_FILES = 50
_ANALYSES = 10
_KINDS: tuple[type[Record], ...] = (Step, Alert, Analysis, Acceptance, AttemptTransition, Feedback)


@dataclass(slots=True, kw_only=True)
class _Course:
    """What a case needs from its attempt's entries, fed in order; of bounded size."""

    steps: deque[Step] = field(default_factory=lambda: deque[Step](maxlen=_RECENT))
    last_step: int = 0
    turns: int = 0
    before: int | None = None
    """Model requests before the attempt's first one: a resumed session keeps counting."""
    notes: str = ""
    files: dict[str, None] = field(default_factory=dict[str, None])
    analyses: deque[Analysis] = field(default_factory=lambda: deque[Analysis](maxlen=_ANALYSES))
    alarms: dict[AlertKey, Alert] = field(default_factory=dict[AlertKey, Alert])
    checks: dict[str, Acceptance] = field(default_factory=dict[str, Acceptance])
    state: AttemptTransition | None = None
    verdict: Entry | None = None
    """The entry that was asked for as the verdict, if it belongs to this attempt."""
    accepted: int = 0
    """The entry by which a person last accepted the result."""

    def take(self, entry: Entry) -> None:
        match entry.record:
            case Step() as step:
                self._add_step(step)
            case Alert(key=key, severity=severity) as alert if alert.firing and severity.alarm:
                self.alarms[key] = alert
            case Analysis(by=AnalysisAuthor.WORKER) as analysis:
                self.analyses.append(analysis)
            case Acceptance() as check:
                self.checks[check.check] = check
            case AttemptTransition() as state:
                self.state = state
            case Feedback(accepted=True, origin=Origin.EXPLICIT):
                self.accepted = entry.id
            case _:
                pass

    def _add_step(self, step: Step) -> None:
        self.steps.append(step)
        self.last_step = step.number
        if self.before is None and step.request:
            self.before = step.request - 1
        self.turns = max(self.turns, step.request - (self.before or 0))
        if step.checkpoint is not None and step.checkpoint.notes:
            self.notes = step.checkpoint.notes
        for edit in step.edits:
            if edit.writer is Writer.WORKER and len(self.files) < _FILES:
                self.files[edit.path] = None


async def case_of(
    journal: Journal, task: Task, attempt: Attempt, *, about: int | None = None
) -> Case:
    """Return an attempt as a case; with `about`, a verdict's journal id, as that verdict's case.

    However long the attempt was, the case holds only its last steps and its first files. Raises
    JournalError.
    """
    course = _Course()
    async for entry in journal.all_entries(attempt=attempt.id, kinds=_KINDS):
        course.take(entry)
        if entry.id == about:
            course.verdict = entry
    verdict = verdict_of(course.verdict.record) if course.verdict else None
    return replace(
        _make_case(task, attempt, course),
        verdict=verdict,
        verdict_id=about if verdict is not None else None,
        interventions=await _interventions(journal, attempt),
        known=await _known_lessons(journal, task, attempt, verdict, course.accepted),
    )


def _make_case(task: Task, attempt: Attempt, course: _Course) -> Case:
    assignment = assignment_of(task)
    state = course.state
    return Case(
        project=task.project,
        task=task.name,
        title=task.title,
        goal=assignment.task.goal if assignment else "",
        kind=kind_of(assignment, attempt.worker),
        tags=assignment.task.tags if assignment else (),
        files=tuple(course.files),
        ending=state.ending or "" if state else "",
        reason=state.reason if state else "",
        analyses=tuple(course.analyses),
        alarms=tuple(course.alarms.values()),
        turns=course.turns,
        steps=course.last_step,
        notes=course.notes,
        checks=tuple(course.checks.values()),
        transcript=cut(describe_steps(course.steps, _STEP_CHARS), _TRANSCRIPT_CHARS),
        shown=tuple(step.number for step in course.steps),
        sources=(attempt.id,),
    )


def kind_of(assignment: Assignment | None, worker: str) -> str:
    """Return the kind of a task's worker; empty if unknown."""
    return assignment.worker_spec(worker).kind if assignment else ""


async def _interventions(journal: Journal, attempt: Attempt) -> tuple[InterventionState, ...]:
    """Return the interventions delivered to the attempt; a restart's outcome comes later."""
    history = await History.read(journal, attempt.task)
    return tuple(each for each in history.interventions.delivered if each.attempt == attempt.id)


async def _known_lessons(
    journal: Journal, task: Task, attempt: Attempt, verdict: Feedback | None, accepted: int
) -> tuple[str, ...]:
    """Return the texts of the task's lessons, including outdated ones of this attempt.

    Lessons from checks do not count as known for a person's verdict, which weighs more. Lessons
    withdrawn when a person `accepted` the result may be learned again.
    """
    least = weight(verdict.origin) if verdict is not None else 0
    learned = Learned(journal)
    own = [
        each
        for each in await learned.lessons(attempt=attempt.id)
        if not (each.obsolete and (each.lesson.verdict or accepted) < accepted)
    ]
    same = await learned.candidates(LearnedQuery(project=task.project, task=task.name))
    found = {each.id: each for each in own} | {each.known.id: each.known for each in same}
    return tuple(
        each.lesson.text
        for each in found.values()
        if each.task == task.name and weight(each.lesson.origin) >= least
    )
