"""Where an attempt works: a worktree with its own branch, a copy, or an empty folder."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from midwatch_monitor.errors import UnreachableError, WorkspaceError
from midwatch_monitor.shielding import finish_before_cancel
from midwatch_supervisor.present.assignment import BRANCHES
from midwatch_supervisor.workspaces.rubbish import NOT_ADDED
from midwatch_supervisor.workspaces.staging import add_all
from midwatch_supervisor.workspaces.workspace_files import entries_below
from midwatch_tools.git import Worktree, ask_git, git, is_repository, worktree_of
from midwatch_tools.tree import IGNORED

CLONES = "clones"
"""The folder below a home that holds its clones of repositories."""
TRACES = "refs/midwatch/merged/"
"""Where a merge leaves what a later look at it needs, also when the branch is gone by then."""
NETWORK_SECONDS = 600.0
"""How long git may take with another machine."""
_HALF_WRITTEN = "bad object worktrees/"
"""What git says where somebody adds a worktree at this moment, or was killed over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One attempt's own copy of what it works on."""

    folder: Path
    branch: str = ""
    """The worktree's branch; empty where there is no git."""
    base: str = ""
    """The commit that every clone of the repository has; empty where nobody asks."""
    worktree: Worktree | None = field(default=None, compare=False)
    """For git; `None` where there is none, whatever the worker has made there."""

    @property
    def at(self) -> Worktree:
        """The worktree. Raises WorkspaceError where there is none."""
        if self.worktree is None:
            raise WorkspaceError(f"{self.folder} is no git worktree")
        return self.worktree


async def prepare(
    folder: Path,
    source: Path | None,
    *,
    branch: str,
    merges: Sequence[str],
    base: str = "",
    plain: bool = False,
) -> Workspace:
    """Make the workspace of an attempt in `folder`, which must not exist yet.

    `merges` are the branches of finished tasks that this one builds on; `base` is the commit that
    it starts from, by default the one that is checked out in `source`. A `plain` source is copied,
    whatever it holds: a repository that a worker made would have git run what its configuration
    says. Raises WorkspaceError with the reason, a conflict between those branches among them.
    """
    if await asyncio.to_thread(_without_git, folder, source, plain=plain):
        return Workspace(folder=folder)
    assert source is not None
    # Twice: it takes the place of an entry for a folder that is gone, if that is locked too.
    forced = ("worktree", "add", "--quiet", "--force", "--force")
    command = (*forced, "-b", branch, str(folder), base or "HEAD")
    async with lock_worktrees(source):
        # Until git ends nobody else may have the list.
        await finish_before_cancel(git(source, *command))
    workspace = await reopen_workspace(folder, source, branch=branch)
    for other in merges:
        await _merge(workspace, other)
    return replace(workspace, base=base)


async def reopen_workspace(folder: Path, source: Path | None, *, branch: str) -> Workspace:
    """The workspace that was made in `folder`, by what its repository says; `branch` is its own.

    Raises WorkspaceError where it is no longer the one that was made.
    """
    if source is None or not branch:
        return Workspace(folder=folder)
    worktree = await asyncio.to_thread(worktree_of, source, folder, branch)
    if worktree is None:
        raise WorkspaceError(f"{folder} is no worktree of {source}")
    return Workspace(folder=folder, branch=branch, worktree=worktree)


def _without_git(folder: Path, source: Path | None, *, plain: bool) -> bool:
    """Make the workspace if it needs no git; else only the folder that will hold the worktree."""
    if folder.exists():
        raise WorkspaceError(f"{folder} exists already")
    if source is None:
        folder.mkdir(parents=True)
        return True
    if not source.is_dir():
        raise UnreachableError(f"the workspace {source} is no folder")
    if plain or not is_repository(source):
        try:
            _copy(source, folder)
        except OSError as error:  # a worker can make what cannot be read, or is named too long
            raise WorkspaceError(f"{source} cannot be copied: {error}") from error
        return True
    folder.parent.mkdir(parents=True, exist_ok=True)
    return False


async def clear(folder: Path, source: Path | None, *, branch: str) -> None:
    """Remove the workspace that a killed process left half made; nothing to remove is no error."""
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    if source is None or not is_repository(source):
        return
    async with lock_worktrees(source):
        with suppress(WorkspaceError):  # only of one that was killed in the middle: git locks it
            await git(source, "worktree", "unlock", str(folder))
        await git(source, "worktree", "prune")
        if await git(source, "branch", "--list", branch):
            await git(source, "branch", "--quiet", "-D", branch)


