"""Where an attempt works: a worktree with its own branch, a copy, or an empty folder."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from midwatch_monitor.cancellation import finish_before_cancel
from midwatch_monitor.errors import MachineError, UnreachableError, WorkspaceError
from midwatch_monitor.records import Attempt
from midwatch_supervisor.present.assignment import BRANCHES
from midwatch_supervisor.workspaces.staging import NOT_ADDED, add_all
from midwatch_supervisor.workspaces.workspace_files import entries_below
from midwatch_tools.git import Worktree, ask_git, git, is_repository, worktree_of
from midwatch_tools.tree import IGNORED

CLONES = "clones"
"""Folder below a home that holds its clones of repositories."""
TRACES = "refs/midwatch/merged/"
"""Refs under which a merge records what is needed later, even when the branch is gone."""
NETWORK_SECONDS = 600.0
"""Seconds that a git command may take over the network."""
_HALF_WRITTEN = "bad object worktrees/"
"""Error of git while another process adds a worktree, or after it was killed doing so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One attempt's own copy of its files."""

    folder: Path
    branch: str = ""
    """The worktree's branch; empty without git."""
    base: str = ""
    """Commit that every clone of the repository has; empty if not needed."""
    worktree: Worktree | None = field(default=None, compare=False)
    """The git worktree; `None` without git, even if the worker made a repository there."""

    @property
    def at(self) -> Worktree:
        """The worktree. Raises WorkspaceError if there is none."""
        if self.worktree is None:
            raise WorkspaceError(f"{self.folder} is not a git worktree")
        return self.worktree


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspacePlan:
    """The sources of a workspace."""

    source: Path | None
    """The task's workspace, or this node's clone of it."""
    base: str = ""
    """Commit to start from; empty for the one that is checked out in the source."""
    merges: tuple[str, ...] = ()
    """Branches that it builds on."""
    copied: Path | None = None
    """Without git, the folder that it is copied from instead of the source."""
    inherits_from: Attempt | None = None
    """Attempt from which some work is taken over."""
    keep: tuple[str, ...] = ()

    @property
    def versioned(self) -> bool:
        """Whether the source is a git repository."""
        return self.source is not None and is_repository(self.source)


