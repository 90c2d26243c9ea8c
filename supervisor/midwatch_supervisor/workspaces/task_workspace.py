"""Finds the workspace that holds a task's result, after its run."""

import asyncio
import filecmp
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from midwatch_monitor.errors import MidwatchError, UsageError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Attempt, Lifecycle, Task
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.present.assignment import (
    Assignment,
    branch_of,
    folder_of,
    place_of,
    whole_of,
)
from midwatch_supervisor.present.file_changes import FileChange
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_supervisor.workspaces.changes import (
    MAX_CHARS,
    NUMSTAT,
    Diff,
    diff_from,
    file_changes,
    left_by_merge,
    numstat,
)
from midwatch_supervisor.workspaces.merge import PastMerge, is_merged, merged_before
from midwatch_supervisor.workspaces.placement import workspace_of
from midwatch_supervisor.workspaces.removal import mark_taken, unmerged_changes
from midwatch_supervisor.workspaces.snapshot import commit_at, write_saved
from midwatch_supervisor.workspaces.workspace import Workspace
from midwatch_tools.git import git, is_repository

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWorkspace:
    """The workspace of one attempt at a task."""

    name: str
    """Name of the task."""
    attempt: Attempt
    folder: Path
    assignment: Assignment | None
    """`None` for an agent without a task file."""
    node: str = ""
    """Fleet node that had it last; empty outside a fleet."""

    @property
    def source(self) -> Path | None:
        """Folder on this machine that it was made from."""
        return self.assignment.workspace if self.assignment else None

    @property
    def of_fleet(self) -> bool:
        """Whether fleet nodes work on the task; they clean up by themselves."""
        return self.assignment is not None and bool(self.assignment.base)

    @property
    def made_by_run(self) -> bool:
        """Whether its path is one that a run makes; no other folder may be removed."""
        if self.assignment is None or self.of_fleet or len(self.folder.parents) < 3:
            return False
        label, home = self.folder.parent.name, self.folder.parents[2]
        own = folder_of(home, label, self.name, self.attempt.number)
        return self.folder in {own, whole_of(own)}

    async def lost_source(self) -> Path | None:
        """Return the source folder if its task works without git and it is not on this machine."""
        source = None if self.of_fleet else self.source
        if source is None or await asyncio.to_thread(os.path.isdir, source):
            return None
        return source

    async def there(self) -> bool:
        """Whether the folder is on this machine and was made by a run."""
        return self.assignment is not None and await asyncio.to_thread(os.path.isdir, self.folder)

    async def removed(self) -> bool:
        """Whether it was here and is gone: the folder in which runs work still exists."""
        if not self.made_by_run or await self.there():
            return False
        return await asyncio.to_thread(os.path.isdir, self.folder.parents[2])

    async def require_kept(self) -> None:
        """Raise UsageError if it was removed on this machine, which has no other copy of it."""
        if not self.node and await self.removed():
            raise UsageError(
                f"the workspace of {self.name} was removed, along with anything unmerged: there is "
                f"no folder {self.folder}"
            )

    async def open(self) -> Workspace:
        """Return the workspace. Raise UsageError if it is gone, or not the one that was made."""
        await self.require_kept()
        if not await asyncio.to_thread(os.path.isdir, self.folder):
            raise UsageError(
                f"the workspace of {self.name} is not on this machine: {self.node} had it last"
                if self.node
                else f"the workspace of {self.name} is gone: there is no folder {self.folder}"
            )
        try:
            return await workspace_of(self.assignment, self.folder)
        except WorkspaceError as error:
            raise UsageError(f"the workspace of {self.name} cannot be used: {error}") from error

    @asynccontextmanager
    async def open_anywhere(self, journal: Journal) -> AsyncGenerator[Workspace | None]:
        """Yield the workspace; if it is without git on another machine, as it was last saved.

        `None` if it is neither here nor saved. Raises WorkspaceError, and UsageError as `open`
        does.
        """
        if await self.there():
            yield await self.open()
            return
        bundles = Bundles(journal)
        if self.of_fleet or not await bundles.snapshots(self.attempt.id):
            yield None
            return
        with TemporaryDirectory(prefix="midwatch-") as scratch:
            (folder := Path(scratch) / self.folder.name).mkdir()
            await write_saved(bundles, self.attempt, folder, place=place_of(self.folder))
            yield Workspace(folder=folder)

    async def diff(
        self, journal: Journal, room: int = MAX_CHARS
    ) -> tuple[Diff, tuple[FileChange, ...]] | None:
        """Return what was changed there, even if it is merged and gone; `None` if that is unknown.

        New files are left out as in `diff_from`. Raises what `open_anywhere` does.
        """
        async with self.open_anywhere(journal) as workspace:
            if workspace is not None:
                files = await file_changes(workspace, self.source)
                return await diff_from(workspace, self.source, room), files
        merged = await self.find_merge()
        return await diff_between(merged.home, merged.begun, merged.tip) if merged else None

    async def only_here(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the files named by the task's checks that no merge takes and the source lacks.

        A file of the source with other content counts as lacking.
        """
        wanted = self.assignment.task.files_wanted if self.assignment else ()
        found = await left_by_merge(workspace, wanted)
        return tuple([each for each in found if not await asyncio.to_thread(self._in_source, each)])

    def _in_source(self, name: str) -> bool:
        try:
            return self.source is not None and filecmp.cmp(
                self.source / name, self.folder / name, shallow=False
            )
        except OSError:
            return False

    async def mark_taken(self) -> None:
        """Record that the files of this result, which is not in git, were taken from here."""
        if self.made_by_run and await self.there():
            try:
                await asyncio.to_thread(mark_taken, self.folder)
            except OSError as error:
                log.warning("cannot record that %s was taken: %s", self.folder, error)

    async def unmerged(self) -> Workspace | None:
        """Return the workspace if it holds work that exists nowhere else on this machine.

        `None` also if it cannot be read.
        """
        if self.of_fleet or not self.made_by_run or not await self.there():
            return None
        with suppress(MidwatchError):
            workspace = await self.open()
            return workspace if await unmerged_changes(workspace, self.source) else None
        return None

    async def unmerged_in_repository(self) -> bool:
        """Whether a fleet's result is not merged in `repository_here`; `False` if there is none.

        `False` also if that repository lacks the commit that the task began from.
        """
        base = self.assignment.base if self.assignment else ""
        home = await repository_here(self.source) if base else None
        if home is None or not await commit_at(home, base):
            return False
        return not await is_merged(home, branch_of(self.folder), base)

    async def find_merge(self) -> PastMerge | None:
        """Return the merge of its branch, or `None` if `midwatch merge` made none."""
        home = self.source
        if home is None or not await asyncio.to_thread(is_repository, home):
            return None
        return await merged_before(home, branch_of(self.folder))


async def repository_here(source: Path | None) -> Path | None:
    """Return the owner's repository: the task's workspace, or the repository around this folder."""
    if source is not None and await asyncio.to_thread(is_repository, source):
        return source
    here = await asyncio.to_thread(Path.cwd)
    with suppress(WorkspaceError):
        return Path((await git(here, "rev-parse", "--show-toplevel")).removesuffix("\n"))
    return None


async def diff_between(home: Path, begun: str, tip: str) -> tuple[Diff, tuple[FileChange, ...]]:
    """Return the diff between two commits, and the files in it."""
    said = await git(home, "diff", *NUMSTAT, begun, tip, "--")
    return Diff(text=await git(home, "diff", begun, tip, "--")), numstat(said)


def workspace_in(task: Task, attempt: AttemptState) -> TaskWorkspace:
    """Return where an attempt worked last; for a split one, where its parts were put together."""
    folder = Path(attempt.attempt.workspace)
    of_node = folder.parts[-5:-3] == ("nodes", attempt.attempt.node)
    if of_node:
        # The journal has the first node's folder, which may still hold old work. A node that took
        # over on the same machine has its own folder beside it.
        folder = folder.parents[3].joinpath(attempt.node, *folder.parts[-3:])
    return TaskWorkspace(
        name=task.name,
        attempt=attempt.attempt,
        folder=whole_of(folder) if attempt.split else folder,
        assignment=assignment_of(task),
        node=attempt.node if of_node else "",
    )


def result_of(task: TaskState) -> TaskWorkspace | None:
    """Return where the task's result is: with the attempt that completed it, else its newest one.

    `None` before the first attempt.
    """
    tried = [*reversed(task.attempts.values())]
    accepted = [each for each in tried if each.lifecycle is Lifecycle.COMPLETED or each.split]
    found = (accepted if task.lifecycle is Lifecycle.COMPLETED else tried)[:1] or tried[:1]
    return workspace_in(task.task, found[0]) if found else None
