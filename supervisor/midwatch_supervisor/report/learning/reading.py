"""The figures of what is learned, read from the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.metrics.learning import KINDS, METERS, Learning, LearningFigures
from midwatch_monitor.records import KnownLesson, Task
from midwatch_supervisor.present.lookup import assignment_of, chosen_runs

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningReading:
    """Figures, with what a person needs to know whose they are."""

    journal: str
    project: str | None
    """The only project that counts; `None` for all."""
    run: int | None
    since: datetime | None
    tasks: int
    """How many count."""
    lessons: Mapping[int, KnownLesson]
    """Those of which an effect is told, by journal id."""
    figures: LearningFigures


async def read_learning(
    journal: Journal, *, project: str | None, run: int | None, since: datetime | None
) -> LearningReading:
    """The figures of a project or of all, of one run or of all, of tasks active since then.

    Tasks without a project are left out: nothing is learned from them. Every task counts whole.
    Raises UsageError for an unknown run, and JournalError.
    """
    active = None if since is None else set(await journal.active(since))
    tasks = [
        task
        for each in (await chosen_runs(journal, run))[::-1]
        for task in await journal.tasks(each.id)
        if (active is None or task.id in active) and _counts(task, project)
    ]
    learning = Learning()
    for task in tasks:
        learning.meet(task, whole=_whole(task))
        async for entry in journal.all_entries(task=task.id, kinds=(*KINDS, *METERS)):
            learning.observe(entry)
    figures = learning.figures()
    told = sorted({effect.lesson for effect in figures.lessons.effects})
    lessons = await _known(Learned(journal), told)
    return LearningReading(
        journal=journal.name,
        project=project,
        run=run,
        since=since,
        tasks=len(tasks),
        lessons={known.id: known for known in lessons},
        figures=figures,
    )


async def _known(learned: Learned, ids: Sequence[int]) -> list[KnownLesson]:
    pages = [ids[at : at + _PAGE] for at in range(0, len(ids), _PAGE)]
    return [known for page in pages for known in await learned.lessons(ids=page, limit=_PAGE)]


def _counts(task: Task, project: str | None) -> bool:
    return bool(task.project) and project in (None, task.project)


def _whole(task: Task) -> str:
    """The task that this one is a part of; empty if it is none."""
    assignment = assignment_of(task)
    return (assignment.parent or "") if assignment else ""
