"""Lessons in the journal: where one comes from, what became of it, and archiving unused ones."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from midwatch_monitor.config.learning import LessonSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned, every
from midwatch_monitor.records import (
    AttemptTransition,
    Commit,
    Draft,
    Entry,
    Feedback,
    KnownLesson,
    LessonAct,
    LessonMark,
    Method,
    Origin,
    Recall,
)
from midwatch_monitor.records.verdict import verdict_of

AUTHOR = "midwatch"


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


async def archive(
    journal: Journal, projects: Iterable[str], *, settings: LessonSettings, now: datetime
) -> int:
    """Archive the lessons of these projects that nobody was given for long; how many that were.

    A lesson that was never given counts from when it was written. That a person restored or rated
    it counts as a use, or a restored one would be archived again at once. Raises JournalError.
    """
    if not (limit := settings.archive_unused_after.seconds):
        return 0
    drafts: list[Draft] = []
    learned = Learned(journal)
    for project in projects:
        in_use = partial(_in_use, learned, project)
        async for known in every(in_use):
            if (now - (known.last_used or known.at)).total_seconds() < limit:
                continue
            # A mark is the last thing that a person said of a lesson.
            touched = [mark.at async for mark in _marks(journal, known)]
            if touched and (now - touched[-1]).total_seconds() < limit:
                continue
            mark = LessonMark(lesson=known.id, act=LessonAct.ARCHIVED, author=AUTHOR)
            task = (await journal.attempt(known.attempt)).task
            drafts.append(Draft(record=mark, at=now, task=task, attempt=known.attempt))
    if drafts:
        await journal.commit(Commit(drafts=tuple(drafts)))
    return len(drafts)


async def _in_use(learned: Learned, project: str, before: int | None) -> list[KnownLesson]:
    return await learned.lessons(project=project, obsolete=False, before=before)
