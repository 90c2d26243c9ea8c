"""Lessons that a person gave to the next attempt of a task, and no attempt has had yet."""

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    KnownLesson,
    LessonAct,
    LessonMark,
    Method,
    Recall,
    Recalled,
    Task,
)


async def given_by_person(journal: Journal, task: Task) -> list[tuple[Recalled, KnownLesson]]:
    """The lessons that the next attempt of a task is given whatever it is about, in their order.

    One that had no room in a prompt is given to the attempt after it; one that was taken out of
    use meanwhile is not. Raises JournalError.
    """
    waiting: dict[int, None] = {}
    async for entry in journal.all_entries(task=task.id, kinds=(LessonMark, Recall)):
        match entry.record:
            case LessonMark(act=LessonAct.GIVEN) as mark:
                waiting[mark.lesson] = None
            case Recall() as recall:
                for each in recall.lessons:
                    waiting.pop(each.lesson, None)
            case _:
                pass
    if not waiting:
        return []
    found = await Learned(journal).lessons(project=task.project, ids=list(waiting), obsolete=False)
    by_id = {known.id: known for known in found}
    return [
        (Recalled(lesson=id, method=Method.MANUAL, score=1.0), by_id[id])
        for id in waiting
        if id in by_id
    ]
