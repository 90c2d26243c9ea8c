"""Marks of a person on what was learned, in a journal."""

import pytest

from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, GuidelinesState, KnownGuidelines
from midwatch_stage.command import write
from midwatch_stage.factories import AT, fact, guidelines, known_fact, known_lesson
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


async def test_a_mark_stands_with_the_task_and_attempt_of_what_it_marks(
    journal: Journal, attempt: Attempt, actions: OperatorActions
) -> None:
    id = await write(journal, attempt, AT, fact())
    (entry,) = await journal.entries(await actions.mark(LearningMark.RETIRE, known_fact(id)) - 1)
    assert (entry.task, entry.attempt) == (attempt.task, attempt.id)


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