@asynccontextmanager
async def lock_worktrees(repository: Path) -> AsyncGenerator[None]:
    """Keep all others, in other processes too, from a repository's list of worktrees.

    git reads that list while it adds to it, and fails over an entry that is half written: adding,
    pruning and fetching alike. What a killed process left half written goes.
    """
    # In one go: whoever has the lock must not need a thread, for all may wait for the lock.
    waiting = asyncio.create_task(asyncio.to_thread(_lock, repository / ".git"))
    try:
        lock = await asyncio.shield(waiting)
    except asyncio.CancelledError:
        # The thread gets the lock all the same, and somebody must give it back.
        waiting.add_done_callback(lambda done: os.close(done.result()))
        raise
    try:
        yield
    finally:
        os.close(lock)


def _lock(path: Path) -> int:
    """Wait for the lock, and remove what somebody left half written who had it."""
    lock = os.open(path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    _sweep(path / "worktrees")
    return lock


def _sweep(worktrees: Path) -> None:
    """Remove entries that lead to no commit: `git worktree add` was killed before it wrote one."""
    for head in worktrees.glob("*/HEAD"):
        with suppress(OSError):
            if not head.read_text("utf-8").strip().strip("0"):
                shutil.rmtree(head.parent, ignore_errors=True)


_NOT_COPIED = IGNORED - {".git", ".hg", ".svn"}


def _copy(source: Path, folder: Path) -> None:
    """Copy folders, links and plain files; pipes and sockets, which a worker can make, are not."""
    folder.mkdir(parents=True)
    for entry in entries_below(source, hidden=_NOT_COPIED):
        target = folder / Path(entry.path).relative_to(source)
        if entry.is_symlink():
            target.symlink_to(Path(entry.path).readlink())
        elif entry.is_dir():
            target.mkdir()
        elif entry.is_file():
            shutil.copy2(entry.path, target, follow_symlinks=False)


async def _merge(workspace: Workspace, branch: str) -> None:
    try:
        await git(workspace.at, "merge", "--quiet", "--no-edit", branch)
    except WorkspaceError as error:
        raise WorkspaceError(f"{branch} does not merge: {error}") from error


async def keep(workspace: Workspace, message: str) -> None:
    """Commit what the attempt has done on its branch; nothing to commit is no error.

    It is brought to its end: whoever came next would find git's lock, and could not commit.
    """
    if workspace.worktree is not None:
        await finish_before_cancel(_keep(workspace.worktree, message))


async def _keep(worktree: Worktree, message: str) -> None:
    worktree.require_branch()
    await add_all(worktree, paths=NOT_ADDED)
    if await git(worktree, "diff", "--cached", "--name-only"):
        await git(worktree, "commit", "--quiet", "--message", message)


async def head_of(source: str, *, url: bool = False, seconds: float = NETWORK_SECONDS) -> str:
    """The commit that is checked out in a repository on this machine, or in one with a URL.

    Empty for another folder, or none. A URL has so many seconds to answer. Raises WorkspaceError
    where there is no commit.
    """
    if url:
        try:
            # Not in a folder: its configuration has no say in where the URL leads.
            said = await ask_git(
                *(Path("/"), "ls-remote", source, "HEAD"), seconds=seconds, network=True
            )
        except TimeoutError as error:
            raise WorkspaceError(str(error)) from error
        if not said.strip():
            raise WorkspaceError(f"{source} has no commit yet")
        return said.split()[0]
    if not source or not is_repository(Path(source)):
        return ""
    return (await git(Path(source), "rev-parse", "--verify", "HEAD^{commit}")).strip()


async def fetch_into(repository: Path, *wanted: str, seconds: float) -> str:
    """`git fetch` in a repository, beside others who add worktrees to it. Raises as `ask_git`."""
    try:
        return await ask_git(repository, "fetch", *wanted, seconds=seconds, network=True)
    except WorkspaceError as error:
        if _HALF_WRITTEN not in str(error) or not is_repository(repository):
            raise
    async with lock_worktrees(repository):
        return await ask_git(repository, "fetch", *wanted, seconds=seconds, network=True)


async def free_label(run: int, home: Path, sources: Sequence[Path | None]) -> str:
    """A name for a run's folders and branches that nothing has yet, in clones below `home` either.

    Run numbers begin anew with a new journal, while the folders and branches of an old one stay.
    """
    clones = await asyncio.to_thread(_clones, home)
    for number in count(1):
        label = f"r{run}" if number == 1 else f"r{run}.{number}"
        taken = await asyncio.to_thread((home / "work" / label).exists)
        if not taken and not await _has_branches(label, [*sources, *clones]):
            return label
    raise AssertionError("count() ended")


def _clones(home: Path) -> list[Path]:
    return [each for each in (home / CLONES).glob("*") if each.suffix not in {".part", ".lock"}]


async def _has_branches(label: str, sources: Sequence[Path | None]) -> bool:
    repositories = {source for source in sources if source is not None and is_repository(source)}
    for source in repositories:
        if await git(source, "for-each-ref", f"refs/heads/{BRANCHES}{label}/", f"{TRACES}{label}/"):
            return True
    return False
