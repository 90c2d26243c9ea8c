"""How little a commit asks of PostgreSQL, and that it is done once though its answer was lost."""

import asyncio
from collections.abc import Generator
from datetime import datetime
from threading import Event, Thread

import pytest
from sqlalchemy import Connection, Engine, event, func, insert, select, text

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import work
from midwatch_monitor.journal.core.engine import Access, Store, transaction
from midwatch_monitor.journal.core.schema import open_store
from midwatch_monitor.journal.core.tables import receipt
from midwatch_monitor.journal.postgres.postgres import Receipts
from midwatch_monitor.records import Attempt, Run, SupervisedBy
from midwatch_tests.database import Database
from midwatch_tests.factories import WHOSE, commit, message
from midwatch_tests.proxy import TcpProxy


@pytest.fixture
def store(postgres_journal: str) -> Generator[Store]:
    store = open_store(postgres_journal, Access.WRITE)
    yield store
    store.close()


def record_statements(store: Store) -> list[str]:
    """Every statement of the writer from here on."""
    said: list[str] = []

    def listen(_: Connection, __: object, statement: str, *___: object) -> None:
        said.append(" ".join(statement.split()[:4]))

    assert store.writing is not None
    event.listen(store.writing, "before_cursor_execute", listen)
    return said


async def attempts(journal: Journal, at: datetime, count: int) -> list[Attempt]:
    """So many attempts, each claimed."""
    run = await journal.add_run(source="", settings="{}", at=at)
    task = await journal.add_task(run=run.id, name="t", title="", spec="{}", at=at)
    made = [
        await journal.add_attempt(task=task.id, number=number, at=at, **WHOSE)
        for number in range(1, count + 1)
    ]
    for each in made:
        await journal.claim(each.id, holder="it", at=at)
    return made


async def test_a_group_of_commits_of_any_attempts_is_three_statements(
    store: Store, at: datetime
) -> None:
    async with Journal(store) as journal:
        made = await attempts(journal, at, 20)
        said = record_statements(store)
        await asyncio.gather(
            *(journal.commit(commit(each, message(), incarnation=1)) for each in made * 2)
        )
        assert said == [
            "INSERT INTO receipt (writer,",
            "SELECT lease.attempt, lease.incarnation FROM",
            "INSERT INTO entry (at,",
        ]


async def test_long_bodies_are_compressed_the_quick_way(store: Store, at: datetime) -> None:
    async with Journal(store) as journal:
        (attempt,) = await attempts(journal, at, 1)
        await journal.commit(commit(attempt, message(text="again " * 1000), incarnation=1))

        def compression(connection: Connection) -> list[str | None]:
            query = text("SELECT pg_column_compression(body) FROM entry WHERE kind = 'step'")
            return list(connection.execute(query).scalars())

        assert await journal.read(compression) == ["lz4"]


async def test_who_has_chosen_a_compression_knows_better_and_closing_leaves_no_receipt(
    postgres_journal: str, at: datetime
) -> None:
    chosen = f"{postgres_journal}?options=-c%20default_toast_compression%3Dpglz"
    async with await Journal.open(chosen) as journal:

        def compression(connection: Connection) -> str | None:
            return connection.execute(text("SHOW default_toast_compression")).scalar()

        assert await journal.write(compression) == "pglz"
        assert await journal.read(receipts) == 1
    store = open_store(postgres_journal, Access.READ)
    assert store.reading is not None
    with store.reading.connect() as connection:  # closing has taken the receipt away
        assert receipts(connection) == 0
    store.close()


def receipts(connection: Connection) -> int | None:
    return connection.execute(select(func.count()).select_from(receipt)).scalar()


# -- a commit whose answer was lost --------------------------------------------------------------


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


def sign_receipt(engine: Engine, receipts: Receipts, number: int) -> bool:
    with engine.begin() as connection:
        return receipts.sign(connection, number)


def test_what_a_writer_committed_it_does_not_do_again(engines: tuple[Engine, Engine]) -> None:
    before, after = engines
    receipts = Receipts("it")
    assert sign_receipt(before, receipts, 1)
    assert not sign_receipt(after, receipts, 1)
    assert sign_receipt(after, receipts, 2)
    assert sign_receipt(after, Receipts("it"), 1)


@pytest.mark.parametrize("committed", [True, False])
def test_what_still_works_is_waited_for(engines: tuple[Engine, Engine], committed: bool) -> None:
    before, after = engines
    receipts = Receipts("it")
    answers: list[bool] = []
    begun = Event()

    def sign_again() -> None:
        begun.set()
        answers.append(sign_receipt(after, receipts, 1))

    thread = Thread(target=sign_again)
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


def test_receipts_of_those_who_are_long_gone_are_dropped(engines: tuple[Engine, Engine]) -> None:
    engine, _ = engines
    mine, other = Receipts("it"), Receipts("it")
    sign_receipt(engine, mine, 1)
    sign_receipt(engine, other, 1)
    with transaction(engine) as connection:
        old = {"writer": "old", "number": 1, "at": text("now() - interval '25 hours'")}
        connection.execute(insert(receipt).values(**old))
        mine.clear(connection)
        assert receipts(connection) == 1
    assert not sign_receipt(engine, other, 1)


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


async def test_a_commit_whose_answer_is_lost_is_done_once(database: Database, at: datetime) -> None:
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


async def test_what_may_be_written_is_not_tried_after_an_error(
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
            remove_receipts(url)
            await proxy.drop()
            said = await asyncio.gather(first, *asked, return_exceptions=True)
            assert ["it is unknown if" in str(each) for each in said] == [False, True, True]
            assert len(await journal.runs()) == 1


def remove_receipts(url: str) -> None:
    """Let there be no receipts any more."""
    store = open_store(url, Access.WRITE)
    assert store.writing is not None
    with transaction(store.writing) as connection:
        connection.execute(text("ALTER TABLE receipt RENAME TO elsewhere"))
    store.close()
