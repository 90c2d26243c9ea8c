"""The one thread that writes: what is queued while it commits goes into its next transaction."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.engine import explained, is_hopeless, transaction

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Job(Generic[T_co]):
    """A piece of work and whoever awaits it. It may run twice: the first time is rolled back."""

    def __init__(self, work: Callable[[Connection], T_co], future: "Future[T_co]") -> None:
        self._work = work
        self._future = future

    def begin(self) -> bool:
        """Whether it is still wanted; from here on it cannot be cancelled."""
        return self._future.set_running_or_notify_cancel()

    def run(self, connection: Connection) -> None:
        self._result = self._work(connection)

    def succeed(self) -> None:
        self._future.set_result(self._result)

    def fail(self, error: Exception) -> None:
        self._future.set_exception(error)


class Writer:
    """Runs work in transactions, in the order of submission, in a thread of its own.

    What is submitted while a transaction runs shares the next one (group commit). If that fails,
    each piece of work is tried in a transaction of its own, so that one bad piece harms no other.
    """

    def __init__(self, engine: Engine, *, name: str, max_batch: int) -> None:
        self._engine = engine
        self._name = name
        self._max_batch = max_batch
        self._queue: SimpleQueue[_Job[object] | None] = SimpleQueue()
        self._closed = False
        self._transactions = 0
        self._thread = Thread(target=self._serve, name="journal-writer", daemon=True)
        self._thread.start()

    @property
    def transactions(self) -> int:
        """How many transactions were committed."""
        return self._transactions

    def submit(self, work: Callable[[Connection], T]) -> "Future[T]":
        """Queue work; the future is done once its transaction is committed.

        The work must depend on its connection alone, for it may be run a second time. It fails
        with what the work raised, or with a JournalError.
        """
        if self._closed:
            raise JournalError(f"{self._name} is closed")
        future: Future[T] = Future()
        self._queue.put(_Job(work, future))
        return future

    def close(self) -> None:
        """Finish what is queued, and end the thread."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        last = False
        while not last:
            jobs, last = self._next()
            if jobs:
                self._commit(jobs)

    def _next(self) -> tuple[list[_Job[object]], bool]:
        """Wait for work, take what is queued, and say whether that was the last."""
        jobs: list[_Job[object]] = []
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

    def _commit(self, jobs: list[_Job[object]]) -> None:
        try:
            with transaction(self._engine) as connection:
                for job in jobs:
                    job.run(connection)
        except Exception as error:  # whatever it is, it belongs to whoever awaits the work
            self._recover(jobs, error)
        else:
            self._transactions += 1
            for job in jobs:
                job.succeed()

    def _recover(self, jobs: list[_Job[object]], error: Exception) -> None:
        if len(jobs) > 1 and not is_hopeless(error):
            for job in jobs:
                self._commit([job])
            return
        for job in jobs:
            known = isinstance(error, SQLAlchemyError)
            job.fail(explained(error, self._name) if known else error)
