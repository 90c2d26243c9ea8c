"""A write that fails harms no other, and the journal goes on."""

import asyncio
import threading
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.errors import JournalError, JournalFullError, JournalReadOnlyError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import schema, work
from midwatch_monitor.journal.core.engine import (
    Access,
    Store,
    connect,
    execute_in_sqlite,
    transaction,
)
from midwatch_monitor.journal.core.outage import OutageWait
from midwatch_monitor.journal.core.threads import DatabaseReader, DatabaseWriter
from midwatch_monitor.records import Run


@pytest.fixture
def store(journal_file: Path) -> Store:
    store = connect(journal_file, Access.CREATE, Synchronous.NORMAL)
    schema.prepare(store)
    return store


def writing(store: Store) -> Engine:
    assert store.writing is not None
    return store.writing


def pragma(store: Store, text: str) -> None:
    """Set it on the one connection that the writer will use."""
    with writing(store).connect() as connection:
        connection.exec_driver_sql(f"PRAGMA {text}")


async def make_busy_writer(store: Store) -> tuple[DatabaseWriter, threading.Event]:
    """A writer that is in a transaction of its own until the event is set."""
    writer = DatabaseWriter(writing(store), name="it", max_batch=10)
    begun, go = threading.Event(), threading.Event()

    def work(_: Connection) -> None:
        begun.set()
        go.wait(60)

    writer.submit(work)
    assert await asyncio.to_thread(begun.wait, 60)
    return writer, go


async def test_what_waits_shares_one_transaction_up_to_a_limit(store: Store, at: datetime) -> None:
    writer, go = await make_busy_writer(store)
    rest = [writer.submit(lambda c: add_run(c, at)) for _ in range(25)]
    go.set()
    assert [(await each).id for each in rest] == list(range(1, 26))
    await asyncio.to_thread(writer.close)
    store.close()
    assert writer.transactions == 1 + 3


def add_run(connection: Connection, at: datetime) -> Run:
    return work.add_run(connection, source="", settings="", at=at)


async def test_a_failed_group_is_undone_and_done_again_in_parts(store: Store, at: datetime) -> None:
    def add_and_fail(connection: Connection) -> None:
        add_run(connection, at)
        raise LookupError("mine alone")

    writer, go = await make_busy_writer(store)
    good, gone, fine = (writer.submit(lambda c: add_run(c, at)) for _ in range(3))
    bad = writer.submit(add_and_fail)
    assert gone.cancel()  # what nobody awaits any more is not begun
    go.set()
    with pytest.raises(LookupError):
        await bad
    assert await writer.submit(work.runs) == [await good, await fine]
    await asyncio.to_thread(writer.close)
    store.close()


async def test_a_full_disk_is_named_and_fails_what_does_not_fit(store: Store, at: datetime) -> None:
    pragma(store, "max_page_count=40")
    async with Journal(store) as journal:
        sizes = [1, 500_000, 1, 500_000, 1]
        adds = (journal.add_run(source="", settings="x" * size, at=at) for size in sizes)
        answers = await asyncio.gather(*adds, return_exceptions=True)
        kinds = [Run, JournalFullError, Run, JournalFullError, Run]
        assert [type(each) for each in answers] == kinds
        assert "no space left" in str(answers[1])
        assert await journal.runs() == [each for each in answers if isinstance(each, Run)]


async def test_a_read_only_file_is_named(
    journal: Journal, journal_file: Path, at: datetime
) -> None:
    async with await Journal.open(f"sqlite:///file:{journal_file}?mode=ro&uri=true") as other:
        with pytest.raises(JournalReadOnlyError, match="read-only"):
            await other.add_run(source="", settings="", at=at)


async def test_a_lock_held_for_too_long_is_named(
    store: Store, journal: Journal, at: datetime
) -> None:
    pragma(store, "busy_timeout=1")
    with writing(connect(journal.name, Access.WRITE, Synchronous.NORMAL)).begin():
        async with Journal(store) as blocked:
            adds = (blocked.add_run(source="", settings="", at=at) for _ in range(3))
            answers = await asyncio.gather(*adds, return_exceptions=True)
            assert await blocked.runs() == []
    assert [type(each) for each in answers] == [JournalError] * 3
    assert "another process has held" in str(answers[0])


def test_closing_a_reader_waits_for_no_answer_that_does_not_come(store: Store) -> None:
    assert store.reading is not None
    asked, cut = threading.Event(), threading.Event()

    def wait_until_cut(_: Connection) -> bool:
        asked.set()
        return cut.wait(60)

    reader = DatabaseReader(store.reading, name="it", patience=OutageWait(0))
    answer = reader.submit(wait_until_cut, threading.Event())
    assert asked.wait(60)
    reader.close(cut.set)
    assert answer.result(0)
    assert cut.is_set()
    store.close()


def test_an_error_does_not_repeat_the_values(store: Store) -> None:
    with transaction(writing(store)) as connection, pytest.raises(OperationalError) as raised:
        execute_in_sqlite(connection, "INSERT INTO nowhere VALUES (?)", ("a secret",))
    assert "no such table: nowhere" in str(raised.value)
    assert "secret" not in str(raised.value)
    store.close()
