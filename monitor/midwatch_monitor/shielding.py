"""Work that no cancellation cuts off, and work that ends with other work."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


def heed(done: "asyncio.Future[Any]") -> None:
    """Look at how work ended, as a callback of it: where whoever waits for it has failed or is
    cancelled first, nobody else does, and asyncio would report its failure as overlooked."""
    if not done.cancelled() and (error := done.exception()) is not None:
        log.debug("what was cut short has failed: %s", error)


@asynccontextmanager
async def meanwhile(*works: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Have these done until the end of the block, where they are cancelled and waited for."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def finish_before_cancel(work: Coroutine[Any, Any, T]) -> T:
    """Let work end before a cancellation takes effect, however often that comes.

    Cut off, it would be in doubt.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(heed)
    cut: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cut = error
    if cut is not None:
        raise cut
    return task.result()
