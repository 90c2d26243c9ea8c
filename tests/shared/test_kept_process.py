"""A process that is kept up: how it ended is told from how it was told to end."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from midwatch_monitor.bus import LocalBus
from midwatch_tests.kept import KeptProcess

GREETING = "ready"
HEEDS = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("ready", flush=True)
signal.sigwait([signal.SIGTERM])
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""
SLEEPS = "import time\nprint({!r}, flush=True)\ntime.sleep(600)"
ENOUGH = 120.0
"""Seconds, far more than it takes."""

Keep = Callable[[str], KeptProcess]


@pytest.fixture
async def keep(tmp_path: Path) -> AsyncGenerator[Keep]:
    """Keeps up a program, of which Python's text is given."""
    kept: list[KeptProcess] = []

    def start(program: str) -> KeptProcess:
        process = KeptProcess(
            f"process-{len(kept)}",
            (sys.executable, "-I", "-S", "-c", program),
            folder=tmp_path,
            logs=tmp_path,
            environ=os.environ,
            greeting=GREETING,
        )
        process.start()
        kept.append(process)
        return process

    yield start
    for process in kept:
        await process.kill()


async def until(happened: Callable[[], bool]) -> None:
    nothing = LocalBus().subscribe()
    async with asyncio.timeout(ENOUGH):
        while not happened():
            await nothing.wait(0.01)


async def until_it_said(word: str, tmp_path: Path) -> None:
    log = tmp_path / "process-0.1.log"
    await until(lambda: log.exists() and word in log.read_text())


async def test_a_process_that_ends_when_told_to_is_right(keep: Keep, tmp_path: Path) -> None:
    process = keep(HEEDS)
    await until_it_said(GREETING, tmp_path)
    await process.stop(ENOUGH)
    assert (process.exits, process.stubborn, process.starts) == ([], False, 1)


async def test_a_process_that_does_not_end_when_told_is_killed(keep: Keep, tmp_path: Path) -> None:
    process = keep(DEAF)
    await until_it_said(GREETING, tmp_path)
    await process.stop(0.1)
    assert (process.exits, process.stubborn) == ([], True)


async def test_what_is_killed_on_purpose_is_no_unexpected_exit(keep: Keep, tmp_path: Path) -> None:
    process = keep(HEEDS)
    await until_it_said(GREETING, tmp_path)
    assert [await process.kill(), await process.kill()] == [True, False]
    assert (process.exits, process.stubborn) == ([], False)


@pytest.mark.parametrize(
    ("program", "code"),
    [("raise SystemExit(3)", 3), ("import os\nos.kill(os.getpid(), 9)", -signal.SIGKILL)],
)
async def test_a_process_that_ends_by_itself_is_started_again_and_noted(
    keep: Keep, program: str, code: int
) -> None:
    process = keep(program)
    await until(lambda: process.starts > 2)
    await process.kill()
    first, second = process.exits[:2]
    assert (first.code, second.code, first.ready) == (code, code, False)
    assert first.began < first.ended < second.began < second.ended


@pytest.mark.parametrize(
    ("program", "word", "exits"),
    [
        (f"{HEEDS}\nraise SystemExit(4)", GREETING, [4]),
        (SLEEPS.format("importing"), "importing", []),
        (SLEEPS.format(GREETING), GREETING, [-signal.SIGTERM]),
    ],
    ids=["an exit code", "before it heeds signals it may die of them", "not later"],
)
async def test_what_is_unexpected_of_one_told_to_end(
    keep: Keep, tmp_path: Path, program: str, word: str, exits: list[int]
) -> None:
    process = keep(program)
    await until_it_said(word, tmp_path)
    await process.stop(ENOUGH)
    assert [each.code for each in process.exits] == exits
