"""What a person's verdict changes of what was learned."""

from typing import Any

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned import chores, lessons
from midwatch_monitor.records import Chore, Ending, Feedback, Lesson, Origin, Study, StudyState
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.operator.actions import OperatorActions

REJECTED = Feedback(accepted=False, comment="Cents are lost.", author="ada")


async def test_whoever_accepts_what_was_rejected_takes_back_what_that_taught(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt()
    verdict = await past.say(attempt, REJECTED)
    by_hand = Lesson(text="Cents are lost.", verdict=verdict, origin=Origin.EXPLICIT)
    by_checks = Lesson(text="It was stuck.", origin=Origin.AUTOMATIC)
    taken, kept = [await past.say(attempt, each) for each in (by_hand, by_checks)]
    await OperatorActions(past.journal, author="ada").judge(attempt, accepted=True)
    known = await past.learned.lessons(attempt=attempt.id)
    assert {each.id: each.obsolete for each in known} == {taken: True, kept: False}


async def test_no_lesson_is_drawn_from_a_rejection_that_was_taken_back(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt()
    await past.end(attempt, Ending.DONE)
    await past.say(attempt, REJECTED)
    assert Chore.LESSON in await _open(past)
    await OperatorActions(past.journal, author="ada").judge(attempt, accepted=True)
    assert Chore.LESSON not in await _open(past)


async def test_a_second_rejection_takes_nothing_back(past: PastAttempts) -> None:
    attempt = await past.attempt()
    verdict = await past.say(attempt, REJECTED)
    text = Lesson(text="Cents are lost.", verdict=verdict, origin=Origin.EXPLICIT)
    await past.say(attempt, text)
    await OperatorActions(past.journal, author="ada").judge(attempt, accepted=False)
    assert len(await past.learned.lessons(attempt=attempt.id, obsolete=False)) == 1


@pytest.mark.parametrize("reads", [1, 2])
async def test_a_lesson_that_is_drawn_at_that_moment_is_taken_back_too(
    reads: int, past: PastAttempts, location: str
) -> None:
    attempt = await past.attempt()
    await past.end(attempt, Ending.DONE)
    verdict = await past.say(attempt, REJECTED)
    text = Lesson(text="Cents are lost.", verdict=verdict, origin=Origin.EXPLICIT)
    done = Study(about=verdict, chore=Chore.LESSON, state=StudyState.DONE)

    class Drawing(Journal):
        left = reads

        async def read(self, function: Any, *given: Any, **named: Any) -> Any:
            found = await super().read(function, *given, **named)
            self.left -= function in {lessons.known_lessons, chores.still_open}
            if self.left == 0:
                self.left -= 1
                await past.say(attempt, text, done)
            return found

    async with await Drawing.open(location) as drawing:
        await OperatorActions(drawing, author="ada").judge(attempt, accepted=True)
    known = await past.learned.lessons(attempt=attempt.id)
    assert [each.obsolete for each in known] == [True]


async def _open(past: PastAttempts) -> set[Chore]:
    return {each.chore for each in await past.learned.chores(tries=3)}
