"""What holds for every test, and what tests of several rooms share: a journal, a worker, a run.

Nothing that takes time is imported before a fixture needs it: a file of pure tests starts at once.
"""

import asyncio
import gc
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from midwatch_tests.orphans import end_orphans_with_this_process

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel

    from midwatch_agents.sandbox import SandboxKind
    from midwatch_monitor.bus import LocalBus
    from midwatch_monitor.config.settings import Settings
    from midwatch_monitor.journal import Journal
    from midwatch_monitor.recorder import Recorder
    from midwatch_monitor.records import Attempt, Entry, Record
    from midwatch_tests.database import Database
    from midwatch_tests.harness import PastAttempts, RunHarness
    from midwatch_tests.worker import Performer


def pytest_configure() -> None:
    """Let what tests start be interrupted, also where these began with Ctrl-C ignored.

    A shell without job control starts what is in the background so, and children inherit it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _keep_bytecode()


def _keep_bytecode() -> None:
    """Keep bytecode in pytest's own cache where none may be written beside the sources.

    Without any, each process that a test starts compiles some thousand files anew.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        sys.dont_write_bytecode = False
        sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix


def pytest_collection() -> None:
    """Collect no garbage while tests are collected: the modules that they import are none."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let later collections pass over what was imported."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """No workers for a single file: they take longer to start than most files take.

    Otherwise one more than there are cores: many tests wait for processes that they have started.
    """
    return 0 if _of_one_file(config) else (os.cpu_count() or 1) + 1


def _of_one_file(config: pytest.Config) -> bool:
    """Whether one file was asked for, or some of its tests."""
    files = {each.partition("::")[0] for each in config.args}
    return len(files) == 1 and files.pop().endswith(".py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin the files with long tests first: begun last, they would be waited for alone."""
    long = {each.path for each in items if each.get_closest_marker("long")}
    items.sort(key=lambda each: each.path not in long)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what takes long unless its file was asked for, and the further cases of a matrix.

    In CI nothing is skipped.
    """
    if os.environ.get("CI"):
        return
    if item.get_closest_marker("matrix"):
        pytest.skip("a further case of a matrix: run where CI is set, as by .ci/run")
    if item.get_closest_marker("long") and not _of_one_file(item.config):
        pytest.skip("long: run where CI is set, as by .ci/run, or where its file is asked for")


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
    from midwatch_tests.database import Database

    _require_programs()
    with Database.start() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Generator[str]:
    """The URL of a PostgreSQL server; skipped where there is none, but not in CI."""
    from midwatch_tests.database import Database

    given = os.environ.get("MIDWATCH_TEST_POSTGRES")
    if given:
        yield given
        return
    _require_programs()
    with Database.start() as server:
        yield server.url


def _require_programs() -> None:
    from midwatch_tests.database import programs

    if programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed here")


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of a database that is an empty journal: to make the tables each time is dear."""
    from midwatch_monitor.journal.core.engine import Access
    from midwatch_monitor.journal.core.schema import open_store
    from midwatch_tests.database import create_database

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
    from midwatch_tests.database import create_database, drop_database

    name = f"test_{uuid4().hex}"
    yield create_database(server, name, like=like)
    drop_database(server, name)


@pytest.fixture
def at() -> datetime:
    return datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


@pytest.fixture
def journal_file(tmp_path: Path) -> Path:
    return tmp_path / ".midwatch" / "journal.db"


