"""What SQLite's driver is asked directly fails as it would through SQLAlchemy."""

from collections.abc import Generator

import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import IntegrityError, OperationalError

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.journal.core.engine import (
    Access,
    connect,
    execute_in_sqlite,
    is_duplicate,
    transaction,
)


@pytest.fixture
def connection() -> Generator[Connection]:
    store = connect(":memory:", Access.CREATE, Synchronous.NORMAL)
    assert store.writing is not None
    with transaction(store.writing) as connection:
        execute_in_sqlite(connection, "CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT)")
        yield connection
    store.close()


def test_a_key_that_is_taken_is_a_duplicate(connection: Connection) -> None:
    execute_in_sqlite(connection, "INSERT INTO word (id) VALUES (?)", (7,))
    with pytest.raises(IntegrityError) as raised:
        execute_in_sqlite(connection, "INSERT INTO word (id) VALUES (?)", (7,))
    assert is_duplicate(raised.value)


def test_an_error_does_not_repeat_the_values(connection: Connection) -> None:
    with pytest.raises(OperationalError) as raised:
        execute_in_sqlite(connection, "INSERT INTO nowhere VALUES (?)", ("a secret",))
    assert "no such table: nowhere" in str(raised.value)
    assert "secret" not in str(raised.value)


def test_another_database_has_another_driver(postgres: str) -> None:
    engine = create_engine(postgres)
    with engine.connect() as connection, pytest.raises(TypeError, match="SQLite"):
        execute_in_sqlite(connection, "SELECT 1")
    engine.dispose()
