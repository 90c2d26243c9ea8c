"""Where an attempt works: its ground made, found again, or put together from finished parts."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.words import Attempt
from midwatch_supervisor.assignment import branch_of
from midwatch_supervisor.handover import changed, chosen, take_over
from midwatch_supervisor.workspace import Ground, clear, is_repository, prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a ground is made from."""

    source: Path | None
    """The task's workspace."""
    merges: tuple[str, ...] = ()
    """The branches that it builds on."""
    copied: Path | None = None
    """Without git: whose folder it builds on instead of the source."""
    bequest: Attempt | None = None
    """The attempt of which some work is taken over."""
    keep: tuple[str, ...] = ()

    @property
    def versioned(self) -> bool:
        """Whether there is git."""
        return self.source is not None and is_repository(self.source)


async def found(site: Site, attempt: Attempt) -> Ground:
    """The ground of an attempt that has begun. Raises WorkspaceError if it is gone."""
    folder = Path(attempt.workspace)
    if not await asyncio.to_thread(folder.is_dir):
        raise WorkspaceError(f"the workspace {folder} is gone, and the work in it")
    return Ground(folder=folder, branch=branch_of(folder) if site.versioned else "")


async def made(site: Site, folder: Path, *, again: bool) -> Ground:
    """A new ground in `folder`; with `again`, what a killed process left half made goes first.

    Raises WorkspaceError with the reason, a conflict between branches among them.
    """
    branch = branch_of(folder)
    if again:
        await clear(folder, site.source, branch=branch)
    source = site.source if site.versioned or site.copied is None else site.copied
    return await prepare(folder, source, branch=branch, merges=site.merges)


async def inherited(journal: Journal, site: Site, ground: Ground) -> tuple[str, ...]:
    """Take over what is to be kept of the attempt before; the names of the files.

    Raises WorkspaceError where that attempt's workspace is gone.
    """
    old, names = await _bequest(journal, site)
    if old is None or site.bequest is None or not names:
        return ()
    return await take_over(old, ground, names, number=site.bequest.number)


async def bequeathed(journal: Journal, site: Site) -> tuple[str, ...]:
    """What was to be taken over, for an attempt whose ground was made by another process."""
    return (await _bequest(journal, site))[1]


async def _bequest(journal: Journal, site: Site) -> tuple[Ground | None, tuple[str, ...]]:
    if site.bequest is None or not site.keep:
        return None, ()
    old = await found(site, site.bequest)
    names = await changed(journal, site.bequest, old, bare=site.source is None)
    return old, chosen(names, site.keep)
