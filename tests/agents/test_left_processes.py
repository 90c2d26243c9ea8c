"""Processes that outlive a command are found by their mark, and ended."""

import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
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


FIRST, SECOND = process_mark("/w/a-1", 1), process_mark("/w/a-1", 2)


@pytest.mark.parametrize(
    ("end", "what", "mine", "other"),
    [
        (end_leftovers, "test.7", "test.7", "test.77"),
        (end_leftovers, FIRST, FIRST, SECOND),
        (end_all_leftovers, "/w/a-1", SECOND, process_mark("/w/a-12", 1)),
        (end_leftovers_below, Path("/n/a"), process_mark("/n/a/t-1", 1), "/n/ab/t-1#1"),
    ],
    ids=["a mark", "one incarnation's", "all of an attempt", "all below a node's home"],
)
async def test_only_processes_with_the_mark_are_ended(
    end: Callable[[str | Path], Awaitable[int]], what: str | Path, mine: str, other: str
) -> None:
    ended, left = await sleeper(mine), await sleeper(other)
    assert await end(what) == 1
    assert await ended.wait() == -9
    assert left.returncode is None
    left.kill()
    await left.wait()
    assert await end(what) == 0


def workspace_without_sandbox(folder: Path, mark: str) -> Workspace:
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
    mine, other = (
        workspace_without_sandbox(tmp_path, "test.left"),
        workspace_without_sandbox(tmp_path / "b", "test.other"),
    )
    for each in (mine, other):
        assert (await each.run(f"{left}\n{WAIT}", shell=True, timeout=300)).exit_code == 0
    assert await end_leftovers("test.left") >= 1
    free = "flock --nonblock lock true"
    assert (await mine.run(free, shell=True, timeout=300)).exit_code == 0
    assert (await other.run(free, shell=True, timeout=300)).exit_code == 1
    assert await end_leftovers("test.other") >= 1
    assert (await other.run(free, shell=True, timeout=300)).exit_code == 0


async def test_what_is_left_of_a_command_whose_time_is_over_is_ended_too(tmp_path: Path) -> None:
    mine = workspace_without_sandbox(tmp_path, "test.late")
    late = f"env -i {SETSID} {HOLD} & {WAIT}; touch begun; sleep 1000"
    with pytest.raises(WorkspaceTimeoutError):
        await mine.run(late, shell=True, timeout=3)
    assert (tmp_path / "begun").exists()
    assert await end_leftovers("test.late") >= 1
    free = await mine.run("flock --nonblock lock true", shell=True, timeout=300)
    assert free.exit_code == 0


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("exit 3", 3, ""),
        ("kill -9 $$", 137, ""),
        ("kill $$", 143, ""),
        ("no-such-program", 127, "no-such-program"),
        (["no-such-program"], 127, "no-such-program"),
        ("yes | head -1", 0, ""),
    ],
)
async def test_a_command_ends_as_it_does_by_itself(
    command: str | list[str], code: int, said: str, tmp_path: Path
) -> None:
    shell = isinstance(command, str)
    result = await workspace_without_sandbox(tmp_path, "test.code").run(
        command, shell=shell, timeout=300
    )
    assert result.exit_code == code
    assert said in result.stderr


async def test_a_reader_that_goes_ends_a_command_that_writes(tmp_path: Path) -> None:
    result = await workspace_without_sandbox(tmp_path, "test.pipe").run(
        "yes | head -1", shell=True, timeout=300
    )
    assert (result.stdout, result.stderr, result.exit_code) == ("y\n", "", 0)
