"""All who share a journal go by one clock, whatever those of their machines say."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from pydantic_ai import Agent
from sqlalchemy import make_url

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import JournalClock, journal_clock, now
from midwatch_monitor.records import Action, Attempt, Ending, Lesson, Record
from midwatch_tests.command import midwatch, write
from midwatch_tests.factories import ended, intervention
from midwatch_tests.harness import PastAttempts
from midwatch_tests.reading import erasures
from midwatch_tools import Watch

NEAR = timedelta(minutes=2)
"""A busy machine takes its time; what is wrong here is wrong by ten minutes."""
TEN = timedelta(minutes=10)
_AHEAD = """
CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
$$ SELECT pg_catalog.clock_timestamp() + interval '10 minutes' $$
"""
_MODEL = """
from pydantic_ai.models.test import TestModel

def model_for(role, key):
    return TestModel(call_tools=[])
"""
_TASKS = """
models: {worker: "scripted:done", supervisor: none}
tasks: [{id: fix, goal: Fix it., acceptance: ["true"]}]
"""
PROGRAM = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"

Build = Callable[..., Agent[None, str]]


@pytest.fixture
async def shared_journal(postgres_journal: str) -> AsyncGenerator[Journal]:
    async with await Journal.open(postgres_journal) as journal:
        yield journal


def is_near(at: datetime, other: datetime) -> bool:
    return abs(at - other) < NEAR


@pytest.mark.parametrize("minutes", [-10, 10])
async def test_a_machine_tells_the_time_of_the_database(
    shared_journal: Journal, minutes: int
) -> None:
    own = [now() + timedelta(minutes=minutes)]
    clock = JournalClock(shared_journal, lambda: own[-1])
    assert await clock.tune()
    assert is_near(clock(), await shared_journal.now())
    assert abs(clock.ahead + timedelta(minutes=minutes)) < NEAR
    own.append(now() + timedelta(hours=1))
    assert is_near(clock(), await shared_journal.now())


async def test_the_time_of_the_journal_never_goes_back(shared_journal: Journal) -> None:
    passed = [0.0]
    clock = JournalClock(shared_journal, now, seconds=lambda: passed[-1])
    await clock.tune()
    passed.append(100.0)  # it runs too fast
    told = clock()
    await clock.tune()
    assert clock.ahead < -timedelta(seconds=90)
    assert clock() == told
    passed.append(250.0)
    assert told < clock() < told + timedelta(seconds=60)


async def test_a_slow_answer_that_contradicts_nothing_changes_nothing(
    shared_journal: Journal,
) -> None:
    passed = iter([0.0, 0.0, 0.0, 0.0, 90.0])
    clock = JournalClock(shared_journal, now, seconds=lambda: next(passed))
    await clock.tune()
    before = clock.ahead
    await clock.tune()  # a minute and a half from the question to the answer
    assert clock.ahead == before


async def test_a_file_has_no_clock_of_its_own(journal: Journal, at: datetime) -> None:
    async with journal_clock(journal, lambda: at) as clock:
        assert clock() == at
    assert is_near(await journal.now(), now())


@pytest.mark.parametrize(("minutes", "told"), [(1, "clock is +60 s off the database's"), (0, "")])
async def test_a_clock_that_is_far_off_is_told_once_at_the_start_and_no_other(
    shared_journal: Journal, caplog: pytest.LogCaptureFixture, minutes: int, told: str
) -> None:
    async with journal_clock(shared_journal, lambda: now() + timedelta(minutes=minutes)):
        assert told in caplog.text
        assert len(caplog.records) == minutes


# -- who writes ----------------------------------------------------------------------------


@pytest.mark.parametrize("off", [-TEN, TEN])
async def test_somebody_elses_agent_is_recorded_by_the_databases_time(
    worker: Build, postgres_journal: str, workspace: Path, shared_journal: Journal, off: timedelta
) -> None:
    watch = Watch(root=workspace, journal=postgres_journal, clock=lambda: now() + off)
    await worker([("put", {"path": "a.py", "text": "1"})]).run("Fix it.", capabilities=[watch])
    entries = await shared_journal.entries()
    assert entries[-1].record == ended(Ending.UNCHECKED, reason="the agent finished")
    times = [(await shared_journal.run(1)).started_at, *(entry.at for entry in entries)]
    assert all(is_near(at, now()) for at in times)
    assert times == sorted(times)


@pytest.fixture
async def journal_ahead(
    postgres_journal: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Journal]:
    """A journal in a database whose clock is ten minutes ahead of this machine's."""
    url = make_url(postgres_journal)
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(_AHEAD)
        connection.execute(
            f'ALTER DATABASE "{url.database}" SET search_path = public, pg_catalog'.encode()
        )
    monkeypatch.setenv("MIDWATCH_JOURNAL", postgres_journal)
    async with await Journal.open(postgres_journal) as journal:
        yield journal


async def _attempt(journal: Journal, project: Path) -> Attempt:
    return await PastAttempts(journal, await journal.now()).attempt(str(project))


HELD = intervention(Action.RESTART, needs_approval=True)
OVER = ended(Ending.ERROR)


@pytest.mark.parametrize(
    ("record", "command"),
    [
        (HELD, ["tell", "fix", "Look again."]),
        (HELD, ["approve", "{id}"]),
        (OVER, ["feedback", "fix", "reject", "--comment", "Run the tests before you say so."]),
        (Lesson(text="Run the tests first."), ["lessons", "retire", "{id}"]),
        (OVER, ["learn"]),
        (OVER, ["forget", "{project}", "--yes"]),
    ],
    ids=["tell", "approve", "reject", "retire", "learn", "forget"],
)
async def test_what_a_person_does_is_written_by_the_databases_time(
    journal_ahead: Journal, tmp_path: Path, record: Record, command: list[str]
) -> None:
    id = await write(
        journal_ahead, await _attempt(journal_ahead, tmp_path), await journal_ahead.now(), record
    )
    assert await midwatch(*(word.format(id=id, project=tmp_path) for word in command)) == 0
    times = [each.at for each in (*await journal_ahead.entries(id), *await erasures(journal_ahead))]
    assert times
    assert all(is_near(at, now() + TEN) for at in times)


@pytest.mark.matrix
async def test_a_run_here_goes_by_the_databases_time(
    journal_ahead: Journal, tmp_path: Path
) -> None:
    (tmp_path / "done.py").write_text(_MODEL)
    (tmp_path / "tasks.yaml").write_text(_TASKS)
    (tmp_path / "midwatch.yaml").write_text("run: {sandbox: auto}")  # some machines have none
    words = [sys.executable, "-c", PROGRAM, "run", "tasks.yaml", "--headless"]
    process = await asyncio.create_subprocess_exec(*words, cwd=tmp_path)
    assert await process.wait() == 0
    times = [
        (await journal_ahead.run(1)).started_at,
        *(each.at for each in await journal_ahead.entries()),
    ]
    assert all(is_near(at, now() + TEN) for at in times)
