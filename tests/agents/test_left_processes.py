"""Processes that outlive a command are found by their mark, and ended."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest
from pydantic_ai.workspaces import Workspace, WorkspaceTimeoutError

from midwatch_agents.left_processes import (
    end_all_leftovers,
    end_leftovers,
    end_leftovers_below,
    process_mark,
)
from midwatch_agents.sandbox import MARK, SandboxKind, place
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


def unwalled(folder: Path, mark: str) -> Workspace:
    return place(SandboxPaths(folder=folder), SandboxKind.NONE, network=True, env={MARK: mark})


SETSID = shutil.which("setsid")
HOLD = "flock lock sleep 1000"
"""Has `lock` for as long as it lives."""
WAIT = "until [ -e lock ] && ! flock --nonblock lock true; do :; done"


@pytest.mark.parametrize(
    "left",
    [
        f"setsid {HOLD} >/dev/null 2>&1 &",
        f"env -i {SETSID} {HOLD} >/dev/null 2>&1 &",
        f"(env -i {SETSID} sh -c '{HOLD} & exit' >/dev/null 2>&1 &)",
        f"env -i {SETSID} {SETSID} sh -c 'cd /; ({HOLD.replace(' lock', ' $OLDPWD/lock')} &)' &",
    ],
)
async def test_what_a_command_left_is_ended_whatever_it_dropped(left: str, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    mine, other = unwalled(tmp_path, "test.left"), unwalled(tmp_path / "b", "test.other")
    for each in (mine, other):
        assert (await each.run(f"{left}\n{WAIT}", shell=True, timeout=300)).exit_code == 0
    assert await end_leftovers("test.left") >= 1
    free = "flock --nonblock lock true"
    assert (await mine.run(free, shell=True, timeout=300)).exit_code == 0
    assert (await other.run(free, shell=True, timeout=300)).exit_code == 1
    assert await end_leftovers("test.other") >= 1
    assert (await other.run(free, shell=True, timeout=300)).exit_code == 0


async def test_what_is_left_of_a_command_whose_time_is_over_is_ended_too(tmp_path: Path) -> None:
    mine = unwalled(tmp_path, "test.late")
    late = f"env -i {SETSID} {HOLD} & {WAIT}; touch begun; sleep 1000"
    with pytest.raises(WorkspaceTimeoutError):
        await mine.run(late, shell=True, timeout=3)
    assert (tmp_path / "begun").exists()
    assert await end_leftovers("test.late") >= 1
    free = await mine.run("flock --nonblock lock true", shell=True, timeout=300)
    assert free.exit_code == 0


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill $$", 143), ("no-such-program", 127)],
)
async def test_a_command_ends_as_it_does_by_itself(command: str, code: int, tmp_path: Path) -> None:
    result = await unwalled(tmp_path, "test.code").run(command, shell=True, timeout=300)
    assert result.exit_code == code


async def test_a_program_that_is_missing_is_told_by_its_name(tmp_path: Path) -> None:
    result = await unwalled(tmp_path, "test.code").run(["no-such-program"], timeout=300)
    assert (result.exit_code, "no-such-program" in result.stderr) == (127, True)


async def test_a_reader_that_goes_ends_a_command_that_writes(tmp_path: Path) -> None:
    result = await unwalled(tmp_path, "test.pipe").run("yes | head -1", shell=True, timeout=300)
    assert (result.stdout, result.stderr, result.exit_code) == ("y\n", "", 0)
