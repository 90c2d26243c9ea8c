"""Where a lesson comes from, and what became of the attempts that were given it."""

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
    Method,
    Origin,
    Recall,
)
from midwatch_monitor.records.verdict import verdict_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An attempt, as a person finds it again."""

    attempt: int
    """Its journal id."""
    name: str
    """Its task and its number: `fix#2`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One attempt that was given the lesson."""

    place: Place
    method: Method
    score: float
    at: datetime
    verdicts: tuple[Feedback, ...]
    """The newest of each origin, in the order in which they count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What was said of the lesson later."""

    at: datetime
    mark: LessonMark


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Everything about a lesson that does not stand in itself."""

    sources: tuple[Place, ...]
    """The attempts that it comes from."""
    verdict: Feedback | None
    """The verdict that it explains."""
    uses: tuple[Use, ...]
    """Oldest first."""
    marks: tuple[Mark, ...]
    """Oldest first."""


async def provenance(journal: Journal, known: KnownLesson) -> Provenance:
    """Read where a lesson comes from and what became of it. Raises JournalError."""
    sources = known.lesson.sources or (known.attempt,)
    return Provenance(
        sources=tuple([await _place(journal, attempt) for attempt in sources]),
        verdict=await _verdict(journal, known.lesson.verdict),
        uses=tuple([use async for use in _uses(journal, known)]),
        marks=tuple([mark async for mark in _marks(journal, known)]),
    )


async def _place(journal: Journal, attempt: int) -> Place:
    found = await journal.attempt(attempt)
    task = await journal.task(found.task)
    return Place(attempt=attempt, name=f"{task.name}#{found.number}")


async def _verdict(journal: Journal, id: int | None) -> Feedback | None:
    if id is None:
        return None
    entries = await journal.entries(id - 1, limit=1)
    return next((verdict_of(entry.record) for entry in entries if entry.id == id), None)


async def _uses(journal: Journal, known: KnownLesson) -> AsyncIterator[Use]:
    """The last that each attempt was given counts."""
    last: dict[int, Entry] = {}
    async for entry in journal.all_entries(known.id, kinds=[Recall]):
        if entry.attempt is not None:
            last[entry.attempt] = entry
    for attempt, entry in last.items():
        if not isinstance(entry.record, Recall):
            continue
        for used in entry.record.lessons:
            if used.lesson == known.id:
                yield Use(
                    place=await _place(journal, attempt),
                    method=used.method,
                    score=used.score,
                    at=entry.at,
                    verdicts=await _judged(journal, attempt),
                )


async def _judged(journal: Journal, attempt: int) -> tuple[Feedback, ...]:
    newest: dict[Origin, Feedback] = {}
    async for entry in journal.all_entries(0, attempt=attempt, kinds=[AttemptTransition, Feedback]):
        if (verdict := verdict_of(entry.record)) is not None:
            newest[verdict.origin] = verdict
    return tuple(newest[origin] for origin in Origin if origin in newest)


async def _marks(journal: Journal, known: KnownLesson) -> AsyncIterator[Mark]:
    """Marks stand with the attempt that the lesson stands with."""
    async for entry in journal.all_entries(known.id, attempt=known.attempt, kinds=[LessonMark]):
        if isinstance(entry.record, LessonMark) and entry.record.lesson == known.id:
            yield Mark(at=entry.at, mark=entry.record)
