"""The dockets of the runs that are not over, kept up to date from the journal."""

import asyncio
from dataclasses import dataclass, field

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.submission import open_runs
from midwatch_monitor.words import Run
from midwatch_supervisor.fleet.docket import KINDS, Docket


@dataclass(slots=True, kw_only=True)
class _Kept:
    docket: Docket = field(default_factory=Docket)
    after: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Dockets:
    """Reads every entry once, however often one asks."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept: dict[int, _Kept] = {}

    async def open(self) -> list[Run]:
        """The runs with tasks that a monitor keeps and that are not over; others are forgotten."""
        runs = await self._journal.read(open_runs)
        known = {run.id for run in runs}
        self._kept = {id: kept for id, kept in self._kept.items() if id in known}
        return runs

    async def of(self, run: int) -> Docket:
        """Where the tasks of a run stand now."""
        kept = self._kept.setdefault(run, _Kept())
        async with kept.lock:
            while page := await self._journal.entries(kept.after, run=run, kinds=KINDS):
                if any(kept.docket.lacks(entry) for entry in page):
                    kept.docket.meet(await self._journal.tasks(run))
                for entry in page:
                    kept.docket.take(entry)
                kept.after = page[-1].id
        return kept.docket
