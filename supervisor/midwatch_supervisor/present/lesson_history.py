"""The sources and the uses of a lesson, read from the journal."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    AttemptTransition,
    Entry,
    Feedback,
    KnownLesson,
    LessonMark,
    Origin,
    Recall,
    Recalled,
)
from midwatch_monitor.records.verdict import verdict_of
from midwatch_supervisor.present.lookup import NamedAttempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """An attempt that was given the lesson."""

    place: NamedAttempt
    recalled: Recalled
    at: datetime
    verdicts: tuple[Feedback, ...]
    """The newest verdict of each origin, in the order of their weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonHistory:
    """Everything about a lesson that is not in its own record."""

    sources: tuple[NamedAttempt, ...]
    """The attempts it comes from."""
    verdict: Feedback | None
    """The verdict it explains."""
    uses: tuple[Use, ...]
    """Oldest first."""
    marks: tuple[tuple[datetime, LessonMark], ...]
    """Its marks, oldest first."""


async def lesson_history(journal: Journal, known: KnownLesson) -> LessonHistory:
    """Read the sources and the uses of a lesson. Raises JournalError."""
    sources = known.lesson.sources or ((known.attempt,) if known.task else ())
    return LessonHistory(
        sources=tuple([await _named_attempt(journal, attempt) for attempt in sources]),
        verdict=await _read_verdict(journal, known.lesson.verdict),
        uses=tuple([use async for use in _read_uses(journal, known)]),
        marks=tuple([mark async for mark in lesson_marks(journal, known)]),
    )


async def lesson_marks(
    journal: Journal, known: KnownLesson
) -> AsyncIterator[tuple[datetime, LessonMark]]:
    """Yield the marks of a lesson, which are stored with the lesson's attempt."""
    async for entry in journal.all_entries(known.id, attempt=known.attempt, kinds=[LessonMark]):
        if isinstance(entry.record, LessonMark) and entry.record.lesson == known.id:
            yield entry.at, entry.record


async def _named_attempt(journal: Journal, attempt: int) -> NamedAttempt:
    found = await journal.attempt(attempt)
    return NamedAttempt(task=await journal.task(found.task), attempt=found)


async def _read_verdict(journal: Journal, id: int | None) -> Feedback | None:
    entries = [] if id is None else await journal.entries(id - 1, limit=1)
    return next((verdict_of(entry.record) for entry in entries if entry.id == id), None)


async def _read_uses(journal: Journal, known: KnownLesson) -> AsyncIterator[Use]:
    """Return the uses of a lesson; of each attempt, the last one."""
    last: dict[int, tuple[Entry, Recall]] = {}
    async for entry in journal.all_entries(known.id, kinds=[Recall]):
        if entry.attempt is not None and isinstance(entry.record, Recall):
            last[entry.attempt] = entry, entry.record
    for attempt, (entry, recall) in last.items():
        for each in recall.lessons:
            if each.lesson == known.id:
                place = await _named_attempt(journal, attempt)
                verdicts = await _read_verdicts(journal, attempt)
                yield Use(place=place, recalled=each, at=entry.at, verdicts=verdicts)


async def _read_verdicts(journal: Journal, attempt: int) -> tuple[Feedback, ...]:
    newest: dict[Origin, Feedback] = {}
    async for entry in journal.all_entries(attempt=attempt, kinds=[AttemptTransition, Feedback]):
        if (verdict := verdict_of(entry.record)) is not None:
            newest[verdict.origin] = verdict
    return tuple(newest[origin] for origin in Origin if origin in newest)
