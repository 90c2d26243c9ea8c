"""`midwatch resume`: go on with a run that was interrupted, killed, or waits for a person."""

from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.config.settings import settings_of
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Keeper, Run
from midwatch_supervisor.cli.interrupts import INTERRUPTS
from midwatch_supervisor.cli.journals import JournalOption, journal_place
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.cli.run.conduct import home, stay, with_patience
from midwatch_supervisor.cli.run.options import (
    HeadlessOption,
    Output,
    ProviderWaitOption,
    QuietOption,
    output,
)
from midwatch_supervisor.cli.settings import JsonOption, settings_in_force
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import Job, latest_state
from midwatch_supervisor.run.launch import again


def resume(
    *,
    run: Annotated[int | None, Parameter(help="The run. Default: the last unfinished one.")] = None,
    journal: JournalOption = None,
    wait_for_provider: ProviderWaitOption = False,
    headless: HeadlessOption = False,
    quiet: QuietOption = False,
    dry_run: Annotated[
        bool, Parameter(name="--dry-run", negative="", help="Say which run it would be.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Go on with a run: no answered model request is asked again, no delivered word is repeated."""
    found = INTERRUPTS.run(_find_run(journal_place(journal), run))
    if dry_run:
        write_line(f"run {found.id} of {found.source} would go on")
        return 0

    shown = output(headless=headless, quiet=quiet, json=json)
    told = {"notify": settings_in_force(None).notify}  # whom to call is of here and now
    settings = settings_of(found).model_copy(update=told)
    settings = with_patience(settings) if wait_for_provider else settings

    async def opened(log: Journal, clock: Clock) -> tuple[RunResources, tuple[Job, ...]]:
        return await again(
            log,
            found,
            home=home(),
            learning=RunLearning,
            clock=clock,
            attended=shown is Output.CONSOLE,
            settings=settings,
        )

    return stay(opened, settings=settings, journal=journal, output=shown)


async def _find_run(location: str, wanted: int | None) -> Run:
    """The run to go on with; raises UsageError if there is none."""
    async with await Journal.open(location, create=False) as journal:
        runs = await journal.runs()
        if wanted is not None:
            chosen = [run for run in runs if run.id == wanted]
            if not chosen:
                raise UsageError(f"there is no run {wanted}; `midwatch status --all` lists them")
            if chosen[0].keeper is Keeper.MONITOR:
                raise UsageError(f"run {wanted} is not run here: a fleet goes on with it by itself")
            return chosen[0]
        for run in reversed([run for run in runs if run.keeper is Keeper.PROCESS]):
            states = [await latest_state(journal, task) for task in await journal.tasks(run.id)]
            if any(not state.lifecycle.over for state in states):
                return run
    raise UsageError("every run is over; `midwatch run FILE` starts a new one")
