"""A task that is split: its parts are tasks, it is not tried again, and the whole is checked.

Last what a split makes of a task, who waits for whom, and which files are meant. Pure.
"""

import asyncio
import json
from pathlib import Path

import pytest

from midwatch_agents.scripted import Script
from midwatch_monitor.config.tasks import BudgetSpec, FileCheck, Role, TaskSpec, WorkerSpec
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    AttemptTransition,
    Budget,
    Completion,
    Delivery,
    DeliveryState,
    Ending,
    Intervention,
    Lifecycle,
    Meter,
    Part,
    Terms,
)
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.run.next_attempt import circular
from midwatch_supervisor.run.split import carry_budget, even_share, keeps_work
from midwatch_supervisor.run.split import parts as parts_of
from midwatch_supervisor.workspaces.changes import match_names
from midwatch_supervisor.workspaces.workspace import git
from midwatch_tests.acting import DONE, gate, put, putting, script, task_file
from midwatch_tests.command import midwatch
from midwatch_tests.factories import call, intervention, plan, turn
from midwatch_tests.harness import RunHarness
from midwatch_tests.repository import new_repository

HANG = turn(call("gate"))
SCRIPTS = {
    "big": script(putting("begun.txt", "begun"), HANG),
    "big.1": script(putting("one.txt", "one"), DONE),
    "big.2": script(HANG, putting("two.txt", "two"), DONE),
    "small": script(putting("small.txt", "small"), DONE),
    "idle": script(putting("begun.txt", "begun"), HANG),
    "idle.1": script(DONE),
    "idle.2": script(DONE),
}


def script_for(role: Role, key: str) -> Script:
    return SCRIPTS[key]


def tasks(
    name: str = "big", *, workspace: str = "project", more: str = "", module: str = __name__
) -> str:
    return task_file(
        module,
        f"id: {name}, goal: Do it., acceptance: [file: one.txt, file: two.txt], {more}",
        f'id: small, goal: Do it., acceptance: ["grep -q two two.txt"], depends_on: [{name}]',
        tools=(put, gate),
        defaults=f"workspace: {workspace}, max_attempts: 1",
    )


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project", {"old.txt": "old"})


def split(*, keep: tuple[str, ...] = ()) -> Intervention:
    named = (("First", "Write one.txt."), ("Second", "Write two.txt."))
    parts = tuple(Part(title=title, goal=goal) for title, goal in named)
    terms = Terms(parts=parts, keep=keep)
    return intervention(Action.SPLIT, Actor.SUPERVISOR, terms=terms)


async def start_run(harness: RunHarness, tasks: str) -> "asyncio.Task[int]":
    """A run whose first task hangs."""
    run = asyncio.create_task(harness.run(tasks))
    await harness.until(lambda: any(harness.home.glob("work/r1/*-1/begun.txt")))
    return run


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.txt"))


async def test_requirement_12_a_split_makes_its_tasks(harness: RunHarness, project: Path) -> None:
    run = await start_run(harness, tasks())
    await harness.say(split())
    harness.open_gate()
    assert await run == 0
    found = await harness.ends()
    assert {name: state.lifecycle for name, state in found.items()} == dict.fromkeys(
        ("big", "small", "big.1", "big.2"), Lifecycle.COMPLETED
    )
    assert (found["big"].passed, found["big"].total) == (2, 2)
    # It is not tried again.
    assert len(await harness.journal.attempts(1)) == 1
    assert (await harness.last(AttemptTransition, attempt=1)).ending is Ending.SPLIT
    assert await git(project, "show", "midwatch/r1/big-1:begun.txt") == "begun"
    # What follows builds on the whole.
    assert names(harness.home / "work/r1/big-whole") == ["old.txt", "one.txt", "two.txt"]
    assert names(harness.home / "work/r1/small-1") == ["old.txt", "one.txt", "small.txt", "two.txt"]
    # An early part is flagged, and the whole says what was checked.
    flags = {each.goal.split(".txt")[0]: each.flag for each in await harness.told(Completion)}
    assert flags["Write one"] == "checked only together with the whole task"
    assert flags["Do it."] == ""
    checks = [each.check for each in await harness.told(Acceptance)]
    assert checks.count("something was changed") == 1
    assert checks.count("file one.txt") == 2  # by the last part, and by the whole
    assert await midwatch("merge", "big", "--journal", harness.journal.name) == 0
    assert names(project) == ["old.txt", "one.txt", "two.txt"]


