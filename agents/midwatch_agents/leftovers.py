"""Processes that an attempt left behind: found by the mark in their environment, and ended."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from midwatch_agents.sandbox import MARK

_PROC = Path("/proc")


def process_mark(place: str, incarnation: int) -> str:
    """The mark of what one incarnation of an attempt starts in a place."""
    return f"{place}#{incarnation}"


async def end_leftovers(mark: str) -> int:
    """End every process that carries the mark; answers how many there were.

    Works where there is a `/proc`; elsewhere it finds nothing.
    """
    return await _end(lambda borne: borne == mark)


async def end_all_leftovers(place: str) -> int:
    """End what any incarnation has started in a place; for one that has not begun there itself."""
    return await _end(lambda borne: borne.rpartition("#")[0] == place)


async def end_leftovers_below(folder: Path) -> int:
    """End what attempts have started in any place below a folder that nobody works in now."""
    return await _end(lambda borne: folder in Path(borne.rpartition("#")[0]).parents)


async def _end(ours: Callable[[str], bool]) -> int:
    found: set[int] = set()
    while (
        fresh := await asyncio.to_thread(_marked, ours) - found
    ):  # one may beget another meanwhile
        for process in fresh:
            with suppress(OSError):  # it ended by itself, or belongs to somebody else
                os.kill(process, signal.SIGKILL)
        found |= fresh
    return len(found)


def _marked(ours: Callable[[str], bool]) -> set[int]:
    if not _PROC.is_dir():
        return set()
    named = f"{MARK}=".encode()
    own = os.getpid()
    found: set[int] = set()
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == own:
            continue
        try:
            environ = (entry / "environ").read_bytes()
        except OSError:  # gone, or not ours to look at
            continue
        borne = (each for each in environ.split(b"\0") if each.startswith(named))
        if any(ours(os.fsdecode(each.removeprefix(named))) for each in borne):
            found.add(int(entry.name))
    return found
