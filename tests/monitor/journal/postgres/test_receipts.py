"""A commit whose answer was lost was done once, whatever became of it."""

import asyncio
from collections.abc import Generator
from datetime import datetime
from threading import Event, Thread

import pytest
from sqlalchemy import Connection, Engine, func, insert, select, text

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import work
from midwatch_monitor.journal.core.engine import Access, transaction
from midwatch_monitor.journal.core.schema import open_store
from midwatch_monitor.journal.core.tables import receipt
from midwatch_monitor.journal.postgres.postgres import Receipts
from midwatch_monitor.records import Run, SupervisedBy
from midwatch_stage.database import Database
from midwatch_stage.proxy import TcpProxy


@pytest.fixture
def engines(postgres_journal: str) -> Generator[tuple[Engine, Engine]]:
    """Two connections of one writer, before and after it was cut off."""
    stores = [open_store(postgres_journal, Access.WRITE) for _ in range(2)]
    before, after = (store.writing for store in stores)
    assert before is not None
    assert after is not None
    yield before, after
    for store in stores:
        store.close()


def signed(engine: Engine, receipts: Receipts, number: int) -> bool:
    with engine.begin() as connection:
        return receipts.sign(connection, number)


def test_what_a_writer_committed_is_not_to_be_done_again_by_it(
    engines: tuple[Engine, Engine],
) -> None:
    before, after = engines
    receipts = Receipts("it")
    assert signed(before, receipts, 1)
    assert not signed(after, receipts, 1)
    assert signed(after, receipts, 2)
    assert signed(after, Receipts("it"), 1)


@pytest.mark.parametrize("committed", [True, False])
def test_what_the_server_still_works_at_is_waited_for(
    engines: tuple[Engine, Engine], committed: bool
) -> None:
    before, after = engines
    receipts = Receipts("it")
    answers: list[bool] = []
    begun = Event()

    def again() -> None:
        begun.set()
        answers.append(signed(after, receipts, 1))

    thread = Thread(target=again)
    with before.connect() as connection:
        assert receipts.sign(connection, 1)
        thread.start()
        begun.wait()
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while not connection.execute(waiting).scalar():
            pass
        assert not answers
        connection.commit() if committed else connection.rollback()
    thread.join()
    assert answers == [not committed]


def test_the_receipts_of_those_who_are_long_gone_are_thrown_away(
    engines: tuple[Engine, Engine],
) -> None:
    engine, _ = engines
    mine, other = Receipts("it"), Receipts("it")
    signed(engine, mine, 1)
    signed(engine, other, 1)
    with transaction(engine) as connection:
        old = {"writer": "old", "number": 1, "at": text("now() - interval '25 hours'")}
        connection.execute(insert(receipt).values(**old))
        mine.clear(connection)
        assert connection.execute(select(func.count()).select_from(receipt)).scalar() == 1
    assert not signed(engine, other, 1)


async def test_closing_takes_the_receipt_away(postgres_journal: str, at: datetime) -> None:
    async with await Journal.open(postgres_journal) as journal:
        await journal.add_run(source="", settings="", at=at)
    store = open_store(postgres_journal, Access.READ)
    assert store.reading is not None
    with store.reading.connect() as connection:
        assert connection.execute(select(receipt)).all() == []
    store.close()


class LosesOneCommit:
    """Keeps the answer to a commit to itself, once it is armed."""

    def __init__(self) -> None:
        self.armed = False
        self.lost = asyncio.Event()

    def edit(self, data: bytes) -> tuple[bytes, bytes]:
        if self.armed and b"COMMIT\0" in data:
            self.armed = False
            self.lost.set()
            return b"", b""
        return data, b""


async def test_a_commit_whose_answer_was_lost_is_done_once(
    database: Database, at: datetime
) -> None:
    loser = LosesOneCommit()
    async with TcpProxy(database.port, editor=lambda: loser) as proxy:
        url = database.create("journal").replace(f":{database.port}/", f":{proxy.port}/")
        async with await Journal.open(url) as journal:
            first = await journal.add_run(source="1", settings="", at=at)
            loser.armed = True
            asked = asyncio.ensure_future(journal.add_run(source="2", settings="", at=at))
            await loser.lost.wait()
            assert not asked.done()
            await proxy.drop()
            assert await asked == Run(id=2, source="2", settings="", started_at=at)
            assert await journal.runs() == [first, await asked]


async def test_what_may_have_been_written_is_not_tried_again_after_an_error(
    database: Database, at: datetime
) -> None:
    loser, begun, queued = LosesOneCommit(), Event(), Event()
    url = database.create("journal")

    def wait(_: Connection) -> None:
        begun.set()
        queued.wait()

    def lose(_: Connection) -> None:
        loser.armed = True

    def add(connection: Connection) -> None:
        work.add_run(connection, source="", settings="", at=at, supervised_by=SupervisedBy.PROCESS)

    async with TcpProxy(database.port, editor=lambda: loser) as proxy:
        by_proxy = url.replace(f":{database.port}/", f":{proxy.port}/")
        async with await Journal.open(by_proxy) as journal:
            first = asyncio.ensure_future(journal.write(wait))
            await asyncio.to_thread(begun.wait)
            asked = [asyncio.ensure_future(journal.write(each)) for each in (lose, add)]
            await asyncio.sleep(0)
            queued.set()
            await loser.lost.wait()
            away(url)
            await proxy.drop()
            said = await asyncio.gather(first, *asked, return_exceptions=True)
            assert ["it is unknown if" in str(each) for each in said] == [False, True, True]
            assert len(await journal.runs()) == 1


def away(url: str) -> None:
    """Let there be no receipts any more."""
    store = open_store(url, Access.WRITE)
    assert store.writing is not None
    with transaction(store.writing) as connection:
        connection.execute(text("ALTER TABLE receipt RENAME TO elsewhere"))
    store.close()
