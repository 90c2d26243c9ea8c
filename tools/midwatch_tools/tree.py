"""Finds file changes in a workspace by comparing content hashes."""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from tempfile import TemporaryDirectory

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import Edit, Writer
from midwatch_tools.git import Worktree, run_git

IGNORED = frozenset(
    {
        ".git", ".hg", ".svn", ".midwatch", ".venv", "node_modules", "__pycache__",
        ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".hypothesis",
    }
)  # fmt: skip
"""Folders that tools fill; changes in them do not count as edits."""

_HASHED_BYTES = 4_000_000
"""A larger file is hashed by its size and this many bytes at its beginning."""

Ignored = Callable[[Collection[str]], set[str]]
"""Returns which of these paths, relative to a folder, git ignores."""

_RACY_NS = 50_000_000
"""A file changed this shortly before a look may change again within the same clock tick."""

_FEW = 500
"""Up to this many files are checked without a thread, which would take longer than the check."""


@dataclass(frozen=True, slots=True)
class _Seen:
    stamp: tuple[int, int, int] | None
    """Modification time, size and inode: while these are the same, the content is not read again.

    `None` for a file that changed too recently for them to be trusted.
    """
    digest: str


class Tree:
    """The files in one folder as of the last look.

    A look costs one `stat` for each file and a hash for each changed file. A folder with more than
    `max_files` files is not walked: only named paths are looked at.
    """

    def __init__(self, root: Path, *, max_files: int, ignored_by_git: Ignored) -> None:
        """Watch `root`; `ignored_by_git` is called in a thread, once for each path."""
        self.root = root
        self._max_files = max_files
        self._ignored_by_git = ignored_by_git
        self._seen: dict[str, _Seen] = {}
        self._named_only = False
        self._ignored: dict[str, bool] = {}
        self._looking = asyncio.Lock()

    async def begin(self) -> None:
        """Take the current contents as known."""
        async with self._looking:
            await asyncio.to_thread(self._learn_files)

    async def expect(self, named: str) -> None:
        """Take a path's content as known before an act that names it.

        Otherwise, in a folder that is too large to be walked, a file that is only read would seem
        to be newly created.
        """
        if self._named_only:
            async with self._looking:
                await asyncio.to_thread(self._learn_named, named)

    async def changes(
        self, writer: Writer, named: str = "", *, only_named: bool = False
    ) -> tuple[Edit, ...]:
        """Return the edits since the last look, all by `writer`; ignored files are left out.

        `named` is a path that the last act named: it is looked at even if the folder is too large.
        With `only_named`, nothing else is looked at: another act may be running, and its files may
        be half written.
        """
        async with self._looking:
            only = only_named or self._named_only
            if len(self._seen) > _FEW:
                found = await asyncio.to_thread(self._find_edits, writer, named, only=only)
            else:
                found = self._find_edits(writer, named, only=only)
            if any(edit.path not in self._ignored for edit in found):
                await asyncio.to_thread(self._ask_git, [edit.path for edit in found])
            return tuple(edit for edit in found if not self._ignored[edit.path])

    def _learn_files(self) -> None:
        for path, stat in self._present_files("", only=False).items():
            self._edit(path, stat, Writer.OTHER)

    def _learn_named(self, named: str) -> None:
        for path, stat in self._stat_named(named):
            if path not in self._seen:
                self._edit(path, stat, Writer.OTHER)

    def _find_edits(self, writer: Writer, named: str, *, only: bool) -> list[Edit]:
        present = self._present_files(named, only=only)
        edits = [self._edit(path, stat, writer) for path, stat in present.items()]
        if not (only or self._named_only):
            gone = sorted(self._seen.keys() - present.keys())
            edits += [self._deletion(path, writer) for path in gone]
        return [edit for edit in edits if edit is not None]

    def _present_files(self, named: str, *, only: bool) -> dict[str, os.stat_result]:
        walked = {} if only else dict(self._walk())
        return dict(self._stat_named(named)) if only or self._named_only else walked

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        pending, count = [self.root], 0
        while pending:
            for item in _scan(pending.pop()):
                if item.is_dir(follow_symlinks=False):
                    if item.name not in IGNORED:
                        pending.append(Path(item.path))
                elif item.is_file(follow_symlinks=False):
                    count += 1
                    if count > self._max_files:
                        self._named_only = True
                        return
                    if (stat := _stat(item)) is not None:
                        yield self._name(Path(item.path)), stat

    def _stat_named(self, named: str) -> Iterator[tuple[str, os.stat_result]]:
        try:
            root = self.root.resolve()
            path = (root / named).resolve()
            if path.is_file() and path.is_relative_to(root):
                yield path.relative_to(root).as_posix(), path.stat()
        except (OSError, ValueError, RuntimeError):
            return  # a model may give a name no file can have, or a link to itself

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _edit(self, path: str, stat: os.stat_result, writer: Writer) -> Edit | None:
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        before = self._seen.get(path)
        if before is not None and before.stamp == stamp:
            return None
        settled = time.time_ns() - stat.st_mtime_ns > _RACY_NS
        digest = _digest(self.root / path, stat.st_size)
        self._seen[path] = _Seen(stamp if settled else None, digest)
        if before is not None and before.digest == digest:
            return None
        return Edit(path=path, digest=digest, before=before.digest if before else "", writer=writer)

    def _deletion(self, path: str, writer: Writer) -> Edit:
        before = self._seen.pop(path)
        return Edit(path=path, before=before.digest, writer=writer, deleted=True)

    def _ask_git(self, paths: Sequence[str]) -> None:
        unknown = [path for path in paths if path not in self._ignored]
        ignored = self._ignored_by_git(unknown)
        self._ignored.update({path: path in ignored for path in unknown})


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as items:
            return list(items)
    except OSError:  # it vanished, or we may not read it: either way, not our edit
        return []


