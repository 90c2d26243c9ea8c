"""An attempt whose work is saved on one node and made again on another."""

from datetime import datetime
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt
from midwatch_tests.command import new_attempt, new_task


@pytest.fixture
async def attempt(journal: Journal, at: datetime, tmp_path: Path) -> Attempt:
    """The first attempt at the task `fix`, which began on the node `a`."""
    workspace = str(tmp_path / "a" / "work" / "r1" / "fix-1")
    task = await new_task(journal, "fix", at=at)
    return await new_attempt(journal, task, at=at, node="a", workspace=workspace)
