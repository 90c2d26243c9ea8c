"""Processes that outlive a command are found by their mark, and ended."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from midwatch_agents.leftovers import (
    end_all_leftovers,
    end_leftovers,
    end_leftovers_below,
    process_mark,
)
from midwatch_agents.sandbox import MARK, Walls, place
from midwatch_agents.sandbox_mounts import SandboxPaths

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")


async def sleeper(mark: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", "import time; time.sleep(60)", env={**os.environ, MARK: mark}
    )


async def test_only_processes_with_the_mark_are_ended() -> None:
    mine, other = await sleeper("test.7"), await sleeper("test.77")
    assert await end_leftovers("test.7") == 1
    assert await mine.wait() == -9
    assert other.returncode is None
    assert await end_leftovers("test.77") == 1
    assert await other.wait() == -9


async def test_an_incarnation_that_lost_the_attempt_ends_only_what_it_began() -> None:
    stale, live = await sleeper(process_mark("/w/a-1", 1)), await sleeper(process_mark("/w/a-1", 2))
    assert await end_leftovers(process_mark("/w/a-1", 1)) == 1
    assert await stale.wait() == -9
    assert live.returncode is None
    assert await end_all_leftovers("/w/a-1") == 1
    assert await live.wait() == -9


async def test_a_node_that_begins_ends_what_was_left_below_its_home() -> None:
    mine, other = (
        await sleeper(process_mark("/n/a/made/r/t-1", 1)),
        await sleeper("/n/ab/made/r/t-1#1"),
    )
    assert await end_leftovers_below(Path("/n/a/made")) == 1
    assert await mine.wait() == -9
    assert other.returncode is None
    assert await end_leftovers_below(Path("/n/ab/made")) == 1
    assert await other.wait() == -9


async def test_where_nothing_was_left_nothing_is_ended() -> None:
    assert await end_leftovers("test.nothing") == 0


async def test_what_a_command_left_behind_in_a_session_of_its_own_is_ended(tmp_path: Path) -> None:
    workspace = place(
        SandboxPaths(folder=tmp_path), Walls.NONE, network=True, env={MARK: "test.left"}
    )
    command = "setsid flock lock sleep 60 >/dev/null 2>&1 & until [ -e lock ]; do :; done"
    await workspace.run(command, shell=True, timeout=30)
    assert await end_leftovers("test.left") >= 1
    freed = await workspace.run("flock --wait 10 lock true", shell=True, timeout=30)
    assert freed.exit_code == 0
