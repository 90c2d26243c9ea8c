"""What `run`, `resume` and `demo` do on a machine without bubblewrap."""

import os
import sys
from pathlib import Path

import pytest

from midwatch_agents.sandbox import SandboxKind
from midwatch_agents.scripted import Script
from midwatch_monitor.config.settings import RunSettings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import SandboxError
from midwatch_supervisor.cli import main
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.run.launch import load_run
from midwatch_tests.acting import DONE, script
from midwatch_tests.harness import RunHarness

OPEN = "workers' commands can reach everything that you can: files, keys, network, this journal"


TASKS = f"""
models: {{worker: "scripted:{__name__}@0", supervisor: none}}
tasks: [{{id: fix, goal: Fix it., acceptance: ["true"], max_attempts: 1}}]
"""


def script_for(role: Role, key: str) -> Script:
    return script(DONE)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A path to every program of this machine but bubblewrap."""
    folder = tmp_path / "bin"
    folder.mkdir()
    places = [Path(text) for text in os.defpath.split(":") if text]
    for program in (each for place in places for each in place.iterdir()):
        if program.name != "bwrap" and not (folder / program.name).is_symlink():
            (folder / program.name).symlink_to(program)
    return f"{Path(sys.executable).parent}:{folder}"


def test_a_headless_run_is_refused_unless_it_says_off_and_is_told_what_that_opens(
    path: str,
    tmp_path: Path,
    named_by_the_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)
    (tmp_path / "tasks.yaml").write_text(TASKS)
    assert main(["run", "tasks.yaml", "--headless"]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert "a sandbox is required, but bwrap is not installed" in errors
    assert "Install bubblewrap (the package `bubblewrap`)" in errors
    assert f"`run.sandbox: off` to continue without one: {OPEN}" in errors
    monkeypatch.setenv("MIDWATCH_RUN__SANDBOX", "off")
    assert main(["run", "tasks.yaml", "--headless"]) == 0
    out, errors = capsys.readouterr()
    assert errors == ""
    assert f"Sandbox for commands: none ({OPEN})" in out
    assert main(["status"]) == 0
    assert f"No sandbox for fix: {OPEN}" in capsys.readouterr().out


async def test_a_run_is_resumed_without_a_sandbox_only_where_somebody_watches(
    harness: RunHarness, path: str, bubblewrap: SandboxKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.set(run=RunSettings())
    assert await harness.run(TASKS) == 0
    monkeypatch.setenv("PATH", path)
    (run,) = await harness.journal.runs()
    with pytest.raises(SandboxError, match="bwrap is not installed"):
        await load_run(harness.journal, run, home=harness.home, learning=RunLearning)
    resources, _ = await load_run(
        harness.journal, run, home=harness.home, learning=RunLearning, attended=True
    )
    assert resources.sandbox_kind is SandboxKind.NONE


@pytest.mark.matrix
async def test_the_demo_runs_without_as_its_commands_are_known(
    harness: RunHarness, path: str, named_by_the_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path)
    process = await harness.start("demo", "--headless")
    out, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert f"Sandbox for commands: none ({OPEN})" in out.decode()
