"""The thread that writes to the journal, and the threads that read from it.

Jobs queued while the writer commits go into its next transaction.
"""

import asyncio
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, get_ident
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.core import commits
from midwatch_monitor.journal.core.engine import READERS, explain_errors, is_hopeless, journal_error
from midwatch_monitor.journal.core.outage import OutageWait, is_passing
from midwatch_monitor.records import Commit, Entry

if TYPE_CHECKING:
    from midwatch_monitor.journal.postgres.postgres import Receipts


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_CLOSE_SECONDS = 3.0
"""How long closing waits for a database that does not answer."""


def _receipts(name: str) -> "Receipts":
    # Imported only if needed: this loads PostgreSQL's dialect.
    from midwatch_monitor.journal.postgres.postgres import Receipts

    return Receipts(name)


class DatabaseJob(Protocol):
    """A piece of work for the writer, which calls all methods in its thread."""

    submitted: float
    """The time of submission by the monotonic clock."""

    def begin(self) -> bool:
        """Return whether the job is still wanted; from now on it cannot be canceled."""
        ...

    def run(self, connection: Connection) -> None:
        """Do the work. It may run again after a rollback."""
        ...

    def succeed(self) -> None:
        """Report that the last run was committed."""
        ...

    def fail(self, error: Exception) -> None:
        """Report that the job was not done, and will not be."""
        ...

    def parts(self) -> "Sequence[DatabaseJob]":
        """Return smaller jobs that may succeed if the whole fails; empty if it is indivisible."""
        ...


class _Call(Generic[T_co]):
    """A function call, and the future of its caller."""

    def __init__(self, work: Callable[[Connection], T_co], future: "Future[T_co]") -> None:
        self._work = work
        self._future = future
        self.submitted = time.monotonic()

    def begin(self) -> bool:
        return self._future.set_running_or_notify_cancel()

    def run(self, connection: Connection) -> None:
        self._result = self._work(connection)

    def succeed(self) -> None:
        self._future.set_result(self._result)

    def fail(self, error: Exception) -> None:
        self._future.set_exception(error)

    def parts(self) -> Sequence[DatabaseJob]:
        return ()


class _Batch:
    """Jobs that share a transaction in all its tries."""

    def __init__(self, jobs: Sequence[DatabaseJob], number: int) -> None:
        self.jobs = jobs
        self.number = number
        self.sent = False
        """Whether a commit was sent but never answered."""


