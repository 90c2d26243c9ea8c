"""When to look back at projects: at the end of a run, after a fleet's runs, in quiet hours."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from pydantic import ValidationError

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import (
    JournalCorruptError,
    JournalError,
    JournalTooNewError,
    UsageError,
)
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Entry, Run, SupervisedBy, Task, TaskTransition
from midwatch_supervisor.learning.learner import Learner
from midwatch_supervisor.learning.reflection import archive, reflect_project
from midwatch_supervisor.learning.reflectors import Reflectors

log = logging.getLogger(__name__)


_OLD = 20
"""Number of recent runs that a new leader looks at: they may have ended without one."""


class FleetReflection:
    """Looks back at the projects of a fleet's runs as these end, with each run's settings.

    Unused lessons are archived at the same time. The project's watermark prevents attempts from
    being used twice, whoever used them.
    """

    def __init__(self, journal: Journal, *, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._after = 0
        self._said: set[str] = set()
        self._failing = False

    async def keep(self, learner: Learner, *, seconds: float) -> None:
        """Look every `seconds`, until canceled."""
        while True:
            try:
                await self.look(learner)
                self._failing = False
            except JournalError as error:
                # Logged once: it may last all night.
                level = logging.DEBUG if self._failing else logging.WARNING
                log.log(level, "cannot look back at present: %s", error)
                self._failing = True
            await asyncio.sleep(seconds)

    async def look(self, learner: Learner) -> None:
        """Look back at each run that ended since the last time. Raises JournalError."""
        last = await self._journal.last_id()  # what is written meanwhile is found the next time
        for run in await self._changed_runs():
            try:
                await self._look_at(run, learner)
            except (JournalTooNewError, JournalCorruptError) as error:  # the others can be read
                self._warn_once(f"did not look back at run {run.id}: {error}")
        self._after = last

    async def _changed_runs(self) -> Sequence[Run]:
        """Return runs with a task that began or ended since the last look; at first the newest
        runs.
        """
        if not self._after:
            runs = await self._journal.runs()
            return [each for each in runs if each.supervised_by is SupervisedBy.MONITOR][-_OLD:]
        kinds = (TaskTransition,)
        moved = {each.task async for each in self._journal.all_entries(self._after, kinds=kinds)}
        ids = sorted({each.run for each in await self._journal.tasks_with(moved)})
        runs = [await self._journal.run(id) for id in ids]
        return [each for each in runs if each.supervised_by is SupervisedBy.MONITOR]

    async def _look_at(self, run: Run, learner: Learner) -> None:
        tasks = await last_tasks(self._journal, run.id)
        settings = self._run_settings(run) if tasks else None
        if settings is not None and settings.learning.guidelines.enabled:
            await learner.study_all()  # looking back needs summaries
            for task in tasks:
                await self._look_back(task, settings)

    def _run_settings(self, run: Run) -> Settings | None:
        try:
            return Settings.model_validate_json(run.settings)
        except ValidationError:
            self._warn_once(
                f"did not look back at run {run.id}: its settings are of another version"
            )
            return None

    async def _look_back(self, task: Task, settings: Settings) -> None:
        """Look back at a task's project, with the task's reflector."""
        project, now = task.project, self._clock
        try:
            lessons = settings.learning.lessons
            await archive(self._journal, [project], settings=lessons, now=now())
            model = Reflectors(settings.provider).of(task)
            await reflect_project(self._journal, project, model=model, settings=settings, now=now)
        except JournalError:
            raise
        except UsageError as error:  # a key or package is missing: another machine may have it
            self._warn_once(f"did not look back at {project}: {error}")
        except Exception:  # must not affect the other runs
            log.exception("looking back at %s failed", project)

    def _warn_once(self, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            log.warning("%s", what)


async def last_tasks(journal: Journal, run: int) -> list[Task]:
    """Return the task of a run that ended last, by project; empty while a task is not over."""
    last: dict[int, Entry] = {}
    async for entry in journal.all_entries(run=run, kinds=(TaskTransition,)):
        last[entry.task] = entry
    found: dict[str, Task] = {}
    begun = [each for each in await journal.tasks(run) if each.id in last]
    for task in sorted(begun, key=lambda each: last[each.id].id):
        state = last[task.id].record
        if task.embedded:
            continue
        if not (isinstance(state, TaskTransition) and state.lifecycle.over):
            return []
        if task.project:
            found[task.project] = task
    return list(found.values())


async def learn(learner: Learner, reflection: FleetReflection, *, seconds: float) -> None:
    """Learn while other work goes on, and look back every `seconds`, until canceled.

    Ends when the learner does. Raises JournalError.
    """
    await learner.begin()
    works = [
        asyncio.create_task(learner.run()),
        asyncio.create_task(reflection.keep(learner, seconds=seconds)),
    ]
    try:
        done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        for work in done:
            work.result()
    finally:
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightWindow:
    """A period such as a night, from its beginning up to its end."""

    begin: datetime
    end: datetime

    def holds(self, at: datetime) -> bool:
        return self.begin <= at < self.end


def next_window(hours: str, at: datetime) -> NightWindow:
    """Return the window that contains a moment, or the next one.

    Args:
        hours: `02:00-05:00`, in local time; an end that is not after the beginning is on the next
            day, and equal times mean the whole day.
        at: An aware moment. With a fixed offset, as after `astimezone()`, changes of the clocks in
            between are ignored.
    """
    first, _, last = hours.partition("-")
    begin, end = time.fromisoformat(first), time.fromisoformat(last)
    days = (at.date() + offset * _DAY for offset in (-1, 0, 1))
    windows = (_night_window(day, begin, end, at) for day in days)
    return next(window for window in windows if at < window.end)


def _night_window(day: date, begin: time, end: time, at: datetime) -> NightWindow:
    until = day if begin < end else day + _DAY
    return NightWindow(
        begin=datetime.combine(day, begin, tzinfo=at.tzinfo),
        end=datetime.combine(until, end, tzinfo=at.tzinfo),
    )
