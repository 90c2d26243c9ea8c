"""What changed on disk: the contents of a workspace, compared by hash."""

import asyncio
import hashlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from midwatch_monitor.words import Edit, Writer

IGNORED = frozenset(
    {
        ".git", ".hg", ".svn", ".midwatch", ".venv", "node_modules", "__pycache__",
        ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".hypothesis",
    }
)  # fmt: skip
"""Folders that tools fill by themselves; nothing in them is anybody's edit."""

_HASHED_BYTES = 4_000_000
"""Of a larger file only the head counts for its hash, with its size."""


@dataclass(frozen=True, slots=True)
class _Seen:
    stamp: tuple[int, int, int]
    """Modification time, size and inode: while they stay, the content is not read again."""
    digest: str


class Tree:
    """The files below one folder, as they were when last looked at.

    A look costs one `stat` per file, and a hash for each file that has changed. A folder with more
    than `max_files` files is not walked: then only the paths that are named are looked at.
    """

    def __init__(self, root: Path, *, max_files: int) -> None:
        self.root = root
        self._max_files = max_files
        self._seen: dict[str, _Seen] = {}
        self._named_only = False
        self._ignored: dict[str, bool] = {}

    async def begin(self) -> None:
        """Take the present contents as known."""
        await self.changes(Writer.WORKER)
        self._ignored.clear()

    async def changes(self, writer: Writer, named: str = "") -> tuple[Edit, ...]:
        """The edits since the last look, all by `writer`; ignored files are left out.

        `named` is a path that the last act named: it is looked at even if the folder is too large.
        """
        return await asyncio.to_thread(self._look, writer, named)

    def _look(self, writer: Writer, named: str) -> tuple[Edit, ...]:
        first = not self._seen and not self._named_only
        present = dict(self._walk(named))
        edits = [self._edit(path, stat, writer) for path, stat in present.items()]
        if not self._named_only:
            edits += [self._gone(path, writer) for path in self._seen.keys() - present.keys()]
        found = [edit for edit in edits if edit is not None]
        return () if first or not found else self._not_ignored(found)

    def _walk(self, named: str) -> Iterator[tuple[str, os.stat_result]]:
        if self._named_only:
            yield from self._stat_named(named)
            return
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
                    yield self._name(Path(item.path)), item.stat(follow_symlinks=False)

    def _stat_named(self, named: str) -> Iterator[tuple[str, os.stat_result]]:
        path = (self.root / named).resolve() if named else self.root
        if path.is_file() and path.is_relative_to(self.root.resolve()):
            yield path.relative_to(self.root.resolve()).as_posix(), path.stat()

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _edit(self, path: str, stat: os.stat_result, writer: Writer) -> Edit | None:
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        before = self._seen.get(path)
        if before is not None and before.stamp == stamp:
            return None
        digest = _digest(self.root / path, stat.st_size)
        self._seen[path] = _Seen(stamp, digest)
        if before is not None and before.digest == digest:
            return None
        return Edit(path=path, digest=digest, before=before.digest if before else "", writer=writer)

    def _gone(self, path: str, writer: Writer) -> Edit:
        before = self._seen.pop(path)
        return Edit(path=path, before=before.digest, writer=writer, deleted=True)

    def _not_ignored(self, edits: list[Edit]) -> tuple[Edit, ...]:
        unknown = [edit.path for edit in edits if edit.path not in self._ignored]
        if unknown:
            ignored = _git_ignores(self.root, unknown)
            self._ignored.update({path: path in ignored for path in unknown})
        return tuple(edit for edit in edits if not self._ignored[edit.path])


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as items:
            return list(items)
    except OSError:  # it vanished, or is not ours to read: nothing of it was edited by us
        return []


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


def _git_ignores(root: Path, paths: list[str]) -> set[str]:
    """Which of the paths git ignores; none where there is no git."""
    try:
        answer = subprocess.run(
            ["git", "check-ignore", "--stdin", "-z"],
            cwd=root,
            input="\0".join(paths).encode(),
            capture_output=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return set(answer.stdout.decode(errors="replace").split("\0")) - {""}
