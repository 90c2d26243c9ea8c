"""Work that no cancellation cuts off."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


def heed(done: "asyncio.Future[Any]") -> None:
    """Look at how work ended, as a callback of it: where whoever waits for it has failed or is
    cancelled first, nobody else does, and asyncio would report its failure as overlooked."""
    if not done.cancelled() and (error := done.exception()) is not None:
        log.debug("what was cut short has failed: %s", error)


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
