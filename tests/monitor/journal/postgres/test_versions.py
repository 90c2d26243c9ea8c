"""Two versions of Midwatch on one journal in PostgreSQL work together, or one says why not."""

import asyncio
from collections.abc import Callable, Generator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, select, text

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.errors import JournalError, JournalTooNewError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.engine import Access, Store, connect, transaction
from midwatch_monitor.journal.core.schema import (
    Upgrade,
    alembic_config,
    open_store,
    upgrade,
    version_of,
)
from midwatch_monitor.journal.core.tables import OLDEST, REVISION, node
from midwatch_monitor.records import NodeState

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "{revision}"
{oldest}

def upgrade():
    op.add_column("run", sa.Column("colour", sa.Text))
"""


@pytest.fixture
def store(postgres_journal: str) -> Generator[Store]:
    store = open_store(postgres_journal, Access.CREATE)
    yield store
    store.close()


def run_on(store: Store, work: Callable[[Connection], object]) -> None:
    assert store.writing is not None
    with transaction(store.writing) as connection:
        work(connection)


def execute_sql(store: Store, words: str) -> None:
    run_on(store, lambda connection: connection.execute(text(words)))


def enter_node(
    store: Store, name: str, state: NodeState, revision: str, seconds_ago: float = 0
) -> None:
    """Let a node be known, last heard so long ago."""

    def work(connection: Connection) -> None:
        now = connection.execute(select(func.now())).scalar_one()
        values = {"name": name, "boot": "1", "state": state.value, "slots": 1, "busy": 0}
        values |= {"labels": "[]", "version": "0", "revision": revision, "started_at": now}
        beat = now - timedelta(seconds=seconds_ago)
        connection.execute(insert(node), values | {"beat_at": beat, "fleet": "midwatch"})

    run_on(store, work)


async def test_a_newer_journal_works_with_the_program_before_until_it_has_gone_beyond_it(
    postgres_journal: str, store: Store, at: datetime
) -> None:
    execute_sql(store, "UPDATE alembic_version SET version_num = '9999'")
    async with await Journal.open(postgres_journal) as journal:
        run = await journal.add_run(source="", settings="", at=at)
    async with await Journal.open_to_read(postgres_journal) as journal:
        assert await journal.runs() == [run]
    execute_sql(store, "UPDATE compatibility SET oldest = '9998'")
    for opening in (Journal.open, Journal.open_to_read):
        with pytest.raises(JournalTooNewError, match=r"at 9999.*update Midwatch"):
            await opening(postgres_journal)


CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
)


@pytest.mark.parametrize("happens", ["SELECT 1", CUT])
async def test_who_writes_to_a_journal_that_has_gone_beyond_it_is_refused(
    postgres_journal: str, store: Store, at: datetime, happens: str
) -> None:
    async with await Journal.open(postgres_journal) as journal:
        await journal.add_run(source="", settings="", at=at)
        execute_sql(store, "UPDATE compatibility SET oldest = '9998'")
        execute_sql(store, happens)
        with pytest.raises(JournalTooNewError, match="can no longer use it"):
            await journal.add_run(source="", settings="", at=at)
        assert len(await journal.runs()) == 1


def wait_until_one_waits(connection: Connection) -> None:
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    while not connection.execute(waiting).scalar():
        pass


async def test_who_waits_to_write_during_an_upgrade_is_refused_after_it(
    postgres_journal: str, store: Store, at: datetime
) -> None:
    assert store.writing is not None
    async with await Journal.open(postgres_journal) as journal:
        with transaction(store.writing) as connection:
            asked = asyncio.ensure_future(journal.add_run(source="", settings="", at=at))
            await asyncio.to_thread(wait_until_one_waits, connection)
            connection.execute(text("UPDATE compatibility SET oldest = '9998'"))
        with pytest.raises(JournalTooNewError, match="can no longer use it"):
            await asked
        assert await journal.runs() == []


def test_an_empty_database_is_set_up_by_the_command_too(postgres: str) -> None:
    store = connect(postgres, Access.WRITE, Synchronous.NORMAL)
    wanted = Upgrade(before=None, after=REVISION, oldest=OLDEST)
    assert upgrade(store, dry_run=True) == wanted
    assert version_of(store).revision is None
    assert upgrade(store) == wanted
    assert upgrade(store) == Upgrade(before=REVISION, after=REVISION, oldest=OLDEST)
    assert version_of(store).current
    store.close()


@pytest.fixture
def migration(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the next migration, which says of `OLDEST` what is given; its folder."""

    def write(oldest: str) -> Path:
        folder = tmp_path / "versions"
        folder.mkdir()
        said = f'OLDEST = "{oldest}"' if oldest else ""
        (folder / "next.py").write_text(NEXT.format(revision=REVISION, oldest=said))
        return folder

    return write


def test_a_migration_for_all_nodes_is_made_meanwhile(
    store: Store, migration: Callable[[str], Path]
) -> None:
    enter_node(store, "a", NodeState.UP, REVISION)
    done = upgrade(store, config=alembic_config(migration("")))
    assert done == Upgrade(before=REVISION, after="0005", oldest=OLDEST)
    assert version_of(store).current


def test_a_migration_waits_for_the_nodes_that_it_would_leave_behind_and_then_refuses_them(
    store: Store, postgres_journal: str, migration: Callable[[str], Path]
) -> None:
    config = alembic_config(migration("0005"))
    enter_node(store, "old", NodeState.UP, REVISION)
    enter_node(store, "slow", NodeState.DRAINING, REVISION)
    enter_node(store, "new", NodeState.UP, "0005")
    enter_node(store, "gone", NodeState.DOWN, REVISION)
    enter_node(store, "silent", NodeState.UP, REVISION, seconds_ago=61)
    named = rf"node old \(made for {REVISION}\), node slow \(made for {REVISION}\) could not"
    for dry_run in (True, False):
        with pytest.raises(JournalError, match=named):
            upgrade(store, dry_run=dry_run, config=config)
    assert version_of(store).revision == REVISION
    execute_sql(store, "DELETE FROM node")
    upgrade(store, config=config)
    assert not version_of(store).current
    with pytest.raises(JournalTooNewError):
        open_store(postgres_journal, Access.WRITE)
