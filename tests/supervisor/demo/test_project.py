"""The demo's project is real: its tests fail, scripts repair them, and the rules see trouble."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.workspaces import LocalWorkspaceBackend

from midwatch_agents.scripted import Call, Phase, Script, Turn, next_turn, play
from midwatch_monitor.config.rules import Rules
from midwatch_monitor.config.tasks import FileCheck, Role, TaskFile, TaskSpec
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import (
    Change,
    Checkpoint,
    CheckpointDecision,
    Edit,
    Lifecycle,
    Step,
    StepKind,
)
from midwatch_supervisor.demo import make_project, script_for
from midwatch_supervisor.demo.worker_tools import list_orders, write_report

CODING = ("discount", "totals", "delivery", "shipping", "labels")
Act = tuple[int, Step]
"""A step, and the phase that it belongs to."""


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def tasks(file: Path) -> dict[str, TaskSpec]:
    parsed = TaskFile.model_validate(yaml.safe_load(file.read_text()))
    return {task.id: task for task in parsed.tasks}


def run(command: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    return done.returncode, re.sub(r"in \d+\.\d+s", "in a moment", done.stdout + done.stderr)


def check_results(task: TaskSpec, folder: Path) -> list[bool]:
    return [
        (folder / check.file).read_text() != ""
        if isinstance(check, FileCheck)
        else run(check, folder)[0] == 0
        for check in task.acceptance
    ]


def turns_of(script: Script, phases: tuple[Phase, ...], opening: str) -> Iterator[tuple[int, Turn]]:
    """Each turn of some phases once, with guidance between the phases."""
    lines: list[ModelMessage] = [ModelRequest.user_text_prompt(opening)]
    for index, phase in enumerate(phases):
        for _ in phase.turns:
            yield index, next_turn(script, lines)
            lines.append(ModelResponse([]))
        lines.append(
            ModelRequest.user_text_prompt(
                f"[midwatch #{index + 1} from your supervisor] Do it otherwise."
            )
        )


def play_attempt(key: str, folder: Path, *, again: bool = False, taught: str = "") -> list[Act]:
    """Play an attempt of a task's worker against a folder; what one would observe of it."""
    script = script_for(Role.WORKER, key)
    phases = script.again if again else script.taught if taught else script.phases
    told = f"{opening(again=again)}{taught}"
    acts: list[Act] = []
    for request, (phase, turn) in enumerate(turns_of(script, phases, told), start=1):
        for call in turn.calls:
            number = len(acts) + 1
            step = replace(run_tool(call, folder), number=number, request=request, args=call.args)
            acts.append((phase, step))
    return acts


def opening(*, again: bool) -> str:
    return f"Make it work.\nThis is attempt {2 if again else 1} of this task.\n"


def run_tool(call: Call, folder: Path) -> Step:
    """Do what a coder's tool would do."""
    args: dict[str, Any] = json.loads(call.args)
    if call.tool == "reflect":
        return Step(number=0, kind=StepKind.CHECKPOINT, checkpoint=checkpoint(args))
    step = Step(number=0, kind=StepKind.TOOL, tool=call.tool, ok=True)
    if call.tool == "run_command" and not args["command"].startswith("sleep"):
        code, output = run(args["command"], folder)
        return replace(step, ok=code == 0, exit_code=code, output=output)
    if call.tool in {"write_file", "edit_file"}:
        return replace(step, edits=(apply_edit(folder / args["path"], args),))
    assert call.tool not in {"read_file", "list_files"} or (folder / args["path"]).exists()
    return step


def checkpoint(args: dict[str, Any]) -> Checkpoint:
    return Checkpoint(
        progress_percent=args["progress_percent"],
        confidence=args["confidence"],
        decision=CheckpointDecision(args["decision"]),
        blockers=tuple(args.get("blockers", ())),
    )


def apply_edit(file: Path, args: dict[str, Any]) -> Edit:
    text = file.read_text()
    if "content" in args:
        text = args["content"]
    for edit in args.get("replacements") or ([] if "content" in args else [args]):
        assert text.count(edit["old_text"]) == 1
        text = text.replace(edit["old_text"], edit["new_text"])
    file.write_text(text)
    return Edit(path=args["path"], digest=blake2b(text.encode()).hexdigest())