@pytest.mark.parametrize("workspace", ["project", "copy"])
async def test_the_parts_go_on_with_work_that_is_kept(workspace: str, harness: RunHarness) -> None:
    (harness.folder / "copy").mkdir()
    run = await start_run(harness, tasks(workspace=workspace))
    await harness.say(split(keep=("**",)))
    harness.open_gate()
    await run
    found = set(names(harness.home / "work/r1/big-whole"))
    assert found - {"old.txt"} == {"begun.txt", "one.txt", "two.txt"}


async def test_a_part_that_fails_is_the_reason_why_the_whole_fails(harness: RunHarness) -> None:
    run = await start_run(harness, tasks("idle"))
    await harness.say(split())
    assert await run == 1
    found = await harness.ends()
    assert len(await harness.journal.attempts(1)) == 1
    assert found["idle"].reason == (
        "its part idle.1 failed: acceptance failed: something was changed (nothing was changed)"
    )
    assert found["idle.2"].reason == "it depends on idle.1, which is failed"
    assert found["small"].reason == "it depends on idle, which is failed"


async def test_where_too_little_budget_is_left_nothing_is_split(harness: RunHarness) -> None:
    run = await start_run(harness, tasks(more="budget: {requests: 2}"))
    await harness.say(split())
    assert await run == 4
    found = await harness.ends()
    assert found["big"].reason == "too little of its budget is left for 2 parts"
    assert list(found) == ["big", "small"]


async def test_a_part_is_not_split_again(harness: RunHarness) -> None:
    run = await start_run(harness, tasks())
    await harness.say(split())
    await harness.until(lambda: any(harness.home.glob("work/r1/big.2-1")))
    part = (await harness.journal.attempts(4))[-1]
    await harness.say(split(), attempt=part.id)

    async def is_refused() -> bool:
        return DeliveryState.REJECTED in [each.state for each in await harness.told(Delivery)]

    await harness.until(is_refused)
    harness.open_gate()
    assert await run == 0
    assert len(await harness.journal.tasks(1)) == 4


async def test_a_run_that_is_cut_short_goes_on_with_its_parts(harness: RunHarness) -> None:
    run = await start_run(harness, tasks())
    await harness.say(split())
    await harness.until(lambda: any(harness.home.glob("work/r1/big.2-1")))
    run.cancel()
    await asyncio.wait({run})
    harness.open_gate()
    assert await harness.resume() == 0
    known = [each.name for each in await harness.journal.tasks(1)]
    assert known == ["big", "small", "big.1", "big.2"]
    before = await harness.journal.entries()
    assert await harness.resume() == 0
    assert await harness.journal.entries() == before


@pytest.mark.matrix
async def test_a_run_tells_of_the_tasks_that_a_split_made(harness: RunHarness) -> None:
    (harness.folder / "tasks.yaml").write_text(tasks(module="test_split"))
    process = await harness.start("run", "tasks.yaml", "--headless", "--json")
    grounds = harness.folder.joinpath(".midwatch", "work", "r1")
    await harness.until(grounds.joinpath("big-1", "begun.txt").exists)
    await harness.say(split())
    await harness.until(lambda: grounds.joinpath("big.2-1").exists())
    harness.open_gate()
    out, errors = await asyncio.wait_for(process.communicate(), 300)
    assert (process.returncode, errors) == (0, b"")
    done = json.loads(out.splitlines()[-1])
    assert [(each["id"], each["status"]) for each in done["tasks"]] == [
        (name, "completed") for name in ("big", "small", "big.1", "big.2")
    ]


WHOLE = Assignment(
    task=TaskSpec(
        id="fix",
        title="Fix the totals",
        goal="Make the tests pass.",
        acceptance=("pytest -q", FileCheck(file="report.md")),
        depends_on=("read",),
        max_attempts=3,
        review=True,
    ),
    worker="coder",
    spec=WorkerSpec(),
    models={},
    workspace=Path("/w"),
)
TERMS = Terms(
    parts=(
        Part(title="Parse", goal="Parse it.", acceptance=("pytest -q tests/parse",)),
        Part(title="Add", goal="Add it."),
        Part(title="Print", goal="Print it."),
    )
)
LEFT_BUDGET = Budget(requests=Meter(used=40, limit=100), minutes=Meter(used=3, limit=6))


