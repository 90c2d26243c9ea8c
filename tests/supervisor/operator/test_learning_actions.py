"""Marks of a person on what was learned, in a journal."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest

from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Attempt,
    Commit,
    Draft,
    Fact,
    FactAct,
    FactMark,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    Lesson,
    LessonAct,
    LessonMark,
    Record,
)
from midwatch_supervisor.operator.actions import LearningActions

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


@pytest.fixture
async def journal() -> AsyncGenerator[Journal]:
    async with await Journal.open(":memory:") as opened:
        yield opened


@pytest.fixture
async def attempt(journal: Journal) -> Attempt:
    run = await journal.add_run(source="", settings="{}", at=AT)
    task = await journal.add_task(
        run=run.id, name="fix", title="", spec="{}", at=AT, project="shop"
    )
    return await journal.add_attempt(
        task=task.id, number=1, worker="w", model="m", node="n", workspace="", at=AT
    )


async def put(journal: Journal, attempt: Attempt, record: Record) -> int:
    draft = Draft(record=record, at=AT, task=attempt.task, attempt=attempt.id)
    (entry,) = await journal.commit(Commit(drafts=(draft,)))
    return entry.id


@pytest.fixture
def actions(journal: Journal) -> LearningActions:
    return LearningActions(journal, author="ada", clock=lambda: AT)


LESSON = Lesson(text="Too early.")
FACT = Fact(text="Cold.")
GUIDELINES = Guidelines(version=1, text="- Wait.")


async def after(journal: Journal, id: int) -> list[Record]:
    return [entry.record for entry in await journal.entries(id)]


async def test_r58_a_lesson_is_retired_restored_and_rated(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    id = await put(journal, attempt, LESSON)
    await actions.mark_lesson(id, LessonAct.RETIRED, "old")
    await actions.mark_lesson(id, LessonAct.RESTORED)
    await actions.mark_lesson(id, LessonAct.RATED, "ok", rating=4)
    assert await after(journal, id) == [
        LessonMark(lesson=id, act=LessonAct.RETIRED, author="ada", comment="old"),
        LessonMark(lesson=id, act=LessonAct.RESTORED, author="ada"),
        LessonMark(lesson=id, act=LessonAct.RATED, rating=4, author="ada", comment="ok"),
    ]


async def test_a_fact_is_retired_and_restored(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    id = await put(journal, attempt, FACT)
    await actions.mark_fact(id, FactAct.RETIRED, "no")
    await actions.mark_fact(id, FactAct.RESTORED)
    assert await after(journal, id) == [
        FactMark(fact=id, act=FactAct.RETIRED, author="ada", reason="no"),
        FactMark(fact=id, act=FactAct.RESTORED, author="ada"),
    ]


async def test_a_version_is_approved_and_rolled_back(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    id = await put(journal, attempt, GUIDELINES)
    await actions.mark_guidelines(id, GuidelinesAct.APPROVED)
    await actions.mark_guidelines(id, GuidelinesAct.ROLLED_BACK, "worse")
    assert await after(journal, id) == [
        GuidelinesMark(guidelines=id, act=GuidelinesAct.APPROVED, author="ada"),
        GuidelinesMark(guidelines=id, act=GuidelinesAct.ROLLED_BACK, author="ada", comment="worse"),
    ]


async def test_a_mark_stands_with_the_task_and_attempt_of_what_it_marks(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    id = await put(journal, attempt, FACT)
    (entry,) = await journal.entries(await actions.mark_fact(id, FactAct.RETIRED) - 1)
    assert (entry.task, entry.attempt) == (attempt.task, attempt.id)


async def test_what_is_no_lesson_is_not_marked_as_one(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    fact = await put(journal, attempt, FACT)
    with pytest.raises(JournalError, match=f"has no lesson {fact}"):
        await actions.mark_lesson(fact, LessonAct.RETIRED)
    with pytest.raises(JournalError, match="has no fact 999"):
        await actions.mark_fact(999, FactAct.RETIRED)


async def test_a_version_that_somebody_else_settled_is_not_settled_again(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    id = await put(journal, attempt, GUIDELINES)
    await actions.mark_guidelines(id, GuidelinesAct.REJECTED)
    with pytest.raises(StaleIncarnationError):
        await actions.mark_guidelines(id, GuidelinesAct.APPROVED)
