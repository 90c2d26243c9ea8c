"""How little a commit asks of PostgreSQL."""

import asyncio
from collections.abc import Generator
from datetime import datetime

import pytest
from sqlalchemy import Connection, event, text

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.engine import Access, Store
from midwatch_monitor.journal.core.schema import open_store
from midwatch_monitor.records import Attempt
from midwatch_stage.factories import WHOSE, commit, message


@pytest.fixture
def store(postgres_journal: str) -> Generator[Store]:
    store = open_store(postgres_journal, Access.WRITE)
    yield store
    store.close()


def listened(store: Store) -> list[str]:
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


async def test_a_group_of_commits_is_three_statements_however_many_attempts_they_are_of(
    store: Store, at: datetime
) -> None:
    async with Journal(store) as journal:
        made = await attempts(journal, at, 20)
        said = listened(store)
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


async def test_who_has_chosen_a_compression_knows_better(
    postgres_journal: str, at: datetime
) -> None:
    chosen = f"{postgres_journal}?options=-c%20default_toast_compression%3Dpglz"
    async with await Journal.open(chosen) as journal:

        def compression(connection: Connection) -> str | None:
            return connection.execute(text("SHOW default_toast_compression")).scalar()

        assert await journal.write(compression) == "pglz"
