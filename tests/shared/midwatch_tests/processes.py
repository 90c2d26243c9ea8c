"""Processes that others have started, and their ends."""

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from select import select

from anyio import wait_readable

from midwatch_monitor.bus import LocalBus


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


async def childless(process: int) -> None:
    """Wait until a process has no child, also none that is over and not taken note of yet.

    Five minutes at most.
    """
    nothing = LocalBus().subscribe()
    async with asyncio.timeout(300):
        while children(process):
            await nothing.wait(0.02)


@contextmanager
def reading_pipe(path: Path) -> Generator[int]:
    """A new named pipe, open for reading: programs write to it, and hold it while they live."""
    os.mkfifo(path)
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield opened
    finally:
        os.close(opened)


async def written_unheard(pipe: int) -> None:
    """Let a program begin and write to the pipe, while the loop stands and hears nothing of it."""
    while not select([pipe], [], [], 0.3)[0]:  # noqa: ASYNC110 - one turn of the loop at a time
        await asyncio.sleep(0)


async def let_go(pipe: int) -> None:
    """Wait until nobody holds the pipe; two minutes at most."""
    async with asyncio.timeout(120):
        while True:
            try:
                if not os.read(pipe, 9):
                    return
            except BlockingIOError:
                await wait_readable(pipe)