@pytest.fixture
def named_by_the_environment(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find the journal by themselves."""
    monkeypatch.setenv("MIDWATCH_JOURNAL", location)


@pytest.fixture
def by_ada(named_by_the_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do, and whoever gives them is called ada."""
    monkeypatch.setenv("LOGNAME", "ada")


@pytest.fixture
def location(request: pytest.FixtureRequest, journal_file: Path) -> str:
    """Where the journal is: a file, or for tests with the parameter `postgresql` a database."""
    if getattr(request, "param", "file") == "postgresql":
        return request.getfixturevalue("postgres_journal")
    return str(journal_file)


@pytest.fixture(scope="session")
def empty_journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that is an empty journal: a copy of it takes half the time of a new one."""
    from midwatch_monitor.journal.core.engine import Access
    from midwatch_monitor.journal.core.schema import open_store

    file = tmp_path_factory.mktemp("empty") / "journal.db"
    open_store(str(file), Access.CREATE).close()
    return file


@pytest.fixture
async def journal(
    location: str, journal_file: Path, empty_journal: Path
) -> "AsyncGenerator[Journal]":
    from midwatch_monitor.journal import Journal

    if location == str(journal_file):
        _copy_to_new(empty_journal, journal_file)
    async with await Journal.open(location) as opened:
        yield opened


def _copy_to_new(source: Path, file: Path) -> None:
    if not file.exists():
        file.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copy(source, file)


@pytest.fixture
async def attempt(journal: "Journal", at: datetime) -> "Attempt":
    run = await journal.add_run(source="tasks.yaml", settings="{}", at=at)
    task = await journal.add_task(run=run.id, name="fix", title="Fix it", spec="{}", at=at)
    return await journal.add_attempt(
        task=task.id, number=1, worker="coder", model="m", node="here", workspace="/w", at=at
    )


@pytest.fixture
async def bubblewrap() -> "SandboxKind":
    """For tests that need it: skipped where there is none, but not in CI."""
    from midwatch_agents.sandbox import SandboxKind, find_sandbox
    from midwatch_monitor.config.settings import Sandbox

    sandbox_kind = await find_sandbox(Sandbox.AUTO)
    if sandbox_kind is SandboxKind.NONE and not os.environ.get("CI"):
        pytest.skip("bubblewrap does not work here")
    assert sandbox_kind is SandboxKind.BUBBLEWRAP
    return sandbox_kind


@pytest.fixture
def bus() -> "LocalBus":
    from midwatch_monitor.bus import LocalBus

    return LocalBus()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def claim(
    journal: "Journal", bus: "LocalBus", attempt: "Attempt", at: datetime
) -> "Callable[..., Awaitable[Recorder]]":
    """Takes the attempt over: `await claim(settings, of=attempt)`."""
    from midwatch_monitor.config.settings import Settings
    from midwatch_monitor.recorder import Recorder

    async def take(settings: "Settings | None" = None, *, of: "Attempt" = attempt) -> "Recorder":
        return await Recorder.claim(
            journal=journal,
            bus=bus,
            attempt=of,
            settings=settings or Settings(),
            holder="test",
            clock=lambda: at,
        )

    return take


@pytest.fixture
def write(journal: "Journal", attempt: "Attempt", at: datetime) -> "Callable[..., Awaitable[int]]":
    """Commits records as another process would, and answers the id of the last."""
    from midwatch_monitor.records import Commit, Draft

    async def commit(*records: "Record") -> int:
        drafts = tuple(
            Draft(record=record, at=at, task=attempt.task, attempt=attempt.id) for record in records
        )
        return (await journal.commit(Commit(drafts=drafts)))[-1].id

    return commit


@pytest.fixture
def until(journal: "Journal") -> "Callable[[Record], Awaitable[Entry]]":
    """Waits for a record to stand in the journal; two minutes at most."""

    async def wait(record: "Record") -> "Entry":
        after = 0
        async with asyncio.timeout(120):
            while True:
                for entry in await journal.entries(after):
                    after = entry.id
                    if entry.record == record:
                        return entry

    return wait


@pytest.fixture
def scripted() -> "Callable[..., FunctionModel]":
    """A model that says one turn after the other: `scripted(*turns)`."""
    from midwatch_tests.worker import scripted

    return scripted


@pytest.fixture
def worker(workspace: Path) -> "Callable[..., Agent[None, str]]":
    """An agent that follows turns, with tools over the workspace: `worker(*turns, tools=())`."""
    from midwatch_tests.worker import worker

    return partial(worker, workspace=workspace)


@pytest.fixture
def perform(
    claim: "Callable[..., Awaitable[Recorder]]",
    journal: "Journal",
    bus: "LocalBus",
    workspace: Path,
    attempt: "Attempt",
    write: "Callable[..., Awaitable[int]]",
    until: "Callable[[Record], Awaitable[Entry]]",
) -> "Performer":
    """Works through turns as a runner would have it: `await perform(*turns, settings=…)`."""
    from midwatch_tests.worker import Performer

    return Performer(
        claim=claim,
        journal=journal,
        bus=bus,
        workspace=workspace,
        attempt=attempt,
        write=write,
        until=until,
    )


@pytest.fixture
def harness(journal: "Journal", tmp_path: Path, request: pytest.FixtureRequest) -> "RunHarness":
    """Runs task files in this process, or as processes that can import the test's folder."""
    from midwatch_tests.harness import RunHarness

    return RunHarness(journal, tmp_path, request.path.parent)


@pytest.fixture
def past(journal: "Journal", at: datetime) -> "PastAttempts":
    from midwatch_tests.harness import PastAttempts

    return PastAttempts(journal, at)