def _stat(item: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return item.stat(follow_symlinks=False)
    except OSError:  # it vanished since it was listed
        return None


def digest_of(path: Path) -> str:
    """Return the content hash of a file, as in edits; empty if there is no such file."""
    try:
        stat = path.lstat()
    except (OSError, ValueError):
        return ""
    return _digest(path, stat.st_size) if S_ISREG(stat.st_mode) else ""


def _digest(path: Path, size: int) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(_HASHED_BYTES)
    except OSError:
        return ""
    mark = hashlib.blake2b(head, digest_size=16)
    if size > _HASHED_BYTES:
        mark.update(str(size).encode())
    return mark.hexdigest()


def ignored_in(worktree: Worktree | None) -> Ignored:
    """Return a function that asks git about a worktree whose git directory no worker can write to.

    Without a worktree, nothing is ignored.
    """

    def ask(paths: Collection[str]) -> set[str]:
        if worktree is None:
            return set()
        try:
            said = run_git(worktree, "check-ignore", "--stdin", "-z", stdin="\0".join(paths))
        except WorkspaceError:  # git's way of saying that it ignores none of them
            return set()
        return set(said.split("\0")) - {""}

    return ask


def ignored_below(root: Path) -> Ignored:
    """Return a function that asks git about a folder of an agent that Midwatch did not start.

    Git only sees the repository's index and its `.gitignore` files, because the agent may have
    written the rest.
    """

    def ask(paths: Collection[str]) -> set[str]:
        top = next((each for each in (root, *root.parents) if (each / ".git").exists()), None)
        if top is None:
            return set()
        with TemporaryDirectory(prefix="midwatch-") as scratch:
            git_dir = Path(scratch)
            for name in ("objects", "refs"):
                (git_dir / name).mkdir()
            (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
            index = top / ".git" / "index"
            environ = {"GIT_INDEX_FILE": str(index)} if index.is_file() else {}
            below = root.relative_to(top)
            place = Worktree(folder=top, git_dir=git_dir, environ=environ)
            named = {(below / path).as_posix(): path for path in paths}
            return {named[each] for each in ignored_in(place)(named) if each in named}

    return ask
