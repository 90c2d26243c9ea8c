"""Which files of a workspace count as work, and how git is shown them.

Rubbish is what tools leave in a workspace, such as caches and installed packages. Only new files
count as rubbish: files with such names that the owner has in git do not.

git treats a nested repository as a submodule: it records one commit of it and none of its files,
which would be lost with the workspace. So its files are added as files of the workspace. Only
submodules of the owner's repository remain submodules.
"""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from midwatch_monitor.errors import WorkspaceError
from midwatch_supervisor.workspaces.workspace_files import entries_below, open_file
from midwatch_tools.git import Worktree, chunk, git, holds_submodule, run_git
from midwatch_tools.tree import IGNORED

_SUFFIXES = (".pyc", ".pyo")
_GLOBS = (*sorted(IGNORED - {".git"}), *(f"*{suffix}" for suffix in _SUFFIXES))
NOT_ADDED = (
    ".",
    *(f":(exclude,glob)**/{glob}{below}" for glob in _GLOBS for below in ("", "/**")),
)
"""Pathspecs for `git add` that exclude rubbish."""
NEW_FILES = (
    *("ls-files", "--others", "--exclude-standard", "-z"),
    *(f"--exclude={glob}" for glob in _GLOBS),
)
"""git command that lists new files, without rubbish and ignored ones."""


def pathspecs_without(paths: Iterable[str]) -> tuple[str, ...]:
    """Return pathspecs for all but these paths; empty if there are none."""
    excluded = tuple(f":(exclude,literal){path}" for path in paths)
    return (".", *excluded) if excluded else ()


def is_rubbish(name: str) -> bool:
    """Whether a path below a workspace is rubbish by its name."""
    return name.endswith(_SUFFIXES) or not IGNORED.isdisjoint(PurePosixPath(name).parts)


async def committed_rubbish(at: Path | Worktree, begun: str, tip: str = "") -> tuple[str, ...]:
    """Return the topmost paths added since `begun` that are rubbish or ignored.

    `tip` is the commit to look at, by default the working tree.
    """
    range = (begun, tip) if tip else (begun,)
    said = await git(
        *(at, "diff", "--no-renames", "--diff-filter=A", "--name-only", "-z"), *range, "--"
    )
    return tuple(dict.fromkeys((await rubbish_in(at, filter(None, said.split("\0")))).values()))


async def rubbish_in(at: Path | Worktree, names: Iterable[str]) -> dict[str, str]:
    """Return the names that are rubbish or ignored, each with its topmost path that is."""
    wanted = tuple(names)
    ignored = await asyncio.to_thread(_ignored_names, at, wanted) if wanted else frozenset[str]()
    return {name: top for name in wanted if (top := _topmost_rubbish(name, ignored))}


def _topmost_rubbish(name: str, ignored: frozenset[str]) -> str:
    """Return the topmost folder above a file, or the file, that is rubbish; empty if none is."""
    for path in _paths_above(name):
        if is_rubbish(path.removesuffix("/")) or path in ignored:
            return path.removesuffix("/")
    return ""


def _paths_above(name: str) -> list[str]:
    """Return the folders above a file, topmost first and with a slash at the end, and the file."""
    above = [f"{each}/" for each in PurePosixPath(name).parents if each.name]
    return [*reversed(above), name]


def _ignored_names(at: Path | Worktree, names: Iterable[str]) -> frozenset[str]:
    paths = dict.fromkeys(path for name in names for path in _paths_above(name))
    try:
        said = run_git(at, "check-ignore", "--no-index", "--stdin", "-z", stdin="\0".join(paths))
    except WorkspaceError:  # git fails like this if it ignores none of them
        return frozenset()
    return frozenset(said.split("\0")) - {""}


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


_MAX_BYTES = 8_000_000
"""Size above which git treats a file as binary, see `midwatch_tools/git.py`. A larger new file is
not compared: git would read it whole to hash it.
"""
_REFUSED = re.compile(r"(\.git|git~1)[ .]*([:\\].*)?", re.IGNORECASE | re.DOTALL)
"""Names that git never takes into an index."""


def readable_sizes(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """Return the sizes of those files that git can compare: readable, and not too large."""
    sizes: dict[str, int] = {}
    for name in names:
        with suppress(OSError):
            size = _file_size(folder, name)
            if size <= _MAX_BYTES and not any(map(_REFUSED.fullmatch, name.split("/"))):
                sizes[name] = size
    return sizes


def _file_size(folder: Path, name: str) -> int:
    if (folder / name).is_symlink():
        return 0
    with open_file(folder, name) as opened:  # not a named pipe, for which git would wait
        return os.fstat(opened.fileno()).st_size


@asynccontextmanager
async def copied_index(worktree: Worktree) -> AsyncGenerator[Worktree]:
    """Yield the worktree with a copy of its index. Raise WorkspaceError if that cannot be read."""
    with TemporaryDirectory(prefix="midwatch-") as scratch:
        index = Path(scratch) / "index"
        await asyncio.to_thread(_copy_index, worktree, index)
        yield replace(worktree, environ={"GIT_INDEX_FILE": str(index)})


def _copy_index(worktree: Worktree, index: Path) -> None:
    try:
        with open_file(worktree.git_dir, "index") as opened, index.open("xb") as copied:
            shutil.copyfileobj(opened, copied)
            written = os.fstat(opened.fileno()).st_mtime_ns
        # Git mistrusts what an index says about files that are as new as the index.
        os.utime(index, ns=(written, written))
    except FileNotFoundError:  # for git, nothing is tracked then
        pass
    except OSError as error:
        raise WorkspaceError(f"the index of {worktree.folder} cannot be read: {error}") from error


@asynccontextmanager
async def tracking(worktree: Worktree, names: Sequence[str]) -> AsyncGenerator[Worktree]:
    """Yield the worktree with an index of its own that knows these new files too.

    Their entries say nothing about the content, so git reads the files, and stores nothing.
    """
    if not names:
        yield worktree
        return
    empty = (await git(worktree, "hash-object", "-t", "blob", os.devnull)).strip()
    entries = "".join(f"100644 {empty}\t{name}\0" for name in names)
    async with copied_index(worktree) as apart:
        command = ("update-index", "-z", "--index-info")
        await asyncio.to_thread(run_git, apart, *command, stdin=entries)
        yield apart
