"""Versions of the guidelines: at most one is in force, and two who decide at once are told."""

import asyncio

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_tests.harness import PastAttempts

APPROVED, REJECTED, BACK = (
    r.GuidelinesAct.APPROVED,
    r.GuidelinesAct.REJECTED,
    r.GuidelinesAct.ROLLED_BACK,
)


async def decide(past: PastAttempts, *course: tuple[int, r.GuidelinesAct]) -> None:
    """Propose versions 1 to 3, and say of each of them what is to be said."""
    attempt = await past.attempt()
    ids = [
        await past.say(attempt, r.Guidelines(version=version, text=f"Text {version}."))
        for version in (1, 2, 3)
    ]
    for version, act in course:
        mark = r.GuidelinesMark(guidelines=ids[version - 1], act=act, author="ann", comment="so")
        await past.say(attempt, mark)


async def test_a_version_is_proposed_and_not_in_force(past: PastAttempts) -> None:
    proposal = r.Guidelines(version=1, text="Test first.", sources=(1,))
    id = await past.say(await past.attempt(), proposal)
    known = r.KnownGuidelines(
        id=id, at=past.at, project="shop", guidelines=proposal, state=r.GuidelinesState.PROPOSED
    )
    assert await past.learned.guidelines_version(id) == known
    assert await past.learned.guidelines() == [known]
    assert await past.learned.live_guidelines("shop") is None


@pytest.mark.parametrize(
    ("course", "states", "live"),
    [
        ([(1, APPROVED)], "live proposed proposed", 1),
        ([(1, APPROVED), (2, APPROVED)], "former live proposed", 2),
        ([(1, REJECTED), (2, APPROVED)], "rejected live proposed", 2),
        ([(1, APPROVED), (1, BACK)], "rejected proposed proposed", None),
        ([(1, APPROVED), (2, APPROVED), (3, APPROVED), (3, BACK)], "former live rejected", 2),
        (
            [(1, APPROVED), (2, APPROVED), (3, APPROVED), (3, BACK), (2, BACK)],
            *("live rejected rejected", 1),
        ),
        (
            [(1, APPROVED), (2, APPROVED), (2, BACK), (3, APPROVED), (3, BACK)],
            *("live rejected rejected", 1),
        ),
    ],
)
async def test_c3_versions_follow_each_other_and_come_back(
    past: PastAttempts, course: list[tuple[int, r.GuidelinesAct]], states: str, live: int | None
) -> None:
    await decide(past, *course)
    versions = await past.learned.guidelines("shop")
    assert " ".join(each.state for each in reversed(versions)) == states
    in_force = await past.learned.live_guidelines("shop")
    assert (in_force and in_force.guidelines.version) == live
    if in_force:
        assert (in_force.author, in_force.comment) == ("ann", "so")


@pytest.mark.parametrize(
    ("course", "told"),
    [
        ([(1, APPROVED), (1, APPROVED)], "is live, not proposed: it cannot be approved"),
        ([(1, REJECTED), (1, APPROVED)], "is rejected, not proposed"),
        ([(1, APPROVED), (1, REJECTED)], "is live, not proposed: it cannot be rejected"),
        ([(1, BACK)], "version 1 of the guidelines is proposed, not live"),
        ([(1, APPROVED), (2, APPROVED), (1, BACK)], "is former, not live"),
    ],
)
async def test_of_two_who_decide_the_second_is_told(
    past: PastAttempts, course: list[tuple[int, r.GuidelinesAct]], told: str
) -> None:
    with pytest.raises(StaleIncarnationError, match=told):
        await decide(past, *course)
    assert len(await past.told(r.GuidelinesMark)) == len(course) - 1


async def test_of_two_processes_that_approve_at_once_one_is_told(past: PastAttempts) -> None:
    attempt = await past.attempt()
    id = await past.say(attempt, r.Guidelines(version=1, text="…"))
    mark = r.GuidelinesMark(guidelines=id, act=APPROVED)
    draft = r.Draft(record=mark, at=past.at, task=attempt.task, attempt=attempt.id)
    async with await past.journal.open(past.journal.name) as other:
        both = [each.commit(r.Commit(drafts=(draft,))) for each in (past.journal, other)]
        answers = await asyncio.gather(*both, return_exceptions=True)
    assert [isinstance(each, StaleIncarnationError) for each in answers].count(True) == 1
    assert len(await past.told(r.GuidelinesMark)) == 1