def commands(acts: list[Act], phase: int) -> list[tuple[int, str]]:
    return [
        (step.exit_code, step.output)
        for at, step in acts
        if at == phase and step.exit_code is not None
    ]


def alarms(acts: list[Act]) -> tuple[list[set[str]], bool]:
    """The rules that raise an alarm in each phase, and whether any still fires at the end."""
    judge = Judge(Rules())
    judge.observe(
        Change(reflect=True, reflect_every=3, plan_step=1, revision=0, lifecycle=Lifecycle.WORKING)
    )
    fired: list[set[str]] = [set() for _ in range(acts[-1][0] + 1)]
    for phase, step in acts:
        alerts = judge.observe(step).alerts
        fired[phase] |= {a.key.rule for a in alerts if a.firing and a.severity.alarm}
    return fired, any(alert.severity.alarm for alert in judge.firing)


@pytest.mark.parametrize("key", CODING)
def test_an_attempt_that_a_person_asked_for_is_accepted(key: str, task_file: Path) -> None:
    assert not any(check_results(tasks(task_file)[key], task_file.parent))
    play_attempt(key, task_file.parent, again=True)
    assert all(check_results(tasks(task_file)[key], task_file.parent))


def test_after_a_replan_the_stall_comes_back_and_a_second_attempt_repairs_what_was_left(
    task_file: Path,
) -> None:
    task, folder = tasks(task_file)["delivery"], task_file.parent
    acts = play_attempt("delivery", folder)
    first, second = ([(0, step) for phase, step in acts if phase == at] for at in (0, 1))
    both = {"declining_confidence", "stalled_progress"}
    assert alarms(first) == ([both | {"redundant_steps", "fruitless_steps"}], True)
    # Before the outcome is judged, after eight steps. A replan empties the windows, so the new
    # plan is judged by itself.
    assert alarms(second[:7]) == ([both], True)
    assert alarms(second) == ([both | {"low_confidence"}], True)
    assert not any(check_results(task, folder))
    acts = play_attempt("delivery", folder, again=True)
    assert [code for code, _ in commands(acts, 0)] == [1, 0, 0]
    assert alarms(acts) == ([set()], False)
    assert all(check_results(task, folder))


@pytest.mark.parametrize("key", ["totals", "delivery", "shipping", "labels"])
def test_a_worker_that_heeds_a_lesson_is_accepted_without_an_alarm(
    key: str, task_file: Path
) -> None:
    lesson = f"1. (task {key}, rejected by a person; wrong_result) Do it in another way."
    acts = play_attempt(key, task_file.parent, taught=lesson)
    assert alarms(acts) == ([set()], False)
    assert all(check_results(tasks(task_file)[key], task_file.parent))


async def test_the_clerk_writes_its_report_with_its_own_tools(tmp_path: Path) -> None:
    agent = Agent(
        play(script_for(Role.WORKER, "report")), tools=[list_orders, write_report, reflect]
    )
    result = await agent.run("Report.", workspace=LocalWorkspaceBackend(tmp_path))
    assert result.output == "The report for the warehouse is in report.txt."
    task = tasks(make_project(tmp_path / "demo"))["report"]
    assert check_results(task, tmp_path) == [True, True]


def reflect(progress_percent: int, confidence: int, decision: str, notes: str) -> str:
    return "Recorded."


def test_each_demo_has_a_folder_of_its_own_which_is_a_clean_repository_with_one_commit(
    tmp_path: Path,
) -> None:
    files = [make_project(tmp_path / "new") for _ in range(2)]
    assert files == [tmp_path / "new" / f"midwatch-demo-{n}" / "tasks.yaml" for n in (1, 2)]
    log = run("git log --format='%an <%ae>'", files[0].parent)
    assert log == (0, "Midwatch demo <demo@midwatch.invalid>\n")
    assert run("git status --porcelain", files[0].parent) == (0, "")
