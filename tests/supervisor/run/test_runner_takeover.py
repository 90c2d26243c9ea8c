"""A run that is interrupted, taken over, or finds its workspace gone."""

import asyncio
import shutil
import signal
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from midwatch_agents.scripted import Script
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.journal.fleet.run_lock import forget_lock
from midwatch_monitor.records import (
    AttemptTransition,
    Ending,
    Lifecycle,
    Step,
    TaskTransition,
)
from midwatch_stage.acting import DONE, gate, script, task_file
from midwatch_stage.factories import call, turn
from midwatch_stage.factories import ended as failed
from midwatch_stage.harness import RunHarness
from midwatch_stage.repository import new_repository
from midwatch_tools.git import is_repository


def script_for(role: Role, key: str) -> Script:
    return script(turn(call("gate", leaves="waits")), DONE)


def tasks(module: str = __name__, *, workspace: str = "null") -> str:
    task = f"id: fix, goal: Fix it., acceptance: [file: waits], workspace: {workspace}"
    return task_file(module, task, tools=(gate,))


async def started(harness: RunHarness) -> Process:
    """A `midwatch run` whose worker waits at the gate."""
    (harness.folder / "tasks.yaml").write_text(tasks("test_runner_takeover"))
    process = await harness.start("run", "tasks.yaml", "--headless")
    await harness.until(harness.folder.joinpath(".midwatch", "work", "r1", "fix-1", "waits").exists)
    return process


async def resumed(harness: RunHarness) -> Process:
    return await harness.start("resume", "--headless")


async def ended(process: Process) -> tuple[int | None, str]:
    """The exit code, and what was said on standard error."""
    _, errors = await asyncio.wait_for(process.communicate(), 300)
    return process.returncode, errors.decode()


async def prove_one_whole_attempt(harness: RunHarness) -> None:
    """Nothing was lost, and nothing is there twice."""
    assert len(await harness.journal.attempts(1)) == 1
    steps = await harness.told(Step)
    assert [(step.number, step.request) for step in steps] == [(1, 1), (2, 2)]
    assert [each.lifecycle for each in await harness.told(TaskTransition)] == [
        Lifecycle.SUBMITTED,
        Lifecycle.WORKING,
        Lifecycle.COMPLETED,
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "sign", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.matrix)]
)
async def test_an_interrupted_run_is_gone_on_with(
    sign: signal.Signals, harness: RunHarness
) -> None:
    process = await started(harness)
    process.send_signal(sign)
    code, errors = await ended(process)
    assert code == 130
    assert errors.endswith("interrupted; `midwatch resume --run 1` continues it\n")
    assert "Traceback" not in errors
    assert (await harness.last(AttemptTransition)).lifecycle is Lifecycle.WORKING
    harness.open_gate()
    assert await ended(await resumed(harness)) == (0, "")
    await prove_one_whole_attempt(harness)


@pytest.mark.matrix
async def test_of_two_processes_with_the_same_run_the_newer_one_does_not_begin(
    harness: RunHarness,
) -> None:
    older = await started(harness)
    code, errors = await ended(await resumed(harness))
    assert (code, errors.partition(":")[0]) == (2, "another process is working on run 1")
    harness.open_gate()
    assert await ended(older) == (0, "")
    await prove_one_whole_attempt(harness)


@pytest.mark.matrix
async def test_where_no_lock_is_seen_the_older_process_is_refused(harness: RunHarness) -> None:
    older = await started(harness)
    # As on another machine, over a database.
    await forget_lock(harness.journal, 1)
    newer = await resumed(harness)
    code, errors = await ended(older)
    assert code == 1
    assert "another process has taken it over" in errors
    assert "Traceback" not in errors
    harness.open_gate()
    assert await ended(newer) == (0, "")
    await prove_one_whole_attempt(harness)


async def interrupted(harness: RunHarness, tasks: str) -> Path:
    """The workspace of an attempt that was cut short at the gate."""
    workspace = harness.home / "work/r1/fix-1"
    run = asyncio.create_task(harness.run(tasks))
    await harness.until((workspace / "waits").exists)
    run.cancel()
    await asyncio.wait({run})
    harness.open_gate()
    return workspace


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project", {"code.txt": "code"})


@pytest.mark.parametrize("workspace", ["null", "project"])
async def test_an_attempt_whose_workspace_is_gone_ends_with_that_reason(
    workspace: str, harness: RunHarness, repository: Path
) -> None:
    folder = await interrupted(harness, tasks(workspace=workspace))
    shutil.rmtree(folder)
    assert await harness.resume() == 1
    reason = f"the workspace {folder} is gone with the work in it"
    assert await harness.last(AttemptTransition) == failed(Ending.ERROR, reason=reason)
    assert (await harness.last(TaskTransition)).reason == reason


async def test_a_workspace_that_was_half_made_is_made_anew(
    harness: RunHarness, repository: Path
) -> None:
    run = asyncio.create_task(harness.run(tasks(workspace="project")))
    await harness.until(lambda: submitted(harness))
    run.cancel()
    await asyncio.wait({run})
    assert (await harness.last(AttemptTransition)).lifecycle is Lifecycle.SUBMITTED
    harness.open_gate()
    assert await harness.resume() == 0
    await prove_one_whole_attempt(harness)
    assert is_repository(harness.home / "work/r1/fix-1")


async def submitted(harness: RunHarness) -> bool:
    return bool(await harness.told(AttemptTransition))
