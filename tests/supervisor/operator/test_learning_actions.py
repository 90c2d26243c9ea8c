"""Marks of a person on what was learned, in a journal."""

import pytest

from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Attempt,
    FactAct,
    FactMark,
    GuidelinesAct,
    GuidelinesMark,
    LessonAct,
    LessonMark,
    Record,
)
from midwatch_stage.command import write
from midwatch_stage.factories import AT, fact, guidelines, lesson
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.operator.actions import LearningActions


@pytest.fixture
async def attempt(past: PastAttempts) -> Attempt:
    return await past.attempt()


@pytest.fixture
def actions(journal: Journal) -> LearningActions:
    return LearningActions(journal, author="ada", clock=lambda: AT)


async def after(journal: Journal, id: int) -> list[Record]:
    return [entry.record for entry in await journal.entries(id)]


async def test_r58_a_lesson_is_retired_restored_and_rated(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    id = await write(journal, attempt, AT, lesson())
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
    id = await write(journal, attempt, AT, fact())
    await actions.mark_fact(id, FactAct.RETIRED, "no")
    await actions.mark_fact(id, FactAct.RESTORED)
    assert await after(journal, id) == [
        FactMark(fact=id, act=FactAct.RETIRED, author="ada", reason="no"),
        FactMark(fact=id, act=FactAct.RESTORED, author="ada"),
    ]


async def test_a_version_is_approved_and_rolled_back(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    id = await write(journal, attempt, AT, guidelines())
    await actions.mark_guidelines(id, GuidelinesAct.APPROVED)
    await actions.mark_guidelines(id, GuidelinesAct.ROLLED_BACK, "worse")
    assert await after(journal, id) == [
        GuidelinesMark(guidelines=id, act=GuidelinesAct.APPROVED, author="ada"),
        GuidelinesMark(guidelines=id, act=GuidelinesAct.ROLLED_BACK, author="ada", comment="worse"),
    ]


async def test_a_mark_stands_with_the_task_and_attempt_of_what_it_marks(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    id = await write(journal, attempt, AT, fact())
    (entry,) = await journal.entries(await actions.mark_fact(id, FactAct.RETIRED) - 1)
    assert (entry.task, entry.attempt) == (attempt.task, attempt.id)


async def test_what_is_no_lesson_is_not_marked_as_one(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    id = await write(journal, attempt, AT, fact())
    with pytest.raises(JournalError, match=f"has no lesson {id}"):
        await actions.mark_lesson(id, LessonAct.RETIRED)
    with pytest.raises(JournalError, match="has no fact 999"):
        await actions.mark_fact(999, FactAct.RETIRED)


async def test_a_version_that_somebody_else_settled_is_not_settled_again(
    journal: Journal, attempt: Attempt, actions: LearningActions
) -> None:
    id = await write(journal, attempt, AT, guidelines())
    await actions.mark_guidelines(id, GuidelinesAct.REJECTED)
    with pytest.raises(StaleIncarnationError):
        await actions.mark_guidelines(id, GuidelinesAct.APPROVED)
