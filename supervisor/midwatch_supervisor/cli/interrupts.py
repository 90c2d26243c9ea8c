"""Ctrl-C: the first stops a command in an orderly way, the second ends the process at once.

Neither shows a traceback. This module imports next to nothing, because it must be active while
everything else is imported.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

INTERRUPTED = 130
"""Exit code of an interrupted command."""

T = TypeVar("T")
SignalHandler = Callable[[int, FrameType | None], object] | int | None


def leave_at_once(*_: object) -> None:
    """End the process at once. The journal stays whole, as after a crash."""
    os._exit(INTERRUPTED)


class Interrupts:
    """Handles Ctrl-C in the main thread of this process, the only one that receives signals."""

    def __init__(self) -> None:
        self.came = False
        """Whether an interrupt has arrived: a later failure may be due to it."""

    def take(self) -> None:
        """From now on, the first Ctrl-C raises KeyboardInterrupt, the second ends the process."""
        _set_handler(self._raise_interrupt)
        sys.unraisablehook = self._ignore_interrupt

    def run(self, work: Coroutine[object, object, T], *, notice: str = "") -> T:
        """Like `asyncio.run`, but the first interrupt cancels the work and prints the notice.

        Raises KeyboardInterrupt once the work has ended.
        """
        import asyncio

        before = signal.getsignal(signal.SIGINT)

        async def cancellable() -> T:
            _set_handler(
                self._canceling_handler(asyncio.get_running_loop(), asyncio.current_task(), notice)
            )
            return await work

        try:
            return asyncio.run(cancellable())
        except asyncio.CancelledError:
            if self.came:
                raise KeyboardInterrupt from None
            raise
        finally:
            _set_handler(leave_at_once if self.came else before)
            work.close()  # if it never began

    def _canceling_handler(
        self, loop: "asyncio.AbstractEventLoop", task: "asyncio.Task[T] | None", notice: str
    ) -> SignalHandler:
        def cancel(*_: object) -> None:
            self._note_interrupt()
            if task is None or loop.is_closed():
                raise KeyboardInterrupt
            if notice:
                os.write(2, f"{notice}\n".encode())
            loop.call_soon_threadsafe(task.cancel)

        return cancel

    def _raise_interrupt(self, *_: object) -> None:
        self._note_interrupt()
        raise KeyboardInterrupt

    def _note_interrupt(self) -> None:
        self.came = True
        _set_handler(leave_at_once)

    def _ignore_interrupt(self, unraisable: "sys.UnraisableHookArgs") -> None:
        """Ignore an interrupt that arrived where nothing can be raised."""
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)


INTERRUPTS = Interrupts()
"""The handler of this process."""


def _set_handler(handler: SignalHandler) -> None:
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as a shell starts a script's `&`
    if threading.current_thread() is threading.main_thread() and not ignored:
        signal.signal(signal.SIGINT, handler)


NOTICE = "stopping what is in progress; press Ctrl-C again to leave at once"
_STOPPING = 0.5
"""Seconds that an idle thread may take to notice that its loop has ended."""


def run_to_end(
    work: Coroutine[Any, Any, int], *, grace_seconds: float, notice: str = NOTICE
) -> int:
    """Like `asyncio.run`, but work that ignores its cancellation ends after `grace_seconds`.

    Such work is a tool that blocks in a thread, or a task that continues after its cancellation.
    The process exits without it, with the exit code that the work had reached. The notice is shown
    to the person who interrupts it.
    """
    import asyncio

    others = frozenset(threading.enumerate())
    leaving = threading.Timer(grace_seconds, _exit_process)
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
        if not any(
            _still_runs(thread) for thread in set(threading.enumerate()) - others - {leaving}
        ):
            leaving.cancel()


async def run_until_stopped(work: Coroutine[Any, Any, None], leave: Callable[[], None]) -> None:
    """Run the work until SIGTERM or Ctrl-C ends it as planned; `leave` announces that end."""
    import asyncio

    working = asyncio.create_task(work)

    def stop() -> None:
        if not working.cancelling():
            with suppress(OSError):  # the reader is gone; the work ends anyway
                leave()
                sys.stdout.flush()
        working.cancel()

    if threading.current_thread() is threading.main_thread():  # no other thread receives signals
        for sign in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(sign, stop)
    try:
        await working
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise


async def run_until_first(*work: Coroutine[Any, Any, object]) -> None:
    """Run all of this until the first has ended; cancel the rest, and raise its error."""
    import asyncio

    tasks = [asyncio.create_task(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _still_runs(thread: threading.Thread) -> bool:
    if not thread.daemon:
        thread.join(_STOPPING)
    return not thread.daemon and thread.is_alive()


def _exit_process(code: int) -> None:
    # If nobody reads the output, a writing thread holds the stream, and a flush would never return.
    flushing = threading.Thread(target=_flush_output, daemon=True)
    flushing.start()
    flushing.join(_STOPPING)
    os._exit(code)


def _flush_output() -> None:
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
