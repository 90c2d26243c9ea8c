"""What is still to be drawn from attempts: nothing is forgotten, and nothing done twice."""

import asyncio
from dataclasses import replace

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_tests.harness import PastAttempts

EDITED = r.Feedback(
    accepted=False, origin=r.Origin.IMPLIED, sign=r.VerdictBasis.EDITED, diff="-a\n+b"
)
PENDING = r.Fact(text="The build takes long.", state=r.FactState.PENDING)


async def remaining_chores(
    past: PastAttempts, *, tries: int = 3, attempt: int | None = None
) -> list[r.Chore]:
    chores = await past.learned.chores(tries=tries, attempt=attempt)
    return [each.chore for each in chores]


def make_study(about: int, chore: r.Chore, state: r.StudyState = r.StudyState.FAILED) -> r.Study:
    return r.Study(about=about, chore=chore, state=state)


@pytest.mark.parametrize(
    ("ending", "chores"),
    [
        (r.Ending.DONE, [r.Chore.SUMMARY]),
        (r.Ending.CANCELED, [r.Chore.SUMMARY]),
        (r.Ending.UNACCEPTED, [r.Chore.LESSON, r.Chore.SUMMARY]),
        (r.Ending.OUT_OF_BUDGET, [r.Chore.LESSON, r.Chore.SUMMARY]),
    ],
)
async def test_an_ended_attempt_is_summed_up_and_a_failed_one_teaches(
    past: PastAttempts, ending: r.Ending, chores: list[r.Chore]
) -> None:
    attempt = await past.attempt()
    assert await remaining_chores(past) == []
    await past.end(attempt, ending)
    assert await remaining_chores(past) == chores


@pytest.mark.parametrize(
    ("verdict", "chores"),
    [
        (r.Feedback(accepted=False), [r.Chore.LESSON]),
        (r.Feedback(accepted=False, origin=r.Origin.IMPLIED), [r.Chore.LESSON]),
        (r.Feedback(accepted=False, origin=r.Origin.AUTOMATIC), []),
        (r.Feedback(accepted=True), []),
    ],
)
async def test_a_rejection_teaches(
    past: PastAttempts, verdict: r.Feedback, chores: list[r.Chore]
) -> None:
    await past.say(await past.attempt(), verdict)
    assert await remaining_chores(past) == chores


@pytest.mark.parametrize("project", ["shop", ""])
async def test_a_sign_of_what_became_of_it_is_stored_once(past: PastAttempts, project: str) -> None:
    """Of two processes that see it at the same time, the second is told."""
    kept = r.Feedback(
        accepted=True, origin=r.Origin.IMPLIED, sign=r.VerdictBasis.KEPT, author="ada"
    )
    attempt, other = await past.attempt(project), await past.attempt(project)
    said = [kept, EDITED, replace(EDITED, origin=r.Origin.EXPLICIT), r.Feedback(accepted=False)]
    for feedback in said:
        await past.say(attempt, feedback)
    await past.say(other, EDITED)
    for again in (replace(kept, author="eve"), EDITED):
        with pytest.raises(
            StaleIncarnationError, match=f"that attempt {attempt.id} is {again.sign}"
        ):
            await past.say(attempt, again)
    await past.say(attempt, said[-1])
    assert await past.told(r.Feedback, attempt) == [*said, said[-1]]


async def test_a_sign_that_two_processes_store_at_once_teaches_once(past: PastAttempts) -> None:
    attempt = await past.attempt()
    draft = r.Draft(record=EDITED, at=past.at, task=attempt.task, attempt=attempt.id)
    async with await past.journal.open(past.journal.name) as other:
        both = [each.commit(r.Commit(drafts=(draft,))) for each in (past.journal, other)]
        answers = await asyncio.gather(*both, return_exceptions=True)
    assert [isinstance(each, StaleIncarnationError) for each in answers].count(True) == 1
    assert await remaining_chores(past) == [r.Chore.LESSON]


