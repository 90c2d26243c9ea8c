"""The first prompt of an attempt."""

from midwatch_agents.prompt import Past, opening
from midwatch_monitor.config.tasks import FileCheck, TaskSpec

TASK = TaskSpec(
    id="fix",
    title="Fix the totals",
    goal="  Make the tests pass.\n",
    acceptance=("pytest -q", FileCheck(file="report.md")),
)
FIRST = """\
# Task: Fix the totals

Make the tests pass.

## Plan

[ ] 1. read

## Acceptance

Your work counts as done when these checks pass; they are run after you end, so run them yourself \
first where you can:
- `pytest -q`
- the file report.md exists"""


def test_a_first_attempt_is_told_the_goal_the_plan_and_the_checks() -> None:
    assert opening(TASK, "[ ] 1. read", number=1, past=()) == FIRST


def test_a_task_without_a_title_goes_by_its_id() -> None:
    task = TASK.model_copy(update={"title": ""})
    assert opening(task, "", number=1, past=()).startswith("# Task: fix\n")


def test_a_later_attempt_is_told_what_was_tried_and_advised() -> None:
    past = (
        Past(number=1, reason="acceptance failed: pytest -q"),
        Past(number=2, reason="stuck", advice="Read the output.", last_notes="Rounding?"),
    )
    assert opening(TASK, "[ ] 1. read", number=3, past=past) == (
        f"{FIRST}\n\n"
        "This is attempt 3 of this task.\n\n"
        "## What was tried before\n\n"
        "- Attempt 1: acceptance failed: pytest -q\n"
        "- Attempt 2: stuck\n"
        "  Its last notes: Rounding?\n"
        "  Advice for you: Read the output.\n\n"
        "You start from a clean workspace: nothing of that work is in it, on purpose. Do not "
        "repeat what failed: begin with `report_error`, and say in it why the attempt before "
        "failed and what you will do differently."
    )


def test_a_later_attempt_is_told_what_was_found_tried_and_kept() -> None:
    past = Past(
        number=1,
        reason="restart by policy: it goes in circles",
        analyses=("ModuleNotFoundError: the path is wrong → set it",),
        tried=("nudge: no effect",),
        kept=("a.py", "b.py"),
    )
    told = opening(TASK, "", number=2, past=(past,))
    assert (
        "- Attempt 1: restart by policy: it goes in circles\n"
        "  Its own analysis: ModuleNotFoundError: the path is wrong → set it\n"
        "  Intervention: nudge: no effect\n"
    ) in told
    assert "the rest was dropped on purpose: a.py, b.py. Do not repeat" in told


def test_what_others_report_and_how_similar_tasks_went_stands_after_the_checks() -> None:
    told = opening(
        TASK, "", number=1, past=(), board="## The board\n\nfrom b\n", precedents="- one"
    )
    assert told.endswith("exists\n\n## How similar tasks went\n\n- one\n\n## The board\n\nfrom b")


def test_a_part_without_checks_of_its_own_is_told_that_they_are_those_of_the_whole() -> None:
    told = opening(TASK, "", number=1, past=(), provisional=True)
    assert "Your part has no check of its own." in told
    assert "they need not pass before:\n- `pytest -q`" in told
