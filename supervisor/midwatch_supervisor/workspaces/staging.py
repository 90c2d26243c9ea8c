"""Adds the files of a workspace to git's index, including those of repositories that a worker made.

git treats a nested repository as a submodule: it records one commit of it and none of its files,
which would be lost with the workspace. So its files are added as files of the workspace. Only
submodules of the owner's repository remain submodules.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath

from midwatch_supervisor.workspaces.rubbish import NEW_FILES, is_rubbish, rubbish_in
from midwatch_supervisor.workspaces.workspace_files import entries_below
from midwatch_tools.git import Worktree, chunk, git, holds_submodule
from midwatch_tools.tree import IGNORED

_PLACEHOLDER = "placeholder"


async def add_all(worktree: Worktree, *options: str, paths: Sequence[str] = ()) -> None:
    """Add every file to the index, which nobody else may use meanwhile. Raise WorkspaceError.

    Of new files, only those that match the pathspecs `paths` are added.

    Nested repositories already in the index are removed from it first and found again. Otherwise
    git would run `git status` inside them, with their configuration and its filters.
    """
    nested = await _known_repositories(worktree)
    for names in chunk(list(nested)):
        await git(worktree, "update-index", "--force-remove", "--", *names)
    try:
        if paths:
            await git(worktree, "add", "--update", *options)
        await _open_repositories(worktree, paths)
        await git(worktree, "add", "--all", *options, "--", *paths)
    finally:
        await _submodules_back(worktree, nested)


async def new_names(worktree: Worktree) -> list[str]:
    """Return the names of new files that are not committed, without rubbish and ignored ones."""
    found = await _list_names(worktree, *NEW_FILES)
    nested = [each for each in found if each.endswith("/")]
    plain = [each for each in found if not each.endswith("/")]
    if not nested:
        return plain
    inside = await asyncio.to_thread(lambda: [*_files_below(worktree, nested)])
    left_out = await rubbish_in(worktree, inside)
    return sorted([*plain, *(each for each in inside if each not in left_out)])


def _files_below(worktree: Worktree, nested: Sequence[str]) -> list[str]:
    return [
        name
        for each in nested
        if not holds_submodule(worktree, each)
        for entry in entries_below(worktree.folder / each, hidden=IGNORED)
        if not entry.is_dir(follow_symlinks=False)
        and not is_rubbish(name := Path(entry.path).relative_to(worktree.folder).as_posix())
    ]


async def _open_repositories(worktree: Worktree, paths: Sequence[str]) -> None:
    """Make git look for files in nested repositories, as in any folder that its index knows.

    The placeholder entry that does this names no real file, and leaves the index when the files are
    added.
    """
    opened: set[str] = set()
    while True:
        new = ("ls-files", "--others", "--exclude-standard", "-z", "--", *paths)
        found = {each for each in await _list_names(worktree, *new) if each.endswith("/")}
        found = {each for each in found - opened if not holds_submodule(worktree, each)}
        if not found:
            return
        opened |= found
        empty = (await git(worktree, "hash-object", "-w", "-t", "blob", os.devnull)).strip()
        for names in chunk(sorted(found)):
            infos = [("--cacheinfo", f"100644,{empty},{name}{_PLACEHOLDER}") for name in names]
            await git(worktree, "update-index", "--add", *chain(*infos))


async def _list_names(worktree: Worktree, *command: str) -> list[str]:
    return [each for each in (await git(worktree, *command)).split("\0") if each]


async def _known_repositories(worktree: Worktree) -> dict[str, str]:
    """Return the nested repositories in the index, with their commits."""
    listed = await _list_names(worktree, "ls-files", "--stage", "-z")
    entries = (each.split("\t", 1) for each in listed if each.startswith("160000 "))
    return {name: entry.split()[1] for entry, name in entries}


async def _submodules_back(worktree: Worktree, nested: Mapping[str, str]) -> None:
    """Restore submodules that are not checked out: git does not find their empty folders."""
    if not nested:
        return
    known = set(await _list_names(worktree, "ls-files", "-z"))
    above = {str(each) for name in known for each in PurePosixPath(name).parents}
    gone = [each for each in nested if each not in known | above]
    there = [each for each in gone if await asyncio.to_thread((worktree.folder / each).is_dir)]
    for names in chunk(there):
        infos = [("--cacheinfo", f"160000,{nested[name]},{name}") for name in names]
        await git(worktree, "update-index", "--add", *chain(*infos))
