"""An attempt whose work is saved on one node and made again on another."""

from datetime import datetime
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt


@pytest.fixture
async def attempt(journal: Journal, at: datetime, tmp_path: Path) -> Attempt:
    """The first attempt at the task `fix`, which began on the node `a`."""
    run = await journal.add_run(source="", settings="{}", at=at)
    task = await journal.add_task(run=run.id, name="fix", title="", spec="{}", at=at)
    return await journal.add_attempt(
        task=task.id,
        number=1,
        worker="coder",
        model="m",
        node="a",
        workspace=str(tmp_path / "a" / "work" / "r1" / "fix-1"),
        at=at,
    )