def make_parts(taken: tuple[str, ...] = ()) -> tuple[Assignment, ...]:
    return parts_of(WHOLE, TERMS, LEFT_BUDGET, taken=taken)


def test_each_part_follows_the_one_before_and_none_is_reviewed_or_split_again() -> None:
    assert [(each.task.id, each.task.depends_on) for each in make_parts()] == [
        ("fix.1", ("read",)),
        ("fix.2", ("read", "fix.1")),
        ("fix.3", ("read", "fix.2")),
    ]
    assert {(each.parent, each.task.max_attempts, each.task.review) for each in make_parts()} == {
        ("fix", 3, False)
    }


def test_an_early_part_without_checks_is_provisional_and_the_last_has_those_of_the_whole() -> None:
    assert [(each.provisional, each.task.acceptance) for each in make_parts()] == [
        (False, ("pytest -q tests/parse",)),
        (True, WHOLE.task.acceptance),
        (False, WHOLE.task.acceptance),
    ]


def test_the_parts_share_what_is_left_of_the_budget() -> None:
    assert [each.task.budget for each in make_parts()] == [BudgetSpec(requests=20, minutes=1)] * 3


def test_what_one_part_does_not_use_goes_to_the_next() -> None:
    share = Budget(requests=Meter(limit=20), minutes=Meter(limit=2))
    left = Budget(requests=Meter(used=14, limit=20), minutes=Meter(used=3, limit=2))
    assert carry_budget(share, left) == Budget(requests=Meter(limit=26), minutes=Meter(limit=2))


def test_a_part_is_told_the_whole_and_that_it_is_a_part() -> None:
    assert make_parts()[1].task.goal == (
        "Add it.\n\nThis is part 2 of 3 of a larger task, Fix the totals; do this part only. The "
        "larger task:\n\nMake the tests pass."
    )


def test_a_part_does_not_take_the_name_of_another_task() -> None:
    names = [each.task.id for each in make_parts(taken=("fix.2",))]
    assert names == ["fix.1", "fix.part2", "fix.3"]


def test_a_part_survives_the_journal() -> None:
    part = make_parts()[1]
    assert Assignment.model_validate_json(part.model_dump_json()) == part


@pytest.mark.parametrize(
    "budget",
    [
        Budget(requests=Meter(used=58, limit=60)),
        Budget(tokens=Meter(used=60, limit=60)),
        Budget(cost_usd=Meter(used=2.5, limit=2)),
    ],
)
def test_where_too_little_is_left_nothing_is_made(budget: Budget) -> None:
    assert even_share(budget, 3) is None
    assert parts_of(WHOLE, TERMS, budget, taken=()) == ()


@pytest.mark.parametrize(
    ("keep", "done", "kept"), [((), 0, False), (("**",), 0, True), ((), 1, True)]
)
def test_parts_go_on_with_what_is_kept(keep: tuple[str, ...], done: int, kept: bool) -> None:
    assert keeps_work(Terms(keep=keep), plan(done=done)) is kept


WAITS = {"a": ("b",), "b": ("c",), "c": (), "d": ("d",)}


@pytest.mark.parametrize(
    ("who", "whom", "circle"),
    [
        ("c", "a", True),
        ("b", "a", True),
        ("a", "c", False),
        ("a", "a", True),
        ("a", "d", False),
        ("a", "unknown", False),
    ],
)
def test_who_waits_for_who_waits_for_it_is_in_a_circle(who: str, whom: str, circle: bool) -> None:
    assert circular(WAITS, who, whom) is circle


FILES = ("a.py", "src/a.py", "src/deep/b.py", "src.txt")


@pytest.mark.parametrize(
    ("globs", "kept"),
    [
        ((), ()),
        (("**",), FILES),
        (("a.py",), ("a.py",)),
        (("./src/",), ("src/a.py", "src/deep/b.py")),
        (("src",), ("src/a.py", "src/deep/b.py")),
        (("**/*.py",), ("a.py", "src/a.py", "src/deep/b.py")),
        (("src/**", "*.txt"), ("src/a.py", "src/deep/b.py", "src.txt")),
    ],
)
def test_paths_folders_and_globs_name_files(globs: tuple[str, ...], kept: tuple[str, ...]) -> None:
    assert match_names(FILES, globs) == kept
