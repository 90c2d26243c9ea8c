"""A run of this process that is gone on with: which, and as what it was begun."""

from midwatch_monitor.config.settings import settings_of
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.run_lock import refuse_held
from midwatch_monitor.journal.fleet.watches import EMBEDDED
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Keeper, Run
from midwatch_supervisor.cli.run.conduct import home, stay, with_patience
from midwatch_supervisor.cli.run.options import Output
from midwatch_supervisor.cli.settings import settings_in_force
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.present.lookup import is_unfinished
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import Job
from midwatch_supervisor.run.launch import again


def go_on(found: Run, *, patient: bool, journal: str | None, output: Output) -> int:
    """Go on with a run and stay with it to its end; answers the exit code.

    `patient` is to wait for a provider that has not answered yet.
    """
    told = {"notify": settings_in_force(None).notify}  # whom to call is of here and now
    settings = settings_of(found).model_copy(update=told)
    settings = with_patience(settings) if patient else settings

    async def opened(log: Journal, clock: Clock) -> tuple[RunResources, tuple[Job, ...]]:
        return await again(
            log,
            found,
            home=home(),
            learning=RunLearning,
            clock=clock,
            attended=output is Output.CONSOLE,
            settings=settings,
        )

    return stay(opened, settings=settings, journal=journal, output=output)


async def find_run(location: str, wanted: int | None) -> Run:
    """The run to go on with; raises UsageError if there is none."""
    async with await Journal.open(location, create=False) as journal:
        runs = await journal.runs()
        if wanted is not None:
            chosen = [run for run in runs if run.id == wanted]
            if not chosen:
                raise UsageError(f"there is no run {wanted}; `midwatch status --all` lists them")
            if chosen[0].keeper is Keeper.MONITOR:
                raise UsageError(f"run {wanted} is not run here: a fleet goes on with it by itself")
            refuse_held(journal.name, wanted)
            return chosen[0]
        unfinished = [
            run
            for run in reversed(runs)
            if await _is_begun_by_us(journal, run) and await is_unfinished(journal, run)
        ]
        for run in unfinished:
            if run.keeper is Keeper.PROCESS:
                refuse_held(journal.name, run.id)
                return run
    if unfinished:
        raise UsageError(
            f"run {unfinished[0].id} is not run here: a fleet goes on with it by itself"
        )
    raise UsageError("no run is left to go on with; `midwatch run FILE` starts a new one")


async def _is_begun_by_us(journal: Journal, run: Run) -> bool:
    """Whether a run has task files; an agent in somebody's program only that program begins."""
    return any(task.spec != EMBEDDED for task in await journal.tasks(run.id))
