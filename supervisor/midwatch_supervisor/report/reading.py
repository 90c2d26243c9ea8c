"""The figures of the tasks that a person asks for, read from the journal."""

from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.journal import Journal
from midwatch_monitor.metrics import Figures, Ledger
from midwatch_monitor.records import Task
from midwatch_supervisor.present.lookup import chosen_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Figures, with what a person needs to know whose they are."""

    journal: str
    run: int | None
    """The only run that counts; `None` for all."""
    since: datetime | None
    tasks: dict[int, Task]
    """By journal id."""
    figures: Figures

    def name(self, task: int) -> str:
        """The name of a task; where more than one run counts, with the run's number."""
        found = self.tasks[task]
        several = len({each.run for each in self.tasks.values()}) > 1
        return f"{found.run}/{found.name}" if several else found.name


async def read(journal: Journal, *, run: int | None, since: datetime | None) -> Reading:
    """The figures of a run or of all, of the tasks of which anything was recorded since.

    Every task counts whole, from its first entry: half an attempt has no figures. Raises UsageError
    for an unknown run, and JournalError.
    """
    active = None if since is None else set(await journal.active(since))
    tasks = [
        task
        for each in (await chosen_runs(journal, run))[::-1]
        for task in await journal.tasks(each.id)
        if active is None or task.id in active
    ]
    ledger = Ledger()
    for task in tasks:
        async for entry in journal.all_entries(task=task.id):
            ledger.observe(entry)
    return Reading(
        journal=journal.name,
        run=run,
        since=since,
        tasks={task.id: task for task in tasks},
        figures=ledger.figures(),
    )
