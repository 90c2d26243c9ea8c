"""File locks against other processes; a lock ends with its process, however the process ends."""

import asyncio
import fcntl
import os
from itertools import count
from pathlib import Path


async def lock_file(path: Path, *, pause: float, tries: int | None = None) -> int | None:
    """Create a file if needed and lock it; return a descriptor to close.

    Tries again every `pause` seconds, so that no thread blocks; returns `None` after `tries`.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for tried in count(1):
            if _try_lock(file):
                return file
            if tried == tries:
                break
            await asyncio.sleep(pause)
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return None


def is_locked(path: Path) -> bool | None:
    """Whether a process holds the lock of a file; `None` if the file cannot be opened."""
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        return not _try_lock(file)
    finally:
        os.close(file)


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
