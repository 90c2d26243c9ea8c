"""The thread that writes to the journal, and the threads that read from it.

Jobs queued while the writer commits go into its next transaction.
"""

import asyncio
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count, groupby
from queue import Empty, SimpleQueue
from threading import Event, Thread, get_ident
from typing import TYPE_CHECKING, Any, TypeVar

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

_CLOSE_SECONDS = 3.0
"""How long closing waits for a database that does not answer."""


def _receipts(name: str) -> "Receipts":
    # Imported only if needed: this loads PostgreSQL's dialect.
    from midwatch_monitor.journal.postgres.postgres import Receipts

    return Receipts(name)


class _Job:
    """A commit, or a function to be called in a transaction, and the future of its caller."""

    def __init__(self, work: Commit | Callable[[Connection], object]) -> None:
        self.work = work
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.submitted = time.monotonic()
        self.result: object = None

    @property
    def wanted(self) -> bool:
        """Whether it is to be done. A commit is written even if nobody awaits it any more."""
        return isinstance(self.work, Commit) or not self.future.cancelled()


class _Batch:
    """Jobs that share a transaction in all its tries."""

    def __init__(self, jobs: Sequence[_Job], number: int) -> None:
        self.jobs = jobs
        self.number = number
        self.sent = False
        """Whether a commit was sent but never answered."""


class DatabaseWriter:
    """Runs work in transactions, in the order of submission, in its own thread.

    Work submitted while a transaction runs shares the next one (group commit). If that fails, its
    halves are retried separately, so that a bad job does not harm the others. If PostgreSQL is
    unavailable, the same transaction is retried until its jobs have waited for the configured
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
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._closed = False
        self.transactions = 0
        """Number of committed transactions."""
        self._begun: float | None = None
        self._connection: Connection | None = None
        self._thread = Thread(target=self._serve, name="journal-writer", daemon=True)
        self._thread.start()

    @property
    def stuck(self) -> float:
        """Seconds that the current call to the database has taken; 0 if there is none."""
        begun = self._begun
        return 0.0 if begun is None else time.monotonic() - begun

    def submit(self, work: Callable[[Connection], T]) -> asyncio.Future[T]:
        """Queue work; the future is done once its transaction is committed.

        The work must depend only on its connection, as it may run twice. The future fails with the
        work's exception, or with a JournalError. Raises JournalError after closing.
        """
        return self._put(_Job(work))

    def commit(self, commit: Commit) -> asyncio.Future[tuple[Entry, ...]]:
        """Queue a commit, as `submit` does; it is written even if the future is canceled."""
        return self._put(_Job(commit))

    def _put(self, job: _Job) -> asyncio.Future[Any]:
        if self._closed:
            raise JournalError(f"{self._name} is closed")
        self._queue.put(job)
        return job.future

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
            before = self.transactions
            self._thread.join(_CLOSE_SECONDS)
            if before == self.transactions:
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
        if receipts is not None and self.transactions and not self._patience.ended:
            with suppress(SQLAlchemyError), self._transaction() as connection:
                receipts.clear(connection)
        self._release()

    def _next_jobs(self) -> tuple[list[_Job], bool]:
        """Wait for work and take what is queued; return whether that was the last."""
        jobs: list[_Job] = []
        job = self._queue.get()
        while job is not None:
            if job.wanted:
                jobs.append(job)
            if len(jobs) == self._max_batch:
                return jobs, False
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs, False
        return jobs, True

    def _commit(self, jobs: Sequence[_Job]) -> None:
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
                _run_jobs(connection, batch.jobs)
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
        self.transactions += 1
        _resolve_futures(batch.jobs)

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
            self._retry_halves(batch, error)

    def _given_up(self, batch: _Batch, error: BaseException) -> bool:
        """Fail the jobs that have waited long enough; return whether none are left."""
        limit = time.monotonic() - self._patience.seconds
        late = [job for job in batch.jobs if self._patience.ended or job.submitted <= limit]
        if late and isinstance(error, SQLAlchemyError):
            self._fail_jobs(late, error, unknown=batch.sent)
            batch.jobs = [job for job in batch.jobs if job not in late]
        return not batch.jobs

    def _retry_halves(self, batch: _Batch, error: Exception) -> None:
        """Try the halves separately, unless the work may already have been done."""
        middle = len(batch.jobs) // 2
        if middle and not batch.sent and not is_hopeless(error):
            self._commit(batch.jobs[:middle])
            self._commit(batch.jobs[middle:])
        else:
            self._fail_jobs(batch.jobs, error, unknown=batch.sent)

    def _fail_jobs(self, jobs: Sequence[_Job], error: Exception, *, unknown: bool = False) -> None:
        if isinstance(error, SQLAlchemyError):
            waited = 0 if self._patience.ended else self._patience.seconds
            why = journal_error(error, self._name, waited)
            error = type(why)(f"{why}; it is unknown if this was written") if unknown else why
        _resolve_futures(jobs, error)


def _run_jobs(connection: Connection, jobs: Sequence[_Job]) -> None:
    """Do the work of jobs in order. Commits that follow one another are stored together."""
    for _, part in groupby(jobs, key=lambda job: isinstance(job.work, Commit)):
        some = list(part)
        given = [job.work for job in some if isinstance(job.work, Commit)]
        calls = [job.work for job in some if not isinstance(job.work, Commit)]
        results = commits.commit_all(connection, given) if given else [f(connection) for f in calls]
        for job, result in zip(some, results, strict=True):
            job.result = result


def _resolve_futures(jobs: Sequence[_Job], error: Exception | None = None) -> None:
    """Pass the results of jobs, or one error, to their callers: one call for each event loop."""

    def resolve(some: Sequence[_Job]) -> None:
        for job in some:
            if job.future.done():  # it was canceled
                continue
            if error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(error)

    for loop, part in groupby(jobs, key=lambda job: job.future.get_loop()):
        with suppress(RuntimeError):  # the loop is closed: nobody is waiting
            loop.call_soon_threadsafe(resolve, list(part))


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
