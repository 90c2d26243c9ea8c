"""Marks of a person on what was learned, in a journal."""

import pytest

from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Attempt,
    Entry,
    FactAct,
    FactMark,
    GuidelinesAct,
    GuidelinesMark,
    GuidelinesState,
    KnownGuidelines,
    LessonAct,
    LessonMark,
    Record,
)
from midwatch_stage.command import write
from midwatch_stage.factories import AT, fact, guidelines, known_fact, known_lesson, lesson
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.operator.actions import LearningMark, OperatorActions


def version(id: int) -> KnownGuidelines:
    """A version as it stands; what it stands as does not matter to a mark."""
    state = GuidelinesState.PROPOSED
    return KnownGuidelines(id=id, at=AT, project="p", guidelines=guidelines(), state=state)


@pytest.fixture
async def attempt(past: PastAttempts) -> Attempt:
    return await past.attempt()


@pytest.fixture
def actions(journal: Journal) -> OperatorActions:
    return OperatorActions(journal, author="ada", clock=lambda: AT)


async def after(journal: Journal, id: int) -> list[Record]:
    return [entry.record for entry in await journal.entries(id)]


async def test_r58_a_lesson_is_retired_restored_and_rated(
    journal: Journal, attempt: Attempt, actions: OperatorActions
) -> None:
    id = await write(journal, attempt, AT, lesson())
    await actions.mark(LearningMark.RETIRE, known_lesson(id), "old")
    await actions.mark(LearningMark.RESTORE, known_lesson(id))
    await actions.mark(LearningMark.RATE, known_lesson(id), "ok", rating=4)
    assert await after(journal, id) == [
        LessonMark(lesson=id, act=LessonAct.RETIRED, author="ada", comment="old"),
        LessonMark(lesson=id, act=LessonAct.RESTORED, author="ada"),
        LessonMark(lesson=id, act=LessonAct.RATED, rating=4, author="ada", comment="ok"),
    ]


async def test_a_fact_is_retired_and_restored_with_the_task_and_attempt_that_it_stands_with(
    journal: Journal, attempt: Attempt, actions: OperatorActions
) -> None:
    id = await write(journal, attempt, AT, fact())
    await actions.mark(LearningMark.RETIRE, known_fact(id), "no")
    await actions.mark(LearningMark.RESTORE, known_fact(id))
    assert await journal.entries(id) == [
        Entry(id=place, record=mark, at=AT, task=attempt.task, attempt=attempt.id)
        for place, mark in enumerate(
            (
                FactMark(fact=id, act=FactAct.RETIRED, author="ada", reason="no"),
                FactMark(fact=id, act=FactAct.RESTORED, author="ada"),
            ),
            start=id + 1,
        )
    ]


async def test_a_version_is_approved_and_rolled_back(
    journal: Journal, attempt: Attempt, actions: OperatorActions
) -> None:
    id = await write(journal, attempt, AT, guidelines())
    await actions.mark(LearningMark.APPROVE, version(id))
    await actions.mark(LearningMark.ROLL_BACK, version(id), "worse")
    assert await after(journal, id) == [
        GuidelinesMark(guidelines=id, act=GuidelinesAct.APPROVED, author="ada"),
        GuidelinesMark(guidelines=id, act=GuidelinesAct.ROLLED_BACK, author="ada", comment="worse"),
    ]


async def test_what_is_no_lesson_is_not_marked_as_one(
    journal: Journal, attempt: Attempt, actions: OperatorActions
) -> None:
    id = await write(journal, attempt, AT, fact())
    with pytest.raises(JournalError, match=f"has no lesson {id}"):
        await actions.mark(LearningMark.RETIRE, known_lesson(id))
    with pytest.raises(JournalError, match="has no fact 999"):
        await actions.mark(LearningMark.RETIRE, known_fact(999))


async def test_a_version_that_somebody_else_settled_is_not_settled_again(
    journal: Journal, attempt: Attempt, actions: OperatorActions
) -> None:
    id = await write(journal, attempt, AT, guidelines())
    await actions.mark(LearningMark.REJECT, version(id))
    with pytest.raises(StaleIncarnationError):
        await actions.mark(LearningMark.APPROVE, version(id))
