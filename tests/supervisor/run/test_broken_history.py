"""An attempt does not go on with a gap in its history, but goes on once its journal has space."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from midwatch_agents.scripted import Script
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import JournalCorruptError, JournalFullError, JournalTooNewError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import schema
from midwatch_monitor.journal.core.engine import Access, Synchronous, connect
from midwatch_monitor.records import AttemptTransition, Ending, Lifecycle
from midwatch_stage.acting import DONE, gate, script, task_file
from midwatch_stage.factories import call, turn
from midwatch_stage.harness import RunHarness


def script_for(role: Role, key: str) -> Script:
    act = call("read_all") if key == "fill" else call("gate", leaves="work.txt")
    return script(turn(act), DONE)


TASKS = task_file(
    __name__,
    'id: fix, goal: Fix it., acceptance: ["test -e work.txt"], max_attempts: 1',
    tools=(gate,),
)


def break_rows(harness: RunHarness, statement: str) -> None:
    with closing(sqlite3.connect(harness.journal.name)) as connection, connection:
        assert connection.execute(statement).rowcount


async def interrupted(harness: RunHarness) -> None:
    """A run whose one attempt was at work when it was left."""
    run = asyncio.create_task(harness.run(TASKS))
    await harness.until((harness.home / "work/r1/fix-1/work.txt").exists)
    run.cancel()
    await asyncio.wait({run})
    harness.open_gate()


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (
            "UPDATE message SET body = x'0000' WHERE idx = 0",
            "message 0 of attempt 1 cannot be read: a history in the journal is damaged: ",
        ),
        (
            "UPDATE message SET body = (SELECT x'789c030000000001') WHERE idx = 0",
            "its history is not valid (1 error)",
        ),
        (
            "INSERT INTO result (attempt, call, body) VALUES (1, 'c', x'0000')",
            "result c of attempt 1 cannot be read: a history in the journal is damaged: ",
        ),
    ],
)
async def test_an_attempt_whose_history_is_broken_fails_and_says_which_row_it_is(
    harness: RunHarness, statement: str, why: str
) -> None:
    await interrupted(harness)
    break_rows(harness, statement)
    assert await harness.resume() == 1
    last = await harness.last(AttemptTransition, attempt=1)
    assert (last.lifecycle, last.ending) == (Lifecycle.FAILED, Ending.ERROR)
    assert last.reason.startswith(f"the attempt cannot be resumed: {why}")


async def test_an_attempt_with_entries_that_cannot_be_read_goes_on(harness: RunHarness) -> None:
    await interrupted(harness)
    kinds = "('step', 'change', 'attempt_state', 'alert')"
    break_rows(harness, f"UPDATE entry SET body = '{{' WHERE kind IN {kinds}")
    assert await harness.resume() == 0


async def test_a_run_whose_task_or_settings_cannot_be_read_says_so(harness: RunHarness) -> None:
    await interrupted(harness)
    break_rows(harness, "UPDATE task SET spec = 'my secret'")
    with pytest.raises(JournalCorruptError, match=r"^cannot read what task 1 \('fix'\) of run 1"):
        await harness.resume()
    break_rows(harness, "UPDATE run SET settings = 'my secret'")
    with pytest.raises(JournalTooNewError, match=r"^cannot read the settings of run 1$"):
        await harness.resume()


MODULES = Path(__file__).parent


async def read_all() -> str:
    """Answer more than there is space for."""
    return os.urandom(1_000_000).hex()


FILLING = task_file(
    __name__, 'id: fill, goal: Fix it., acceptance: ["true"], max_attempts: 1', tools=(read_all,)
)


async def test_a_full_disk_ends_the_run_and_not_the_attempt(
    journal_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = connect(journal_file, Access.CREATE, Synchronous.NORMAL)
    schema.prepare(store)
    assert store.writing is not None
    with store.writing.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count=160")
    async with Journal(store) as journal:
        with pytest.raises(JournalFullError, match="no space left"):
            await RunHarness(journal, tmp_path, MODULES).run(FILLING)
    assert "Traceback" not in caplog.text
    async with await Journal.open(journal_file) as journal:
        assert await RunHarness(journal, tmp_path, MODULES).resume() == 0
