"""A run whose journal has no space left ends, and goes on where it was once there is."""

import os
from pathlib import Path

import pytest

from midwatch_agents.scripted import Script
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import JournalFullError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import schema
from midwatch_monitor.journal.core.engine import Access, Synchronous, connect
from midwatch_stage.acting import DONE, script, task_file
from midwatch_stage.factories import call, turn
from midwatch_stage.harness import RunHarness

MODULES = Path(__file__).parent


async def read_all() -> str:
    """Answer more than there is space for."""
    return os.urandom(1_000_000).hex()


def script_for(role: Role, key: str) -> Script:
    return script(turn(call("read_all")), DONE)


TASKS = task_file(
    __name__, 'id: fix, goal: Fix it., acceptance: ["true"], max_attempts: 1', tools=(read_all,)
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
            await RunHarness(journal, tmp_path, MODULES).run(TASKS)
    assert "Traceback" not in caplog.text
    async with await Journal.open(journal_file) as journal:
        assert await RunHarness(journal, tmp_path, MODULES).resume() == 0
