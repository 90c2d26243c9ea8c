"""PostgreSQL goes away and comes back: things take longer, and nothing is lost or done twice."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import OperationalError

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.outage import is_passing
from midwatch_monitor.journal.postgres.postgres import ServerConnections, plain
from midwatch_monitor.records import Attempt, Commit, Entry, Message, Step
from midwatch_tests.database import Database
from midwatch_tests.factories import WHOSE, commit, message
from midwatch_tests.proxy import Cut, TcpProxy


def numbered_commit(attempt: Attempt, seq: int) -> Commit:
    return commit(attempt, message(seq), seq=seq, messages=(Message(index=seq, body=b"{}"),))


@pytest.fixture
async def journals(database: Database) -> AsyncGenerator[list[Journal]]:
    """Four that write to the same database."""
    url = database.create("journal")
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(await Journal.open(url)) for _ in range(4)]


@pytest.fixture
async def journal(journals: list[Journal]) -> Journal:
    return journals[0]


async def attempts(journals: list[Journal], at: datetime) -> list[Attempt]:
    """One for each journal."""
    one = journals[0]
    run = await one.add_run(source="", settings="", at=at)
    task = await one.add_task(run=run.id, name="t", title="", spec="{}", at=at)
    return [
        await each.add_attempt(task=task.id, number=n, at=at, **WHOSE)
        for n, each in enumerate(journals, 1)
    ]


async def write_all(journal: Journal, attempt: Attempt, many: int) -> list[Entry]:
    """Write steps, ten at the same time; in their order what was answered."""
    said: list[Entry] = []
    for first in range(1, many + 1, 10):
        group = (journal.commit(numbered_commit(attempt, seq)) for seq in range(first, first + 10))
        said += [entry for (entry,) in await asyncio.gather(*group)]
    return said


async def follow(journal: Journal, many: int) -> list[int]:
    """The ids of the steps as a follower of `id > last` sees them."""
    seen: list[int] = []
    last = 0
    while len(seen) < many:
        for entry in await journal.entries(last):
            last = entry.id
            if isinstance(entry.record, Step):
                seen.append(entry.id)
    return seen


async def kill_now_and_then(database: Database, writing: "asyncio.Future[Any]") -> int:
    """Kill the server and start it again while the writers are at it, five times at most."""
    kills = 0
    while not writing.done() and kills < 5:
        database.kill()
        kills += 1
        await asyncio.to_thread(database.restart)
        await asyncio.wait([writing], timeout=0.1)
    return kills


@pytest.mark.matrix
async def test_a_server_killed_between_commits_of_many_has_each_once(
    journals: list[Journal], database: Database, at: datetime
) -> None:
    made = await attempts(journals, at)
    pairs = zip(journals, made, strict=True)
    writing = asyncio.gather(*(write_all(*pair, 200) for pair in pairs))
    following = asyncio.ensure_future(follow(journals[0], 800))
    kills = await kill_now_and_then(database, writing)
    answered = [entry for each in await writing for entry in each]
    stored = await journals[0].entries(kinds=[Step])
    assert kills >= 2
    assert sorted(answered, key=lambda entry: entry.id) == stored
    assert await asyncio.wait_for(following, 120) == [entry.id for entry in stored]
    for attempt in made:
        assert len(await journals[0].messages(attempt.id)) == 200


async def test_what_is_asked_during_an_outage_only_takes_longer(
    journals: list[Journal], database: Database, at: datetime
) -> None:
    (first, *_) = await attempts(journals, at)
    database.kill()
    asked = asyncio.gather(
        journals[0].commit(numbered_commit(first, 1)), journals[1].runs(), journals[2].last_id()
    )
    done, _ = await asyncio.wait([asked], timeout=0.3)
    assert not done
    await asyncio.to_thread(database.restart)
    (entry,), runs, _ = await asyncio.wait_for(asked, 120)
    assert await journals[3].entries(kinds=[Step]) == [entry]
    assert len(runs) == 1


async def test_after_the_patience_it_fails_then_works(database: Database, at: datetime) -> None:
    url = database.create("journal")
    async with await Journal.open(url, patience_seconds=0.2) as journal:
        database.kill()
        for asked in (journal.add_run(source="", settings="", at=at), journal.runs()):
            with pytest.raises(JournalError, match=r"could not be reached for 0\.2 s: .*refused"):
                await asked
        await asyncio.to_thread(database.restart)
        run = await journal.add_run(source="", settings="", at=at)
        assert await journal.runs() == [run]


@pytest.mark.matrix
async def test_a_wait_for_a_server_that_is_away_can_be_cancelled(
    journals: list[Journal], database: Database, at: datetime
) -> None:
    database.kill()
    for asked in (journals[0].add_run(source="", settings="", at=at), journals[0].runs()):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asked, 0.1)
    await asyncio.to_thread(database.restart)


@pytest.mark.matrix
@pytest.mark.parametrize("cut", [Cut.REFUSE, Cut.HOLD])
async def test_closing_waits_for_a_server_that_is_away_or_silent_no_longer_than_seconds(
    database: Database, at: datetime, cut: Cut
) -> None:
    async with TcpProxy(database.port) as proxy:
        url = database.create("journal").replace(f":{database.port}/", f":{proxy.port}/")
        journal = await Journal.open(url)
        await journal.add_run(source="", settings="", at=at)
        await proxy.cut(cut)
        asked = asyncio.ensure_future(journal.add_run(source="", settings="", at=at))
        await asyncio.sleep(0)
        await asyncio.wait_for(journal.close(), 30)
        with pytest.raises(JournalError, match="could not be reached: "):
            await asked


@pytest.mark.matrix
async def test_where_nothing_comes_for_too_long_the_connection_is_cut(database: Database) -> None:
    lines = ServerConnections(plain(make_url(database.url)))
    with lines.reading_engine(1).connect() as connection:
        lines.watch(lambda: 2.0, limit=1.0)
        with pytest.raises(OperationalError) as lost:
            await asyncio.to_thread(connection.execute, text("SELECT pg_sleep(60)"))
    lines.close()
    assert is_passing(lost.value)
