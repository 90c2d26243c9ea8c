"""A journal in PostgreSQL is opened, or it is said at once why not, and never with a password."""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection, insert, make_url, text

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.errors import (
    JournalAccessError,
    JournalCorruptError,
    JournalError,
    JournalReadOnlyError,
)
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.engine import Access, connect, transaction
from midwatch_tests.database import Database


async def test_many_who_open_an_empty_database_make_one(postgres: str, at: datetime) -> None:
    one, *others = await asyncio.gather(*(Journal.open(postgres) for _ in range(4)))
    run = await one.add_run(source="", settings="", at=at)
    for journal in (*others, one):
        assert await journal.runs() == [run]
        await journal.close()


async def test_an_empty_database_is_a_journal_only_to_who_may_make_one(postgres: str) -> None:
    for opening in (Journal.open(postgres, create=False), Journal.open_to_read(postgres)):
        with pytest.raises(JournalAccessError, match="is empty: `midwatch db upgrade` creates"):
            await opening


async def test_the_database_of_another_program_is_left_alone(postgres: str) -> None:
    store = connect(postgres, Access.WRITE, Synchronous.NORMAL)
    assert store.writing is not None
    with transaction(store.writing) as connection:
        connection.execute(text("CREATE TABLE task (id integer)"))
    store.close()
    with pytest.raises(JournalCorruptError, match="has a table `task`"):
        await Journal.open(postgres)


async def test_a_journal_opened_to_read_is_not_written(postgres_journal: str, at: datetime) -> None:
    def write(connection: Connection) -> None:
        connection.execute(insert(tables.project), {"name": "shop"})

    async with await Journal.open_to_read(postgres_journal) as journal:
        with pytest.raises(JournalReadOnlyError, match="for reading only"):
            await journal.add_run(source="", settings="", at=at)
        with pytest.raises(JournalReadOnlyError, match="read-only"):
            await journal.read(write)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"username": "nobody-there"}, "nobody-there"),
        ({"database": "nowhere"}, "nowhere"),
        ({"port": 1}, "could not be reached for 0.2 s: .*refused"),
        ({"host": "nowhere.invalid"}, "could not be reached for 0.2 s: .*nowhere.invalid"),
        ({"query": {"nonsense": "1"}}, "nonsense"),
        ({"query": {"sslmode": "require"}}, "SSL"),
    ],
    ids=["user", "database", "port", "host", "option", "tls"],
)
async def test_a_wrong_url_is_named_without_its_password_and_who_is_refused_does_not_wait(
    postgres_server: str, change: dict[str, Any], said: str
) -> None:
    changed: dict[str, Any] = {"password": "s3cr3t/%", **change}
    url = make_url(postgres_server).set(**changed)
    patience = 0.2 if "0.2 s" in said else 60
    begun = time.monotonic()
    with pytest.raises(JournalError, match=said) as raised:
        await Journal.open(url.render_as_string(hide_password=False), patience_seconds=patience)
    assert "s3cr3t" not in str(raised.value)
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://ann:s3cr3t@host:p0rt/db", "is its port a number"),
        ("postgresql://ann:s3@cr3t@host/db", "%40 for @"),
        ("postgresql://ann:s3@cr3t/x@host/db", "%40 for @"),
        ("postgresql://ann:s3@cr3t?x@host/db?sslmode=prefer", "%40 for @"),
        ("postgresql://ann:s3@cr3t=x@host/db", "%40 for @"),
        ("mysql://ann:s3cr3t@host/db", "not mysql: write its path, or postgresql://"),
        ("postgresql+asyncpg://ann:s3cr3t@host/db", "not postgresql.asyncpg: write its path"),
        ("postgresql:/ann:s3cr3t@host/db", "lacks a slash: write postgresql://"),
        ("postgresql://ann:s3cr3t@a..b/db", "host a..b is not a valid host name"),
        ("postgresql://ann:s3cr3t@127.0.0.1:1/db?nonsense=1", "see what follows the . in the URL"),
        ("postgresql://ann:s3cr3t@127.0.0.1:1/db?sslmode=on", "disable, prefer, require"),
    ],
)
async def test_a_url_without_sense_is_refused_without_its_password(url: str, said: str) -> None:
    with pytest.raises(JournalAccessError, match=said) as raised:
        await Journal.open(url)
    assert "cr3t" not in str(raised.value)
    with pytest.raises(JournalAccessError, match=said):
        await Journal.open_to_read(url)


def test_an_option_may_have_an_at_sign_in_it() -> None:
    url = "postgresql://ann:s3cr3t@127.0.0.1:1/db?sslrootcert=/nowhere/a@b.crt"
    store = connect(url, Access.READ, Synchronous.NORMAL)
    assert store.name == "postgresql://ann:***@127.0.0.1:1/db"
    store.close()


async def test_without_the_driver_the_extra_that_brings_it_is_named_as_doctor_names_it() -> None:
    program = (
        "import sys\n"
        "sys.modules['psycopg'] = None\n"  # as if it were not installed
        "from midwatch_supervisor.cli import main\n"
        "sys.exit(main(['status', '--journal', 'postgresql://ann:s3cr3t@host/db']))\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stderr=PIPE)
    _, errors = await process.communicate()
    assert (process.returncode, errors.decode()) == (
        2,
        "a journal in PostgreSQL needs the `postgres` extra: pip install 'midwatch[postgres]'\n",
    )


async def test_a_server_that_is_starting_is_waited_for(database: Database, at: datetime) -> None:
    url = database.create("journal")
    database.kill()
    opening = asyncio.ensure_future(Journal.open(url))
    await asyncio.to_thread(database.restart)
    async with await opening as journal:
        await journal.add_run(source="", settings="", at=at)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
async def test_any_way_to_name_it_will_do_without_a_password(
    postgres_journal: str, scheme: str
) -> None:
    url = make_url(postgres_journal).set(password="s3cr3t")
    _, _, rest = url.render_as_string(hide_password=False).partition("://")
    async with await Journal.open(f"{scheme}://{rest}?connect_timeout=7") as journal:
        assert await journal.runs() == []
        assert journal.name == url.render_as_string(hide_password=True)
