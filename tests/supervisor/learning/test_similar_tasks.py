"""What whoever plans is told of similar tasks of the same project."""

import json
from collections.abc import Awaitable, Callable

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Feedback, Lifecycle, Origin, Record, Task, VerdictBasis
from midwatch_stage.factories import WHOSE, analysis, message, plan, task_transition
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.learning.recall import MAX_CHARS, precedents

Add = Callable[..., Awaitable[Task]]
DONE = task_transition(Lifecycle.COMPLETED, reason="every acceptance check passed")


@pytest.fixture
async def add(past: PastAttempts) -> Add:
    """Adds a task of a run of its own, with one attempt and these records."""

    async def task(title: str, *records: Record, goal: str = "", workspace: str = "/p") -> Task:
        journal, at = past.journal, past.at
        run = await journal.add_run(source="tasks.yaml", settings="{}", at=at)
        spec = json.dumps({"task": {"goal": goal}, "workspace": workspace, "more": 1})
        added = await journal.add_task(run=run.id, name="t", title=title, spec=spec, at=at)
        attempt = await journal.add_attempt(task=added.id, number=1, at=at, **WHOSE)
        for record in records:
            await past.say(attempt, record)
        return added

    return task


async def test_a_precedent_tells_steps_attempts_outcome_and_checks_and_no_words_of_workers(
    journal: Journal, add: Add
) -> None:
    failed = task_transition(Lifecycle.FAILED, reason="pytest: run me", passed=1, total=2)
    records = (plan("a", "b", done=1), message(1), message(2), analysis(), failed)
    await add("Parse dates", *records)
    assert await precedents(journal, await add("Parse the dates of orders")) == (
        "- Parse dates (run 1): failed after 1 attempt, 2 steps; 1 of 2 plan steps done; "
        "1 of 2 checks passed"
    )


async def test_the_most_similar_comes_first_and_then_the_newest(journal: Journal, add: Add) -> None:
    for title in ("Parse totals", "Parse dates", "Parse dates", "Draw a chart"):
        await add(title, DONE)
    told = await precedents(journal, await add("Parse dates", goal="Parse dates"), limit=3)
    assert [line.split(":")[0] for line in told.splitlines()] == [
        "- Parse dates (run 3)",
        "- Parse dates (run 2)",
        "- Parse totals (run 1)",
    ]


async def test_goals_count_as_titles_do(journal: Journal, add: Add) -> None:
    await add("One", DONE, goal="Mend the parser of invoices")
    told = await precedents(journal, await add("Two", goal="The invoices are parsed by a parser"))
    assert told.startswith("- One (run 1): completed")


async def test_other_projects_and_what_is_not_finished_are_no_precedent(
    journal: Journal, add: Add
) -> None:
    await add("Parse dates", DONE, workspace="/other")
    await add("Parse dates", task_transition(Lifecycle.WORKING))
    assert await precedents(journal, await add("Parse dates")) == ""


async def test_a_task_without_a_project_has_no_precedents(journal: Journal, add: Add) -> None:
    await add("Parse dates", DONE, workspace="")
    assert await precedents(journal, await add("Parse dates", workspace="")) == ""


async def test_the_text_is_bounded_and_whole_lines(journal: Journal, add: Add) -> None:
    for _ in range(20):
        await add("Parse dates " * 50, task_transition(Lifecycle.FAILED))
    told = await precedents(journal, await add("Parse dates"), limit=99)
    assert MAX_CHARS / 2 < len(told) <= MAX_CHARS
    assert all(line.endswith("0 steps") for line in told.splitlines())


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ((), ""),
        ((Feedback(accepted=True, origin=Origin.AUTOMATIC, sign=VerdictBasis.REVIEWED),), ""),
        ((Feedback(accepted=False),), ", then rejected by a person"),
        (
            (Feedback(accepted=False), Feedback(accepted=True)),
            ", then accepted by a person",
        ),
        (
            (Feedback(accepted=False, origin=Origin.IMPLIED, sign=VerdictBasis.EDITED),),
            ", then edited by a person",
        ),
    ],
)
async def test_a_precedent_tells_what_a_person_made_of_the_result(
    journal: Journal, add: Add, verdicts: tuple[Feedback, ...], told: str
) -> None:
    await add("Round the totals", *verdicts, DONE)
    line = await precedents(journal, await add("Round the totals up"))
    assert f"completed after 1 attempt, 0 steps{told}" == line.partition(": ")[2]
