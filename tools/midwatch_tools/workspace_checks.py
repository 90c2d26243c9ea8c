"""Checks a worker's claims in the workspace of its attempt."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from midwatch_monitor.records import Acceptance, Writer
from midwatch_tools.tools.completion import FilePresence
from midwatch_tools.tree import Tree

RunChecks = Callable[[Sequence[str]], Awaitable[tuple[Acceptance, ...]]]
"""Runs acceptance commands in an attempt's workspace."""

_WILD = frozenset("*?[")


class WorkspaceChecks:
    """Looks for files and runs acceptance commands in the workspace."""

    def __init__(
        self, root: Path | None = None, tree: Tree | None = None, check: RunChecks | None = None
    ) -> None:
        self._root = root
        self._tree = tree
        self._check = check

    @property
    def checks(self) -> bool:
        """Whether commands can be run here."""
        return self._check is not None

    async def look(self, paths: Sequence[str]) -> tuple[FilePresence, ...]:
        """Return whether files, given as paths or patterns, exist and are not empty."""
        if self._root is None:
            return tuple(FilePresence(path=path, known=False) for path in paths)
        return await asyncio.to_thread(_check_presence, self._root, paths)

    async def run(self, commands: Sequence[str]) -> tuple[Acceptance, ...]:
        """Run acceptance commands, if possible here. Files they write do not count as edits."""
        if self._check is None or not commands:
            return ()
        results = await self._check(commands)
        if self._tree is not None:
            await self._tree.changes(Writer.OTHER)
        return results


def _check_presence(root: Path, paths: Sequence[str]) -> tuple[FilePresence, ...]:
    return tuple(
        FilePresence(path=path, fault=_presence_fault(root.resolve(), path)) for path in paths
    )


def _presence_fault(root: Path, path: str) -> str:
    try:
        candidates = list(_candidates(root, path))
        if not candidates:
            return "no file is like that" if _WILD & set(path) else "it is missing"
        inside = [each for each in candidates if each.resolve().is_relative_to(root)]
        if not inside:
            return "it lies outside of the workspace"
        files = [each for each in inside if each.is_file()]
        if not files:
            return "it is not a file" if any(each.exists() for each in inside) else "it is missing"
        return "" if any(each.stat().st_size for each in files) else "it is empty"
    except (OSError, ValueError, RuntimeError, NotImplementedError):
        return "no file can be called that"  # a model may name a link to itself or use a null byte


def _candidates(root: Path, path: str) -> Iterator[Path]:
    exact = root / path
    if not _WILD & set(path) or exact.exists():
        yield exact
    else:
        yield from root.glob(path)
