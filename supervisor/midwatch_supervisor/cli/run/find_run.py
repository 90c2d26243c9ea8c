"""Finds the run that `midwatch resume` continues."""

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.run_lock import interrupted_runs, refuse_held
from midwatch_monitor.records import Run, SupervisedBy
from midwatch_supervisor.cli.output import write_error
from midwatch_supervisor.present.lookup import is_unfinished


async def find_run(location: str, wanted: int | None) -> Run:
    """Return the run to continue. Raises UsageError if there is none."""
    async with await Journal.open(location, create=False) as journal:
        runs = (await journal.runs())[::-1]
        interrupted = await interrupted_runs(journal, [run.id for run in runs])
        chosen = [run for run in runs if wanted in (None, run.id)]
        if wanted is not None and not chosen:
            raise UsageError(f"there is no run {wanted}; `{command('status --all')}` lists them")
        refused = ""
        for run in chosen:
            embedded = all(task.embedded for task in await journal.tasks(run.id))
            gone = embedded and not run.of_session and run.id in interrupted
            if wanted is None and embedded and not gone:
                continue  # it goes on by itself
            unfinished = await is_unfinished(journal, run)
            if wanted is None and not unfinished:
                continue
            refusal = _why_not_resumable(run, embedded=embedded, gone=gone and unfinished)
            if not refusal:
                await refuse_held(journal, run.id, tell=write_error)
                return run
            refused = refused or refusal
    nothing = f"there is no unfinished run; `{command('run FILE')}` starts a new one"
    raise UsageError(refused or nothing)


def _why_not_resumable(run: Run, *, embedded: bool, gone: bool) -> str:
    """Return why Midwatch cannot continue a run; empty if it can."""
    if gone:
        cancel = command(f"cancel --run {run.id}")
        return f"run {run.id} is an agent's own, and its process is gone: `{cancel}` closes it"
    if embedded:
        return f"run {run.id} was not started by `midwatch run`, so it cannot be resumed"
    if run.supervised_by is SupervisedBy.MONITOR:
        return f"run {run.id} belongs to a fleet, which continues it"
    return ""
