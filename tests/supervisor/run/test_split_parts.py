"""What a split makes of a task, who waits for whom, and which files are meant. Pure."""

from pathlib import Path

import pytest

from midwatch_monitor.config.tasks import BudgetSpec, FileCheck, TaskSpec, WorkerSpec
from midwatch_monitor.records import Budget, Meter, Part, Terms
from midwatch_stage.factories import plan
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.run.next_attempt import circular
from midwatch_supervisor.run.split import carry_budget, even_share, keeps_work, parts
from midwatch_supervisor.workspaces.changes import match_names

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
BUDGET = Budget(requests=Meter(used=40, limit=100), minutes=Meter(used=3, limit=6))


def made(taken: tuple[str, ...] = ()) -> tuple[Assignment, ...]:
    return parts(WHOLE, TERMS, BUDGET, taken=taken)


def test_each_part_follows_the_one_before_and_none_is_reviewed_or_split_again() -> None:
    assert [(each.task.id, each.task.depends_on) for each in made()] == [
        ("fix.1", ("read",)),
        ("fix.2", ("read", "fix.1")),
        ("fix.3", ("read", "fix.2")),
    ]
    assert {(each.parent, each.task.max_attempts, each.task.review) for each in made()} == {
        ("fix", 3, False)
    }


def test_an_early_part_without_checks_is_provisional_and_the_last_has_those_of_the_whole() -> None:
    assert [(each.provisional, each.task.acceptance) for each in made()] == [
        (False, ("pytest -q tests/parse",)),
        (True, WHOLE.task.acceptance),
        (False, WHOLE.task.acceptance),
    ]


def test_the_parts_share_what_is_left_of_the_budget() -> None:
    assert [each.task.budget for each in made()] == [BudgetSpec(requests=20, minutes=1)] * 3


def test_what_one_part_does_not_use_goes_to_the_next() -> None:
    share = Budget(requests=Meter(limit=20), minutes=Meter(limit=2))
    left = Budget(requests=Meter(used=14, limit=20), minutes=Meter(used=3, limit=2))
    assert carry_budget(share, left) == Budget(requests=Meter(limit=26), minutes=Meter(limit=2))


def test_a_part_is_told_the_whole_and_that_it_is_a_part() -> None:
    assert made()[1].task.goal == (
        "Add it.\n\nThis is part 2 of 3 of a larger task, Fix the totals; do this part only. The "
        "larger task:\n\nMake the tests pass."
    )


def test_a_part_does_not_take_the_name_of_another_task() -> None:
    names = [each.task.id for each in made(taken=("fix.2",))]
    assert names == ["fix.1", "fix.part2", "fix.3"]


def test_a_part_survives_the_journal() -> None:
    part = made()[1]
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
    assert parts(WHOLE, TERMS, budget, taken=()) == ()


@pytest.mark.parametrize(
    ("keep", "done", "kept"), [((), 0, False), (("**",), 0, True), ((), 1, True)]
)
def test_the_parts_go_on_with_work_that_is_kept_or_finished(
    keep: tuple[str, ...], done: int, kept: bool
) -> None:
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
def test_a_wait_for_somebody_who_waits_for_oneself_is_a_circle(
    who: str, whom: str, circle: bool
) -> None:
    assert circular(WAITS, who, whom) is circle


NAMES = ("a.py", "src/a.py", "src/deep/b.py", "src.txt")


@pytest.mark.parametrize(
    ("globs", "kept"),
    [
        ((), ()),
        (("**",), NAMES),
        (("a.py",), ("a.py",)),
        (("./src/",), ("src/a.py", "src/deep/b.py")),
        (("src",), ("src/a.py", "src/deep/b.py")),
        (("**/*.py",), ("a.py", "src/a.py", "src/deep/b.py")),
        (("src/**", "*.txt"), ("src/a.py", "src/deep/b.py", "src.txt")),
    ],
)
def test_paths_folders_and_globs_name_files(globs: tuple[str, ...], kept: tuple[str, ...]) -> None:
    assert match_names(NAMES, globs) == kept
