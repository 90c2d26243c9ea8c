"""Runs work that a cancellation must not interrupt, and work that ends with a block."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


def retrieve_exception(done: "asyncio.Future[Any]") -> None:
    """Retrieve the exception of finished work; a done callback.

    If the waiting code has failed or is canceled first, nobody else retrieves the exception, and
    asyncio would log that it was never retrieved.
    """
    if not done.cancelled() and (error := done.exception()) is not None:
        log.debug("interrupted work failed: %s", error)


@asynccontextmanager
async def meanwhile(*works: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run coroutines until the end of the block, then cancel them and wait for them."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def finish_before_cancel(work: Coroutine[Any, Any, T]) -> T:
    """Finish work before a cancellation takes effect, even if it is canceled repeatedly.

    If it were interrupted, it would be unknown how much of it was done.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(retrieve_exception)
    cut: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cut = error
    if cut is not None:
        raise cut
    return task.result()
