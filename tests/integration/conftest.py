"""A journal in a real file, with one attempt in it."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.words import Attempt


@pytest.fixture
def at() -> datetime:
    return datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


@pytest.fixture
def journal_file(tmp_path: Path) -> Path:
    return tmp_path / ".midwatch" / "journal.db"


@pytest.fixture
async def journal(journal_file: Path) -> AsyncGenerator[Journal]:
    async with await Journal.open(journal_file) as opened:
        yield opened


@pytest.fixture
async def attempt(journal: Journal, at: datetime) -> Attempt:
    run = await journal.add_run(source="tasks.yaml", settings="{}", at=at)
    task = await journal.add_task(run=run.id, name="fix", title="Fix it", spec="{}", at=at)
    return await journal.add_attempt(
        task=task.id, number=1, worker="coder", model="m", node="here", workspace="/w", at=at
    )
