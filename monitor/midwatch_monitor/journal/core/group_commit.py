"""Commits that come together are written together: as one piece of work, with one insert."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock

from sqlalchemy import Connection

from midwatch_monitor.journal.core import commits
from midwatch_monitor.journal.core.writer import Job
from midwatch_monitor.records import Commit, Entry

_Future = asyncio.Future[tuple[Entry, ...]]
_Wanted = tuple[Commit, _Future]


class Gathering:
    """What waits for the writer, of one event loop: the writer takes all that came until then.

    A commit is never written before what was submitted earlier, nor after what was submitted later:
    whoever submits anything else calls `seal` first.
    """

    def __init__(self, put: Callable[[Job], None], *, most: int) -> None:
        self._put = put
        self._most = most
        self._open: _Group | None = None

    def seal(self) -> None:
        """What comes from here on is written after what is submitted next."""
        self._open = None

    def add(self, commit: Commit) -> _Future:
        """Have a commit written; what becomes of it. Raises JournalError once it is closed.

        It is written also where the future is cancelled.
        """
        loop = asyncio.get_running_loop()
        future: _Future = loop.create_future()
        group = self._open
        if group is None or group.loop is not loop or not group.add((commit, future), self._most):
            group = _Group(loop, [(commit, future)], time.monotonic())
            self._put(group)
            self._open = group
        return future


class _Group:
    """Commits that are written in one transaction, and whoever awaits them; a job of the writer."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, wanted: list[_Wanted], submitted: float
    ) -> None:
        self.loop = loop
        self.submitted = submitted
        self._wanted = wanted
        self._lock = Lock()
        self._begun = False
        self._written: list[tuple[Entry, ...]] = []

    def add(self, wanted: _Wanted, most: int) -> bool:
        """Add a commit, unless the writer has begun or there are enough."""
        with self._lock:
            if self._begun or len(self._wanted) >= most:
                return False
            self._wanted.append(wanted)
            return True

    def begin(self) -> bool:
        with self._lock:
            self._begun = True
        return True

    def run(self, connection: Connection) -> None:
        given = [commit for commit, _ in self._wanted]
        if len(given) == 1:
            self._written = [commits.commit(connection, given[0])]
        else:
            self._written = commits.commit_all(connection, given)

    def succeed(self) -> None:
        self._call(self._hand_out)

    def fail(self, error: Exception) -> None:
        def tell() -> None:
            for _, future in self._wanted:
                if not future.done():
                    future.set_exception(error)

        self._call(tell)

    def parts(self) -> "Sequence[_Group]":
        """Halves: so a bad one among many is found, and harms no other."""
        middle = len(self._wanted) // 2
        halves = (self._wanted[:middle], self._wanted[middle:]) if middle else ()
        return [_Group(self.loop, half, self.submitted) for half in halves]

    def _call(self, tell: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(tell)

    def _hand_out(self) -> None:
        for (_, future), entries in zip(self._wanted, self._written, strict=True):
            if not future.done():  # it was cancelled
                future.set_result(entries)
