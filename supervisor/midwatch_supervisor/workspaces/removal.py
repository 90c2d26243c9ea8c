"""Removes the workspaces of attempts, and finds what would be lost with one.

A result without git is marked as taken once its files were written into a folder of their owner;
with git, the owner's branch shows it. A mark is stored beside the folder of all workspaces, and
applies only to the files that were taken: what is changed later counts as work again.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from midwatch_monitor.errors import WorkspaceError
from midwatch_supervisor.present.assignment import BRANCHES, place_of
from midwatch_supervisor.present.file_changes import FileChange
from midwatch_supervisor.workspaces.changes import file_changes
from midwatch_supervisor.workspaces.folder_diff import names_below
from midwatch_supervisor.workspaces.merge import has_content
from midwatch_supervisor.workspaces.staging import new_names
from midwatch_supervisor.workspaces.workspace import Workspace, clear
from midwatch_tools.git import git, is_repository


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
