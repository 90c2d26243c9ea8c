"""`midwatch learn`: draw lessons from ended attempts, and reflect on projects."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.command_hint import command
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import MidwatchError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import journal_clock, now
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Reflection, StudyState
from midwatch_supervisor.cli.interrupts import run_until_stopped
from midwatch_supervisor.cli.journals import (
    DryRunOption,
    JournalOption,
    journal_to_write,
)
from midwatch_supervisor.cli.learn.options import ProjectOption, project_named, write_note
from midwatch_supervisor.cli.output import write_either, write_error
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.present.learning_text import reflection_text
from midwatch_supervisor.present.numbers import count_noun

if TYPE_CHECKING:
    from midwatch_supervisor.learning.learner import Learner

WaitOption = Annotated[
    bool,
    Parameter(
        help="Wait for the configured quiet hours, and do this once in each, until told to stop."
    ),
]
_NAP = 300.0
"""Seconds between checks of the clock, which may have been set forward or back."""


async def learn(
    *,
    project: ProjectOption = None,
    wait: WaitOption = False,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> int:
    """Draw lessons from attempts that have ended, then reflect on each project.

    Reflection proposes new guidelines, which are in force only once you approve them. It runs here
    even if `guidelines.enabled` is off, provided that the reflector has a model.
    """
    settings = _asked_for(settings_in_force(config))
    hours = settings.learning.guidelines.quiet_hours
    if wait and not hours:
        raise UsageError("--wait needs `learning.guidelines.quiet_hours` in the configuration")
    async with (
        await journal_to_write(journal, dry_run=dry_run) as opened,
        journal_clock(opened, now) as clock,
    ):
        if dry_run:
            await _print_open(opened, project, settings, json=json)
            return 0

        async def look() -> bool:
            return await _do_chores(opened, project, settings, clock=clock, json=json)

        if wait:
            looking = nightly(look, hours, clock=lambda: now().astimezone(), sleep=asyncio.sleep)
            await run_until_stopped(
                looking, lambda: write_note("nothing more is learned", json=json)
            )
            return 0
        return 0 if await look() else 1


async def nightly(
    look: Callable[[], Awaitable[object]],
    hours: str,
    *,
    clock: Callable[[], datetime],
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """Reflect once in each window of the quiet hours, forever."""
    from midwatch_supervisor.learning.reflection_schedule import next_window

    done: datetime | None = None
    while True:
        at = clock()
        window = next_window(hours, at)
        if window.holds(at) and (done is None or window.begin > done):
            done = at
            try:
                await look()
            except MidwatchError as error:  # this runs for weeks; the next window tries again
                write_error(str(error))
            continue
        until = window.end if window.holds(at) else window.begin
        await sleep(min(_NAP, max(1.0, (until - at).total_seconds())))


def _asked_for(settings: Settings) -> Settings:
    guidelines = settings.learning.guidelines.model_copy(update={"enabled": True})
    learning = settings.learning.model_copy(update={"guidelines": guidelines})
    return settings.model_copy(update={"learning": learning})


async def _named_projects(journal: Journal, project: str | None) -> list[str]:
    """Return the projects to reflect on: the named one, else all."""
    learned = Learned(journal)
    return [await project_named(learned, project)] if project else await learned.projects()


async def _print_open(
    journal: Journal, project: str | None, settings: Settings, *, json: bool
) -> None:
    """Print what is still to be learned from."""
    from midwatch_supervisor.learning.learner import enabled_chores
    from midwatch_supervisor.learning.reflection import read_batch

    learning, learned = settings.learning, Learned(journal)
    chores = await learned.chores(tries=learning.tries, kinds=enabled_chores(learning))
    fields = {"type": "chores", "open": len(chores), "dry_run": True}
    write_either(fields, f"would do {count_noun(len(chores), 'chore')}", json=json)
    for name in await _named_projects(journal, project):
        mark = await learned.watermark(name)
        batch = await read_batch(learned, name, learning.guidelines, after=mark)
        attempts = [each.attempt for each in batch.deep]
        fields = {"type": "reflection", "project": name, "watermark": mark, "attempts": attempts}
        text = f"would reflect on {count_noun(len(attempts), 'attempt')} of {name}"
        write_either({**fields, "dry_run": True}, text, json=json)


async def _do_chores(
    journal: Journal, project: str | None, settings: Settings, *, clock: Clock, json: bool
) -> bool:
    """Do the open chores, reflect, and return whether nothing failed."""
    from midwatch_supervisor.learning.learner import Learner

    names = await _named_projects(journal, project)
    learner = Learner(journal, settings=settings, clock=clock)
    fine = await _study_all(learner, json=json)
    for name in names:
        found = await learner.reflect(name)
        _print_reflection(name, found, json=json)
        fine &= not found.error
    return fine


async def _study_all(learner: "Learner", *, json: bool) -> bool:
    progress = await learner.study_all()
    counts = {state.value: progress[state] for state in StudyState}
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    text = f"chores: {said or 'nothing to do'}"
    write_either({"type": "chores", **counts}, text, json=json)
    return not progress[StudyState.FAILED]


def _print_reflection(project: str, found: Reflection, *, json: bool) -> None:
    fields = asdict(found)
    del fields["after"]  # only older versions use it
    hint = f": `{command('guidelines diff')}`" if found.proposed else ""
    text = f"{project}: {reflection_text(found).text}{hint}"
    write_either({"type": "reflection", "project": project, **fields}, text, json=json)
