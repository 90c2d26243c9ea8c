"""Asking git about a repository that may not answer."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest
from anyio import wait_readable

from midwatch_monitor.errors import WorkspaceError
from midwatch_supervisor.workspaces.workspace import ask_git, git
from midwatch_tests.processes import let_go, reading_pipe, written_unheard


@pytest.fixture
async def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    await git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


@pytest.fixture
async def pulse(repository: Path, tmp_path: Path) -> AsyncGenerator[int]:
    """A pipe that `git hang` and a child of it write to once, and hold open while they live."""
    pipe, script = tmp_path / "pulse", tmp_path / "hang"
    script.write_text(f"#!/bin/sh\nexec 3>'{pipe}'\nsleep 600 &\necho >&3\nwait\n")
    script.chmod(0o755)
    await git(repository, "config", "alias.hang", f"!'{script}'")
    with reading_pipe(pipe) as opened:
        yield opened


async def test_git_that_is_late_is_ended_with_its_children(repository: Path, pulse: int) -> None:
    with pytest.raises(TimeoutError, match="git hang: no answer within 1 s"):
        await ask_git(repository, "hang", seconds=1)
    await let_go(pulse)


@pytest.mark.parametrize("begun", [wait_readable, written_unheard], ids=["at work", "just begun"])
async def test_git_is_ended_with_whoever_asked_it(
    repository: Path, pulse: int, begun: Callable[[int], Awaitable[None]]
) -> None:
    asking = asyncio.create_task(ask_git(repository, "hang", seconds=60))
    await begun(pulse)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await let_go(pulse)


async def test_git_asks_nobody_for_a_password(repository: Path) -> None:
    await git(repository, "config", "alias.told", '!echo "$GIT_TERMINAL_PROMPT <$GIT_ASKPASS>"')
    assert await ask_git(repository, "told", seconds=60) == "0 <>\n"
    await git(repository, "config", "alias.terminal", "!: </dev/tty")
    with pytest.raises(WorkspaceError, match="git terminal: "):
        await ask_git(repository, "terminal", seconds=60)


async def test_what_git_says_of_a_failure_is_told(repository: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"git rev-parse: .*unknown revision"):
        await ask_git(repository, "rev-parse", "nothing", seconds=60)
    with pytest.raises(WorkspaceError, match="cannot change to"):
        await ask_git(repository / "gone", "status", seconds=60)


async def test_the_answer_is_gits_whatever_the_environment_says(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", os.devnull)
    assert await ask_git(repository, "rev-parse", "--git-dir", seconds=60) == ".git\n"


async def test_configuration_that_cannot_be_read_to_its_end_is_not_waited_for_either(
    repository: Path, tmp_path: Path
) -> None:
    await git(repository, "config", "include.path", str(tmp_path / "never"))
    os.mkfifo(tmp_path / "never")
    with pytest.raises(TimeoutError, match="git status: no answer within 1 s"):
        await ask_git(repository, "status", seconds=1)
