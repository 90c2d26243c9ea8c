"""Where a lesson comes from and what became of it, read from the journal."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Entry,
    Feedback,
    KnownLesson,
    LessonMark,
    Origin,
    Recall,
    Recalled,
    Task,
)
from midwatch_monitor.records.verdict import verdict_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAttempt:
    """An attempt, as a person finds it again."""

    task: Task
    attempt: Attempt

    @property
    def name(self) -> str:
        """Its task and its number: `fix#2`."""
        return f"{self.task.name}#{self.attempt.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One attempt that was given the lesson."""

    place: NamedAttempt
    recalled: Recalled
    at: datetime
    verdicts: tuple[Feedback, ...]
    """The newest of each origin, in the order in which they count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonHistory:
    """Everything about a lesson that does not stand in itself."""

    sources: tuple[NamedAttempt, ...]
    """The attempts that it comes from."""
    verdict: Feedback | None
    """The verdict that it explains."""
    uses: tuple[Use, ...]
    """Oldest first."""
    marks: tuple[tuple[datetime, LessonMark], ...]
    """What was said of it, oldest first."""


async def lesson_history(journal: Journal, known: KnownLesson) -> LessonHistory:
    """Read where a lesson comes from and what became of it. Raises JournalError."""
    sources = known.lesson.sources or ((known.attempt,) if known.task else ())
    return LessonHistory(
        sources=tuple([await _place(journal, attempt) for attempt in sources]),
        verdict=await _verdict(journal, known.lesson.verdict),
        uses=tuple([use async for use in _uses(journal, known)]),
        marks=tuple([mark async for mark in lesson_marks(journal, known)]),
    )


async def lesson_marks(
    journal: Journal, known: KnownLesson
) -> AsyncIterator[tuple[datetime, LessonMark]]:
    """The marks of a lesson; they stand with the attempt that it stands with."""
    async for entry in journal.all_entries(known.id, attempt=known.attempt, kinds=[LessonMark]):
        if isinstance(entry.record, LessonMark) and entry.record.lesson == known.id:
            yield entry.at, entry.record


async def _place(journal: Journal, attempt: int) -> NamedAttempt:
    found = await journal.attempt(attempt)
    return NamedAttempt(task=await journal.task(found.task), attempt=found)


async def _verdict(journal: Journal, id: int | None) -> Feedback | None:
    entries = [] if id is None else await journal.entries(id - 1, limit=1)
    return next((verdict_of(entry.record) for entry in entries if entry.id == id), None)


async def _uses(journal: Journal, known: KnownLesson) -> AsyncIterator[Use]:
    """The last that each attempt was given counts."""
    last: dict[int, tuple[Entry, Recall]] = {}
    async for entry in journal.all_entries(known.id, kinds=[Recall]):
        if entry.attempt is not None and isinstance(entry.record, Recall):
            last[entry.attempt] = entry, entry.record
    for attempt, (entry, recall) in last.items():
        for each in recall.lessons:
            if each.lesson == known.id:
                place, verdicts = await _place(journal, attempt), await _verdicts(journal, attempt)
                yield Use(place=place, recalled=each, at=entry.at, verdicts=verdicts)


async def _verdicts(journal: Journal, attempt: int) -> tuple[Feedback, ...]:
    newest: dict[Origin, Feedback] = {}
    async for entry in journal.all_entries(attempt=attempt, kinds=[AttemptTransition, Feedback]):
        if (verdict := verdict_of(entry.record)) is not None:
            newest[verdict.origin] = verdict
    return tuple(newest[origin] for origin in Origin if origin in newest)
