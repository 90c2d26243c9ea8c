"""Commits that come together are written together: as one piece of work, with one insert."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError

from midwatch_monitor.errors import JournalError, JournalFullError
from midwatch_monitor.journal import commits
from midwatch_monitor.journal.engine import explained
from midwatch_monitor.words import Commit, Entry

Outcome = tuple[Entry, ...] | Exception
Submit = Callable[[Callable[[Connection], list[Outcome]]], "Future[list[Outcome]]"]
"""How work is given to the writer."""
_Future = asyncio.Future[tuple[Entry, ...]]
_Wanted = tuple[Commit, _Future]


class Gathering:
    """What waits for the writer, of one event loop: the writer takes all that came until then.

    A commit is never written before what was submitted earlier, nor after what was submitted later:
    whoever submits anything else calls `seal` first.
    """

    def __init__(self, submit: Submit, *, name: str, most: int) -> None:
        self._submit = submit
        self._name = name
        self._most = most
        self._open: _Group | None = None

    def seal(self) -> None:
        """What comes from here on is written after what is submitted next."""
        self._open = None

    def add(self, commit: Commit) -> _Future:
        """Have a commit written; what becomes of it. Raises JournalError once it is closed."""
        loop = asyncio.get_running_loop()
        wanted = commit, loop.create_future()
        group = self._open
        if group is None or group.loop is not loop or not group.add(wanted, self._most):
            self._open = self._begin(loop, wanted)
        return wanted[1]

    def _begin(self, loop: asyncio.AbstractEventLoop, wanted: _Wanted) -> "_Group":
        group = _Group(loop, self._name, wanted)

        def settle(done: "Future[list[Outcome]]") -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(self._tell, group, done)

        self._submit(group.write).add_done_callback(settle)
        return group

    def _tell(self, group: "_Group", done: "Future[list[Outcome]]") -> None:
        error = done.exception()
        if isinstance(error, JournalFullError) and len(group.wanted) > 1:
            self._one_by_one(group)
            return
        outcomes = [error] * len(group.wanted) if error is not None else done.result()
        for (_, future), outcome in zip(group.wanted, outcomes, strict=True):
            _settle(future, outcome)

    def _one_by_one(self, group: "_Group") -> None:
        """A smaller commit may still find room."""
        for wanted in group.wanted:
            try:
                self._begin(group.loop, wanted)
            except JournalError as error:  # it is closed
                _settle(wanted[1], error)


def _settle(future: _Future, outcome: tuple[Entry, ...] | BaseException) -> None:
    if future.done():
        return  # it was cancelled
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


class _Group:
    """Commits that are written in one transaction, and whoever awaits them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, first: _Wanted) -> None:
        self.loop = loop
        self.wanted = [first]
        self._name = name
        self._lock = Lock()
        self._taken = False

    def add(self, wanted: _Wanted, most: int) -> bool:
        """Add a commit, unless the writer has begun or there are enough."""
        with self._lock:
            if self._taken or len(self.wanted) >= most:
                return False
            self.wanted.append(wanted)
            return True

    def write(self, connection: Connection) -> list[Outcome]:
        """Write what is still wanted. In the writer's thread; the second time, the same again."""
        with self._lock:
            if not self._taken:
                self._taken = True
                self.wanted = [each for each in self.wanted if not each[1].cancelled()]
        return written_together(connection, [commit for commit, _ in self.wanted], self._name)


def written_together(connection: Connection, given: Sequence[Commit], name: str) -> list[Outcome]:
    """Write commits in their order; of each its entries, or why it is refused.

    If all together will not do, each is written by itself, so that a bad one harms no other.
    Raises what concerns all of them.
    """
    if len(given) < 2:
        return [commits.commit(connection, each) for each in given]
    try:
        with connection.begin_nested():
            return list(commits.commit_all(connection, given))
    except Exception as error:
        if not _is_own(error):
            raise
    return [_alone(connection, each, name) for each in given]


def _alone(connection: Connection, what: Commit, name: str) -> Outcome:
    try:
        with connection.begin_nested():
            return commits.commit(connection, what)
    except Exception as error:
        if not _is_own(error):
            raise
        return explained(error, name) if isinstance(error, SQLAlchemyError) else error


def _is_own(error: Exception) -> bool:
    """Whether it is the fault of one commit, not of the database or of the way to it."""
    return not isinstance(error, DBAPIError) or isinstance(error, DataError | IntegrityError)
