"""Tasks run to their end: in order, side by side, again, and within their budget."""

import asyncio
import subprocess
import threading
from pathlib import Path

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AttemptTransition,
    Ending,
    Intervention,
    Lifecycle,
    Step,
    TaskTransition,
)
from midwatch_stage.harness import RunHarness

_names: list[str] = []
_met = threading.Event()
"""Set once two have worked at the same time."""


async def put(ctx: RunContext[object], path: str, text: str) -> str:
    """Write a file."""
    await ctx.workspace.write_bytes(path, text.encode())
    return "written"


async def meet(name: str) -> str:
    """Wait until two work at the same time, or did."""
    _names.append(name)
    if len(_names) == 2:
        _met.set()
    await asyncio.to_thread(_met.wait, 20)
    return "met"


async def hang() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return "awake"


def putting(text: str, path: str = "out.txt") -> Turn:
    return Turn(calls=(Call(tool="put", args=f'{{"path": "{path}", "text": "{text}"}}'),))


REFLECT = Turn(
    calls=(
        Call(
            tool="reflect",
            args='{"progress_percent": 10, "confidence": 80, "decision": "continue"}',
        ),
    )
)
REPORT = Call(
    tool="report_error",
    args='{"what_happened": "The file held the wrong word.", "category": "permanent", '
    '"root_cause": "I took the wrong word from the goal.", "change": "I write the word one."}',
)
HANG = Turn(calls=(Call(tool="hang"),))
MEET = Turn(calls=(Call(tool="meet", args='{"name": "somebody"}'),))
DONE = Turn(say="Done.")


def once(*turns: Turn) -> Script:
    return Script(phases=(Phase(turns=turns),))


SCRIPTS = {
    "write": once(putting("one"), DONE),
    "other": once(putting("two"), DONE),
    "beside": once(putting("beside", "beside.txt"), DONE),
    "read": once(DONE),
    "wrong": Script(
        phases=(Phase(turns=(putting("wrong"), DONE)),),
        again=(Phase(turns=(Turn(calls=(REPORT,)), putting("wrong"), DONE)),),
    ),
    "learn": Script(
        phases=(Phase(turns=(putting("wrong"), DONE)),),
        again=(Phase(turns=(Turn(calls=(REPORT,)), putting("one"), DONE)),),
    ),
    "restart": Script(
        phases=(Phase(turns=(REFLECT, REFLECT, HANG)),),
        again=(Phase(turns=(REFLECT, REFLECT, Turn(calls=(REPORT,)), putting("one"), DONE)),),
    ),
    "endless": once(putting("{n}")),
    "hang": once(HANG),
    **{name: once(MEET, DONE) for name in ("a", "b", "c")},
}


def script_for(role: Role, key: str) -> Script:
    return SCRIPTS[key]


def tasks(*lines: str) -> str:
    """A task file with these tasks, each in YAML's flow style."""
    tools = [f"{__name__}:{tool.__name__}" for tool in (put, meet, hang)]
    return "\n".join(
        [
            f'models: {{worker: "scripted:{__name__}@0", supervisor: none}}',
            f"workers: {{clerk: {{kind: task, tools: {tools}}}}}",
            "defaults: {max_attempts: 1}",
            "tasks:",
            *(f"  - {line}" for line in lines),
        ]
    )


def task(name: str, check: str = "true", more: str = "") -> str:
    return f"{{id: {name}, goal: Do it., acceptance: ['{check}'], {more}}}"


async def ends(harness: RunHarness) -> dict[str, TaskTransition]:
    """The last state of each task."""
    found: dict[str, TaskTransition] = {}
    for each in await harness.journal.tasks(1):
        for entry in await harness.journal.entries(task=each.id, kinds=(TaskTransition,)):
            if isinstance(entry.record, TaskTransition):
                found[each.name] = entry.record
    return found


async def prompt(harness: RunHarness, attempt: int) -> str:
    """The first message of an attempt's history, as JSON."""
    return (await harness.journal.messages(attempt))[0].body.decode()