async def test_s58_the_version_in_force_is_there_without_a_search(past: PastAttempts) -> None:
    await decide(past, (1, APPROVED))
    await past.say(await past.attempt(task="other"), r.Lesson(text="Rounding goes last."))
    nothing, something = (
        r.LearnedQuery(project="shop"),
        r.LearnedQuery(project="shop", text="rounding"),
    )
    assert await past.learned.live_guidelines("shop") is not None
    assert await past.learned.candidates(nothing) == []
    assert len(await past.learned.candidates(something)) == 1


async def test_a_version_is_named_once_in_a_project_and_if_it_is_none(past: PastAttempts) -> None:
    attempt = await past.attempt()
    await past.say(attempt, r.Guidelines(version=1, text="…"))
    await past.say(await past.attempt("bank"), r.Guidelines(version=1, text="…"))
    with pytest.raises(StaleIncarnationError, match="version 1 of the guidelines already"):
        await past.say(attempt, r.Guidelines(version=1, text="other"))
    assert [each.project for each in await past.learned.guidelines()] == ["bank", "shop"]
    mark = r.GuidelinesMark(guidelines=9, act=APPROVED)
    for asked in (past.learned.guidelines_version(9), past.say(attempt, mark)):
        with pytest.raises(JournalError, match="no version of guidelines 9"):
            await asked


async def test_s12_the_first_summary_is_kept_with_its_topics(past: PastAttempts) -> None:
    summary = r.Summary(text="It fixed the total.", topics=("total", "cart"), turns=7, model="m")
    attempt = await past.attempt(task="totals")
    id, at = await past.say(attempt, summary), past.at
    await past.say(attempt, r.Summary(text="second"))
    (known,) = await past.learned.summaries("shop")
    assert (known.id, known.at, known.task, known.task_name) == (id, at, 1, "totals")
    assert (known.attempt, known.summary) == (attempt.id, summary)


async def test_s13_after_a_look_back_only_new_summaries_are_left(past: PastAttempts) -> None:
    ids = [await past.say(await past.attempt(task=name), r.Summary(text=name)) for name in "abcde"]
    await past.say(await past.attempt("bank"), r.Summary(text="elsewhere"))
    seen: list[int] = []
    for _ in range(3):
        mark = await past.learned.watermark("shop")
        summaries = await past.learned.summaries("shop", after=mark, limit=2)
        seen += [each.id for each in summaries]
        attempts = tuple(each.attempt for each in summaries)
        look = r.Reflection(watermark=summaries[-1].id, attempts=attempts)
        await past.say(await past.journal.attempt(attempts[-1]), look)
    assert seen == ids
    assert await past.learned.watermark("shop") == ids[-1]
    assert await past.learned.watermark("bank") == await past.learned.watermark("nobody") == 0


@pytest.mark.parametrize("error", ["", "the document could not be written"])
async def test_s13_of_two_who_look_back_one_is_refused(past: PastAttempts, error: str) -> None:
    attempt = await past.attempt()
    id = await past.say(attempt, r.Summary(text="…"))
    look = r.Reflection(watermark=id, attempts=(attempt.id,), error=error)
    await past.say(attempt, look)
    for late in (look, r.Reflection(watermark=id - 1)):
        with pytest.raises(StaleIncarnationError, match="another process has looked back"):
            await past.say(attempt, late)
    await past.say(attempt, r.Reflection(watermark=id, skipped="nothing new"))
    assert await past.learned.watermark("shop") == id


async def test_what_was_compared_with_a_former_version_is_not_approved(past: PastAttempts) -> None:
    attempt = await past.attempt()
    ids = [await past.say(attempt, r.Guidelines(version=each, text="Test.")) for each in (1, 2)]
    await past.say(attempt, r.GuidelinesMark(guidelines=ids[0], act=APPROVED, over=0))
    late = r.GuidelinesMark(guidelines=ids[1], act=APPROVED, over=0)
    with pytest.raises(StaleIncarnationError, match="no longer in force"):
        await past.say(attempt, late)
    await past.say(attempt, r.GuidelinesMark(guidelines=ids[1], act=APPROVED, over=ids[0]))
    live = await past.learned.live_guidelines("shop")
    assert live is not None
    assert live.id == ids[1]
