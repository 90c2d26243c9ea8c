"""What holds for every test: asyncio, no model request leaves the machine, and PostgreSQL."""

import os
from collections.abc import Generator
from uuid import uuid4

import pytest

from midwatch_monitor.journal.core.engine import Access
from midwatch_monitor.journal.core.schema import opened
from midwatch_stage.database import Database, create_database, drop_database, programs
from midwatch_stage.orphans import end_orphans_with_this_process


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def _no_orphans() -> None:  # pyright: ignore[reportUnusedFunction]
    """What tests have started ends with them, even where they are killed."""
    end_orphans_with_this_process()


@pytest.fixture(autouse=True, scope="session")
def _no_real_models() -> None:  # pyright: ignore[reportUnusedFunction]
    from pydantic_ai import models

    models.ALLOW_MODEL_REQUESTS = False


@pytest.fixture
def database() -> Generator[Database]:
    """A PostgreSQL server that may be killed; skipped where there is none, but not in CI."""
    if programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed here")
    with Database.start() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Generator[str]:
    """The URL of a PostgreSQL server; skipped where there is none, but not in CI."""
    given = os.environ.get("MIDWATCH_TEST_POSTGRES")
    if given:
        yield given
        return
    if programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed here")
    with Database.start() as server:
        yield server.url


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of a database that is an empty journal: to make the tables each time is dear."""
    name = f"journal_{uuid4().hex}"
    opened(create_database(postgres_server, name), Access.CREATE).close()
    return name


@pytest.fixture
def postgres_journal(postgres_server: str, postgres_template: str) -> Generator[str]:
    """The URL of a new database in PostgreSQL that is an empty journal."""
    name = f"test_{uuid4().hex}"
    yield create_database(postgres_server, name, like=postgres_template)
    drop_database(postgres_server, name)


@pytest.fixture
def postgres(postgres_server: str) -> Generator[str]:
    """The URL of a new empty database in PostgreSQL."""
    name = f"test_{uuid4().hex}"
    yield create_database(postgres_server, name)
    drop_database(postgres_server, name)


@pytest.fixture
def other_postgres(postgres_server: str) -> Generator[str]:
    """The URL of another one."""
    name = f"test_{uuid4().hex}"
    yield create_database(postgres_server, name)
    drop_database(postgres_server, name)
