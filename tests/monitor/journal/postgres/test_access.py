"""Who may not do with a database what they want to hears at once what they need instead."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Connection, make_url, text

from midwatch_monitor.errors import JournalAccessError, JournalError
from midwatch_monitor.journal import Journal
from midwatch_supervisor.cli.journals import journal_to_watch
from midwatch_tests.command import midwatch
from midwatch_tests.database import Database

READER = (
    "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {0}",
    "GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO {0}",
)
"""As docs/fleet.md has it for who may only look."""
WRITER = (
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {0}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {0}",
)
SECRET = "s3cr3t"
Capture = pytest.CaptureFixture[str]


def execute_as_owner(url: str, *statements: str) -> None:
    """Say something as the role that owns everything."""
    plain = "postgresql://" + url.partition("://")[2]
    with psycopg.connect(plain, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def grant(url: str, role: str, statements: Sequence[str]) -> None:
    execute_as_owner(url, *(each.format(role) for each in statements))


def url_for_role(url: str, role: str, password: str | None = None) -> str:
    """The URL for that role."""
    changed = make_url(url).set(username=role, password=password)
    return changed.render_as_string(hide_password=False)


@pytest.fixture
def role(postgres: str) -> Generator[str]:
    """The name of a role that may log in, and nothing else."""
    name = f"role_{uuid4().hex}"
    execute_as_owner(postgres, f"CREATE ROLE {name} LOGIN")
    yield name
    execute_as_owner(postgres, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


@pytest.fixture
async def empty_journal(postgres: str) -> str:
    """The URL of an empty journal in which the role will be granted rights."""
    await (await Journal.open(postgres)).close()
    return postgres


async def refusal(url: str) -> str:
    with pytest.raises(JournalError) as raised:
        await Journal.open(url)
    assert isinstance(raised.value, JournalAccessError)
    return str(raised.value).replace(url, "URL")


@pytest.mark.parametrize(
    "words", [["monitor", "--once"], ["node"], ["submit", "t.yaml"], ["tell", "1", "x"]]
)
async def test_who_must_write_ends_with_the_right_that_is_missing(
    words: list[str], empty_journal: str, role: str, folder: Path, capsys: Capture
) -> None:
    grant(empty_journal, role, READER)
    assert await midwatch(*words, "--journal", url_for_role(empty_journal, role)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        f"{url_for_role(empty_journal, role)}: the role {role} may only read: its owner can "
        f"`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}` and "
        f"`GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}`"
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands are given in, with a task file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.yaml").write_text(
        "models: {worker: none, supervisor: none}\n"
        "workers: {clerk: {agent: 'nowhere:agent'}}\n"
        "tasks: [{id: a, goal: Do it., acceptance: ['true']}]\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    "words", [["status"], ["nodes"], ["report"], ["lessons", "list"], ["db", "check"]]
)
async def test_who_may_only_look_can(words: list[str], empty_journal: str, role: str) -> None:
    grant(empty_journal, role, READER)
    assert await midwatch(*words, "--journal", url_for_role(empty_journal, role)) == 0


async def test_the_console_is_opened_to_look_where_it_may_not_act(
    empty_journal: str, role: str
) -> None:
    grant(empty_journal, role, READER)
    opened, barred = await journal_to_watch(url_for_role(empty_journal, role))
    async with opened:
        assert await opened.runs() == []
        assert f"the role {role} may only read" in barred
    opened, barred = await journal_to_watch(empty_journal)
    await opened.close()
    assert barred == ""


async def test_a_role_with_named_rights_can_write(
    empty_journal: str, role: str, capsys: Capture
) -> None:
    plain = url_for_role(empty_journal, role)
    url = f"{plain.replace(f'{role}@', '')}?user={role}&password={SECRET}"
    assert f"`GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}`" in await refusal(url)
    grant(empty_journal, role, WRITER)
    assert await midwatch("monitor", "--once", "--journal", url) == 2  # for DBOS's own tables
    said = capsys.readouterr().err
    assert f"can `GRANT CONNECT, CREATE ON DATABASE {make_url(empty_journal).database} TO" in said
    assert SECRET not in said
    execute_as_owner(
        empty_journal, f"GRANT CREATE ON DATABASE {make_url(empty_journal).database} TO {role}"
    )
    assert await midwatch("monitor", "--once", "--journal", url) == 0


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["REVOKE UPDATE ON lease FROM {0}"], "may only read: its owner can `GRANT"),
        (["REVOKE USAGE ON SEQUENCE run_id_seq FROM {0}"], "may only read: its owner can `GRANT"),
        (["REVOKE USAGE ON SCHEMA public FROM public"], "can `GRANT USAGE ON SCHEMA public TO {0}"),
        (
            ["ALTER ROLE {0} SET default_transaction_read_only = on"],
            "`ALTER ROLE {0} SET default_transaction_read_only = off` lets it write",
        ),
    ],
)
async def test_each_missing_right_is_named(
    statements: list[str], said: str, empty_journal: str, role: str
) -> None:
    grant(empty_journal, role, (*WRITER, *statements))
    assert said.format(role) in await refusal(url_for_role(empty_journal, role))


async def test_an_empty_database_says_how_to_make_a_journal_of_it_and_who_may_not(
    postgres: str, role: str, folder: Path, capsys: Capture
) -> None:
    for words in (["status"], ["watch"], ["tell", "1", "x"]):
        assert await midwatch(*words, "--journal", postgres) == 2
        assert capsys.readouterr().err == (
            f"{postgres} is empty: `midwatch db upgrade --journal {postgres}` creates a journal in "
            f"it, as does the first `midwatch node --journal {postgres}`\n"
        )
    assert await midwatch("db", "check", "--journal", postgres) == 1
    assert f"see `midwatch db upgrade --journal {postgres}`" in capsys.readouterr().out
    told = f"its owner can `GRANT USAGE, CREATE ON SCHEMA public TO {role}`"
    assert told in await refusal(url_for_role(postgres, role))


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_cannot_hold_every_text_becomes_no_journal(
    encoding: str, postgres_server: str, folder: Path, capsys: Capture
) -> None:
    name = f"test_{uuid4().hex}"
    words = f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
    execute_as_owner(postgres_server, words)
    url = f"{postgres_server.rpartition('/')[0]}/{name}"
    told = f"has the encoding {encoding}, and a journal needs UTF8: `createdb --encoding=UTF8"
    assert told in await refusal(url)
    assert await midwatch("db", "upgrade", "--journal", url) == 2
    assert told in capsys.readouterr().err
    execute_as_owner(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_limit_of_time_bounds_reading_not_waiting_to_write(
    empty_journal: str, role: str
) -> None:
    def limit(connection: Connection) -> str:
        return connection.execute(text("SHOW statement_timeout")).scalar_one()

    def wait(connection: Connection) -> None:
        connection.execute(text("SELECT pg_sleep(60)"))

    grant(empty_journal, role, WRITER)
    execute_as_owner(empty_journal, f"ALTER ROLE {role} SET statement_timeout = '900ms'")
    async with await Journal.open(url_for_role(empty_journal, role)) as journal:
        assert (await journal.write(limit), await journal.read(limit)) == ("0", "900ms")
        with pytest.raises(JournalError, match="`ALTER ROLE … SET statement_timeout = 0` gives"):
            await journal.read(wait)


@pytest.fixture
def guarded_journal(database: Database) -> str:
    """The URL of a journal for the role `ann`, whom the server asks for a password."""
    url = database.create("journal")
    execute_as_owner(url, f"CREATE ROLE ann LOGIN SUPERUSER PASSWORD '{SECRET}'")
    with psycopg.connect("postgresql://" + url.partition("://")[2], autocommit=True) as connection:
        row = connection.execute("SHOW hba_file").fetchone()
        assert row is not None
        Path(row[0]).write_text(
            "host all midwatch 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        )
        connection.execute("SELECT pg_reload_conf()")
    return url_for_role(url, "ann", SECRET)


async def test_a_wrong_password_is_tried_once_and_not_said(
    guarded_journal: str, database: Database, folder: Path, capsys: Capture
) -> None:
    wrong = url_for_role(guarded_journal, "ann", "wr0ng")
    assert await midwatch("status", "--journal", wrong) == 2
    said = capsys.readouterr()
    assert 'password authentication failed for user "ann"; is the password right?' in said.err
    assert "wr0ng" not in said.out + said.err
    assert database.log.count("password authentication failed") == 1
    assert "no password supplied; supply one" in await refusal(
        guarded_journal.replace(f":{SECRET}@", "@")
    )


@asynccontextmanager
async def lock_ann_out(guarded_journal: str, journal: Journal) -> AsyncGenerator[None]:
    """Ann's password is another one, and her connections are lost."""
    server = url_for_role(guarded_journal, "midwatch")
    lost = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ann'"
    await journal.runs()
    execute_as_owner(server, "ALTER ROLE ann PASSWORD 'another'", lost)
    yield
    execute_as_owner(server, f"ALTER ROLE ann PASSWORD '{SECRET}'")


