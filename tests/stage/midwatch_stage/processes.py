"""Processes that others have started, and their ends."""

import asyncio
import os
from pathlib import Path


def children(of: int) -> list[int]:
    """The numbers of the processes that a process has started."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(after_name[1]) == of:
            found.append(int(entry.parent.name))
    return found


async def ended(process: int) -> None:
    """Wait for a process to be gone; five minutes at most."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, over.set)
    try:
        async with asyncio.timeout(300):
            await over.wait()
    finally:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
