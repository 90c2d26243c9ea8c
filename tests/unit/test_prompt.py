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
        "You start from a clean workspace. Do not repeat what failed; say first what you will do "
        "differently."
    )