@contextmanager
def machine_at_fault() -> Generator[None]:
    """Raise git errors as MachineError, for what can only fail because of this machine."""
    try:
        yield
    except MachineError:
        raise
    except WorkspaceError as error:
        raise MachineError(str(error)) from error


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
    it starts from, by default the one that is checked out in `source`. A `plain` source is always
    copied: if a worker made a repository in it, git would run what its configuration says. Raises
    WorkspaceError with the reason, such as a conflict between those branches, and MachineError if
    this machine is the reason.
    """
    if await asyncio.to_thread(_without_git, folder, source, plain=plain):
        return Workspace(folder=folder)
    assert source is not None
    # `--force` twice replaces an entry for a missing folder even if that is locked.
    forced = ("worktree", "add", "--quiet", "--force", "--force")
    command = (*forced, "-b", branch, str(folder), base or "HEAD")
    with machine_at_fault():
        async with lock_worktrees(source):
            # Completed even if canceled: the lock must be held until git ends.
            await finish_before_cancel(git(source, *command))
    workspace = await reopen_workspace(folder, source, branch=branch)
    for other in merges:
        await _merge_branch(workspace, other)
    return replace(workspace, base=base)


async def reopen_workspace(folder: Path, source: Path | None, *, branch: str) -> Workspace:
    """Return the workspace made in `folder`, as its repository knows it; `branch` is its branch.

    Raises WorkspaceError if it is no longer the one that was made.
    """
    if source is None or not branch:
        return Workspace(folder=folder)
    worktree = await asyncio.to_thread(worktree_of, source, folder, branch)
    if worktree is None:
        raise WorkspaceError(f"{folder} is not a worktree of {source}")
    return Workspace(folder=folder, branch=branch, worktree=worktree)


def _without_git(folder: Path, source: Path | None, *, plain: bool) -> bool:
    """Make a workspace without git; if it needs git, make the parent folder and return False."""
    if folder.exists():
        raise WorkspaceError(f"{folder} already exists")
    if source is None:
        folder.mkdir(parents=True)
        return True
    if not source.is_dir():
        raise UnreachableError(f"the workspace {source} is not a folder")
    if plain or not is_repository(source):
        try:
            _copy_files(source, folder)
        except OSError as error:  # a worker can make unreadable files and names that are too long
            raise MachineError(f"{source} cannot be copied: {error}") from error
        return True
    folder.parent.mkdir(parents=True, exist_ok=True)
    return False


async def clear(folder: Path, source: Path | None, *, branch: str) -> None:
    """Remove a workspace that a killed process left half made, if there is one."""
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    if source is None or not is_repository(source):
        return
    async with lock_worktrees(source):
        with suppress(WorkspaceError):  # it is locked only if its creation was killed
            await git(source, "worktree", "unlock", str(folder))
        await git(source, "worktree", "prune")
        if await git(source, "branch", "--list", branch):
            await git(source, "branch", "--quiet", "-D", branch)


@asynccontextmanager
async def lock_worktrees(repository: Path) -> AsyncGenerator[None]:
    """Lock a repository's list of worktrees, against other processes too.

    git reads that list while it adds, prunes or fetches, and fails if an entry is half written.
    Entries that a killed process left half written are removed.
    """
    # One call: the lock's holder must not need a thread, because all threads may be waiting.
    waiting = asyncio.create_task(asyncio.to_thread(_lock_folder, repository / ".git"))
    try:
        lock = await asyncio.shield(waiting)
    except asyncio.CancelledError:
        # The thread still gets the lock, so it must be released.
        waiting.add_done_callback(lambda done: os.close(done.result()))
        raise
    try:
        yield
    finally:
        os.close(lock)


def _lock_folder(path: Path) -> int:
    """Wait for the lock, then remove entries that were left half written."""
    lock = os.open(path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    _remove_half_written(path / "worktrees")
    return lock


def _remove_half_written(worktrees: Path) -> None:
    """Remove entries without a commit: `git worktree add` was killed before it wrote one."""
    for head in worktrees.glob("*/HEAD"):
        with suppress(OSError):
            if not head.read_text("utf-8").strip().strip("0"):
                shutil.rmtree(head.parent, ignore_errors=True)


_NOT_COPIED = IGNORED - {".git", ".hg", ".svn"}


def _copy_files(source: Path, folder: Path) -> None:
    """Copy folders, links and plain files, but not pipes and sockets that a worker can make."""
    folder.mkdir(parents=True)
    for entry in entries_below(source, hidden=_NOT_COPIED):
        target = folder / Path(entry.path).relative_to(source)
        if entry.is_symlink():
            target.symlink_to(Path(entry.path).readlink())
        elif entry.is_dir():
            target.mkdir()
        elif entry.is_file():
            shutil.copy2(entry.path, target, follow_symlinks=False)


async def _merge_branch(workspace: Workspace, branch: str) -> None:
    try:
        await git(workspace.at, "merge", "--quiet", "--no-edit", branch)
    except WorkspaceError as error:
        said = f"{branch} does not merge: {error}"
        with machine_at_fault():
            conflict = await git(workspace.at, "ls-files", "--unmerged")
        raise (WorkspaceError if conflict else MachineError)(said) from error


async def commit_work(workspace: Workspace, message: str) -> None:
    """Commit the attempt's work on its branch; nothing to commit is not an error.

    This is always completed: an interrupted git would leave its lock, which blocks later commits.
    """
    if workspace.worktree is not None:
        await finish_before_cancel(_commit_changes(workspace.worktree, message))


async def _commit_changes(worktree: Worktree, message: str) -> None:
    worktree.require_branch()
    await add_all(worktree, paths=NOT_ADDED)
    if await git(worktree, "diff", "--cached", "--name-only"):
        await git(worktree, "commit", "--quiet", "--message", message)


async def head_of(source: str, *, url: bool = False, seconds: float = NETWORK_SECONDS) -> str:
    """Return the commit that is checked out in a local repository, or in one with a URL.

    Empty without a folder, or if it is not a repository. `seconds` limits the time for a URL.
    Raises WorkspaceError if there is no commit.
    """
    if url:
        # Outside any repository, whose configuration could redirect the URL.
        said = await ask_network(Path("/"), "ls-remote", source, "HEAD", seconds=seconds)
        if not said.strip():
            raise WorkspaceError(f"{source} has no commit yet")
        return said.split()[0]
    if not source or not is_repository(Path(source)):
        return ""
    return (await git(Path(source), "rev-parse", "--verify", "HEAD^{commit}")).strip()


async def ask_network(at: Path | Worktree, *command: str, seconds: float = NETWORK_SECONDS) -> str:
    """Run a git command over the network, and return its output.

    Raises WorkspaceError with git's message, and UnreachableError if there is no answer in time.
    """
    try:
        return await ask_git(at, *command, seconds=seconds, network=True)
    except TimeoutError as error:
        raise UnreachableError(str(error)) from error


async def fetch_into(repository: Path, *wanted: str) -> str:
    """Run `git fetch` while others may add worktrees to it. Raises like `ask_network`."""
    try:
        return await ask_network(repository, "fetch", *wanted)
    except WorkspaceError as error:
        if _HALF_WRITTEN not in str(error) or not is_repository(repository):
            raise
    async with lock_worktrees(repository):
        return await ask_network(repository, "fetch", *wanted)


async def free_label(run: int, home: Path, sources: Sequence[Path | None]) -> str:
    """Return an unused name for a run's folders and branches, unused in clones below `home` too.

    A new journal begins with run number 1 again, while folders and branches of old runs remain.
    """
    clones = await asyncio.to_thread(_find_clones, home)
    for number in count(1):
        label = f"r{run}" if number == 1 else f"r{run}.{number}"
        taken = await asyncio.to_thread((home / "work" / label).exists)
        if not taken and not await _has_branches(label, [*sources, *clones]):
            return label
    raise AssertionError("count() ended")


def _find_clones(home: Path) -> list[Path]:
    return [each for each in (home / CLONES).glob("*") if each.suffix not in {".part", ".lock"}]


async def _has_branches(label: str, sources: Sequence[Path | None]) -> bool:
    repositories = {source for source in sources if source is not None and is_repository(source)}
    for source in repositories:
        if await git(source, "for-each-ref", f"refs/heads/{BRANCHES}{label}/", f"{TRACES}{label}/"):
            return True
    return False
