"""What an attempt has changed since it began, read without touching anything of its workspace."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from midwatch_supervisor.workspace import git, is_repository

MAX_CHARS = 200_000
"""Characters of a diff that are kept: nobody reads more of it at once."""
_MAX_NEW = 100
"""New files that are shown with their content."""


async def changes(folder: Path) -> str | None:
    """The work in a worktree as a diff, committed or not; `None` where there is no git.

    No lock is taken and the index stays as it is: a worker may use git at the same moment.
    Raises WorkspaceError with what git said.
    """
    if not await asyncio.to_thread(is_repository, folder):
        return None
    base = await beginning(folder)
    tracked = await git(
        folder, "--no-optional-locks", "diff", "--no-ext-diff", "--no-color", base, "--"
    )
    if len(tracked) >= MAX_CHARS:
        return f"{tracked[:MAX_CHARS]}\n… the rest is cut"
    names = await git(folder, "ls-files", "--others", "--exclude-standard", "-z")
    found = [name for name in names.split("\0") if name]
    return tracked + await asyncio.to_thread(_new_files, folder, found, MAX_CHARS - len(tracked))


async def beginning(folder: Path) -> str:
    """The commit that a worktree's attempt began with."""
    known = await git(folder, "reflog", "show", "--format=%H %gs", "HEAD")
    return begin(known.splitlines()) or "HEAD"


async def changed_names(folder: Path) -> tuple[str, ...]:
    """The files that are other than at a worktree's beginning, committed or not, by name."""
    base = await beginning(folder)
    tracked = await git(
        *(folder, "--no-optional-locks", "diff", "--no-ext-diff", "--no-renames"),
        *("--name-only", "-z", base, "--"),
    )
    new = await git(folder, "ls-files", "--others", "--exclude-standard", "-z")
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
        part = _new_file(folder / name, name, room)
        room -= len(part)
        parts.append(part)
        if room <= 0:
            break
    left = len(names) - len(parts)
    return "".join(parts) + (f"… and {left} more new files\n" if left else "")


def _new_file(file: Path, name: str, room: int) -> str:
    head = f"diff --git a/{name} b/{name}\nnew file\n--- /dev/null\n+++ b/{name}\n"
    if file.is_symlink() or not file.is_file():
        return f"{head}(no plain file)\n"
    try:
        with file.open("rb") as opened:
            content = opened.read(max(1, room))
    except OSError as error:
        return f"{head}(cannot be read: {error.strerror})\n"
    if b"\0" in content:
        return f"{head}(binary)\n"
    text = content.decode(errors="replace")
    return head + "".join(f"+{line}\n" for line in text.splitlines())
