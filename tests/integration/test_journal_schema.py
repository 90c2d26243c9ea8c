"""The migrations make the tables that the code expects."""

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from midwatch_monitor.config.settings import Synchronous
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.core import schema
from midwatch_monitor.journal.core.columns import metadata
from midwatch_monitor.journal.core.engine import Access, connect, transaction
from midwatch_monitor.journal.core.tables import REVISION
from midwatch_monitor.journal.core.upgrade import alembic_config


@pytest.fixture
def engine(journal_file: Path) -> Engine:
    store = connect(journal_file, Access.CREATE, Synchronous.NORMAL)
    schema.prepare(store)
    assert store.writing is not None
    return store.writing


def constraints(connection: Connection, table: str) -> set[str | None]:
    look = inspect(connection)
    unique, foreign = look.get_unique_constraints(table), look.get_foreign_keys(table)
    # SQLite does not tell the name of a foreign key that came with an added column.
    names = {each["name"] or f"{table}_{each['constrained_columns'][0]}_fk" for each in foreign}
    names |= {each["name"] or "" for each in unique}
    return names | {look.get_pk_constraint(table)["name"]}


def not_of_fts5(name: str | None, kind: str, parents: object) -> bool:
    del parents
    return kind != "table" or not (name or "").startswith(("lesson_text", "fact_text"))


def test_the_migrations_make_exactly_the_tables(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_name": not_of_fts5})
        assert compare_metadata(context, metadata) == []


def test_the_migrations_name_every_constraint_as_the_tables_do(
    engine: Engine, tmp_path: Path
) -> None:
    other = connect(tmp_path / "plain.db", Access.CREATE, Synchronous.NORMAL).writing
    assert other is not None
    with transaction(other) as plain, engine.connect() as migrated:
        metadata.create_all(plain)
        for name in metadata.tables:
            assert constraints(migrated, name) == constraints(plain, name)


def test_the_known_revision_is_the_newest_migration() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_heads() == [REVISION]


def test_an_id_is_never_given_twice(engine: Engine) -> None:
    numbered = {"project", "run", "task", "attempt", "entry", "escalation", "erasure"}
    query = "SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'"
    with engine.connect() as connection:
        assert set(connection.exec_driver_sql(query).scalars()) == numbered


def test_a_second_preparation_does_not_even_wait_for_a_writer(
    journal_file: Path, engine: Engine
) -> None:
    with transaction(engine) as connection:
        before = inspect(connection).get_table_names()
        schema.prepare(connect(journal_file, Access.CREATE, Synchronous.NORMAL))
        assert inspect(connection).get_table_names() == before


def test_a_failed_migration_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    store = connect(file, Access.CREATE, Synchronous.NORMAL)
    assert store.writing is not None
    with transaction(store.writing) as connection:
        connection.exec_driver_sql("CREATE VIEW escalation AS SELECT 1")
    with pytest.raises(JournalError, match="escalation already exists"):
        schema.prepare(store)
    with store.writing.connect() as connection:
        assert inspect(connection).get_table_names() == []


@pytest.mark.parametrize("name", sorted(metadata.tables))
def test_every_table_can_be_said_in_postgresql(name: str) -> None:
    dialect = postgresql.dialect()
    table = metadata.tables[name]
    assert "AUTOINCREMENT" not in str(CreateTable(table).compile(dialect=dialect))
    for index in table.indexes:
        assert str(CreateIndex(index).compile(dialect=dialect))


def test_a_journal_that_is_up_to_date_opens_without_alembic(
    journal_file: Path, engine: Engine
) -> None:
    program = (
        "import asyncio, sys\n"
        "from midwatch_monitor.journal import Journal\n"
        "async def main():\n"
        "    async with await Journal.open(sys.argv[1]): pass\n"
        "asyncio.run(main())\n"
        "print('alembic' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program, str(journal_file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"
