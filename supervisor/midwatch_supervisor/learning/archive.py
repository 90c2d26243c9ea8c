"""Lessons that nobody needed for long: out of use, as retired ones, but by themselves."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from midwatch_monitor.config.learning import LessonSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import Commit, Draft, KnownLesson, LessonAct, LessonMark

AUTHOR = "midwatch"
_PAGE = 1_000
_NONE: Mapping[int, datetime] = {}


def unused(
    lessons: Iterable[KnownLesson],
    now: datetime,
    settings: LessonSettings,
    touched: Mapping[int, datetime] = _NONE,
) -> tuple[int, ...]:
    """The ids of the lessons that nobody was given for as long as the settings say. Pure.

    A lesson that was never given counts from when it was written. `touched` is when a person last
    restored or rated a lesson, by its id: that counts as a use, or a restored one would be
    archived again at once.
    """
    limit = settings.archive_unused_after.seconds
    if not limit:
        return ()
    return tuple(
        known.id
        for known in lessons
        if not known.obsolete and (now - _needed(known, touched)).total_seconds() >= limit
    )


async def archive(
    journal: Journal, projects: Iterable[str], *, settings: LessonSettings, now: datetime
) -> int:
    """Archive what is unused in these projects; how many lessons that were.

    Raises JournalError.
    """
    if not settings.archive_unused_after.seconds:
        return 0
    learned = Learned(journal)
    count = 0
    for project in projects:
        before: int | None = None
        while page := await learned.lessons(
            project=project, obsolete=False, before=before, limit=_PAGE
        ):
            before = page[-1].id
            count += await _archive(journal, page, settings, now)
    return count


async def _archive(
    journal: Journal, page: Sequence[KnownLesson], settings: LessonSettings, now: datetime
) -> int:
    old = set(unused(page, now, settings))
    found = [known for known in page if known.id in old]
    touched = {known.id: at for known in found if (at := await _touched(journal, known))}
    ids = set(unused(found, now, settings, touched))
    drafts = [await _mark(journal, known, now) for known in found if known.id in ids]
    if drafts:
        await journal.commit(Commit(drafts=tuple(drafts)))
    return len(drafts)


def _needed(known: KnownLesson, touched: Mapping[int, datetime]) -> datetime:
    """When it was last needed, or touched, or else written."""
    times = (known.at, known.last_used, touched.get(known.id))
    return max(at for at in times if at is not None)


async def _touched(journal: Journal, known: KnownLesson) -> datetime | None:
    """When a person last said anything of a lesson. Its marks stand with its own attempt."""
    newest = None
    marks = journal.all_entries(known.id, attempt=known.attempt, kinds=[LessonMark])
    async for entry in marks:
        if isinstance(entry.record, LessonMark) and entry.record.lesson == known.id:
            newest = entry.at
    return newest


async def _mark(journal: Journal, known: KnownLesson, now: datetime) -> Draft:
    task = (await journal.attempt(known.attempt)).task
    mark = LessonMark(lesson=known.id, act=LessonAct.ARCHIVED, author=AUTHOR)
    return Draft(record=mark, at=now, task=task, attempt=known.attempt)
