"""What a restart hands on: another worker, another model, some of the work, another's turn."""

import asyncio
from pathlib import Path

import pytest

from midwatch_agents.scripted import Script
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Ending,
    Lifecycle,
    Plan,
    PlanStepState,
    Terms,
)
from midwatch_supervisor.workspaces.workspace import git
from midwatch_tests.acting import DONE, REPORT, gate, put, putting, script
from midwatch_tests.factories import call, intervention, turn
from midwatch_tests.harness import RunHarness
from midwatch_tests.repository import new_repository


async def hang() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return "awake"


MODEL = f"scripted:{__name__}@0"
HANG = turn(call("hang"))
STEP = turn(
    call(
        "complete_step",
        goal="good.txt is written",
        files=["good.txt"],
        structural=[],
        functional=[],
        confidence=90,
    ),
    call(
        "check_plan",
        assumption="The late file is still missing.",
        reality="Nobody has written it.",
        impact="None.",
        options=["Go on."],
        choice="Go on.",
    ),
)
GOOD, BAD, LATE = (putting(f"{text}.txt", text) for text in ("good", "bad", "late"))
AGAIN = (turn(REPORT), LATE, DONE)
SCRIPTS = {
    "steps": script(GOOD, STEP, BAD, HANG, again=AGAIN),
    "fix": script(GOOD, BAD, HANG, again=AGAIN),
    "other": script(turn(call("gate")), putting("other.txt", "other"), DONE),
}


def script_for(role: Role, key: str) -> Script:
    return SCRIPTS[key]


def tasks(name: str = "fix", *, workspace: str = "null", more: str = "", beside: str = "") -> str:
    tools = [f"{tool.__module__}:{tool.__name__}" for tool in (put, hang, gate)]
    return f"""
        models: {{worker: "{MODEL}", supervisor: none}}
        workers:
          clerk: {{kind: task, tools: {tools}, other_models: ["{MODEL}.0"]}}
          second: {{kind: task, tools: {tools}}}
        defaults: {{worker: clerk, workspace: {workspace}}}
        tasks:
          - {{id: {name}, goal: Do it., other_workers: [second], {more or "title: Fix"},
             acceptance: [file: late.txt]}}
          {beside}
    """


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "good.txt").write_text("old")
    return folder


@pytest.fixture
def repository(project: Path) -> Path:
    return new_repository(project, {})


async def restart_task(harness: RunHarness, tasks: str, terms: Terms) -> int:
    """Restart the task once it hangs; the run's exit code."""
    run = asyncio.create_task(harness.run(tasks))
    await harness.until(lambda: any(harness.home.glob("work/r1/*-1/bad.txt")))
    await harness.say(
        intervention(Action.RESTART, Actor.OPERATOR, message="Write it.", terms=terms)
    )
    return await run


def workspace_texts(harness: RunHarness, number: int) -> dict[str, str]:
    """The text files in the workspace of an attempt."""
    folder = harness.home / f"work/r1/fix-{number}"
    return {path.name: path.read_text() for path in sorted(folder.glob("*.txt"))}


@pytest.mark.parametrize(
    ("terms", "second"),
    [
        (Terms(worker="second"), ("second", MODEL)),
        (Terms(model=f"{MODEL}.0"), ("clerk", f"{MODEL}.0")),
        (Terms(worker="nobody", model="nothing"), ("clerk", MODEL)),
    ],
    ids=["another worker", "another model", "a name that nobody has"],
)
async def test_a_restart_can_give_the_task_to_another_worker_or_model(
    terms: Terms, second: tuple[str, str], harness: RunHarness
) -> None:
    assert await restart_task(harness, tasks(), terms) == 0
    attempts = await harness.journal.attempts(1)
    assert [(each.worker, each.model) for each in attempts] == [("clerk", MODEL), second]
    assert await harness.endings() == [Ending.RESTARTED, Ending.DONE]


@pytest.mark.parametrize(
    ("kind", "keep", "kept"),
    [
        ("null", ("good.*",), {"good.txt": "good"}),
        ("project", ("good.*",), {"good.txt": "good"}),
        ("git", ("good.*",), {"good.txt": "good"}),
        ("git", ("**",), {"bad.txt": "bad", "good.txt": "good"}),
    ],
)
async def test_a_restart_keeps_what_it_names_and_drops_the_rest(
    kind: str, keep: tuple[str, ...], kept: dict[str, str], harness: RunHarness, project: Path
) -> None:
    before = {} if kind == "null" else {"good.txt": "old"}
    if kind == "git":
        new_repository(project, {})
    workspace = "null" if kind == "null" else "project"
    assert await restart_task(harness, tasks(workspace=workspace), Terms(keep=keep)) == 0
    assert workspace_texts(harness, 2) == {**before, **kept, "late.txt": "late"}
    assert workspace_texts(harness, 1) == {**before, "good.txt": "good", "bad.txt": "bad"}
    assert "the rest was dropped on purpose" in await harness.prompt(2)


async def test_what_a_restart_drops_is_on_its_branch(harness: RunHarness, repository: Path) -> None:
    assert await restart_task(harness, tasks(workspace="project"), Terms()) == 0
    assert workspace_texts(harness, 2) == {"good.txt": "old", "late.txt": "late"}
    assert "nothing of that work is in it, on purpose" in await harness.prompt(2)
    assert await git(repository, "show", "midwatch/r1/fix-1:bad.txt") == "bad"


async def test_plan_steps_stay_finished_where_the_work_is_kept(harness: RunHarness) -> None:
    more = "plan: [write the good one, write the late one]"
    assert await restart_task(harness, tasks("steps", more=more), Terms(keep=("**",))) == 0
    plans = await harness.told(Plan, attempt=2)
    states = [step.state for step in plans[0].steps]
    assert states == [PlanStepState.DONE, PlanStepState.OPEN]


async def test_a_restart_waits_and_builds_on_a_task(harness: RunHarness, repository: Path) -> None:
    beside = "- {id: other, goal: Do it., acceptance: [file: other.txt]}"
    run = asyncio.create_task(harness.run(tasks(workspace="project", beside=beside)))
    await harness.until((harness.home / "work/r1/fix-1/bad.txt").exists)
    (fix,) = await harness.journal.attempts(1)
    order = intervention(Action.RESTART, terms=Terms(after="other"))
    await harness.say(order, attempt=fix.id)
    await harness.until(lambda: is_over(harness, fix.id))
    assert len(await harness.journal.attempts(1)) == 1
    harness.open_gate()
    assert await run == 0
    assert workspace_texts(harness, 2) == {
        "good.txt": "old",
        "late.txt": "late",
        "other.txt": "other",
    }


async def is_over(harness: RunHarness, attempt: int) -> bool:
    return (await harness.last(AttemptTransition, attempt=attempt)).lifecycle.over


@pytest.mark.parametrize("after", ["nobody", "other"])
async def test_nobody_waits_for_nobody_or_in_a_circle(after: str, harness: RunHarness) -> None:
    harness.open_gate()
    beside = "- {id: other, goal: Do it., acceptance: [file: other.txt], depends_on: [fix]}"
    assert await restart_task(harness, tasks(beside=beside), Terms(after=after)) == 0
    assert (await harness.last(AttemptTransition)).lifecycle is Lifecycle.COMPLETED
