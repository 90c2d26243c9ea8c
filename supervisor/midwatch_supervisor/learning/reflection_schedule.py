"""When projects are looked back at: at the end of a run, after runs of a fleet, in quiet hours."""

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
from midwatch_monitor.journal.fleet.watches import EMBEDDED
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Entry, Keeper, Reflection, Run, TaskTransition
from midwatch_supervisor.learning.archive import archive
from midwatch_supervisor.learning.learner import Learner
from midwatch_supervisor.learning.reflection import RunEnd, reflect_project
from midwatch_supervisor.learning.reflectors import Reflectors

log = logging.getLogger(__name__)


async def look_back_after(
    journal: Journal, end: RunEnd, *, settings: Settings, clock: Clock
) -> Reflection | None:
    """Look back after a run of a fleet, by the reflector of its last task; once for each run.

    Lessons that nobody needs are archived with it. Answers what came of it, `None` where another
    process was quicker. Raises JournalError, and UsageError where its reflector cannot be built
    here: nothing says then that it is done, and another machine may do it.
    """
    project, lessons = end.project, settings.learning.lessons
    await archive(journal, [project], settings=lessons, now=clock())
    model = Reflectors(settings.provider).of(await journal.task(end.task))
    return await reflect_project(
        journal, project, model=model, settings=settings, now=clock, end=end
    )


_OLD = 20
"""Runs that whoever takes the post looks at: they may have ended while nobody had it."""


class FleetReflection:
    """Looks back at the runs of a fleet as they end, with the settings of each."""

    def __init__(self, journal: Journal, *, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._learned = Learned(journal)
        self._after = 0
        self._runs: dict[int, Run] = {}
        """Of which something moved, and that may be over."""
        self._left: set[int] = set()
        """Ends that are left to other machines, or to the next run."""
        self._said: set[str] = set()
        self._failing = False

    async def keep(self, learner: Learner, *, seconds: float) -> None:
        """Look every so many seconds, until cancelled."""
        while True:
            try:
                await self.look(learner)
                self._failing = False
            except JournalError as error:
                # Told once: it may go on all night.
                level = logging.DEBUG if self._failing else logging.WARNING
                log.log(level, "no look back at present: %s", error)
                self._failing = True
            await asyncio.sleep(seconds)

    async def look(self, learner: Learner) -> None:
        """Look back at each run that is over, if that was not done. Raises JournalError."""
        last = await self._journal.last_id()  # what is written meanwhile is found the next time
        self._runs |= {run.id: run for run in await self._moved()}
        self._after = last
        for run in list(self._runs.values()):
            try:
                done = await self._look_at(run, learner)
            except (JournalTooNewError, JournalCorruptError) as error:  # the others can be read
                self._say(f"no look back at run {run.id}: {error}")
                done = True
            if done:
                del self._runs[run.id]

    async def _moved(self) -> Sequence[Run]:
        """The runs of which a task began or ended since the last look; at first the newest."""
        if not self._after:
            runs = await self._journal.runs()
            return [each for each in runs if each.keeper is Keeper.MONITOR][-_OLD:]
        kinds = (TaskTransition,)
        moved = {each.task async for each in self._journal.all_entries(self._after, kinds=kinds)}
        ids = sorted({each.run for each in await self._journal.tasks_with(moved)})
        runs = [await self._journal.run(id) for id in ids]
        return [each for each in runs if each.keeper is Keeper.MONITOR]

    async def _look_at(self, run: Run, learner: Learner) -> bool:
        """Look back at one run; whether nothing is to be done until something moves in it."""
        ends = [end for end in await run_ends(self._journal, run.id) if await self._is_due(end)]
        settings = self._settings(run) if ends else None
        if settings is None or not settings.learning.guidelines.enabled:
            return True
        await learner.study_all()  # a look is shown summaries
        return all([await self._back(end, settings) for end in ends])

    def _settings(self, run: Run) -> Settings | None:
        try:
            return Settings.model_validate_json(run.settings)
        except ValidationError:
            self._say(f"no look back at run {run.id}: its settings are of another version")
            return None

    async def _is_due(self, end: RunEnd) -> bool:
        return end.entry not in self._left and not await self._learned.looked_back_after(end.entry)

    async def _back(self, end: RunEnd, settings: Settings) -> bool:
        """Look back after one end; whether that is settled, as far as this process goes."""
        try:
            found = await look_back_after(self._journal, end, settings=settings, clock=self._clock)
        except JournalError:
            raise
        except UsageError as error:  # no key, no such package: another machine may have it
            self._say(f"no look back at {end.project}: {error}")
        except Exception:  # the other runs are looked back at
            log.exception("the look back at %s failed", end.project)
        else:
            return found is not None
        self._left.add(end.entry)
        return True

    def _say(self, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            log.warning("%s", what)


async def run_ends(journal: Journal, run: int) -> list[RunEnd]:
    """Where the work of a run was over, one end a project; none while any of its tasks is not."""
    last: dict[int, Entry] = {}
    async for entry in journal.all_entries(run=run, kinds=(TaskTransition,)):
        last[entry.task] = entry
    ends: dict[str, RunEnd] = {}
    for task in await journal.tasks(run):
        if task.id not in last or task.spec == EMBEDDED:
            continue
        entry = last[task.id]
        if not (isinstance(entry.record, TaskTransition) and entry.record.lifecycle.over):
            return []
        end = RunEnd(project=task.project, task=task.id, entry=entry.id)
        if task.project and end.entry >= ends.get(task.project, end).entry:
            ends[task.project] = end
    return sorted(ends.values(), key=lambda end: end.entry)


async def learn(learner: Learner, reflection: FleetReflection, *, seconds: float) -> None:
    """Learn beside the work, and look back every so many seconds, until cancelled.

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
class Window:
    """One night, say: from its beginning up to its end."""

    begin: datetime
    end: datetime

    def holds(self, at: datetime) -> bool:
        """Whether a moment is in it."""
        return self.begin <= at < self.end


def next_window(hours: str, at: datetime) -> Window:
    """The window that a moment is in, or the next one.

    Args:
        hours: `02:00-05:00`, in local time; an end that is not after its beginning is on the next
            day, and the same time twice is the whole day.
        at: An aware moment. Where its zone is a fixed offset, as after `astimezone()`, the clocks
            do not change in between.
    """
    first, _, last = hours.partition("-")
    begin, end = time.fromisoformat(first), time.fromisoformat(last)
    days = (at.date() + offset * _DAY for offset in (-1, 0, 1))
    windows = (_window(day, begin, end, at) for day in days)
    return next(window for window in windows if at < window.end)


def _window(day: date, begin: time, end: time, at: datetime) -> Window:
    until = day if begin < end else day + _DAY
    return Window(
        begin=datetime.combine(day, begin, tzinfo=at.tzinfo),
        end=datetime.combine(until, end, tzinfo=at.tzinfo),
    )
