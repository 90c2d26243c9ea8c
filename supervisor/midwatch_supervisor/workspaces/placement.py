"""Places and makes the workspaces of a run's attempts on this machine."""

import asyncio
import logging
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from midwatch_agents.left_processes import end_all_leftovers
from midwatch_monitor.cancellation import finish_before_cancel
from midwatch_monitor.errors import MachineError, MidwatchError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt
from midwatch_supervisor.present.assignment import Assignment, branch_of
from midwatch_supervisor.workspaces.changes import changed_files, match_names, take_over_files
from midwatch_supervisor.workspaces.clone import clone_of, origin_of
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import (
    Workspace,
    WorkspacePlan,
    clear,
    lock_worktrees,
    machine_at_fault,
    prepare,
    reopen_workspace,
)
from midwatch_tools.git import git, is_repository, named_repository, worktree_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Makes and finds the workspaces of one run's attempts on this machine."""

    journal: Journal
    home: Path
    """Folder below which workspaces are made."""
    run: int
    snapshots: SnapshotStore | None = None
    """Saved work of a fleet's attempts; `None` outside a fleet."""

    async def locate(self, assignment: Assignment, plan: WorkspacePlan) -> WorkspacePlan:
        """Fetch what the plan needs on this machine: the clone, and branches and folders of others.

        Raises WorkspaceError for what is missing, and in a fleet MachineError if another node
        may have it.
        """
        with self._disk_at_fault():
            origin = await origin_of(assignment, self.home, fleet=self.snapshots is not None)
            plan = replace(plan, source=origin.source, base=origin.base)
            if self.snapshots is None:
                return plan
            if plan.versioned and plan.source is not None:
                await self.snapshots.bring_branches(plan.source, plan.merges, run=self.run)
            elif plan.copied is not None:
                copied = await self.snapshots.bring_folder(plan.copied, run=self.run)
                plan = replace(plan, copied=copied)
            return plan

    @contextmanager
    def _disk_at_fault(self) -> Generator[None]:
        """In a fleet, raise errors of files and folders as MachineError."""
        try:
            yield
        except OSError as error:
            if self.snapshots is None:
                raise
            raise MachineError(str(error)) from error

    async def make(self, plan: WorkspacePlan, folder: Path) -> Workspace:
        """Make a workspace as `make_workspace` does; in a fleet, OSError becomes MachineError."""
        with self._disk_at_fault():
            return await make_workspace(plan, folder)

    def local_folder(self, made_at: str | Path) -> Path:
        """Return the folder of an attempt on this machine, wherever the attempt began."""
        return Path(made_at) if self.snapshots is None else self.snapshots.folder(made_at)

    async def reopen(
        self, plan: WorkspacePlan, attempt: Attempt
    ) -> tuple[Workspace, tuple[str, ...]]:
        """Return the workspace of an attempt that has begun, and the files taken over for it.

        On another node of a fleet, it is restored from its snapshot. Raises WorkspaceError if the
        work is gone, and in a fleet MachineError if another node may make it.
        """
        with self._disk_at_fault():
            workspace = await self._restore_saved(plan, attempt)
            if workspace is None and self.snapshots is not None:
                workspace = await make_workspace(plan, self.local_folder(attempt.workspace))
                return workspace, await self.inherit(plan, workspace)
            names = (await self._inherited_files(plan))[1]
            return workspace or await self._reopen_here(plan, attempt), names

    async def _restore_saved(self, plan: WorkspacePlan, attempt: Attempt) -> Workspace | None:
        """Return the workspace as this or another node saved it, or `None` if nothing was saved."""
        if self.snapshots is None:
            return None
        return await self.snapshots.workspace(attempt, plan)

    async def find(self, plan: WorkspacePlan, attempt: Attempt) -> Workspace:
        """Return the workspace of an attempt that has begun. Raise WorkspaceError if it is gone."""
        with self._disk_at_fault():
            return await self._restore_saved(plan, attempt) or await self._reopen_here(
                plan, attempt
            )

    async def _reopen_here(self, plan: WorkspacePlan, attempt: Attempt) -> Workspace:
        folder = self.local_folder(attempt.workspace)
        if not await asyncio.to_thread(folder.is_dir):
            raise WorkspaceError(f"the workspace {folder} is gone with the work in it")
        workspace = await reopen_workspace(
            folder, plan.source, branch=branch_of(folder) if plan.versioned else ""
        )
        return replace(workspace, base=plan.base)

    async def inherit(self, plan: WorkspacePlan, workspace: Workspace) -> tuple[str, ...]:
        """Take over the kept files of the previous attempt, and return their names.

        Raises WorkspaceError if that attempt's workspace is gone.
        """
        with self._disk_at_fault():
            old, names = await self._inherited_files(plan)
            if old is None or plan.inherits_from is None or not names:
                return ()
            return await take_over_files(old, workspace, names, number=plan.inherits_from.number)

    async def _inherited_files(
        self, plan: WorkspacePlan
    ) -> tuple[Workspace | None, tuple[str, ...]]:
        """Return the workspace of the previous attempt, and the files to take over from it."""
        if plan.inherits_from is None or not plan.keep:
            return None, ()
        old = await self.find(plan, plan.inherits_from)
        names = await changed_files(self.journal, plan.inherits_from, old, bare=plan.source is None)
        return old, match_names(names, plan.keep)

    async def save_whole(self, attempt: Attempt, workspace: Workspace) -> None:
        """Save the whole of a split task in place of the attempt that was split.

        Its parts have taken over what they need from that attempt. A failure is logged.
        """
        if self.snapshots is None:
            return
        try:
            await self.snapshots.save(attempt, workspace, step=0, incarnation=None)
        except (MidwatchError, OSError):
            log.exception("the combined work in %s was not saved", workspace.folder)


