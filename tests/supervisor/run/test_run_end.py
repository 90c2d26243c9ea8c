"""What a person reads before a run begins and when it is over, from the command line."""

import json
import os
from pathlib import Path

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Script
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import Role
from midwatch_supervisor.cli import main
from midwatch_tests.acting import DONE, script
from midwatch_tests.factories import call, turn
from midwatch_tests.repository import new_repository
from midwatch_tools.git import run_git

TASKS = f"""
models: {{worker: "scripted:{__name__}@0", supervisor: none}}
defaults: {{workspace: repository, max_attempts: 1}}
workers: {{clerk: {{kind: task, tools: ["{__name__}:mend", "{__name__}:linger"]}}}}
tasks:
  - {{id: fix, goal: Mend a.py., acceptance: [file: a.py], budget: {{requests: 500}}}}
"""


async def mend(ctx: RunContext[object]) -> str:
    """Change one file and leave build rubbish beside it."""
    folder = Path(await ctx.workspace.working_dir())
    (folder / "a.py").write_text("a = 2\nb = 3\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_bytes(b"\0")
    return "mended"


async def linger() -> str:
    """Give the question time to come; the attempt waits for its answer at the next request."""
    await LocalBus().subscribe().wait(0.05)
    return "lingered"


def script_for(role: Role, key: str) -> Script:
    help = call("reflect", progress_percent=10, confidence=60, decision="escalate")
    asks = [help, *[call("linger")] * 400] if os.environ.get("ASKS") else []
    return script(*(turn(each) for each in (call("mend"), *asks)), DONE)


Capture = pytest.CaptureFixture[str]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MIDWATCH_RUN__SANDBOX", "auto")
    (tmp_path / "tasks.yaml").write_text(TASKS)
    return new_repository(tmp_path / "repository", {"a.py": "a = 1\n"})


def run_command(capsys: Capture, *words: str) -> tuple[int, str, str]:
    """What a command says; in the main thread, where `midwatch run` can hear signals."""
    code = main(words)
    out, errors = capsys.readouterr()
    return code, out, errors


def run(capsys: Capture, *more: str) -> tuple[int, str, str]:
    return run_command(capsys, "run", "tasks.yaml", "--headless", *more)


def test_the_end_says_what_was_done_how_to_look_at_it_and_how_to_take_it(
    repository: Path, tmp_path: Path, capsys: Capture
) -> None:
    code, out, errors = run(capsys)
    assert (code, errors) == (0, "")
    end = out[out.index("\nfix: completed\n") :].splitlines()
    assert "  changes  1 file, +2 -1" in end
    assert "  branch   midwatch/r1/fix-1" in end
    assert "  checks   1 of 1 check passes; passed: file a.py" in end
    assert "  tries    1 attempt, 0 alerts" in end
    assert end[-4:-2] == ["  look     midwatch diff fix", "  take     midwatch merge fix"]
    assert end[-1] == "exit code 0: all tasks completed"

    _, diff, _ = run_command(capsys, "diff", "fix")
    assert "-a = 1\n+a = 2\n+b = 3\n" in diff
    assert ("\x1b" in diff, "__pycache__" in diff) == (False, False)

    code, merged, _ = run_command(capsys, "merge", "fix")
    assert (code, merged.splitlines()[0]) == (0, "+2 -1  a.py")
    assert run_git(repository, "status", "--porcelain", "--ignored") == ""
    assert run_git(repository, "branch", "--list", "midwatch/*") == ""
    assert not (tmp_path / ".midwatch" / "work" / "r1" / "fix-1").exists()


def test_files_that_are_not_committed_are_named_before_a_run_and_not_in_its_workspace(
    repository: Path, tmp_path: Path, capsys: Capture
) -> None:
    (repository / "a.py").write_text("a = 9\n")
    (repository / "new.py").touch()
    _, _, errors = run(capsys)
    assert errors == (
        f"warning: 2 uncommitted files in {repository}: workers begin with the last commit and "
        "do not see them (a.py, new.py)\n"
    )
    _, diff, _ = run_command(capsys, "diff", "fix")
    assert "-a = 1\n" in diff


@pytest.fixture
def _asking_worker(  # pyright: ignore[reportUnusedFunction]
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker asks for help, and a person has to answer."""
    monkeypatch.setenv("ASKS", "1")
    rules = "policy: {rules: {explicit_escalation: [ask_operator]}}\n"
    (tmp_path / "midwatch.yaml").write_text(rules)


@pytest.mark.usefixtures("_asking_worker")
def test_how_to_answer_a_task_that_waits_is_said_and_of_an_older_run_with_its_number(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = run(capsys, "--config", "midwatch.yaml")
    assert code == 3
    end = out[out.index("\nfix: waits for you\n") :]
    assert "\n  waits    for an answer: " in end
    assert '\n  answer   midwatch tell fix "your answer"\n  continue midwatch resume\n' in end
    monkeypatch.delenv("ASKS")
    assert run(capsys)[0] == 0
    monkeypatch.setenv("ASKS", "1")
    code, out, _ = run_command(capsys, "resume", "--run", "1", "--headless")
    assert '\n  answer   midwatch tell fix --run 1 "your answer"\n' in out
    assert "\n  continue midwatch resume --run 1\n" in out
    assert "\n  look     midwatch diff fix --run 1\n" in out
    assert code == 3
    assert out.endswith("then continue with `midwatch resume --run 1`\n")


@pytest.mark.usefixtures("_asking_worker")
def test_programs_hear_that_a_task_waits_for_a_person(capsys: Capture) -> None:
    code, out, _ = run(capsys, "--json", "--config", "midwatch.yaml")
    (task,) = json.loads(out.splitlines()[-1])["tasks"]
    assert (code, task["status"]) == (3, "input-required")
    _, status, _ = run_command(capsys, "status", "--json")
    assert json.loads(status.splitlines()[0])["status"] == "input-required"
