"""The end of a process that a worker would keep alive: threads cannot be cancelled."""

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from midwatch_supervisor.cli.interrupts import INTERRUPTED, INTERRUPTS

NOTICE = "ending what is under way; Ctrl-C again leaves at once"
_STOPPING = 0.5
"""Seconds that an idle thread may take to notice that its loop has ended."""


def run_to_end(
    work: Coroutine[Any, Any, int], *, grace_seconds: float, notice: str = NOTICE
) -> int:
    """Like `asyncio.run`, but what does not heed its cancellation keeps the process only so long.

    That is a tool that blocks in a thread, or a task that goes on when it is cancelled: the
    process leaves without them, with the exit code that the work came to. The notice is for whoever
    interrupts it.
    """
    others = frozenset(threading.enumerate())
    leaving = threading.Timer(grace_seconds, _leave)
    leaving.daemon = True

    async def watched() -> int:
        code = 1
        try:
            code = await work
        except asyncio.CancelledError:
            code = INTERRUPTED
            raise
        finally:
            leaving.args = [code]
            leaving.start()
        return code

    try:
        return INTERRUPTS.run(watched(), notice=notice)
    finally:
        if not any(_stuck(thread) for thread in set(threading.enumerate()) - others - {leaving}):
            leaving.cancel()


def _stuck(thread: threading.Thread) -> bool:
    if not thread.daemon:
        thread.join(_STOPPING)
    return not thread.daemon and thread.is_alive()


def _leave(code: int) -> None:
    # Where nobody reads the output, a thread that writes holds it, and no flush comes to an end.
    flushing = threading.Thread(target=_flush, daemon=True)
    flushing.start()
    flushing.join(_STOPPING)
    os._exit(code)


def _flush() -> None:
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