class DatabaseWriter:
    """Runs work in transactions, in the order of submission, in its own thread.

    Work submitted while a transaction runs shares the next one (group commit). If that fails, each
    job is retried in its own transaction, so that a bad one does not harm the others. If PostgreSQL
    is unavailable, the same transaction is retried until its jobs have waited for the configured
    patience; it takes effect only once, even if the answer to a commit was lost.
    """

    def __init__(
        self, engine: Engine, *, name: str, max_batch: int, patience: OutageWait | None = None
    ) -> None:
        self._engine = engine
        self._name = name
        self._max_batch = max_batch
        self._patience = patience or OutageWait(0)
        self._receipts = _receipts(name) if engine.dialect.name == "postgresql" else None
        self._numbers = count(1)
        self._queue: SimpleQueue[DatabaseJob | None] = SimpleQueue()
        self._closed = False
        self._transactions = 0
        self._begun: float | None = None
        self._connection: Connection | None = None
        self._thread = Thread(target=self._serve, name="journal-writer", daemon=True)
        self._thread.start()

    @property
    def transactions(self) -> int:
        """Number of committed transactions."""
        return self._transactions

    @property
    def stuck(self) -> float:
        """Seconds that the current call to the database has taken; 0 if there is none."""
        begun = self._begun
        return 0.0 if begun is None else time.monotonic() - begun

    def submit(self, work: Callable[[Connection], T]) -> "Future[T]":
        """Queue work; the future is done once its transaction is committed.

        The work must depend only on its connection, as it may run twice. The future fails with the
        work's exception, or with a JournalError.
        """
        future: Future[T] = Future()
        self.put(_Call(work, future))
        return future

    def put(self, job: DatabaseJob) -> None:
        """Queue a job. Raises JournalError after closing."""
        if self._closed:
            raise JournalError(f"{self._name} is closed")
        self._queue.put(job)

    def close(self, cut: Callable[[], None] = lambda: None) -> None:
        """Finish queued work, and end the thread.

        PostgreSQL is given only a few seconds: after that, unwritten work fails, and `cut` must end
        a connection that does not answer.
        """
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        if self._receipts is None:
            self._thread.join()
        while self._thread.is_alive():
            before = self._transactions
            self._thread.join(_CLOSE_SECONDS)
            if before == self._transactions:
                self._patience.end()
            if self.stuck > _CLOSE_SECONDS / 2:
                cut()

    def _serve(self) -> None:
        last = False
        while not last:
            jobs, last = self._next_jobs()
            if jobs:
                self._commit(jobs)
        self._clear_receipt()

    def _clear_receipt(self) -> None:
        """Remove the writer's receipt; if that fails, others will remove it later."""
        receipts = self._receipts
        if receipts is not None and self._transactions and not self._patience.ended:
            with suppress(SQLAlchemyError), self._transaction() as connection:
                receipts.clear(connection)
        self._release()

    def _next_jobs(self) -> tuple[list[DatabaseJob], bool]:
        """Wait for work and take what is queued; return whether that was the last."""
        jobs: list[DatabaseJob] = []
        job = self._queue.get()
        while job is not None:
            if job.begin():
                jobs.append(job)
            if len(jobs) == self._max_batch:
                return jobs, False
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs, False
        return jobs, True

    def _commit(self, jobs: Sequence[DatabaseJob]) -> None:
        batch = _Batch(jobs, next(self._numbers))
        try:
            self._try_batch(batch)
        except Exception as error:  # any error is passed to the caller that awaits the work
            self._ride_out(batch, error)
        else:
            self._report_success(batch)

    def _try_batch(self, batch: _Batch) -> None:
        asked = False
        try:
            with self._transaction() as connection:
                if self._receipts and not self._receipts.sign(connection, batch.number):
                    return  # an earlier try was committed; the jobs hold its results
                batch.sent = False
                for job in batch.jobs:
                    job.run(connection)
                asked = True
        except Exception as error:
            # Any other error of the commit is an answer.
            batch.sent = batch.sent or (asked and is_passing(error))
            raise

    @contextmanager
    def _transaction(self) -> Generator[Connection]:
        self._begun = time.monotonic()
        try:
            # Kept between transactions, since a round trip through the pool takes as long as a
            # commit. After an error it is returned to the pool, which resets it.
            if self._connection is None:
                self._connection = self._engine.connect()
            with self._connection.begin():
                yield self._connection
        except BaseException:
            self._release()
            raise
        finally:
            self._begun = None

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _report_success(self, batch: _Batch) -> None:
        self._transactions += 1
        for job in batch.jobs:
            job.succeed()

    def _ride_out(self, batch: _Batch, error: Exception) -> None:
        """Retry while that may help and any job in the batch has patience left."""
        if is_passing(error) and not self._given_up(batch, error):
            try:
                self._patience.again(
                    lambda: self._try_batch(batch), lambda error: self._given_up(batch, error)
                )
            except Exception as last:  # as above
                error = last
            else:
                self._report_success(batch)
                return
        if batch.jobs:
            self._retry_in_pieces(batch, error)

    def _given_up(self, batch: _Batch, error: BaseException) -> bool:
        """Fail the jobs that have waited long enough; return whether none are left."""
        limit = time.monotonic() - self._patience.seconds
        late = [job for job in batch.jobs if self._patience.ended or job.submitted <= limit]
        if late and isinstance(error, SQLAlchemyError):
            self._fail_jobs(late, error, unknown=batch.sent)
            batch.jobs = [job for job in batch.jobs if job not in late]
        return not batch.jobs

    def _retry_in_pieces(self, batch: _Batch, error: Exception) -> None:
        """Try smaller pieces separately, unless the work may already have been done."""
        jobs = batch.jobs if len(batch.jobs) > 1 else batch.jobs[0].parts()
        if jobs and not batch.sent and not is_hopeless(error):
            for job in jobs:
                self._commit([job])
        else:
            self._fail_jobs(batch.jobs, error, unknown=batch.sent)

    def _fail_jobs(
        self, jobs: Sequence[DatabaseJob], error: Exception, *, unknown: bool = False
    ) -> None:
        if isinstance(error, SQLAlchemyError):
            waited = 0 if self._patience.ended else self._patience.seconds
            why = journal_error(error, self._name, waited)
            error = type(why)(f"{why}; it is unknown if this was written") if unknown else why
        for job in jobs:
            job.fail(error)


