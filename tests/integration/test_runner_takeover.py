"""A run that is interrupted, taken over, or finds its workspace gone."""

import asyncio
import shutil
import signal
import subprocess
from asyncio.subprocess import Process
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import (
    AttemptTransition,
    Commit,
    Draft,
    Ending,
    Lifecycle,
    Step,
    TaskTransition,
)
from midwatch_tools.git import is_repository

if TYPE_CHECKING:
    from conftest import Stage


async def gate(ctx: RunContext[object]) -> str:
    """Wait until there is a file `go` above the workspace."""
    workspace = Path(await ctx.workspace.working_dir())
    (workspace / "waits").write_text("here")
    nothing = LocalBus().subscribe()
    while not (workspace.parents[3] / "go").exists():
        await nothing.wait(0.02)
    return "open"


def script_for(role: Role, key: str) -> Script:
    turns = (Turn(calls=(Call(tool="gate"),)), Turn(say="Done."))
    return Script(phases=(Phase(turns=turns),))


def tasks(module: str = __name__, *, workspace: str = "null") -> str:
    return f"""
        models: {{worker: "scripted:{module}@0", supervisor: none}}
        workers: {{clerk: {{kind: task, tools: ["{module}:gate"]}}}}
        tasks: [{{id: fix, goal: Fix it., acceptance: [file: waits], workspace: {workspace}}}]
    """


async def started(stage: "Stage") -> Process:
    """A `midwatch run` whose worker waits at the gate."""
    (stage.folder / "tasks.yaml").write_text(tasks("test_runner_takeover"))
    process = await stage.start("run", "tasks.yaml", "--headless")
    await stage.until(stage.folder.joinpath(".midwatch", "work", "r1", "fix-1", "waits").exists)
    return process


async def resumed(stage: "Stage") -> Process:
    return await stage.start("resume", "--headless")


async def ended(process: Process) -> tuple[int | None, str]:
    """The exit code, and what was said on standard error."""
    _, errors = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode, errors.decode()


def open_gate(stage: "Stage") -> None:
    (stage.folder / "go").touch()


async def prove_one_whole_attempt(stage: "Stage") -> None:
    """Nothing was lost, and nothing is there twice."""
    assert len(await stage.journal.attempts(1)) == 1
    steps = await stage.told(Step)
    assert [(step.number, step.request) for step in steps] == [(1, 1), (2, 2)]
    assert [each.lifecycle for each in await stage.told(TaskTransition)] == [
        Lifecycle.SUBMITTED,
        Lifecycle.WORKING,
        Lifecycle.COMPLETED,
    ]


@pytest.mark.parametrize(
    "sign", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.matrix)]
)
async def test_an_interrupted_run_is_gone_on_with(sign: signal.Signals, stage: "Stage") -> None:
    process = await started(stage)
    process.send_signal(sign)
    assert await ended(process) == (
        130,
        "interrupted; `midwatch resume` continues it\n",
    )
    assert (await stage.told(AttemptTransition))[-1].lifecycle is Lifecycle.WORKING
    open_gate(stage)
    assert await ended(await resumed(stage)) == (0, "")
    await prove_one_whole_attempt(stage)


async def test_of_two_processes_with_the_same_run_the_older_one_is_refused(
    stage: "Stage",
) -> None:
    older = await started(stage)
    newer = await resumed(stage)
    code, errors = await ended(older)
    assert code == 1
    assert "another process has taken it over" in errors
    assert "Traceback" not in errors
    open_gate(stage)
    assert await ended(newer) == (0, "")
    await prove_one_whole_attempt(stage)


async def interrupted(stage: "Stage", tasks: str) -> Path:
    """The workspace of an attempt that was cut short at the gate."""
    workspace = stage.home / "work/r1/fix-1"
    run = asyncio.create_task(stage.run(tasks))
    await stage.until((workspace / "waits").exists)
    run.cancel()
    await asyncio.wait({run})
    open_gate(stage)
    return workspace


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "code.txt").write_text("code")
    identity = "-c user.name=Test -c user.email=test@localhost"
    command = f"git init -q && git add . && git {identity} commit -q -m Begin"
    subprocess.run(command, shell=True, cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("workspace", ["null", "project"])
async def test_an_attempt_whose_workspace_is_gone_ends_with_that_reason(
    workspace: str, stage: "Stage", repository: Path
) -> None:
    folder = await interrupted(stage, tasks(workspace=workspace))
    shutil.rmtree(folder)
    assert await stage.resume() == 1
    reason = f"the workspace {folder} is gone, and the work in it"
    assert (await stage.told(AttemptTransition))[-1] == AttemptTransition(
        lifecycle=Lifecycle.FAILED, reason=reason, ending=Ending.ERROR
    )
    assert (await stage.told(TaskTransition))[-1].reason == reason


async def test_a_workspace_that_was_half_made_is_made_anew(
    stage: "Stage", repository: Path
) -> None:
    run = asyncio.create_task(stage.run(tasks(workspace="project")))
    await stage.until(lambda: submitted(stage))
    run.cancel()
    await asyncio.wait({run})
    state = (await stage.told(AttemptTransition))[-1].lifecycle
    assert state is Lifecycle.SUBMITTED
    open_gate(stage)
    assert await stage.resume() == 0
    await prove_one_whole_attempt(stage)
    assert is_repository(stage.home / "work/r1/fix-1")


async def submitted(stage: "Stage") -> bool:
    return bool(await stage.told(AttemptTransition))


async def test_a_late_result_does_not_change_a_status(stage: "Stage") -> None:
    open_gate(stage)
    assert await stage.run(tasks()) == 0
    before = await stage.journal.entries()
    late = TaskTransition(lifecycle=Lifecycle.FAILED, reason="too late")
    draft = Draft(record=late, at=before[-1].at, task=1)
    with pytest.raises(Exception, match="task 1 is already completed; a late result cannot"):
        await stage.journal.commit(Commit(drafts=(draft,)))
    assert await stage.resume() == 0
    assert await stage.journal.entries() == before
