"""The dockets of the runs that are not over, kept up to date from the journal."""

import asyncio
from dataclasses import dataclass, field

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.submission import Moves, moves, runs_of
from midwatch_monitor.records import Run
from midwatch_supervisor.fleet.queue.ready_tasks import KINDS, ReadyTasks


@dataclass(slots=True, kw_only=True)
class _Kept:
    docket: ReadyTasks = field(default_factory=ReadyTasks)
    after: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class UnfinishedRuns:
    """Reads every entry once, however often one asks; keeps only what is not over."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept: dict[int, _Kept] = {}
        self._looking = asyncio.Lock()
        self._after = 0
        self._erasure = 0
        self._tasks: dict[int, int] = {}
        """The run of each task that is not over."""
        self._runs: dict[int, Run] = {}

    async def open(self) -> list[Run]:
        """The runs with tasks to be handed out that are not over, oldest first.

        Others are forgotten. The first look reads how every task stands, later ones what is new.
        """
        async with self._looking:
            self._fold(await self._journal.read(moves, self._after, self._erasure))
            wanted = set(self._tasks.values())
            self._kept = {id: kept for id, kept in self._kept.items() if id in wanted}
            known = {id: run for id, run in self._runs.items() if id in wanted}
            if new := sorted(wanted - known.keys()):
                known |= {run.id: run for run in await self._journal.read(runs_of, new)}
            self._runs = known
            return [known[id] for id in sorted(known)]

    def _fold(self, new: Moves) -> None:
        if new.afresh:
            self._tasks, self._runs, self._kept = {}, {}, {}
        for task in new.over:
            self._tasks.pop(task, None)
        self._tasks |= new.open
        self._after, self._erasure = new.last, new.erasure

    async def of(self, run: int) -> ReadyTasks:
        """Where the tasks of a run stand now."""
        kept = self._kept.setdefault(run, _Kept())
        async with kept.lock:
            new = self._journal.all_entries(kept.after, run=run, kinds=KINDS)
            async for entry in new:
                if kept.docket.lacks(entry):
                    kept.docket.meet(await self._journal.tasks(run))
                kept.docket.take(entry)
                kept.after = entry.id
        return kept.docket
