"""Rubbish: what tools leave in a workspace, such as caches and installed packages; not a result.

Only new files count as rubbish: files with such names that the owner has in git do not.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from midwatch_monitor.errors import WorkspaceError
from midwatch_tools.git import Worktree, git, run_git
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
