"""What `run`, `resume` and `demo` do on a machine without bubblewrap."""

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from midwatch_agents.script import Phase, Script, Turn
from midwatch_monitor.config.tasks import Role

if TYPE_CHECKING:
    from conftest import Stage

TASKS = """
models: {worker: "scripted:test_sandbox_missing@0", supervisor: none}
tasks: [{id: fix, goal: Fix it., acceptance: ["true"], max_attempts: 1}]
"""
RUN = ("run", "tasks.yaml", "--headless")
OPEN = "commands of workers reach all that you do: files, keys, network, this journal"


def script_for(role: Role, key: str) -> Script:
    return Script(phases=(Phase(turns=(Turn(say="Done."),)),))


@pytest.fixture(autouse=True)
def _without_bubblewrap(stage: "Stage", monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Of all programs of this machine there are only a few in the path."""
    programs = stage.folder / "bin"
    programs.mkdir()
    for name in ("git", "python3", "sh"):
        (programs / name).symlink_to(shutil.which(name) or "missing")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(stage.folder / ".midwatch/journal.db"))
    monkeypatch.delenv("MIDWATCH_RUN__SANDBOX", raising=False)
    (stage.folder / "tasks.yaml").write_text(TASKS)


async def said(stage: "Stage", *words: str) -> tuple[int | None, str, str]:
    process = await stage.start(*words)
    out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()


async def test_a_headless_run_is_refused_and_told_what_to_do(stage: "Stage") -> None:
    code, out, errors = await said(stage, *RUN)
    assert (code, out) == (2, "")
    assert "a sandbox is required, but bwrap is not installed" in errors
    assert "the package `bubblewrap`" in errors
    assert f"`run.sandbox: off` to go on without: {OPEN}" in errors.replace("\n", " ")


@pytest.mark.parametrize("wish", ["off", "auto"])
async def test_whoever_wants_none_says_so_and_is_told_what_is_open(
    wish: str, stage: "Stage", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDWATCH_RUN__SANDBOX", wish)
    code, out, errors = await said(stage, *RUN)
    assert (code, errors) == (0, "")
    assert f"Sandbox for commands: none ({OPEN})" in out
    assert f"No sandbox for fix: {OPEN}" in (await said(stage, "status"))[1]
    (line,) = (await said(stage, "status", "--json"))[1].splitlines()
    assert json.loads(line)["sandbox"] == "none"


async def test_a_run_that_was_begun_with_one_is_not_resumed_without(
    stage: "Stage", monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = TASKS.replace("[{id", "[{id: ask, depends_on: [fix], goal: x, acceptance: [x]}, {id")
    (stage.folder / "tasks.yaml").write_text(waits)
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", os.defpath)
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    assert (await said(stage, *RUN))[0] == 1
    monkeypatch.setenv("PATH", path)
    code, _, errors = await said(stage, "resume", "--run", "1", "--headless")
    assert code == 2
    assert "a sandbox is required" in errors


async def test_the_demo_runs_as_its_commands_are_known(stage: "Stage") -> None:
    code, out, errors = await said(stage, "demo", "--headless")
    assert (code, errors) == (0, "")
    assert f"Sandbox for commands: none ({OPEN})" in out