async def workspace_of(assignment: Assignment | None, folder: Path) -> Workspace:
    """Return the workspace of an attempt for reading, also after its run.

    Raises WorkspaceError if it is no longer the one that was made.
    """
    if assignment is None or assignment.bare or len(folder.parents) < 3:
        return Workspace(folder=folder)  # not made by a run, or without a repository
    if not await asyncio.to_thread(folder.is_dir):
        return Workspace(folder=folder)
    home, branch = folder.parents[2], branch_of(folder)
    places = (assignment.workspace, clone_of(assignment.source, home))
    known = [each for each in places if each is not None and is_repository(each)]
    named = named_repository(folder)
    if named is not None and not named.is_relative_to(home):  # workers can write below it
        known.append(named)
    for repository in known:
        worktree = await asyncio.to_thread(worktree_of, repository, folder, branch)
        if worktree is not None:
            return Workspace(folder=folder, branch=branch, worktree=worktree)
    if known or named is not None:
        raise WorkspaceError(f"{folder} is not a worktree of {assignment.source}")
    return Workspace(folder=folder)


async def make_workspace(plan: WorkspacePlan, folder: Path) -> Workspace:
    """Make a new workspace in `folder`; what is there is moved aside, and the log says where.

    Raises WorkspaceError with the reason, such as a conflict between branches, and MachineError if
    this machine is the reason.
    """
    branch = branch_of(folder)
    below = (plan.base or "HEAD", *plan.merges)
    with machine_at_fault():
        aside = await move_aside(folder, plan.source, branch=branch, below=below)
    if aside is not None:
        log.warning("%s existed before its attempt began: it was kept as %s", folder, aside)
    plain = not plan.versioned
    source = plan.copied if plain and plan.copied is not None else plan.source
    return await prepare(
        folder, source, branch=branch, merges=plan.merges, base=plan.base, plain=plain
    )


