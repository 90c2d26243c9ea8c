"""The stated confidence of an attempt, beside what such confidence was worth so far."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    AttemptTransition,
    Checkpoint,
    Commit,
    Draft,
    Ending,
    Lifecycle,
    Step,
    StepKind,
)
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.state.feed import Feed

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
SAID = Step(
    number=1, kind=StepKind.CHECKPOINT, checkpoint=Checkpoint(progress_percent=40, confidence=80)
)
FAILED = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.STUCK)


async def failures(journal: Journal, count: int) -> None:
    """A run whose attempts all reported 80 % and failed."""
    run = await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
    for number in range(1, count + 1):
        name = f"task-{number}"
        task = await journal.add_task(run=run.id, name=name, title="", spec="{}", at=AT)
        whose = {"worker": "coder", "model": "m", "node": "n", "workspace": ""}
        attempt = await journal.add_attempt(task=task.id, number=1, at=AT, **whose)
        drafts = [
            Draft(record=each, at=AT, task=task.id, attempt=attempt.id) for each in (SAID, FAILED)
        ]
        await journal.commit(Commit(drafts=tuple(drafts)))


async def until_told(app: Console, pilot: Pilot[int], words: str) -> None:
    """Open the first attempt, and wait until its header says so; half a minute at most."""
    async with asyncio.timeout(30):
        while 1 not in app.board.rows:
            await pilot.pause()
        app.open_attempt(app.board.rows[1])
        await pilot.pause()
        while words not in str(app.screen.query_one("#standing", Static).content):
            await pilot.pause()


@pytest.mark.parametrize(
    ("attempts", "words"),
    [(5, "confidence 80% → 7% cal.  coder"), (4, "confidence 80%  coder")],
)
async def test_the_header_tells_it_once_there_are_enough_attempts(
    tmp_path: Path, attempts: int, words: str
) -> None:
    async with await Journal.open(tmp_path / "journal.db") as journal:
        await failures(journal, attempts)
        feed = Feed(journal, run=None, bus=LocalBus(), poll_seconds=0.1, hertz=50)
        app = Console(feed, OperatorActions(journal, author="ada"), now=lambda: AT)
        async with app.run_test(size=(120, 30)) as pilot:
            await until_told(app, pilot, words)
