"""Lets git compare new files of a worktree without adding them."""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from midwatch_monitor.errors import WorkspaceError
from midwatch_supervisor.workspaces.workspace_files import open_file
from midwatch_tools.git import Worktree, git, run_git

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
async def tracking(worktree: Worktree, names: Sequence[str]) -> AsyncGenerator[Worktree]:
    """Yield the worktree with an index of its own that knows these new files too.

    Their entries say nothing about the content, so git reads the files, and stores nothing.
    """
    if not names:
        yield worktree
        return
    empty = (await git(worktree, "hash-object", "-t", "blob", os.devnull)).strip()
    entries = "".join(f"100644 {empty}\t{name}\0" for name in names)
    with TemporaryDirectory(prefix="midwatch-") as scratch:
        index = Path(scratch) / "index"
        apart = replace(worktree, environ={"GIT_INDEX_FILE": str(index)})
        await asyncio.to_thread(_fill_index, apart, index, entries)
        yield apart


def _fill_index(apart: Worktree, index: Path, entries: str) -> None:
    try:
        with open_file(apart.git_dir, "index") as opened, index.open("xb") as copied:
            shutil.copyfileobj(opened, copied)
            written = os.fstat(opened.fileno()).st_mtime_ns
        # Git mistrusts what an index says about files that are as new as the index.
        os.utime(index, ns=(written, written))
    except FileNotFoundError:  # for git, nothing is tracked then
        pass
    except OSError as error:
        raise WorkspaceError(f"the index of {apart.folder} cannot be read: {error}") from error
    run_git(apart, "update-index", "-z", "--index-info", stdin=entries)