async def test_a_password_that_is_changed_meanwhile_is_said_at_once_and_waited_for(
    guarded_journal: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with await Journal.open(guarded_journal) as journal:
        async with lock_ann_out(guarded_journal, journal), asyncio.timeout(120):
            asked = asyncio.ensure_future(journal.runs())
            while not caplog.messages:
                await asyncio.wait([asked], timeout=0.05)
            assert not asked.done()
        assert await asyncio.wait_for(asked, 120) == []
    (said,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert said.getMessage() == (
        "the journal's database refuses the connection, trying again: password authentication "
        'failed for user "ann"; is the password right? it is taken from the URL (with '
        "special characters escaped, such as %40 for @), from PGPASSWORD or from ~/.pgpass"
    )


async def test_after_the_patience_the_refusal_is_what_is_said(guarded_journal: str) -> None:
    async with await Journal.open(guarded_journal, patience_seconds=0.3) as journal:
        async with lock_ann_out(guarded_journal, journal):
            with pytest.raises(JournalAccessError, match="cannot be opened: password auth") as why:
                await journal.runs()
        assert SECRET not in str(why.value)


async def test_a_server_that_has_no_room_is_waited_for(empty_journal: str, role: str) -> None:
    grant(empty_journal, role, WRITER)
    execute_as_owner(empty_journal, f"ALTER ROLE {role} CONNECTION LIMIT 0")
    opening = asyncio.ensure_future(Journal.open(url_for_role(empty_journal, role)))
    await asyncio.wait([opening], timeout=0.3)
    assert not opening.done()
    execute_as_owner(empty_journal, f"ALTER ROLE {role} CONNECTION LIMIT -1")
    await (await asyncio.wait_for(opening, 120)).close()


async def test_rights_that_are_taken_away_meanwhile_are_named(
    empty_journal: str, role: str
) -> None:
    grant(empty_journal, role, WRITER)
    async with await Journal.open(url_for_role(empty_journal, role)) as journal:
        execute_as_owner(empty_journal, f"REVOKE INSERT ON project FROM {role}")
        with pytest.raises(JournalAccessError, match=r"denied for table project; .* `GRANT "):
            await journal.write(_add_project)


def _add_project(connection: Connection) -> None:
    connection.execute(text("INSERT INTO project (name) VALUES ('shop')"))
