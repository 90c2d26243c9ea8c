"""A workspace's files as one commit of git's, and back: made without touching what a worker sees.

The first parent of a snapshot is what was checked out, a second one what was staged, and its own
files are those in the folder. Files that git is told to ignore are not in it, nor are empty
folders, the history of a repository inside the folder, or a merge that is under way.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from midwatch_monitor.errors import WorkspaceError
from midwatch_supervisor.workspaces.workspace import NETWORK_SECONDS, Workspace, add_all, fetch_into
from midwatch_tools.git import Worktree, git
from midwatch_tools.tree import IGNORED

SAVED = "refs/midwatch/saved/"
"""Where a repository keeps the snapshots of attempts, by label and attempt."""
_BEGUN = "Begun: "
_OF = "Attempt: "
_NO_TIME = {"GIT_AUTHOR_DATE": "@0 +0000", "GIT_COMMITTER_DATE": "@0 +0000"}
"""The same files make the same snapshot, whenever they are saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFiles:
    """The files of one workspace, and the repository that saves them."""

    worktree: Worktree
    private: bool = False
    """Whether the repository is one of our own, beside a folder that has no git of its own."""

    async def git(self, *command: str, index: Path | None = None, undated: bool = False) -> str:
        """Run git over these files. Raises WorkspaceError with what it said."""
        environ = {"GIT_INDEX_FILE": str(index)} if index else {}
        environ |= _NO_TIME if undated else {}
        return await git(replace(self.worktree, environ=environ), *command)


async def files_of(workspace: Workspace, private: Path) -> SnapshotFiles:
    """The files of a workspace; `private` is where their repository is, or is made, without git."""
    if workspace.worktree is not None:
        return SnapshotFiles(worktree=workspace.worktree)
    exclude = private / "info" / "exclude"
    if not await asyncio.to_thread(exclude.exists):
        await asyncio.to_thread(private.mkdir, parents=True, exist_ok=True)
        await git(private, "init", "--quiet", "--bare", "--template=")
        await asyncio.to_thread(_leave_out, exclude)
    return SnapshotFiles(worktree=Worktree(folder=workspace.folder, git_dir=private), private=True)


