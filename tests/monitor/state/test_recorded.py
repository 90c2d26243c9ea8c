"""Runs that were recorded: live, rebuilt from the journal and read in pages, the state is one."""

import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import Attempt, Change, Entry, Step, Task
from midwatch_monitor.state.task import TaskState
from midwatch_monitor.traces import find_traces, open_trace
from midwatch_stage.factories import WHOSE

BEFORE = Path(__file__).parents[1] / "journal" / "core" / "journals" / "before.sql"
TRACES = os.environ.get("MIDWATCH_TRACES")
"""A folder of recorded runs of any format, to try these tests on more than the repository has."""
REBUILDS = 100
"""How often the state of one recorded run is folded anew, at most."""


@pytest.fixture
async def recorded(tmp_path: Path) -> AsyncGenerator[Journal]:
    """The journal of a demo: six tasks, seven attempts, a restart, approvals, verdicts."""
    file = tmp_path / "recorded.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(BEFORE.read_text("utf-8"))
    connection.close()
    async with await Journal.open_to_read(file) as journal:
        yield journal


def folded(task: Task, attempts: Iterable[Attempt], entries: Iterable[Entry]) -> TaskState:
    state = TaskState(task=task)
    for attempt in attempts:
        state.meet(attempt)
    for entry in entries:
        state.fold(entry)
    return state


async def test_a_state_that_goes_on_is_the_one_that_is_rebuilt_after_every_entry(
    recorded: Journal,
) -> None:
    for task in await recorded.tasks(1):
        attempts = await recorded.attempts(task.id)
        entries = await recorded.entries(task=task.id)
        live = folded(task, attempts, [])
        for count, entry in enumerate(entries, start=1):
            live.fold(entry)
            assert live == folded(task, attempts, entries[:count])
        assert live.status.value == "completed"


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_state_that_is_read_in_pages_is_the_same(recorded: Journal, size: int) -> None:
    for task in await recorded.tasks(1):
        attempts = await recorded.attempts(task.id)
        paged, last = folded(task, attempts, []), 0
        while page := await recorded.entries(last, task=task.id, limit=size):
            for entry in page:
                paged.fold(entry)
            last = page[-1].id
        whole = [entry async for entry in recorded.all_entries(task=task.id)]
        assert paged == folded(task, attempts, whole)


@pytest.mark.skipif(not TRACES, reason="MIDWATCH_TRACES names no folder of recorded runs")
async def test_recorded_runs_of_any_format_have_one_state_live_and_rebuilt(
    tmp_path: Path, claim: Callable[..., Awaitable[Recorder]], journal: Journal, attempt: Attempt
) -> None:
    task = await journal.task(attempt.task)
    paths = list(find_traces(Path(TRACES or "")))
    assert paths
    for number, path in enumerate(paths, start=2):
        at = attempt.started_at
        of = await journal.add_attempt(task=task.id, number=number, at=at, **WHOSE)
        recorder = await claim(of=of)
        live = folded(task, [of], [])
        recorder.listeners.append(partial(_fold_all, live))
        await recorder.record(working_transition())
        events = [each for each in open_trace(path) if isinstance(each, Step | Change)]
        every = 1 + len(events) // REBUILDS
        for count, event in enumerate(events):
            await recorder.record(event)
            if count % every == 0 or count == len(events) - 1:
                written = [each async for each in journal.all_entries(attempt=of.id)]
                assert live == folded(task, [of], written), (path, count)


def _fold_all(state: TaskState, entries: Iterable[Entry]) -> None:
    for entry in entries:
        state.fold(entry)
