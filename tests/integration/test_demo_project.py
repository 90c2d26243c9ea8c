"""The demo's project is real: its tests fail, and what the scripts do makes them pass."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai.workspaces import LocalWorkspaceBackend

from midwatch_agents.script import Line, Phase, Replied, Script, Told, Turn, next_turn
from midwatch_monitor.config.tasks import FileCheck, Role, TaskFile, TaskSpec
from midwatch_supervisor.demo import make_project, script_for
from midwatch_supervisor.demo.desk import list_orders, write_report

CODING = ("discount", "totals", "delivery", "shipping", "labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that a script ran."""

    phase: int
    code: int
    output: str


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def tasks(file: Path) -> dict[str, TaskSpec]:
    parsed = TaskFile.model_validate(yaml.safe_load(file.read_text()))
    return {task.id: task for task in parsed.tasks}


def run(command: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    return done.returncode, re.sub(r"in \d+\.\d+s", "in a moment", done.stdout + done.stderr)


def accepted(task: TaskSpec, folder: Path) -> list[bool]:
    return [
        (folder / check.file).read_text() != ""
        if isinstance(check, FileCheck)
        else run(check, folder)[0] == 0
        for check in task.acceptance
    ]


def given(phases: tuple[Phase, ...], script: Script, opening: str) -> Iterator[tuple[int, Turn]]:
    """Each turn of some phases once, with guidance between the phases."""
    lines: list[Line] = [Told(text=opening)]
    for index, phase in enumerate(phases):
        for _ in phase.turns:
            yield index, next_turn(script, lines)
            lines.append(Replied())
        lines.append(Told(text=f"[midwatch #{index + 1}] Try it another way."))


def attempts(script: Script) -> Iterator[tuple[int, Turn]]:
    yield from given(script.phases, script, "Make it work.")
    yield from given(script.again, script, "This is attempt 2 of this task.")


def act(tool: str, args: dict[str, Any], folder: Path) -> tuple[int, str] | None:
    """Do what a coder's tool would do; the exit code and output of a command."""
    if tool == "run_command" and not args["command"].startswith("sleep"):
        return run(args["command"], folder)
    if tool == "write_file":
        (folder / args["path"]).write_text(args["content"])
    elif tool == "edit_file":
        edits = args.get("replacements") or [args]
        text = (folder / args["path"]).read_text()
        for edit in edits:
            assert text.count(edit["old_text"]) == 1
            text = text.replace(edit["old_text"], edit["new_text"])
        (folder / args["path"]).write_text(text)
    elif tool in {"read_file", "list_directory"}:
        assert (folder / args["path"]).exists()
    return None


def played(script: Script, folder: Path) -> list[Ran]:
    """Play a script against a folder; the commands that it ran."""
    runs: list[Ran] = []
    for phase, turn in attempts(script):
        for call in turn.calls:
            result = act(call.tool, json.loads(call.args), folder)
            if result is not None:
                runs.append(Ran(phase=phase, code=result[0], output=result[1]))
    return runs


@pytest.mark.parametrize("key", CODING)
def test_a_task_fails_at_first_and_is_accepted_after_its_script(key: str, task_file: Path) -> None:
    task = tasks(task_file)[key]
    assert not any(accepted(task, task_file.parent))
    runs = played(script_for(Role.WORKER, key), task_file.parent)
    assert runs[0].code == 1
    assert runs[-1].code == 0
    assert all(accepted(task, task_file.parent))


def test_the_same_failure_comes_back_after_each_edit_of_the_wrong_file(task_file: Path) -> None:
    runs = played(script_for(Role.WORKER, "totals"), task_file.parent)
    before = [ran for ran in runs if ran.phase == 0]
    assert len(before) == 9
    assert len(set(before)) == 1
    assert [ran.code for ran in runs if ran.phase == 1] == [0, 0]


def test_what_was_tried_in_the_wrong_file_is_taken_back(task_file: Path) -> None:
    totals = task_file.parent / "orders" / "totals.py"
    original = totals.read_text()
    played(script_for(Role.WORKER, "totals"), task_file.parent)
    assert totals.read_text() == original


def test_a_second_attempt_repairs_what_the_first_one_left(task_file: Path) -> None:
    script = script_for(Role.WORKER, "delivery")
    first = Script(phases=script.phases)
    assert {ran.code for ran in played(first, task_file.parent)} == {1}
    second = Script(phases=script.again)
    assert [ran.code for ran in played(second, task_file.parent)] == [1, 0, 0]


async def test_the_clerk_writes_its_report_with_its_own_tools(tmp_path: Path) -> None:
    task = tasks(make_project(tmp_path / "demo"))["report"]
    script = script_for(Role.WORKER, "report")
    (text,) = (
        json.loads(call.args)["text"]
        for _, turn in attempts(script)
        for call in turn.calls
        if call.tool == "write_report"
    )
    agent = Agent(TestModel(call_tools=["write_report"]), tools=[list_orders, write_report])
    with agent.override(model=TestModel(call_tools=["write_report"])):
        await agent.run("Report.", workspace=LocalWorkspaceBackend(tmp_path))
    (tmp_path / "report.txt").write_text(text)
    assert accepted(task, tmp_path) == [True, True]


def test_the_project_is_a_clean_repository_with_one_commit(task_file: Path) -> None:
    folder = task_file.parent
    assert run("git log --format='%an <%ae>'", folder) == (
        0,
        "Midwatch demo <demo@midwatch.invalid>\n",
    )
    assert run("git status --porcelain", folder) == (0, "")


def test_each_demo_has_a_folder_of_its_own(tmp_path: Path) -> None:
    files = [make_project(tmp_path / "new") for _ in range(2)]
    assert files == [tmp_path / "new" / f"midwatch-demo-{n}" / "tasks.yaml" for n in (1, 2)]