def _leave_out(exclude: Path) -> None:
    exclude.parent.mkdir(exist_ok=True)
    lines = "".join(f"{name}/\n" for name in sorted(IGNORED - {".git"}))
    exclude.write_text(lines, encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a snapshot says of itself."""

    of: str
    """Whose it is; no attempt of another journal is called the same."""
    begun: str = ""
    """The commit that the attempt began with; empty without git."""

    def __str__(self) -> str:
        lines = ["Saved by Midwatch.", "", f"{_OF}{self.of}"]
        return "\n".join([*lines, f"{_BEGUN}{self.begun}"] if self.begun else lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenSnapshot:
    """A snapshot."""

    commit: str
    fault: str = ""
    """Why some file is not in it."""


async def take_snapshot(files: SnapshotFiles, mark: Mark) -> TakenSnapshot:
    """The files as they are now, as a commit that nothing leads to yet."""
    head = await _head(files)
    async with _own_index(files) as index:
        staged = await _staged(files, index, head)
        fault = await _add(files, index)
        tree = (await files.git("write-tree", index=index)).strip()
    parents = [*([head] if head else []), *([staged] if staged else [])]
    return TakenSnapshot(commit=await _commit(files, tree, parents, str(mark)), fault=fault)


async def _head(files: SnapshotFiles) -> str:
    if files.private:
        return ""
    try:
        return (await files.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")).strip()
    except WorkspaceError:
        return ""  # a worker may be on a branch that has no commit yet


@asynccontextmanager
async def _own_index(files: SnapshotFiles) -> AsyncGenerator[Path]:
    """An index to work with: a copy of the worker's, which knows already what did not change."""
    own = files.worktree.git_dir / "index"
    if files.private:
        yield own
        return
    with TemporaryDirectory(prefix="midwatch-") as scratch:
        index = Path(scratch) / "index"
        await asyncio.to_thread(_copy, own, index)
        yield index


def _copy(own: Path, index: Path) -> None:
    if own.exists():
        shutil.copy2(own, index)  # with its time: git tells by it which entries it may trust


async def _staged(files: SnapshotFiles, index: Path, head: str) -> str:
    """A commit of what the worker has staged; empty if that is nothing."""
    if not head:
        return ""
    try:
        tree = (await files.git("write-tree", index=index)).strip()
    except WorkspaceError:
        return ""  # in a conflict there is no such tree
    if tree == (await files.git("rev-parse", f"{head}^{{tree}}")).strip():
        return ""
    return await _commit(files, tree, [head], "Staged.")


async def _add(files: SnapshotFiles, index: Path) -> str:
    """Put every file into the index; what git said of those that it could not."""
    try:
        worktree = replace(files.worktree, environ={"GIT_INDEX_FILE": str(index)})
        await add_all(worktree, "--ignore-errors")
    except WorkspaceError as error:
        return str(error)
    return ""


async def _commit(files: SnapshotFiles, tree: str, parents: list[str], message: str) -> str:
    above = [word for parent in parents for word in ("-p", parent)]
    made = await files.git("commit-tree", tree, *above, "-m", message, undated=True)
    return made.strip()


async def hold_snapshot(files: SnapshotFiles, place: str, commit: str) -> None:
    """Let a name lead to a snapshot, so that it stays."""
    await files.git("update-ref", SAVED + place, commit)


async def held_snapshot(files: SnapshotFiles, place: str) -> str:
    """The snapshot that these files were saved as, or made from, last; empty if there is none."""
    try:
        return (await files.git("rev-parse", "--verify", "--quiet", SAVED + place)).strip()
    except WorkspaceError:
        return ""


async def pack_snapshot(
    files: SnapshotFiles, place: str, *, base: str, max_bytes: float
) -> bytes | None:
    """A snapshot as one file, without what `base` leads to; `None` if that is too large."""
    with TemporaryDirectory(prefix="midwatch-") as scratch:
        file = Path(scratch) / "bundle"
        without = [f"^{base}"] if base else []
        await files.git("bundle", "create", "--quiet", str(file), SAVED + place, *without)
        if file.stat().st_size > max_bytes:
            return None
        return await asyncio.to_thread(file.read_bytes)


async def unpack_snapshot(repository: Path, place: str, body: bytes) -> None:
    """Bring a packed snapshot into a repository, under its name."""
    with TemporaryDirectory(prefix="midwatch-") as scratch:
        file = Path(scratch) / "bundle"
        await asyncio.to_thread(file.write_bytes, body)
        await fetch_saved(repository, str(file), SAVED + place, place)


async def fetch_saved(repository: Path, source: str, ref: str, place: str) -> None:
    """Bring a snapshot into a repository from another one, or from a bundle."""
    quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
    refs = f"+{ref}:{SAVED}{place}"
    try:
        await fetch_into(repository, *quiet, source, refs, seconds=NETWORK_SECONDS)
    except TimeoutError as error:
        raise WorkspaceError(str(error)) from error


async def tip_of(repository: Path, commit: str) -> str:
    """What was checked out when a snapshot was taken; empty if nothing was."""
    try:
        return (await git(repository, "rev-parse", "--verify", "--quiet", f"{commit}^1")).strip()
    except WorkspaceError:
        return ""


async def mark_of(repository: Path | Worktree, commit: str) -> Mark:
    """What a snapshot says of itself."""
    said = await git(repository, "show", "--no-patch", "--format=%B", commit)
    found = {
        key: line.removeprefix(key)
        for line in said.splitlines()
        for key in (_OF, _BEGUN)
        if line.startswith(key)
    }
    return Mark(of=found.get(_OF, ""), begun=found.get(_BEGUN, ""))


async def check_out(files: SnapshotFiles, commit: str) -> None:
    """Let the folder hold a snapshot's files, and nothing else that git would see."""
    await files.git("read-tree", "--reset", "-u", commit)
    if files.private:
        return
    staged = await _second(files, commit)
    await files.git("read-tree", "--reset", staged or "HEAD")


async def _second(files: SnapshotFiles, commit: str) -> str:
    try:
        return (await files.git("rev-parse", "--verify", "--quiet", f"{commit}^2")).strip()
    except WorkspaceError:
        return ""
