"""Reads the figures of selected tasks from the journal."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.metrics.learning import KINDS, METERS, LearningFigures, LearningTally
from midwatch_monitor.metrics.runs import Figures, RunMetrics
from midwatch_monitor.records import KnownLesson, Task
from midwatch_supervisor.present.lookup import assignment_of, chosen_runs

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([mhdw])")
_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which tasks count; `None` does not restrict."""

    run: int | None = None
    """The run's number."""
    since: datetime | None = None
    """Only tasks with an entry since this moment; each counts from its beginning."""
    project: str | None = None

    def description(self, tasks: int, journal: str, now: datetime) -> str:
        """Return the selection in a sentence, with times in the zone of `now`."""
        parts = {0: "No task", 1: "1 task"}.get(tasks, f"{tasks} tasks")
        parts += "" if self.run is None else f" of run {self.run}"
        parts += "" if self.project is None else f" of project {self.project}"
        parts += f" in {journal}"
        if self.since is not None:
            parts += f", active since {self.since.astimezone(now.tzinfo):%Y-%m-%d %H:%M}"
        return f"{parts}, as of {now:%Y-%m-%d %H:%M}."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReading:
    tasks: dict[int, Task]
    """By journal id."""
    figures: Figures

    def name(self, task: int) -> str:
        """Return a task's name, with the run's number if there are several runs."""
        found = self.tasks[task]
        several = len({each.run for each in self.tasks.values()}) > 1
        return f"{found.run}/{found.name}" if several else found.name


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningReading:
    """The figures of what was learned from some tasks."""

    tasks: dict[int, Task]
    lessons: Mapping[int, KnownLesson]
    """The lessons with an effect among the figures, by journal id."""
    figures: LearningFigures


async def read_runs(journal: Journal, selection: Selection) -> RunReading:
    """Return figures of the selected tasks. Raises UsageError (unknown run) and JournalError."""
    tasks = await _select_tasks(journal, selection)
    metrics = RunMetrics()
    for task in tasks:
        async for entry in journal.all_entries(task=task.id):
            metrics.observe(entry)
    return RunReading(tasks={task.id: task for task in tasks}, figures=metrics.figures())


async def read_learning(journal: Journal, selection: Selection) -> LearningReading:
    """Return what was learned from the selected tasks that have a project; others teach nothing.

    Raises UsageError for an unknown run, and JournalError.
    """
    tasks = [task for task in await _select_tasks(journal, selection) if task.project]
    learning = LearningTally()
    for task in tasks:
        assignment = assignment_of(task)
        learning.meet(task, whole=(assignment.parent or "") if assignment else "")
        async for entry in journal.all_entries(task=task.id, kinds=(*KINDS, *METERS)):
            learning.observe(entry)
    figures = learning.figures()
    ids = sorted({effect.lesson for effect in figures.lessons.effects})
    pages = [ids[at : at + _PAGE] for at in range(0, len(ids), _PAGE)]
    learned = Learned(journal)
    lessons = [each for page in pages for each in await learned.lessons(ids=page, limit=_PAGE)]
    return LearningReading(
        tasks={task.id: task for task in tasks},
        lessons={known.id: known for known in lessons},
        figures=figures,
    )


async def _select_tasks(journal: Journal, selection: Selection) -> list[Task]:
    """Return the selected tasks, oldest run first. A task counts as a whole."""
    since, project = selection.since, selection.project
    active = None if since is None else set(await journal.active(since))
    return [
        task
        for run in (await chosen_runs(journal, selection.run))[::-1]
        for task in await journal.tasks(run.id)
        if (active is None or task.id in active) and project in (None, task.project)
    ]


def moment(text: str, *, now: datetime) -> datetime:
    """Return the moment in UTC that a date, a time, or a duration before now means.

    A date means its midnight; the default zone is that of `now`. Raises UsageError.
    """
    written = text.strip()
    try:
        if ago := _AGO.fullmatch(written):
            return (now - float(ago[1]) * _UNITS[ago[2]]).astimezone(UTC)
        found = datetime.fromisoformat(written)
        return (found if found.tzinfo else found.replace(tzinfo=now.tzinfo)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since {text!r} is not a time: write a duration (90m, 2h, 7d, 2w), a date "
            "(2026-11-21) or a time (2026-11-21T20:00)"
        ) from None