@pytest.mark.parametrize("state", [r.StudyState.DONE, r.StudyState.REFUSED])
async def test_what_is_done_is_done_once(past: PastAttempts, state: r.StudyState) -> None:
    attempt = await past.attempt()
    about = await past.say(attempt, r.Feedback(accepted=False))
    done = make_study(about, r.Chore.LESSON, state)
    await past.say(attempt, r.Lesson(text="first"), done)
    assert await remaining_chores(past) == []
    with pytest.raises(StaleIncarnationError, match="already done"):
        await past.say(attempt, r.Lesson(text="second"), done)
    assert [each.lesson.text for each in await past.learned.lessons()] == ["first"]


async def test_what_fails_is_tried_so_often_and_says_where_it_is_from(past: PastAttempts) -> None:
    attempt = await past.attempt()
    about = await past.end(attempt, r.Ending.DONE)
    for tries in (1, 2):
        await past.say(attempt, make_study(about, r.Chore.SUMMARY))
        assert await remaining_chores(past, tries=tries) == []
        (chore,) = await past.learned.chores(tries=tries + 1)
        assert (chore.about, chore.chore, chore.tries) == (about, r.Chore.SUMMARY, tries)
        assert (chore.task, chore.attempt, chore.project) == (attempt.task, attempt.id, "shop")


async def test_the_newest_chores_come_first_of_an_attempt_or_a_kind(past: PastAttempts) -> None:
    attempts = [await past.attempt(task=name) for name in "abc"]
    ends = [await past.end(attempt) for attempt in attempts]
    found = await past.learned.chores(tries=1)
    assert [each.about for each in found] == [end for end in ends[::-1] for _ in range(2)]
    assert await remaining_chores(past, attempt=attempts[0].id) == [r.Chore.LESSON, r.Chore.SUMMARY]
    summaries = await past.learned.chores(tries=1, kinds={r.Chore.SUMMARY})
    assert summaries == [each for each in found if each.chore is r.Chore.SUMMARY]


async def test_facts_that_wait_are_reviewed_once_their_attempt_is_over(past: PastAttempts) -> None:
    attempt = await past.attempt()
    fact = await past.say(attempt, PENDING)
    assert await remaining_chores(past) == []
    await past.end(attempt, r.Ending.DONE)
    assert await remaining_chores(past) == [r.Chore.SUMMARY, r.Chore.REVIEW]
    await past.say(attempt, r.FactMark(fact=fact, act=r.FactAct.RELEASED))
    assert await remaining_chores(past) == [r.Chore.SUMMARY]


async def test_facts_that_are_found_after_a_review_are_reviewed_too(past: PastAttempts) -> None:
    attempt = await past.attempt()
    first = await past.say(attempt, PENDING)
    about = await past.end(attempt, r.Ending.DONE)
    reviewed = r.FactMark(fact=first, act=r.FactAct.REVIEWED)
    await past.say(attempt, reviewed, make_study(about, r.Chore.REVIEW, r.StudyState.DONE))
    assert await remaining_chores(past) == [r.Chore.SUMMARY]
    await past.say(attempt, PENDING, make_study(about, r.Chore.SUMMARY, r.StudyState.DONE))
    assert await remaining_chores(past) == [r.Chore.REVIEW]


async def test_a_study_of_what_was_erased_changes_nothing(past: PastAttempts) -> None:
    await past.say(await past.attempt(), make_study(1, r.Chore.LESSON, r.StudyState.DONE))
    assert await remaining_chores(past) == []


async def test_a_review_is_never_given_up(past: PastAttempts) -> None:
    attempt = await past.attempt()
    await past.say(attempt, PENDING)
    about = await past.end(attempt, r.Ending.DONE)
    for chore in (r.Chore.SUMMARY, r.Chore.REVIEW):
        await past.say(attempt, make_study(about, chore))
    assert await remaining_chores(past, tries=1) == [r.Chore.REVIEW]
