"""Workspaces after their run: where a task's result is, what would be lost with it, its removal.

A result without git is marked as taken once its files were written into a folder of their owner;
with git, the owner's branch shows it. A mark is stored beside the folder of all workspaces, and
applies only to the files that were taken: what is changed later counts as work again.
"""

import asyncio
import filecmp
import hashlib
import logging
import os
from collections.abc import AsyncGenerator, Sequence
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
    BRANCHES,
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
from midwatch_supervisor.workspaces.folder_diff import names_below
from midwatch_supervisor.workspaces.merge import PastMerge, has_content, is_merged, merged_before
from midwatch_supervisor.workspaces.placement import workspace_of
from midwatch_supervisor.workspaces.snapshot import commit_at, write_saved
from midwatch_supervisor.workspaces.staging import new_names
from midwatch_supervisor.workspaces.workspace import Workspace, clear
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


def repository_of(workspace: Workspace) -> Path | None:
    """Return the repository that has the workspace's branch, or `None` without git."""
    worktree = workspace.worktree
    if worktree is None:
        return None
    above = worktree.common_dir.parent
    return above if is_repository(above) else None


async def unmerged_changes(workspace: Workspace, source: Path | None) -> tuple[FileChange, ...]:
    """Return the changes that exist only in this workspace; none if it was merged or taken.

    `source` is the folder that it was made from and that takes its work. Raises WorkspaceError with
    what git said.
    """
    if workspace.worktree is None and await asyncio.to_thread(is_taken, workspace.folder):
        return ()
    files = await file_changes(workspace, source)
    repository = repository_of(workspace)
    if not files or repository is None or await uncommitted(workspace):
        return files
    tip = (await git(workspace.at, "rev-parse", "HEAD")).strip()
    holding = await git(
        *(repository, "for-each-ref", "--format=%(refname)", f"--contains={tip}"),
        *("refs/heads", "refs/remotes"),
    )
    if any(not each.startswith(f"refs/heads/{BRANCHES}") for each in holding.splitlines()):
        return ()
    home = source if source is not None and is_repository(source) else repository
    merged = await has_content(home, tip, [each.name for each in files])
    return () if merged else files


async def uncommitted(workspace: Workspace) -> bool:
    """Whether a worktree has uncommitted changes, other than rubbish."""
    dirty = await git(workspace.at, "status", "--porcelain", "--untracked-files=no")
    return bool(dirty or await new_names(workspace.at))


async def remove_workspace(workspace: Workspace) -> None:
    """Remove the folder and its branch. Raise WorkspaceError if something is left."""
    folder = workspace.folder
    await clear(folder, repository_of(workspace), branch=workspace.branch)
    if await asyncio.to_thread(folder.exists):
        raise WorkspaceError(f"{folder} could not be removed completely")
    await asyncio.to_thread(remove_mark, folder)
    with suppress(OSError):  # not if it holds others
        await asyncio.to_thread(folder.parent.rmdir)


async def uncommitted_names(source: Path) -> Sequence[str]:
    """Return the files of a repository with uncommitted changes."""
    said = await git(source, "status", "--porcelain", "-z", "--no-renames")
    return [entry[3:] for entry in said.split("\0") if entry]


def mark_taken(folder: Path) -> None:
    """Mark the files of a workspace that a run made as taken. Raises OSError."""
    mark = _taken_file(folder)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(_state_digest(folder), encoding="utf-8")


def is_taken(folder: Path) -> bool:
    """Whether the files of a workspace were taken as they are now."""
    try:
        return _taken_file(folder).read_text("utf-8") == _state_digest(folder)
    except (OSError, UnicodeDecodeError):
        return False


def remove_mark(folder: Path) -> None:
    """Remove the mark of a workspace that is gone."""
    mark = _taken_file(folder)
    with suppress(OSError):  # there may be none, and the folder may hold others
        mark.unlink()
        mark.parent.rmdir()


def _taken_file(folder: Path) -> Path:
    return folder.parents[2] / "taken" / place_of(folder)


def _state_digest(folder: Path) -> str:
    """Return a digest of the names, sizes and times of all files. Raises OSError."""
    digest = hashlib.sha256()
    for name in sorted(names_below(folder)):
        about = (folder / name).lstat()
        digest.update(repr((name, about.st_mode, about.st_size, about.st_mtime_ns)).encode())
    return digest.hexdigest()