def git(folder: Path, *command: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
    done = subprocess.run(
        ["git", *identity, *command], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "out.txt").write_text("zero")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


async def test_a_task_builds_on_the_work_of_those_it_depends_on(
    harness: RunHarness, repository: Path
) -> None:
    check = "grep -q one out.txt && grep -q beside beside.txt"
    code = await harness.run(
        tasks(
            task("read", check, "workspace: project, depends_on: [write, beside]"),
            task("write", more="workspace: project"),
            task("beside", more="workspace: project"),
        )
    )
    assert code == 0
    assert git(repository, "show", "midwatch/r1/read-1:out.txt") == "one"
    assert (repository / "out.txt").read_text() == "zero"


async def test_dependencies_that_contradict_each_other_fail_the_task_with_that_reason(
    harness: RunHarness, repository: Path
) -> None:
    code = await harness.run(
        tasks(
            task("write", more="workspace: project"),
            task("other", more="workspace: project"),
            task("read", more="workspace: project, depends_on: [write, other]"),
        )
    )
    end = (await ends(harness))["read"]
    assert (code, end.lifecycle) == (1, Lifecycle.FAILED)
    assert end.reason.startswith("midwatch/r1/other-1 does not merge: git merge")
    assert "out.txt" in end.reason


async def test_a_failed_task_fails_those_that_depend_on_it(harness: RunHarness) -> None:
    code = await harness.run(
        tasks(
            task("wrong", "false"),
            task("read", more="depends_on: [wrong]"),
            task("write", more="depends_on: [read]"),
        )
    )
    reasons = {name: end.reason for name, end in (await ends(harness)).items()}
    assert code == 1
    assert reasons == {
        "wrong": "acceptance failed: false (exit code 1)",
        "read": "it depends on wrong, which is failed",
        "write": "it depends on read, which is failed",
    }
    assert await harness.journal.attempts(2) == []


async def test_no_more_attempts_run_at_the_same_time_than_configured(harness: RunHarness) -> None:
    _names.clear()
    _met.clear()
    limited = harness.settings.run.model_copy(update={"concurrency": 2})
    harness.settings = harness.settings.model_copy(update={"run": limited})
    assert await harness.run(tasks(task("a"), task("b"), task("c"))) == 0
    working, most = 0, 0
    for state in await harness.told(AttemptTransition):
        working += (state.lifecycle is Lifecycle.WORKING) - state.lifecycle.over
        most = max(most, working)
    assert most == 2


async def test_a_second_attempt_is_told_what_the_first_came_to(harness: RunHarness) -> None:
    code = await harness.run(tasks(task("learn", "grep -qx one out.txt", "max_attempts: 2")))
    states = [(each.lifecycle, each.ending) for each in await harness.told(AttemptTransition)]
    assert code == 0
    assert [state for state in states if state[1]] == [
        (Lifecycle.FAILED, Ending.UNACCEPTED),
        (Lifecycle.COMPLETED, Ending.DONE),
    ]
    tried = "- Attempt 1: acceptance failed: grep -qx one out.txt (exit code 1)"
    assert tried in await prompt(harness, 2)


async def test_a_task_that_no_attempt_completes_fails_with_the_last_reason(
    harness: RunHarness,
) -> None:
    assert await harness.run(tasks(task("wrong", "grep -qx one out.txt", "max_attempts: 3"))) == 1
    assert len(await harness.journal.attempts(1)) == 3
    assert (await ends(harness))["wrong"] == TaskTransition(
        lifecycle=Lifecycle.FAILED,
        reason="acceptance failed: grep -qx one out.txt (exit code 1)",
        passed=0,
        total=1,
    )


async def test_a_restart_begins_with_clean_windows_and_keeps_the_old_history(
    harness: RunHarness,
) -> None:
    run = asyncio.create_task(harness.run(tasks(task("restart", more="max_attempts: 2"))))

    async def reported_twice() -> bool:
        return len(await harness.told(Step)) == 2

    await harness.until(reported_twice)
    await harness.say(
        Intervention(action=Action.RESTART, by=Actor.OPERATOR, message="Begin with the tests.")
    )
    assert await run == 0
    reports = [len(await harness.told(Step, attempt=number)) for number in (1, 2)]
    assert reports == [2, 5]
    assert await harness.told(Alert) == []
    assert "Advice for you: Begin with the tests." in await prompt(harness, 2)


@pytest.mark.parametrize(
    ("name", "budget", "reason"),
    [
        ("endless", "{requests: 3}", "3 of 3 requests"),
        ("hang", "{minutes: 0.002}", " of 0.002 minutes"),
    ],
)
async def test_a_spent_budget_ends_an_attempt_wherever_it_is(
    name: str, budget: str, reason: str, harness: RunHarness
) -> None:
    ungenerous = harness.settings.policy.model_copy(update={"max_grants": 0})
    harness.settings = harness.settings.model_copy(update={"policy": ungenerous})
    code = await harness.run(tasks(task(name, more=f"budget: {budget}, max_attempts: 3")))
    state = (await harness.told(AttemptTransition))[-1]
    assert (code, state.ending) == (4, Ending.OUT_OF_BUDGET)
    assert (state.reason.startswith("out of budget: "), state.reason.endswith(reason)) == (
        True,
        True,
    )
    assert len(await harness.journal.attempts(1)) == 1
    assert await harness.resume() == 4


async def test_a_budget_holds_for_all_attempts_together(harness: RunHarness) -> None:
    code = await harness.run(
        tasks(task("wrong", "false", "budget: {requests: 3}, max_attempts: 5"))
    )
    endings = [each.ending for each in await harness.told(AttemptTransition) if each.ending]
    assert (code, endings) == (4, [Ending.UNACCEPTED, Ending.OUT_OF_BUDGET])
