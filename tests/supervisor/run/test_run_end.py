"""What a person reads before a run begins and when it is over, from the command line."""

import json
import os
from pathlib import Path

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import Role
from midwatch_stage.harness import RunHarness
from midwatch_stage.repository import commit_all
from midwatch_tools.git import git

MODULE = Path(__file__).stem
TASKS = f"""
models: {{worker: "scripted:{MODULE}@0", supervisor: none}}
defaults: {{workspace: repository, max_attempts: 1}}
workers: {{clerk: {{kind: task, tools: ["{MODULE}:mend", "{MODULE}:linger"]}}}}
tasks:
  - {{id: fix, goal: Mend a.py., acceptance: [file: a.py], budget: {{requests: 500}}}}
"""
ASKING = """
policy: {rules: {explicit_escalation: [ask_operator]}}
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


def _reflect(decision: str) -> Call:
    said = {"progress_percent": 10, "confidence": 60, "decision": decision}
    return Call(tool="reflect", args=json.dumps(said))


def script_for(role: Role, key: str) -> Script:
    asks = [_reflect("escalate"), *[Call(tool="linger")] * 400] if os.environ.get("ASKS") else []
    calls = (Call(tool="mend"), *asks)
    return Script(
        phases=(Phase(turns=(*(Turn(calls=(each,)) for each in calls), Turn(say="Done."))),)
    )


@pytest.fixture
async def repository(harness: RunHarness) -> Path:
    folder = harness.folder / "repository"
    folder.mkdir()
    await git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "a.py").write_text("a = 1\n")
    await commit_all(folder, "Begin")
    (harness.folder / "tasks.yaml").write_text(TASKS)
    return folder


async def said(harness: RunHarness, *words: str) -> tuple[int | None, str, str]:
    process = await harness.start(*words)
    out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()


async def run(harness: RunHarness, *more: str) -> tuple[int | None, str, str]:
    return await said(harness, "run", "tasks.yaml", "--headless", *more)


async def test_the_end_says_what_was_done_how_to_look_at_it_and_how_to_take_it(
    harness: RunHarness, repository: Path
) -> None:
    code, out, errors = await run(harness)
    assert (code, errors) == (0, "")
    end = out[out.index("\nfix: completed\n") :].splitlines()
    assert "  changes  1 file, +2 -1" in end
    assert "  branch   midwatch/r1/fix-1" in end
    assert "  checks   1 of 1 check passes; passed: file a.py" in end
    assert "  tries    1 attempt, 0 alerts" in end
    assert end[-4:-2] == ["  look     midwatch diff fix", "  take     midwatch merge fix"]
    assert end[-1] == "exit code 0: all tasks completed"

    _, diff, _ = await said(harness, "diff", "fix")
    assert "-a = 1\n+a = 2\n+b = 3\n" in diff
    assert ("\x1b" in diff, "__pycache__" in diff) == (False, False)

    code, merged, _ = await said(harness, "merge", "fix")
    assert (code, merged.splitlines()[0]) == (0, "+2 -1  a.py")
    assert await git(repository, "status", "--porcelain", "--ignored") == ""
    assert await git(repository, "branch", "--list", "midwatch/*") == ""
    assert not (harness.home / "work" / "r1" / "fix-1").exists()


async def test_files_that_are_not_committed_are_named_before_a_run_and_not_in_its_workspace(
    harness: RunHarness, repository: Path
) -> None:
    (repository / "a.py").write_text("a = 9\n")
    (repository / "new.py").touch()
    _, _, errors = await run(harness)
    assert errors == (
        f"warning: 2 uncommitted files in {repository}: workers begin with the last commit and "
        "do not see them (a.py, new.py)\n"
    )
    _, diff, _ = await said(harness, "diff", "fix")
    assert "-a = 1\n" in diff


async def test_a_task_that_waits_for_a_person_is_said_to_and_how_to_answer_it(
    harness: RunHarness, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKS", "1")
    (harness.folder / "midwatch.yaml").write_text(ASKING)
    code, out, _ = await run(harness, "--config", "midwatch.yaml")
    assert code == 3
    end = out[out.index("\nfix: waits for you\n") :]
    assert "\n  waits    for an answer: " in end
    assert '\n  answer   midwatch tell fix "your answer"\n  go on    midwatch resume\n' in end
    _, status, _ = await said(harness, "status", "--json")
    assert json.loads(status.splitlines()[0])["status"] == "input-required"


async def test_programs_hear_that_a_task_waits_for_a_person(
    harness: RunHarness, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKS", "1")
    (harness.folder / "midwatch.yaml").write_text(ASKING)
    code, out, _ = await run(harness, "--json", "--config", "midwatch.yaml")
    (task,) = json.loads(out.splitlines()[-1])["tasks"]
    assert (code, task["status"]) == (3, "input-required")
