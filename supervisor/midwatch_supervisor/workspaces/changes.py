"""What is in a workspace, and what its attempt has changed, read without touching anything."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from midwatch_supervisor.workspaces.workspace import Workspace
from midwatch_supervisor.workspaces.workspace_files import entries_below, open_file
from midwatch_tools.git import Worktree, git

MAX_NAMES = 300
_HIDDEN = frozenset({".git", ".midwatch", ".venv", "__pycache__", "node_modules"})


async def listing(workspace: Workspace) -> str:
    """The files of a workspace, one a line; of many the first ones in order.

    In git those that git knows or would know. Raises WorkspaceError with what git said.
    """
    if workspace.worktree is not None:
        said = await git(workspace.worktree, "ls-files", "-co", "--exclude-standard", "-z")
        names = sorted({name for name in said.split("\0") if name})
    else:
        names = await asyncio.to_thread(_names, workspace.folder)
    left = len(names) - MAX_NAMES
    return "\n".join([*names[:MAX_NAMES], *([f"… and {left} more"] if left > 0 else [])])


def _names(folder: Path) -> list[str]:
    found = (
        each
        for each in entries_below(folder, hidden=_HIDDEN)
        if not each.is_dir(follow_symlinks=False)
    )
    return sorted(Path(each.path).relative_to(folder).as_posix() for each in found)


MAX_CHARS = 200_000
"""Characters of a diff that are kept: nobody reads more of it at once."""
_MAX_NEW = 100
"""New files that are shown with their content."""


async def changes(workspace: Workspace) -> str | None:
    """The work in a workspace as a diff, committed or not; `None` where there is no git.

    No lock is taken and the index stays as it is: a worker may use git at the same moment.
    Raises WorkspaceError with what git said.
    """
    if workspace.worktree is None:
        return None
    base = await base_commit(workspace.worktree)
    tracked = await git(workspace.worktree, "diff", base, "--")
    if len(tracked) >= MAX_CHARS:
        return f"{tracked[:MAX_CHARS]}\n… the rest is cut"
    names = await git(workspace.worktree, "ls-files", "--others", "--exclude-standard", "-z")
    found = [name for name in names.split("\0") if name]
    room = MAX_CHARS - len(tracked)
    return tracked + await asyncio.to_thread(_new_files, workspace.folder, found, room)


async def base_commit(worktree: Worktree) -> str:
    """The commit that a worktree's attempt began with.

    Raises WorkspaceError, also where the worktree is no longer the one that was made.
    """
    worktree.require_branch()
    known = await git(worktree, "reflog", "show", "--format=%H %gs", "HEAD")
    return begin(known.splitlines()) or "HEAD"


async def changed_names(worktree: Worktree) -> tuple[str, ...]:
    """The files that are other than at a worktree's beginning, committed or not, by name."""
    base = await base_commit(worktree)
    tracked = await git(worktree, "diff", "--no-renames", "--name-only", "-z", base, "--")
    new = await git(worktree, "ls-files", "--others", "--exclude-standard", "-z")
    return tuple(sorted({name for name in (tracked + new).split("\0") if name}))


def begin(reflog: Iterable[str]) -> str:
    """The commit that an attempt began with: its branch's start and what was merged into it then.

    Takes git's reflog as lines `<commit> <what>`, newest first; empty if there is none.
    """
    base = ""
    for entry in reversed(list(reflog)):
        commit, _, what = entry.partition(" ")
        if base and not what.startswith(("merge ", "reset: moving to HEAD")):
            break
        base = commit
    return base


def _new_files(folder: Path, names: list[str], room: int) -> str:
    parts: list[str] = []
    for name in names[:_MAX_NEW]:
        part = _new_file(folder, name, room)
        room -= len(part)
        parts.append(part)
        if room <= 0:
            break
    left = len(names) - len(parts)
    return "".join(parts) + (f"… and {left} more new files\n" if left else "")


def _new_file(folder: Path, name: str, room: int) -> str:
    head = f"diff --git a/{name} b/{name}\nnew file\n--- /dev/null\n+++ b/{name}\n"
    try:
        with open_file(folder, name) as opened:
            content = opened.read(max(1, room))
    except OSError as error:
        return f"{head}(not shown: {error.strerror})\n"
    if b"\0" in content:
        return f"{head}(binary)\n"
    text = content.decode(errors="replace")
    return head + "".join(f"+{line}\n" for line in text.splitlines())