_Future = asyncio.Future[tuple[Entry, ...]]
_Wanted = tuple[Commit, _Future]


class GroupCommit:
    """Collects the commits of one event loop until the writer takes them all at once.

    A commit is never written before earlier submissions or after later ones: call `seal` before
    submitting anything else.
    """

    def __init__(self, put: Callable[[DatabaseJob], None], *, most: int) -> None:
        self._put = put
        self._most = most
        self._open: _Group | None = None

    def seal(self) -> None:
        """Close the current group: later commits are written after the next submission."""
        self._open = None

    def add(self, commit: Commit) -> _Future:
        """Queue a commit, and return its future. Raises JournalError after closing.

        It is written even if the future is canceled.
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
    """Commits written in one transaction, with their futures; a job of the writer."""

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
        """Add a commit, unless the writer has begun or the group is full."""
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
        self._call_in_loop(self._hand_out)

    def fail(self, error: Exception) -> None:
        def tell() -> None:
            for _, future in self._wanted:
                if not future.done():
                    future.set_exception(error)

        self._call_in_loop(tell)

    def parts(self) -> "Sequence[_Group]":
        """Return the two halves, so that a bad commit is isolated and does not harm the others."""
        middle = len(self._wanted) // 2
        halves = (self._wanted[:middle], self._wanted[middle:]) if middle else ()
        return [_Group(self.loop, half, self.submitted) for half in halves]

    def _call_in_loop(self, tell: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is waiting
            self.loop.call_soon_threadsafe(tell)

    def _hand_out(self) -> None:
        for (_, future), entries in zip(self._wanted, self._written, strict=True):
            if not future.done():  # it was canceled
                future.set_result(entries)


class DatabaseReader:
    """Runs queries, several at the same time, and survives outages of the database."""

    def __init__(self, engine: Engine, *, name: str, patience: OutageWait) -> None:
        self._engine = engine
        self._name = name
        self._patience = patience
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="journal-reader")
        self._begun: dict[int, float] = {}

    @property
    def stuck(self) -> float:
        """Seconds that the longest current query has taken; 0 if there is none."""
        begun = list(self._begun.values())
        return time.monotonic() - min(begun) if begun else 0.0

    def submit(self, work: Callable[[Connection], T], unwanted: Event) -> "Future[T]":
        """Run a query concurrently; fails with the work's exception, or with a JournalError.

        Once `unwanted` is set, it no longer waits for an outage to end.
        """
        return self._threads.submit(self._read_patiently, work, unwanted)

    def close(self, cut: Callable[[], None]) -> None:
        """Wait for running queries, but not for a database that does not answer.

        `cut` must end the connections to such a database.
        """
        self._patience.end()
        ending = Thread(target=self._threads.shutdown, name="journal-closing", daemon=True)
        ending.start()
        while ending.is_alive():
            ending.join(_CLOSE_SECONDS / 2)
            # Queued queries that start now may hang as well.
            if self.stuck > _CLOSE_SECONDS:
                cut()

    def _read_patiently(self, work: Callable[[Connection], T], unwanted: Event) -> T:
        with explain_errors(self._name, self._patience.seconds):
            return self._patience.hold(lambda: self._read_once(work), lambda _: unwanted.is_set())

    def _read_once(self, work: Callable[[Connection], T]) -> T:
        thread = get_ident()
        self._begun[thread] = time.monotonic()
        try:
            with self._engine.connect() as connection:
                return work(connection)
        finally:
            del self._begun[thread]
