"""Lessons that nobody needs any more are archived."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial

from midwatch_monitor.config.learning import LessonSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned, every
from midwatch_monitor.records import Commit, Draft, KnownLesson, LessonAct, LessonMark
from midwatch_supervisor.present.lesson_history import lesson_marks

AUTHOR = "midwatch"


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
            touched = [at async for at, _ in lesson_marks(journal, known)]
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
