"""Processes that an attempt left behind: found by the mark in their environment, and ended."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from midwatch_agents.sandbox import MARK

_PROC = Path("/proc")


async def end_leftovers(mark: str) -> int:
    """End every process that carries the mark; answers how many there were.

    Works where there is a `/proc`; elsewhere it finds nothing.
    """
    found: set[int] = set()
    while (
        fresh := await asyncio.to_thread(_marked, mark) - found
    ):  # one may beget another meanwhile
        for process in fresh:
            with suppress(OSError):  # it ended by itself, or belongs to somebody else
                os.kill(process, signal.SIGKILL)
        found |= fresh
    return len(found)


def _marked(mark: str) -> set[int]:
    if not _PROC.is_dir():
        return set()
    wanted = f"{MARK}={mark}".encode()
    own = os.getpid()
    found: set[int] = set()
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == own:
            continue
        try:
            environ = (entry / "environ").read_bytes()
        except OSError:  # gone, or not ours to look at
            continue
        if wanted in environ.split(b"\0"):
            found.add(int(entry.name))
    return found
