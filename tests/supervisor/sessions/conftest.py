"""A home folder with sessions of agents that somebody else started."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from midwatch_monitor.journal import Journal
from midwatch_tests.foreign import FILES, ForeignAgents, asked, loop
from midwatch_tests.sessions import DIALECTS


@pytest.fixture
async def agents(journal: Journal, tmp_path: Path) -> AsyncGenerator[ForeignAgents]:
    """Nobody has started any yet."""
    made = ForeignAgents(journal, tmp_path / "home")
    yield made
    made.watch.close()


@pytest.fixture
async def transcript(agents: ForeignAgents) -> Path:
    """Of a session of Claude Code that is watched, after two calls."""
    claude = DIALECTS["claude-code"]
    path = agents.write(FILES["claude-code"], [*asked(claude), *loop(claude, 2)])
    await agents.watch.look()
    return path


@pytest.fixture
def folder() -> Iterator[Path]:
    """For a socket: its path is short, as those of pytest's are not always."""
    with TemporaryDirectory(prefix="mw-", dir="/tmp") as made:
        yield Path(made)
