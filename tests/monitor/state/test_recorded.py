"""Runs that were recorded: live, rebuilt from the journal and read in pages, the state is one."""

import sqlite3
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Entry, Task
from midwatch_monitor.state.task import TaskState

BEFORE = Path(__file__).parents[1] / "journal" / "core" / "journals" / "before.sql"


@pytest.fixture(scope="module")
def recorded_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recorded") / "journal.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(f"BEGIN;{BEFORE.read_text('utf-8')};COMMIT")
    connection.close()
    return file


@pytest.fixture
async def demo_journal(recorded_file: Path) -> AsyncGenerator[Journal]:
    """The journal of a demo: six tasks, seven attempts, a restart, approvals, verdicts."""
    async with await Journal.open_to_read(recorded_file) as journal:
        yield journal


def fold_task(task: Task, attempts: Iterable[Attempt], entries: Iterable[Entry]) -> TaskState:
    state = TaskState(task=task)
    for attempt in attempts:
        state.meet(attempt)
    for entry in entries:
        state.fold(entry)
    return state


async def test_a_state_that_goes_on_is_the_one_rebuilt_after_any_entry(
    demo_journal: Journal,
) -> None:
    for task in await demo_journal.tasks(1):
        attempts = await demo_journal.attempts(task.id)
        entries = await demo_journal.entries(task=task.id)
        live = fold_task(task, attempts, [])
        for count, entry in enumerate(entries, start=1):
            live.fold(entry)
            assert live == fold_task(task, attempts, entries[:count])
        assert live.status.value == "completed"


async def test_a_state_that_is_read_in_pages_is_the_same(demo_journal: Journal) -> None:
    for task in await demo_journal.tasks(1):
        attempts = await demo_journal.attempts(task.id)
        paged, last = fold_task(task, attempts, []), 0
        while page := await demo_journal.entries(last, task=task.id, limit=7):
            for entry in page:
                paged.fold(entry)
            last = page[-1].id
        whole = [entry async for entry in demo_journal.all_entries(task=task.id)]
        assert paged == fold_task(task, attempts, whole)
