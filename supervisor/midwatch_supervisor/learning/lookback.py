"""The look back at a project at the end of a run, here or in a fleet, where that is switched on."""

import logging
from pathlib import Path
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
    """Take back guidelines that did not do well, and have new ones proposed.

    Nothing is proposed where guidelines are switched off. Raises JournalError.
    """
    # A trial is a run of its own, and a run ends with a look back: they import each other.
    from midwatch_supervisor.learning.trial import take_back

    await take_back(journal, project, settings=settings, now=clock)
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
    from midwatch_supervisor.learning.trial import take_back

    project, learning = end.project, settings.learning
    await take_back(journal, project, settings=settings, now=clock)
    await archive(journal, [project], settings=learning.lessons, now=clock())
    model = Reflectors(settings.provider).of(await journal.task(end.task))
    return await reflect_project(
        journal, project, model=model, settings=settings, now=clock, end=end
    )


async def try_out(
    journal: Journal, project: str, *, settings: Settings, home: Path, clock: Clock
) -> None:
    """Try new guidelines, where the policy decides on them and has the time to.

    Raises JournalError. Cancelling it adopts nothing.
    """
    guidelines = settings.learning.guidelines
    if guidelines.auto and guidelines.trial_minutes:
        from midwatch_supervisor.learning.trial import try_guidelines

        await try_guidelines(journal, project, settings=settings, home=home, now=clock)


async def _reflector(journal: Journal, project: str, reflectors: Reflectors) -> "Model | None":
    task = await newest_task(journal, project)
    try:
        return reflectors.of(task) if task is not None else None
    except UsageError as error:  # no key, no such package: the run itself was done without
        log.warning("no look back at %s: %s", project, error)
        return None
