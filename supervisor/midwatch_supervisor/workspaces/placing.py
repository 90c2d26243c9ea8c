"""Where an attempt works: its ground made, found again, or put together from finished parts."""

import asyncio
import logging
from dataclasses import dataclass, replace
from pathlib import Path

from midwatch_monitor.errors import MidwatchError, WorkspaceError
from midwatch_monitor.records import Attempt
from midwatch_supervisor.present.assignment import Assignment, branch_of
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.workspaces.aside import make_way
from midwatch_supervisor.workspaces.clone import Origin, clone_of, origin_of
from midwatch_supervisor.workspaces.handover import changed, chosen, take_over
from midwatch_supervisor.workspaces.workspace import Ground, is_repository, prepare, reopened
from midwatch_tools.git import named_repository, worktree_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a ground is made from."""

    source: Path | None
    """The task's workspace, or this node's clone of it."""
    base: str = ""
    """The commit to start from; empty for what is checked out in the source."""
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


async def located(deck: RunResources, assignment: Assignment, site: Site) -> Site:
    """The site of an attempt of a task, with all that it is made from on this machine.

    Raises WorkspaceError for what cannot be had here.
    """
    origin = await origin_of(assignment, deck.home, fleet=deck.depot is not None)
    site = replace(site, source=origin.folder, base=origin.base)
    if deck.depot is None:
        return site
    if site.versioned and site.source is not None:
        await deck.depot.bring_branches(site.source, site.merges, run=deck.run.id)
    elif site.copied is not None:
        copied = await deck.depot.bring_folder(site.copied, run=deck.run.id)
        site = replace(site, copied=copied)
    return site


def folder_here(deck: RunResources, workspace: str | Path) -> Path:
    """Where the workspace of an attempt is on this machine, wherever the attempt began."""
    return Path(workspace) if deck.depot is None else deck.depot.folder(workspace)


async def resumed(
    deck: RunResources, site: Site, attempt: Attempt
) -> tuple[Ground, tuple[str, ...]]:
    """The ground of an attempt that has begun, and what was taken over for it.

    On another node of a fleet it is made again from what was saved. Raises WorkspaceError if the
    work is gone.
    """
    if deck.depot is None:
        return await found(deck, site, attempt), await bequeathed(deck, site)
    origin = Origin(folder=site.source, base=site.base)
    ground = await deck.depot.ground(attempt, origin, versioned=site.versioned)
    if ground is None:
        ground = await made(site, folder_here(deck, attempt.workspace))
        kept = await inherited(deck, site, ground)
    else:
        kept = await bequeathed(deck, site)
    return ground, kept


async def found(deck: RunResources, site: Site, attempt: Attempt) -> Ground:
    """The ground of an attempt that has begun. Raises WorkspaceError if it is gone."""
    if deck.depot is not None:
        origin = Origin(folder=site.source, base=site.base)
        ground = await deck.depot.ground(attempt, origin, versioned=site.versioned)
        if ground is not None:
            return ground
    folder = folder_here(deck, attempt.workspace)
    if not await asyncio.to_thread(folder.is_dir):
        raise WorkspaceError(f"the workspace {folder} is gone, and the work in it")
    ground = await reopened(folder, site.source, branch=branch_of(folder) if site.versioned else "")
    return replace(ground, base=site.base)


async def ground_of(assignment: Assignment | None, folder: Path) -> Ground:
    """The workspace of an attempt for whoever looks at it, also after its run.

    Raises WorkspaceError where it is no longer the one that was made.
    """
    if assignment is None or assignment.bare or len(folder.parents) < 3:
        return Ground(folder=folder)  # not made by a run, or without a repository
    if not await asyncio.to_thread(folder.is_dir):
        return Ground(folder=folder)
    home, branch = folder.parents[2], branch_of(folder)
    places = (assignment.workspace, clone_of(assignment.source, home))
    known = [each for each in places if each is not None and is_repository(each)]
    named = named_repository(folder)
    if named is not None and not named.is_relative_to(home):  # what a worker wrote is below it
        known.append(named)
    for repository in known:
        worktree = await asyncio.to_thread(worktree_of, repository, folder, branch)
        if worktree is not None:
            return Ground(folder=folder, branch=branch, worktree=worktree)
    if known or named is not None:
        raise WorkspaceError(f"{folder} is no worktree of {assignment.source}")
    return Ground(folder=folder)


async def made(site: Site, folder: Path) -> Ground:
    """A new ground in `folder`; what is there already is moved aside, and the log says where to.

    Raises WorkspaceError with the reason, a conflict between branches among them.
    """
    branch = branch_of(folder)
    below = (site.base or "HEAD", *site.merges)
    aside = await make_way(folder, site.source, branch=branch, below=below)
    if aside is not None:
        log.warning("%s was there before its attempt began: it is kept as %s", folder, aside)
    plain = not site.versioned
    source = site.copied if plain and site.copied is not None else site.source
    return await prepare(
        folder, source, branch=branch, merges=site.merges, base=site.base, plain=plain
    )


async def inherited(deck: RunResources, site: Site, ground: Ground) -> tuple[str, ...]:
    """Take over what is to be kept of the attempt before; the names of the files.

    Raises WorkspaceError where that attempt's workspace is gone.
    """
    old, names = await _bequest(deck, site)
    if old is None or site.bequest is None or not names:
        return ()
    return await take_over(old, ground, names, number=site.bequest.number)


async def bequeathed(deck: RunResources, site: Site) -> tuple[str, ...]:
    """What was to be taken over, for an attempt whose ground was made by another process."""
    return (await _bequest(deck, site))[1]


async def _bequest(deck: RunResources, site: Site) -> tuple[Ground | None, tuple[str, ...]]:
    if site.bequest is None or not site.keep:
        return None, ()
    old = await found(deck, site, site.bequest)
    names = await changed(deck.journal, site.bequest, old, bare=site.source is None)
    return old, chosen(names, site.keep)


async def whole_saved(deck: RunResources, attempt: Attempt, ground: Ground) -> None:
    """Save the whole of a split task in place of the attempt that was split; a failure is logged.

    Its parts have taken over from that attempt what they need.
    """
    if deck.depot is None:
        return
    try:
        await deck.depot.save(attempt, ground, step=0, incarnation=None)
    except (MidwatchError, OSError):
        log.exception("the whole in %s was not saved", ground.folder)
    finally:
        deck.depot.let_go(attempt, ground)
