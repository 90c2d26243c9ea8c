"""Removes what is no longer needed from a node's disk, and saved work from the journal."""

import asyncio
import logging
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

from midwatch_monitor.errors import MidwatchError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.bundles import AttemptUse, Bundles
from midwatch_supervisor.present.assignment import BRANCHES, branch_of, place_of, whole_of
from midwatch_supervisor.workspaces.snapshot import SAVED, SEEN, final_snapshot
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import CLONES, clear
from midwatch_tools.git import git, is_repository

log = logging.getLogger(__name__)

_EVERY_SECONDS = 3600.0
_RUN = re.compile(r"r(\d+)-\d+/[^/]+")
"""A place, with the number of its run."""
_HEADS = "refs/heads/"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stay:
    """The attempt that a place on the disk belongs to."""

    standing: AttemptUse
    own: bool
    """Whether it is the attempt's own, or else the whole of the task that it split."""

    @property
    def saves(self) -> bool:
        """Whether somebody may still save what is there."""
        return not (self.standing.over if self.own else self.standing.ended_at is not None)


class Cleaner:
    """Cleans up the home of one node. Leaves alone what is unknown to the journal."""

    def __init__(
        self,
        *,
        journal: Journal,
        snapshot_store: SnapshotStore,
        home: Path,
        clock: Callable[[], datetime],
    ) -> None:
        """Clean what `snapshot_store` made below `home`."""
        self._bundles = Bundles(journal)
        self._snapshot_store = snapshot_store
        self._home = home
        self._clock = clock

    async def run(self) -> None:
        """Clean at once, then every hour. A failure is logged, and the next round tries again."""
        while True:
            try:
                await self.clean()
            except (MidwatchError, OSError) as error:
                log.warning("%s could not be cleaned up: %s", self._home, error)
            except Exception:  # must not stop the node
                log.exception("%s could not be cleaned up", self._home)
            await asyncio.sleep(_EVERY_SECONDS)

    async def clean(self) -> None:
        """Remove what is no longer needed. Raises JournalError, WorkspaceError and OSError."""
        await self._bundles.drop_outlived()
        await asyncio.to_thread(_empty_folder, self._removal_folder)  # left by a killed process
        folders = await asyncio.to_thread(_find_places, self._home / "work", "")
        private = await asyncio.to_thread(_find_places, self._home / "saved", ".git")
        refs = {
            clone: await _refs_by_place(clone)
            for clone in await asyncio.to_thread(self._find_clones)
        }
        named = {place for found in refs.values() for place in found.values()}
        stays = await self._find_owners({*folders, *private, *named})
        idle = {place for place, stay in stays.items() if not stay.saves}
        done = {place for place in stays if await self._is_done(stays[place])}
        for place in folders & done:
            await self._let_go(place, self._home / "work" / place)
        for place in private & idle:
            await self._let_go(place, self._home / "saved" / f"{place}.git")
        for clone, found in refs.items():
            await self._delete_refs(clone, found, idle=idle, done=done)

    async def _find_owners(self, places: set[str]) -> dict[str, _Stay]:
        """Return the owners of these places, if the journal knows them and they are not in use."""
        runs = {int(found[1]) for each in places if (found := _RUN.fullmatch(each))}
        stays: dict[str, _Stay] = {}
        for run in sorted(runs):
            for each in await self._bundles.standings(run):
                workspace = Path(each.attempt.workspace)
                stays[place_of(workspace)] = _Stay(standing=each, own=True)
                if each.last:
                    stays[place_of(whole_of(workspace))] = _Stay(standing=each, own=False)
        known = places & stays.keys()
        return {each: stays[each] for each in known if not self._snapshot_store.in_use(each)}

    async def _is_done(self, stay: _Stay) -> bool:
        """Whether the work is no longer needed, or can be fetched from the journal."""
        kept = timedelta(days=self._snapshot_store.settings.keep_days)
        ended = stay.standing.ended_at
        if ended is None or ended > self._clock() - kept:
            return False
        if not stay.standing.last:
            return True
        try:
            await final_snapshot(self._bundles, stay.standing.attempt)
        except WorkspaceError:
            return False
        return True

    async def _let_go(self, place: str, folder: Path) -> None:
        """Remove a folder, unless somebody has asked for it meanwhile."""
        if not self._snapshot_store.in_use(place):
            await asyncio.to_thread(self._remove_folder, folder)

    async def _delete_refs(
        self, clone: Path, refs: dict[str, str], *, idle: set[str], done: set[str]
    ) -> None:
        """Delete refs that are no longer needed; git removes their commits itself later."""
        for ref, place in refs.items():
            if self._snapshot_store.in_use(place):
                continue
            if not ref.startswith(_HEADS):
                if place in idle:
                    await git(clone, "update-ref", "-d", ref)
            elif place in done:
                folder = self._home / "work" / place
                if not await asyncio.to_thread(os.path.lexists, folder):
                    await clear(folder, clone, branch=branch_of(folder))

    @property
    def _removal_folder(self) -> Path:
        return self._home / "gone"

    def _remove_folder(self, folder: Path) -> None:
        """Remove a folder by moving it first, so that nobody sees half of it."""
        self._removal_folder.mkdir(exist_ok=True)
        folder.rename(Path(mkdtemp(dir=self._removal_folder)) / folder.name)
        with suppress(OSError):  # not if it holds others
            folder.parent.rmdir()
        _empty_folder(self._removal_folder)

    def _find_clones(self) -> list[Path]:
        return [each for each in (self._home / CLONES).glob("*") if is_repository(each)]


def _find_places(above: Path, suffix: str) -> set[str]:
    """Return the places two levels below a folder. Links are not followed."""
    return {
        f"{label.name}/{each.name.removesuffix(suffix)}"
        for label in _subfolders(above)
        for each in _subfolders(label)
        if each.name.endswith(suffix)
    }


def _subfolders(above: Path) -> Iterator[Path]:
    if above.is_dir() and not above.is_symlink():
        yield from (each for each in above.iterdir() if each.is_dir() and not each.is_symlink())


def _empty_folder(folder: Path) -> None:
    """Remove everything in a folder, even if it is read-only."""
    for each in _subfolders(folder):
        each.chmod(stat.S_IRWXU)
        for above, names, _ in os.walk(each):
            for below in (Path(above, name) for name in names):
                if not below.is_symlink():
                    below.chmod(stat.S_IRWXU)
        shutil.rmtree(each, ignore_errors=True)


async def _refs_by_place(clone: Path) -> dict[str, str]:
    """Return our refs in a clone, with the place of each."""
    above = (_HEADS + BRANCHES, SAVED, SEEN)
    said = await git(clone, "for-each-ref", "--format=%(refname)", *above)
    found = [(ref, start) for ref in said.splitlines() for start in above if ref.startswith(start)]
    return {ref: ref.removeprefix(start) for ref, start in found}