_HEADS = "refs/heads/"
_ASIDE = ".aside-"


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedAside:
    """Where the folder and the branch are now."""

    folder: Path | None
    """`None` if there was only a branch."""
    branch: str = ""
    """Empty without git, or if the branch was gone."""

    def __str__(self) -> str:
        branch = self.branch and f"the branch {self.branch}"
        return " and ".join(each for each in (str(self.folder or ""), branch) if each)


async def move_aside(
    folder: Path, source: Path | None, *, branch: str, below: Sequence[str] = ()
) -> MovedAside | None:
    """Move aside what is in `folder`, and the branch of that name; return where they are now.

    `None` if there is nothing, or only a workspace without work of its own, such as a killed
    process leaves; that is removed. Commits that `below` leads to are not work of its own.
    Processes that attempts left there are ended. Raises WorkspaceError.
    """
    there = await asyncio.to_thread(os.path.lexists, folder)
    repository = source if source is not None and is_repository(source) else None
    named = repository is not None and bool(await _list_heads(repository, branch))
    if not there and not named:
        return None
    await end_all_leftovers(str(folder))
    branches = (branch,) if named else ()
    if await _holds_nothing(folder if there else None, repository, branches, below, branch):
        await clear(folder, repository, branch=branch)
        return None
    aside = await _first_free(folder, repository, branch)
    moved = MovedAside(folder=aside.folder if there else None, branch=aside.branch if named else "")
    if repository is None:
        await asyncio.to_thread(_rename_folder, folder, moved)
    else:
        async with lock_worktrees(repository):
            await finish_before_cancel(_move_both(folder, repository, branch, moved))
    return moved


async def _list_heads(repository: Path, pattern: str) -> list[str]:
    # `git branch` fails while another process adds a worktree.
    return (await git(repository, "for-each-ref", "--format=%(refname)", _HEADS + pattern)).split()


async def _holds_nothing(
    folder: Path | None,
    repository: Path | None,
    branches: Sequence[str],
    below: Sequence[str],
    branch: str,
) -> bool:
    """Whether everything there exists elsewhere too; `False` if it cannot be read."""
    if folder is not None and not await asyncio.to_thread(_unchanged_kind, folder):
        return False
    if repository is None:
        return True
    tips = [_HEADS + each for each in branches]
    try:
        if folder is not None and is_repository(folder):
            made = await asyncio.to_thread(worktree_of, repository, folder, branch)
            if made is None or await git(made, "status", "--porcelain", "--ignored"):
                return False
            tips.append((await git(made, "rev-parse", "HEAD")).strip())
        return not tips or not await git(repository, "rev-list", "-1", *tips, "--not", *below)
    except WorkspaceError:
        return False


def _unchanged_kind(folder: Path) -> bool:
    """Whether it is an empty folder, or one that git knows the contents of."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return is_repository(folder) or not any(folder.iterdir())


async def _first_free(folder: Path, repository: Path | None, branch: str) -> MovedAside:
    """Return the first free pair of a folder and a branch beside them."""
    taken = set(await _list_heads(repository, f"{branch}{_ASIDE}*")) if repository else set[str]()
    for number in count(1):
        suffix = f"{_ASIDE}{number}"
        beside = folder.with_name(folder.name + suffix)
        free = not await asyncio.to_thread(os.path.lexists, beside)
        if free and f"{_HEADS}{branch}{suffix}" not in taken:
            return MovedAside(folder=beside, branch=branch + suffix)
    raise AssertionError("count() ended")


async def _move_both(folder: Path, repository: Path, branch: str, aside: MovedAside) -> None:
    """Move them, and tell git where the worktree is now."""
    await asyncio.to_thread(_rename_folder, folder, aside)
    if aside.folder is not None:
        with suppress(WorkspaceError):  # it may not be a worktree of this repository
            await git(repository, "worktree", "repair", str(aside.folder))
    if aside.branch:
        await git(repository, "branch", "--move", branch, aside.branch)


def _rename_folder(folder: Path, aside: MovedAside) -> None:
    if aside.folder is not None:
        folder.rename(aside.folder)
