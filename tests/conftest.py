"""What holds for every test: asyncio, no model request leaves the machine, and PostgreSQL.

Imports nothing that takes time: one file of pure tests is to start at once.
"""

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from midwatch_stage.orphans import end_orphans_with_this_process

if TYPE_CHECKING:
    from midwatch_stage.database import Database


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """No workers for a single file: they take longer to start than most files take."""
    files = [Path(each.partition("::")[0]) for each in config.args]
    return 0 if len(files) == 1 and files[0].suffix == ".py" else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the further cases of a matrix where it is not CI."""
    if item.get_closest_marker("matrix") and not os.environ.get("CI"):
        pytest.skip("a further case of a matrix: run where CI is set, as by .ci/run")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Collect no garbage while a traceback is made.

    A finalizer that warns amid the parsing of source makes Python 3.11 raise "AST constructor
    recursion depth mismatch", and pytest with it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def _no_orphans() -> None:  # pyright: ignore[reportUnusedFunction]
    """What tests have started ends with them, even where they are killed."""
    end_orphans_with_this_process()


@pytest.fixture(autouse=True)
def _no_real_models() -> None:  # pyright: ignore[reportUnusedFunction]
    # Whoever can ask a model has imported it: before its tests, or in an earlier one.
    models: Any = sys.modules.get("pydantic_ai.models")
    if models is not None:
        models.ALLOW_MODEL_REQUESTS = False


@pytest.fixture
def database() -> "Generator[Database]":
    """A PostgreSQL server that may be killed; skipped where there is none, but not in CI."""
    from midwatch_stage.database import Database

    _require_programs()
    with Database.start() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Generator[str]:
    """The URL of a PostgreSQL server; skipped where there is none, but not in CI."""
    from midwatch_stage.database import Database

    given = os.environ.get("MIDWATCH_TEST_POSTGRES")
    if given:
        yield given
        return
    _require_programs()
    with Database.start() as server:
        yield server.url


def _require_programs() -> None:
    from midwatch_stage.database import programs

    if programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed here")


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of a database that is an empty journal: to make the tables each time is dear."""
    from midwatch_monitor.journal.core.engine import Access
    from midwatch_monitor.journal.core.schema import open_store
    from midwatch_stage.database import create_database

    name = f"journal_{uuid4().hex}"
    open_store(create_database(postgres_server, name), Access.CREATE).close()
    return name


@pytest.fixture
def postgres_journal(postgres_server: str, postgres_template: str) -> Generator[str]:
    """The URL of a new database in PostgreSQL that is an empty journal."""
    yield from _database_on(postgres_server, postgres_template)


@pytest.fixture
def postgres(postgres_server: str) -> Generator[str]:
    """The URL of a new empty database in PostgreSQL."""
    yield from _database_on(postgres_server)


@pytest.fixture
def other_postgres(postgres_server: str) -> Generator[str]:
    """The URL of another one."""
    yield from _database_on(postgres_server)


def _database_on(server: str, like: str = "template1") -> Generator[str]:
    from midwatch_stage.database import create_database, drop_database

    name = f"test_{uuid4().hex}"
    yield create_database(server, name, like=like)
    drop_database(server, name)
