"""The look back at a project at the end of a run, here or in a fleet, where that is switched on."""

import logging
from typing import TYPE_CHECKING

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import RunEnd
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Reflection
from midwatch_supervisor.learning.archive import archive
from midwatch_supervisor.learning.reflecting import reflect_project
from midwatch_supervisor.learning.reflectors import Reflectors, newest_task

if TYPE_CHECKING:
    from pydantic_ai.models import Model

log = logging.getLogger(__name__)


async def look_back_at(
    journal: Journal,
    project: str,
    *,
    settings: Settings,
    reflectors: Reflectors,
    clock: Clock,
) -> None:
    """Have new guidelines proposed, unless they are switched off. Raises JournalError."""
    if settings.learning.guidelines.enabled:
        model = await _reflector(journal, project, reflectors)
        await reflect_project(journal, project, model=model, settings=settings, now=clock)


async def look_back_after(
    journal: Journal, end: RunEnd, *, settings: Settings, clock: Clock
) -> Reflection | None:
    """The same for a run of a fleet that is over, by the reflector of its last task; once for each.

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


async def _reflector(journal: Journal, project: str, reflectors: Reflectors) -> "Model | None":
    task = await newest_task(journal, project)
    try:
        return reflectors.of(task) if task is not None else None
    except UsageError as error:  # no key, no such package: the run itself was done without
        log.warning("no look back at %s: %s", project, error)
        return None
