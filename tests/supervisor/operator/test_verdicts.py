"""A person's marks on what was learned, and what their verdict changes of it."""

from typing import Any

import pytest

from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned import chores, lessons
from midwatch_monitor.records import (
    Attempt,
    Chore,
    Ending,
    Feedback,
    GuidelinesState,
    KnownGuidelines,
    Lesson,
    Origin,
    Study,
    StudyState,
)
from midwatch_supervisor.operator.actions import LearningMark, OperatorActions
from midwatch_tests.command import write
from midwatch_tests.factories import AT, fact, guidelines, known_fact, known_lesson
from midwatch_tests.harness import PastAttempts

REJECTED = Feedback(accepted=False, comment="Cents are lost.", author="ada")


async def test_who_accepts_what_was_rejected_takes_its_lesson_back(past: PastAttempts) -> None:
    attempt = await past.attempt()
    verdict = await past.say(attempt, REJECTED)
    by_hand = Lesson(text="Cents are lost.", verdict=verdict, origin=Origin.EXPLICIT)
    by_checks = Lesson(text="It was stuck.", origin=Origin.AUTOMATIC)
    taken, kept = [await past.say(attempt, each) for each in (by_hand, by_checks)]
    for accepted in (False, True):
        await OperatorActions(past.journal, author="ada").judge(attempt, accepted=accepted)
        known = await past.learned.lessons(attempt=attempt.id)
        assert {each.id: each.obsolete for each in known} == {taken: accepted, kept: False}


async def test_no_lesson_is_drawn_from_a_rejection_taken_back(past: PastAttempts) -> None:
    async def is_lesson_open() -> bool:
        return Chore.LESSON in {each.chore for each in await past.learned.chores(tries=3)}

    attempt = await past.attempt()
    await past.end(attempt, Ending.DONE)
    await past.say(attempt, REJECTED)
    assert await is_lesson_open()
    await OperatorActions(past.journal, author="ada").judge(attempt, accepted=True)
    assert not await is_lesson_open()


@pytest.mark.parametrize("reads", [1, 2])
async def test_a_lesson_that_is_drawn_at_that_moment_is_taken_back_too(
    reads: int, past: PastAttempts, location: str
) -> None:
    attempt = await past.attempt()
    await past.end(attempt, Ending.DONE)
    verdict = await past.say(attempt, REJECTED)
    text = Lesson(text="Cents are lost.", verdict=verdict, origin=Origin.EXPLICIT)
    done = Study(about=verdict, chore=Chore.LESSON, state=StudyState.DONE)

    class LessonDuringRead(Journal):
        left = reads

        async def read(self, function: Any, *given: Any, **named: Any) -> Any:
            found = await super().read(function, *given, **named)
            self.left -= function in {lessons.known_lessons, chores.still_open}
            if self.left == 0:
                self.left -= 1
                await past.say(attempt, text, done)
            return found

    async with await LessonDuringRead.open(location) as drawing:
        await OperatorActions(drawing, author="ada").judge(attempt, accepted=True)
    known = await past.learned.lessons(attempt=attempt.id)
    assert [each.obsolete for each in known] == [True]


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


async def test_a_mark_stands_with_the_task_and_attempt_of_what_it_marks_and_of_no_other_kind(
    journal: Journal, attempt: Attempt, actions: OperatorActions
) -> None:
    id = await write(journal, attempt, AT, fact())
    with pytest.raises(JournalError, match=f"has no lesson {id}"):
        await actions.mark(LearningMark.RETIRE, known_lesson(id))
    with pytest.raises(JournalError, match="has no fact 999"):
        await actions.mark(LearningMark.RETIRE, known_fact(999))
    (entry,) = await journal.entries(await actions.mark(LearningMark.RETIRE, known_fact(id)) - 1)
    assert (entry.task, entry.attempt) == (attempt.task, attempt.id)


async def test_a_version_that_somebody_else_settled_is_not_settled_again(
    journal: Journal, attempt: Attempt, actions: OperatorActions
) -> None:
    id = await write(journal, attempt, AT, guidelines())
    await actions.mark(LearningMark.REJECT, version(id))
    with pytest.raises(StaleIncarnationError):
        await actions.mark(LearningMark.APPROVE, version(id))
