"""A new journal gets its tables at once, and they are those that the migrations make."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.core import schema
from midwatch_monitor.journal.core.engine import Access, connect, transaction
from midwatch_monitor.journal.core.schema import alembic_config
from midwatch_monitor.journal.core.tables import OLDEST, REVISION


def writing(location: str | Path) -> Engine:
    engine = connect(location, Access.CREATE, Synchronous.NORMAL).writing
    assert engine is not None
    return engine


@pytest.fixture
def engine(journal_file: Path) -> Engine:
    """A new journal."""
    with transaction(found := writing(journal_file)) as connection:
        schema.make(connection)
    return found


@pytest.fixture(params=["sqlite", "postgresql"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Where two databases are made: one at once, one by the migrations."""
    if request.param == "sqlite":
        return str(tmp_path / "at_once.db"), str(tmp_path / "migrated.db")
    return request.getfixturevalue("postgres"), request.getfixturevalue("other_postgres")


def test_tables_made_at_once_are_those_of_the_migrations(places: tuple[str, str]) -> None:
    at_once, migrated = map(writing, places)
    with transaction(at_once) as connection:
        schema.make(connection)
    with transaction(migrated) as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    made = read_schema(at_once)
    assert made == read_schema(migrated)
    assert made.get("numbered", NUMBERED) == NUMBERED


NUMBERED = {"project", "run", "task", "attempt", "entry", "escalation", "erasure"}
"""Tables of which SQLite gives no id twice."""


def read_schema(engine: Engine) -> dict[str, Any]:
    """Tables with their columns, keys, constraints and indexes, and what they begin with."""
    with engine.connect() as connection:
        look = inspect(connection)
        found: dict[str, Any] = {name: table(connection, name) for name in look.get_table_names()}
        assert found
        found["oldest"] = connection.execute(text("SELECT oldest FROM compatibility")).scalar()
        found["revision"] = connection.execute(text("SELECT * FROM alembic_version")).scalar()
        key = connection.execute(text("SELECT mask_key FROM compatibility")).scalar_one()
        found["key"] = len(bytes.fromhex(key))
        if connection.dialect.name == "sqlite":
            said = "SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'"
            found["numbered"] = set(connection.execute(text(said)).scalars())
            said = "SELECT name, sql FROM sqlite_master WHERE sql LIKE '%VIRTUAL%'"
            found["virtual"] = set(map(tuple, connection.execute(text(said))))
    engine.dispose()
    return found


def table(connection: Connection, name: str) -> dict[str, Any]:
    look = inspect(connection)
    columns = {each["name"]: {**each, "type": str(each["type"])} for each in look.get_columns(name)}
    # SQLite does not tell the name of a foreign key that came with an added column.
    foreign = [
        {**each, "name": each["name"] or f"{name}_{each['constrained_columns'][0]}_fk"}
        for each in look.get_foreign_keys(name)
    ]
    parts = {
        "unique": look.get_unique_constraints(name),
        "foreign": foreign,
        "check": look.get_check_constraints(name),
        "indexes": [
            {
                **each,
                "dialect_options": {k: str(v) for k, v in each.get("dialect_options", {}).items()},
            }
            for each in look.get_indexes(name)
        ],
    }
    by_name = {of: sorted(map(repr, each)) for of, each in parts.items()}
    return {"columns": columns, "key": look.get_pk_constraint(name), **by_name}


def test_the_known_revisions_are_those_of_the_migrations() -> None:
    scripts = ScriptDirectory.from_config(alembic_config())
    assert scripts.get_heads() == [REVISION]
    assert max(getattr(each.module, "OLDEST", "") for each in scripts.walk_revisions()) == OLDEST


def test_a_new_journal_opens_within_a_bound_that_the_migrations_miss(tmp_path: Path) -> None:
    # 20 ms where this was written, 650 by the migrations.
    spent: list[float] = []
    for number in range(4):
        began = time.process_time()
        schema.open_store(tmp_path / f"{number}.db", Access.CREATE).close()
        spent.append(time.process_time() - began)
    assert min(spent) < 0.15


def test_a_second_preparation_waits_for_no_writer(journal_file: Path, engine: Engine) -> None:
    with transaction(engine) as connection:
        before = inspect(connection).get_table_names()
        schema.prepare(connect(journal_file, Access.CREATE, Synchronous.NORMAL))
        assert inspect(connection).get_table_names() == before


def test_tables_that_cannot_be_made_leave_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    store = connect(file, Access.CREATE, Synchronous.NORMAL)
    assert store.writing is not None
    with transaction(store.writing) as connection:
        connection.exec_driver_sql("CREATE VIEW escalation AS SELECT 1")
    with pytest.raises(JournalError, match="escalation already exists"):
        schema.prepare(store)
    with store.writing.connect() as connection:
        assert inspect(connection).get_table_names() == []


def test_a_journal_is_made_and_opened_without_alembic(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from midwatch_monitor.journal import Journal\n"
        "async def main():\n"
        "    for _ in range(2):\n"
        "        async with await Journal.open(sys.argv[1]): pass\n"
        "asyncio.run(main())\n"
        "print('alembic' in sys.modules)\n"
    )
    line = [sys.executable, "-c", program, str(tmp_path / "journal.db")]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "False\n"
