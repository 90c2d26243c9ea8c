"""What an attempt has changed since it began, read without touching anything of its workspace."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from midwatch_supervisor.workspaces.workspace import Ground
from midwatch_supervisor.workspaces.workspace_files import open_file
from midwatch_tools.git import Worktree, git

MAX_CHARS = 200_000
"""Characters of a diff that are kept: nobody reads more of it at once."""
_MAX_NEW = 100
"""New files that are shown with their content."""


async def changes(ground: Ground) -> str | None:
    """The work in a workspace as a diff, committed or not; `None` where there is no git.

    No lock is taken and the index stays as it is: a worker may use git at the same moment.
    Raises WorkspaceError with what git said.
    """
    if ground.worktree is None:
        return None
    base = await beginning(ground.worktree)
    tracked = await git(ground.worktree, "diff", base, "--")
    if len(tracked) >= MAX_CHARS:
        return f"{tracked[:MAX_CHARS]}\n… the rest is cut"
    names = await git(ground.worktree, "ls-files", "--others", "--exclude-standard", "-z")
    found = [name for name in names.split("\0") if name]
    room = MAX_CHARS - len(tracked)
    return tracked + await asyncio.to_thread(_new_files, ground.folder, found, room)


async def beginning(worktree: Worktree) -> str:
    """The commit that a worktree's attempt began with.

    Raises WorkspaceError, also where the worktree is no longer the one that was made.
    """
    worktree.require_branch()
    known = await git(worktree, "reflog", "show", "--format=%H %gs", "HEAD")
    return begin(known.splitlines()) or "HEAD"


async def changed_names(worktree: Worktree) -> tuple[str, ...]:
    """The files that are other than at a worktree's beginning, committed or not, by name."""
    base = await beginning(worktree)
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
