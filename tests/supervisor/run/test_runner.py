"""Tasks run to their end: in order, side by side, again, and within their budget."""

import asyncio
import threading
from pathlib import Path

import pytest

from midwatch_agents.scripted import Script
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    Alert,
    AttemptTransition,
    Ending,
    Lifecycle,
    Step,
    TaskTransition,
)
from midwatch_tests.acting import DONE, REPORT, put, putting, script, task_file
from midwatch_tests.factories import call, intervention, turn
from midwatch_tests.harness import RunHarness
from midwatch_tests.repository import new_repository
from midwatch_tools.git import run_git

_names: list[str] = []
_met = threading.Event()
"""Set once two have worked at the same time."""


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


ONE, WRONG, HANG = putting("out.txt", "one"), putting("out.txt", "wrong"), turn(call("hang"))
REFLECT = turn(call("reflect", progress_percent=10, confidence=80, decision="continue"))
MEET = script(turn(call("meet", name="somebody")), DONE)
SCRIPTS = {
    "write": script(ONE, DONE),
    "other": script(putting("out.txt", "two"), DONE),
    "beside": script(putting("beside.txt", "beside"), DONE),
    "test": script(putting("test_out.txt", "one"), DONE),
    "read": script(DONE),
    "wrong": script(WRONG, DONE, again=(turn(REPORT), WRONG, DONE)),
    "restart": script(REFLECT, REFLECT, HANG, again=(REFLECT, REFLECT, turn(REPORT), ONE, DONE)),
    "endless": script(putting("out.txt", "{n}")),
    "hang": script(HANG),
    **dict.fromkeys(("a", "b", "c"), MEET),
}


def script_for(role: Role, key: str) -> Script:
    return SCRIPTS[key]


def tasks(*items: str) -> str:
    return task_file(__name__, *items, tools=(put, meet, hang), defaults="max_attempts: 1")


def task(name: str, check: str = "true", more: str = "") -> str:
    return f"id: {name}, goal: Do it., acceptance: ['{check}'], {more}"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project", {"out.txt": "zero"})


async def test_a_task_builds_on_those_it_depends_on(harness: RunHarness, repository: Path) -> None:
    check = "grep -q one out.txt && grep -q beside beside.txt"
    code = await harness.run(
        tasks(
            task("read", check, "workspace: project, depends_on: [write, beside]"),
            task("write", more="workspace: project"),
            task("beside", more="workspace: project"),
        )
    )
    assert code == 0
    assert run_git(repository, "show", "midwatch/r1/read-1:out.txt") == "one"
    assert (repository / "out.txt").read_text() == "zero"


@pytest.mark.parametrize(
    ("name", "check", "files", "reserved"),
    [
        (
            "write",
            "file: out.txt",
            {".gitignore": "*.txt\n"},
            "a merge leaves out out.txt: git ignores it; copy it, or change .gitignore",
        ),
        ("test", "'true'", {"test_out.txt": "0"}, "it changed existing tests: test_out.txt"),
    ],
)
async def test_a_result_that_git_ignores_or_that_changed_tests_counts_with_that_reservation(
    name: str, check: str, files: dict[str, str], reserved: str, harness: RunHarness, tmp_path: Path
) -> None:
    new_repository(tmp_path / "project", files)
    item = f"id: {name}, goal: Do it., acceptance: [{check}], workspace: project"
    assert await harness.run(tasks(item)) == 0
    reason = "every acceptance check passed, with reservations: "
    assert (await harness.last(AttemptTransition)).reason == reason + reserved


async def test_dependencies_in_conflict_fail_a_task(harness: RunHarness, repository: Path) -> None:
    code = await harness.run(
        tasks(
            task("write", more="workspace: project"),
            task("other", more="workspace: project"),
            task("read", more="workspace: project, depends_on: [write, other]"),
        )
    )
    end = (await harness.ends())["read"]
    assert (code, end.lifecycle) == (1, Lifecycle.FAILED)
    assert end.reason.startswith("midwatch/r1/other-1 does not merge: git merge")
    assert "out.txt" in end.reason


async def test_no_more_attempts_run_at_the_same_time_than_configured(harness: RunHarness) -> None:
    _names.clear()
    _met.clear()
    harness.set(run={"concurrency": 2})
    assert await harness.run(tasks(task("a"), task("b"), task("c"))) == 0
    working, most = 0, 0
    for state in await harness.told(AttemptTransition):
        working += (state.lifecycle is Lifecycle.WORKING) - state.lifecycle.over
        most = max(most, working)
    assert most == 2


async def test_a_task_that_no_attempt_completes_fails_with_the_last(harness: RunHarness) -> None:
    failed = "acceptance failed: grep -qx one out.txt (exit code 1)"
    assert await harness.run(tasks(task("wrong", "grep -qx one out.txt", "max_attempts: 3"))) == 1
    assert len(await harness.journal.attempts(1)) == 3
    assert f"- Attempt 1: {failed}" in await harness.prompt(2)
    over = TaskTransition(lifecycle=Lifecycle.FAILED, reason=failed, passed=0, total=1)
    assert (await harness.ends())["wrong"] == over


async def test_a_restart_begins_with_clean_windows_and_keeps_history(harness: RunHarness) -> None:
    run = asyncio.create_task(harness.run(tasks(task("restart", more="max_attempts: 2"))))

    async def has_two_steps() -> bool:
        return len(await harness.told(Step)) == 2

    await harness.until(has_two_steps)
    await harness.say(intervention(Action.RESTART, Actor.OPERATOR, message="Begin with the tests."))
    assert await run == 0
    reports = [len(await harness.told(Step, attempt=number)) for number in (1, 2)]
    assert reports == [2, 5]
    assert await harness.told(Alert) == []
    assert "Advice for you: Begin with the tests." in await harness.prompt(2)


@pytest.mark.parametrize(
    ("name", "check", "budget", "reason"),
    [
        ("endless", "true", "{requests: 3}", "3 of 3 requests; 1 of 1 check passes"),
        ("endless", "false", "{requests: 3}", "3 of 3 requests; 0 of 1 check passes"),
        ("hang", "true", "{minutes: 0.002}", " of 0.002 minutes; 1 of 1 check passes"),
    ],
)
async def test_requirement_17_a_spent_budget_ends_an_attempt_wherever_it_is_and_checks_are_run(
    name: str, check: str, budget: str, reason: str, harness: RunHarness
) -> None:
    harness.set(policy={"max_grants": 0})
    code = await harness.run(tasks(task(name, check, f"budget: {budget}, max_attempts: 3")))
    state = await harness.last(AttemptTransition)
    assert (code, state.ending) == (4, Ending.OUT_OF_BUDGET)
    assert state.reason.startswith("out of budget: ")
    assert state.reason.endswith(reason)
    over = await harness.last(TaskTransition)
    assert (over.lifecycle, over.reason) == (Lifecycle.FAILED, state.reason)
    assert (over.passed, over.total) == (int(check == "true"), 1)
    assert [each.passed for each in await harness.told(Acceptance)] == [check == "true"]
    assert len(await harness.journal.attempts(1)) == 1
    assert await harness.resume() == 4


async def test_a_budget_holds_for_all_attempts_together(harness: RunHarness) -> None:
    code = await harness.run(
        tasks(task("wrong", "false", "budget: {requests: 3}, max_attempts: 5"))
    )
    assert (code, await harness.endings()) == (4, [Ending.UNACCEPTED, Ending.OUT_OF_BUDGET])
