"""Commands that only look, where nothing may be written."""

import asyncio
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from midwatch_agents.sandbox import SandboxKind
from midwatch_monitor.journal import Journal
from midwatch_stage.command import MIDWATCH, new_task

WALLS = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")


async def look(file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = (*WALLS, *MIDWATCH, *words, "--journal", str(file))
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("in_use", [False, True])
async def test_a_journal_in_a_folder_that_may_only_be_read_is_shown(
    journal_file: Path, at: datetime, bubblewrap: SandboxKind, *, in_use: bool
) -> None:
    assert bubblewrap is SandboxKind.BUBBLEWRAP
    async with await Journal.open(journal_file) as journal:
        await new_task(journal, at=at)
        said = await look(journal_file, "status") if in_use else None
    said = said or await look(journal_file, "status")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("run 1: ")
