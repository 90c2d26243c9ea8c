"""The journal: the append-only record of everything, and the only truth."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.errors import JournalError, JournalReadOnlyError
from midwatch_monitor.journal.core import commits, tables, work
from midwatch_monitor.journal.core.encoding import NO_MORE, kind_of, use_masker
from midwatch_monitor.journal.core.engine import Access, Store, database_time
from midwatch_monitor.journal.core.outage import PATIENCE_SECONDS, STALL_SECONDS, OutageWait
from midwatch_monitor.journal.core.schema import open_store
from midwatch_monitor.journal.core.threads import DatabaseReader, DatabaseWriter
from midwatch_monitor.records import (
    Attempt,
    Commit,
    Entry,
    Record,
    Run,
    Task,
)
from midwatch_monitor.secrets.masking import Secrets

P = ParamSpec("P")
T = TypeVar("T")
_PAGE = 1_000
"""Default number of entries in a page."""


class JournalPart:
    """Reads and writes about one subject: see `read_method` and `write_method`."""

    def __init__(self, journal: "Journal") -> None:
        self.journal = journal


def write_method(
    do: Callable[Concatenate[Connection, P], T],
) -> "Callable[Concatenate[Journal | JournalPart, P], Coroutine[Any, Any, T]]":
    """Turn a function that runs in a write transaction into a method of the journal or a part."""

    async def method(of: "Journal | JournalPart", *args: P.args, **kwargs: P.kwargs) -> T:
        return await (of if isinstance(of, Journal) else of.journal).write(do, *args, **kwargs)

    method.__doc__ = do.__doc__
    return method


def read_method(
    ask: Callable[Concatenate[Connection, P], T],
) -> "Callable[Concatenate[Journal | JournalPart, P], Coroutine[Any, Any, T]]":
    """Turn a query function into a method of the journal or a part."""

    async def method(of: "Journal | JournalPart", *args: P.args, **kwargs: P.kwargs) -> T:
        return await (of if isinstance(of, Journal) else of.journal).read(ask, *args, **kwargs)

    method.__doc__ = ask.__doc__
    return method


class Journal:
    """An open journal. A write is committed once awaiting it returns.

    One thread writes, and groups queued commits into one transaction; a few others read at the same
    time. Several processes may use the same file. Every method raises a JournalError if the
    database fails; the journal stays usable, and committed entries stay. If a write is canceled
    while it is awaited, it is unknown whether it was committed.
    """

    def __init__(
        self,
        store: Store,
        *,
        max_batch: int = 200,
        patience_seconds: float = PATIENCE_SECONDS,
        secrets: Secrets = NO_MORE,
    ) -> None:
        """Use `open` or `open_to_read`, unless the store is already connected and prepared."""
        self._store = store
        self.masker = use_masker(store, secrets)
        self._closed = False
        patience = partial(OutageWait, patience_seconds)
        self._reader: DatabaseReader | None = None
        if store.reading is not None:
            self._reader = DatabaseReader(store.reading, name=store.name, patience=patience())
        self._writer: DatabaseWriter | None = None
        if store.writing is not None:
            self._writer = DatabaseWriter(
                store.writing, name=store.name, max_batch=max_batch, patience=patience()
            )
        if store.connections is not None:
            store.connections.watch(self._seconds_stuck, max(patience_seconds, STALL_SECONDS))

    @classmethod
    async def open(
        cls,
        location: str | Path,
        *,
        synchronous: Synchronous = Synchronous.NORMAL,
        max_batch: int = 200,
        create: bool = True,
        patience_seconds: float = PATIENCE_SECONDS,
        secrets: Secrets = NO_MORE,
    ) -> Self:
        """Open the journal at a path, `:memory:` or a SQLAlchemy URL, for reading and writing.

        Creates the file and its folder, unless `create` is false: then the journal must exist. An
        older file is upgraded; an older PostgreSQL database is upgraded only by `midwatch db
        upgrade`. Raises JournalTooNewError, JournalCorruptError, JournalReadOnlyError or
        JournalError.

        If the connection to PostgreSQL is lost, reads and writes wait up to `patience_seconds` for
        it to return; opening waits only briefly. `secrets` are masked in everything that is
        recorded and read.
        """
        access = Access.CREATE if create else Access.WRITE
        store = await asyncio.to_thread(open_store, location, access, synchronous, patience_seconds)
        return cls(store, max_batch=max_batch, patience_seconds=patience_seconds, secrets=secrets)

    @classmethod
    async def open_to_read(
        cls,
        location: str | Path,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        secrets: Secrets = NO_MORE,
    ) -> Self:
        """Open an existing journal read-only: every write raises JournalReadOnlyError."""
        store = await asyncio.to_thread(
            open_store, location, Access.READ, Synchronous.NORMAL, patience_seconds
        )
        return cls(store, patience_seconds=patience_seconds, secrets=secrets)

    async def close(self) -> None:
        """Finish pending writes and close all connections; may be called again.

        Writes that PostgreSQL does not answer within seconds fail.
        """
        self._closed = True
        await asyncio.to_thread(self._close_all)

    def _close_all(self) -> None:
        if self._writer is not None:
            self._writer.close(self._store.cut)
        if self._reader is not None:
            self._reader.close(self._store.cut)
        self._store.close()

    def _seconds_stuck(self) -> float:
        """Return how many seconds the database has not answered for."""
        return max(each.stuck for each in (self._reader, self._writer) if each is not None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def name(self) -> str:
        """The file, or the URL without its password."""
        return self._store.name

    @property
    def transactions(self) -> int:
        """Transactions since opening; fewer than the commits if those were grouped."""
        return 0 if self._writer is None else self._writer.transactions

    add_run = write_method(work.add_run)
    add_task = write_method(work.add_task)
    add_attempt = write_method(work.add_attempt)
    claim = write_method(work.claim)
    open_escalation = write_method(work.open_escalation)
    answer = write_method(commits.commit_answer)

    async def commit(self, commit: Commit) -> tuple[Entry, ...]:
        """Store a commit, all or nothing; return its entries in the order of the drafts.

        Raises StaleIncarnationError if another process has taken the attempt over or has written
        the same `seq`, message or result, or if a state would follow a final one; also for a mark
        on guidelines that somebody else has decided on, and for a chore that is already done. A
        closed escalation among the drafts allows its attempt to have a new one.
        """
        if self._writer is None:
            raise self._read_only
        # A canceled caller has already numbered its records, so they are written to avoid a gap.
        return await self._writer.commit(commit)

    async def runs(self, after: int = 0) -> list[Run]:
        """Return all runs with an id above `after`, oldest first."""
        return await self.read(work.runs, tables.run.c.id > after)

    async def run(self, run: int) -> Run:
        """Return the run with that id. Raises JournalError if there is none."""
        found = await self.read(work.runs, tables.run.c.id == run)
        return self._first_found(found, f"run {run}")

    async def tasks(self, run: int) -> list[Task]:
        """Return the tasks of a run, in the order they were added."""
        return await self.read(work.tasks, tables.task.c.run == run)

    async def task(self, task: int) -> Task:
        """Return the task with that id. Raises JournalError if there is none."""
        found = await self.read(work.tasks, tables.task.c.id == task)
        return self._first_found(found, f"task {task}")

    async def tasks_with(self, ids: Collection[int]) -> list[Task]:
        """Return the existing tasks with these ids: a page of them, not thousands."""
        return await self.read(work.tasks, tables.task.c.id.in_(ids))

    async def attempts(self, task: int) -> list[Attempt]:
        """Return the attempts of a task, oldest first."""
        return await self.read(work.attempts, tables.attempt.c.task == task)

    async def attempts_with(self, ids: Collection[int]) -> list[Attempt]:
        """Return the existing attempts with these ids: a page of them, not thousands."""
        return await self.read(work.attempts, tables.attempt.c.id.in_(ids))

    async def attempt(self, attempt: int) -> Attempt:
        """Return the attempt with that id. Raises JournalError if there is none."""
        found = await self.read(work.attempts, tables.attempt.c.id == attempt)
        return self._first_found(found, f"attempt {attempt}")

    async def entries(
        self,
        after: int = 0,
        *,
        attempt: int | None = None,
        task: int | None = None,
        run: int | None = None,
        kinds: Sequence[type[Record]] = (),
        limit: int = _PAGE,
    ) -> list[Entry]:
        """Return the first `limit` entries with an id above `after`, of one attempt, task or run.

        Without `kinds`, entries of every kind. A follower asks again after the last id it received.
        """
        entry = tables.entry
        wanted = [entry.c.id > after]
        if attempt is not None:
            wanted.append(entry.c.attempt == attempt)
        if task is not None:
            wanted.append(entry.c.task == task)
        if kinds:
            wanted.append(entry.c.kind.in_([kind_of(kind) for kind in kinds]))
        return await self.read(work.entries, *wanted, run=run, limit=limit)

    async def all_entries(
        self,
        after: int = 0,
        *,
        attempt: int | None = None,
        task: int | None = None,
        run: int | None = None,
        kinds: Sequence[type[Record]] = (),
    ) -> AsyncIterator[Entry]:
        """Yield every entry with an id above `after`, as `entries` returns them, page by page.

        Ends at a page that is not full, however fast entries are written.
        """
        full = True
        while full:
            page = await self.entries(after, attempt=attempt, task=task, run=run, kinds=kinds)
            for entry in page:
                yield entry
            full = len(page) == _PAGE
            after = page[-1].id if page else after

    active = read_method(work.active)
    messages = read_method(work.messages)
    results = read_method(work.results)
    last_id = read_method(work.last_id)
    now = read_method(database_time)

    async def flush(self) -> None:
        """Copy SQLite's log into the file and empty the log, as far as readers permit."""
        await asyncio.to_thread(self._store.flush)

    def _first_found(self, found: list[T], what: str) -> T:
        if not found:
            raise JournalError(f"{self.name} has no {what}")
        return found[0]

    async def write(
        self, do: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function of this package in a transaction, perhaps twice: see DatabaseWriter."""
        if self._writer is None:
            raise self._read_only

        def job(connection: Connection) -> T:
            return do(connection, *args, **kwargs)

        return await self._writer.submit(job)

    @property
    def writable(self) -> bool:
        """Whether it was opened for writing."""
        return self._writer is not None

    @property
    def _read_only(self) -> JournalError:
        return JournalReadOnlyError(f"{self.name} is open for reading only")

    async def read(
        self, ask: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a query function of this package, concurrently with the writer."""
        if self._closed:
            raise JournalError(f"{self.name} is closed")
        if self._reader is None:
            return await self.write(ask, *args, **kwargs)

        def job(connection: Connection) -> T:
            return ask(connection, *args, **kwargs)

        unwanted = Event()
        try:
            return await asyncio.wrap_future(self._reader.submit(job, unwanted))
        finally:
            unwanted.set()
