"""A lesson in the journal: where it comes from, who was given it, and what that came to."""

from dataclasses import replace

import pytest
from sqlalchemy import Connection, text

from midwatch_monitor import records as r
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_tests.harness import PastAttempts
from midwatch_tests.reading import uses

REJECTED = r.Feedback(accepted=False, comment="Totals are wrong.", author="ann")
LESSON = r.Lesson(
    text="I rounded each line; round the sum instead.",
    failure_class="wrong_result",
    insights=("Round once, at the end.",),
    tags=("money",),
    kind="coder",
    files=("shop/total.py",),
    steps=(3, 5),
    model="openai:gpt",
)


def make_recall(*lessons: int) -> r.Recall:
    found = (r.Recalled(lesson=each, method=r.Method.TASK, score=0.5) for each in lessons)
    return r.Recall(lessons=tuple(found), tokens=90)


async def use_lesson(past: PastAttempts, lesson: int, *said: r.Feedback | r.Ending) -> None:
    """An attempt that is given a lesson, ends, and is judged, as it is said."""
    attempt = await past.attempt()
    await past.say(attempt, make_recall(lesson))
    for each in said:
        await (past.end(attempt, each) if isinstance(each, r.Ending) else past.say(attempt, each))


async def use_counts(past: PastAttempts, lesson: int) -> tuple[int, int, int]:
    known = await past.lesson(lesson)
    return known.used, known.helped, known.hurt


@pytest.mark.parametrize("location", ["file"], indirect=True)
@pytest.mark.parametrize(
    ("wanted", "index"),
    [("attempt = 1", "entry_attempt_id_ix"), ("kind = 'feedback'", "entry_kind_id_ix")],
)
async def test_r13_an_index_finds_verdicts(past: PastAttempts, wanted: str, index: str) -> None:
    def plan(connection: Connection) -> str:
        query = f"EXPLAIN QUERY PLAN SELECT body FROM entry WHERE {wanted} ORDER BY id DESC"
        return " ".join(row.detail for row in connection.execute(text(query)))

    told = await past.journal.read(plan)
    assert index in told
    assert "TEMP B-TREE" not in told


async def test_r12_r20_every_verdict_on_an_attempt_is_kept_in_order(past: PastAttempts) -> None:
    attempt = await past.attempt()
    verdicts = [REJECTED, r.Feedback(accepted=True, origin=r.Origin.IMPLIED), REJECTED]
    for verdict in verdicts:
        await past.say(attempt, verdict)
    entries = await past.journal.entries(kinds=[r.Feedback])
    assert [each.record for each in entries] == verdicts
    assert {(each.task, each.attempt) for each in entries} == {(attempt.task, attempt.id)}


async def test_r14_a_lesson_comes_back_with_its_verdict_and_its_attempt(past: PastAttempts) -> None:
    """And with the model that wrote it (R27), and the steps that it rests on (S35)."""
    attempt = await past.attempt(task="totals")
    verdict = await past.say(attempt, REJECTED)
    more = {"verdict": verdict, "origin": r.Origin.EXPLICIT, "sources": (attempt.id,)}
    lesson = replace(LESSON, **more)
    id = await past.say(attempt, lesson)
    known = r.KnownLesson(
        id=id, at=past.at, project="shop", task="totals", attempt=attempt.id, lesson=lesson
    )
    assert await past.lesson(id) == known
    async with await past.journal.open_to_read(past.journal.name) as reader:
        assert await Learned(reader).lessons() == [known]


async def test_r14_a_lesson_cannot_explain_a_verdict_that_is_not_there(past: PastAttempts) -> None:
    with pytest.raises(JournalError, match=r"(?i)foreign key"):
        await past.say(await past.attempt(), r.Lesson(text="…", verdict=999))
    assert await past.told(r.Lesson) == []


async def test_r15_r34_uses_count_once_an_attempt_and_the_last_is_dated(past: PastAttempts) -> None:
    lesson = await past.say(await past.attempt(), LESSON)
    attempt = await past.attempt()
    await past.say(attempt, make_recall(lesson, lesson))
    await past.say(await past.attempt(), make_recall(lesson))
    last = past.at
    await past.say(attempt, make_recall(lesson))
    known = await past.lesson(lesson)
    assert (known.used, known.last_used) == (2, last)


async def test_r18_r34_a_use_says_how_the_lesson_was_found(past: PastAttempts) -> None:
    one, two = [await past.say(await past.attempt(), LESSON) for _ in range(2)]
    attempt = await past.attempt()
    better = r.Recalled(lesson=two, method=r.Method.TAGS, score=0.75)
    worse = r.Recalled(lesson=one, method=r.Method.KIND, score=0.25)
    elsewhere = await past.say(await past.attempt("other"), LESSON)
    await past.say(attempt, make_recall(elsewhere, 999))  # gone: that does not hold up the attempt
    await past.say(attempt, r.Recall(lessons=(worse, better)))
    assert await uses(past.journal, attempt.id) == [better, worse]


NO, YES = (r.Feedback(accepted=yes) for yes in (False, True))
REVERTED, KEPT = (r.Feedback(accepted=yes, origin=r.Origin.IMPLIED) for yes in (False, True))


@pytest.mark.parametrize(
    ("said", "came_to"),
    [
        ([], (0, 0)),
        ([r.Ending.ERROR], (0, 0)),
        ([r.Ending.CANCELED], (0, 0)),
        ([r.Ending.DONE], (1, 0)),
        ([r.Ending.OUT_OF_BUDGET], (0, 1)),
        ([r.Ending.DONE, REVERTED], (0, 1)),
        ([r.Ending.UNACCEPTED, YES], (1, 0)),
        ([r.Ending.DONE, NO, KEPT], (0, 1)),
        ([r.Ending.DONE, REVERTED, YES], (1, 0)),
        ([r.Ending.DONE, NO, YES], (1, 0)),
        ([NO, r.Ending.DONE], (0, 1)),
    ],
)
async def test_r16_r18_the_strongest_and_then_the_newest_verdict_counts(
    past: PastAttempts, said: list[r.Feedback | r.Ending], came_to: tuple[int, int]
) -> None:
    lesson = await past.say(await past.attempt(), LESSON)
    await use_lesson(past, lesson, *said)
    await use_lesson(past, lesson)
    assert await use_counts(past, lesson) == (2, *came_to)


async def test_s36_c2_a_lesson_of_several_attempts_is_found_by_each(past: PastAttempts) -> None:
    one, two, three = [await past.attempt(task=name) for name in ("a", "b", "c")]
    own = await past.say(one, LESSON)
    sources = (one.id, two.id)
    both = await past.say(two, r.Lesson(text="…", born=r.LessonOrigin.REFLECTION, sources=sources))
    version = await past.say(two, r.Guidelines(version=1, text="…", sources=sources))
    known = [await past.learned.lessons(attempt=each.id) for each in (one, two, three)]
    assert [[each.id for each in found] for found in known] == [[both, own], [both], []]
    assert (await past.learned.guidelines_version(version)).guidelines.sources == sources


@pytest.mark.parametrize("project", ["other", ""])
async def test_s36_a_source_is_an_attempt_of_the_project(past: PastAttempts, project: str) -> None:
    own, strange = await past.attempt(), await past.attempt(project)
    with pytest.raises(JournalError, match="attempt 2 does not belong to the project"):
        await past.say(own, r.Lesson(text="…", sources=(strange.id,)))


async def test_r16_r71_what_is_obsolete_is_kept_and_can_be_left_out(past: PastAttempts) -> None:
    attempt = await past.attempt()
    old, new = [await past.say(attempt, LESSON) for _ in range(2)]
    await past.say(attempt, r.LessonMark(lesson=old, act=r.LessonAct.ARCHIVED))
    assert [(each.id, each.obsolete) for each in await past.learned.lessons()] == [
        *((new, False), (old, True))
    ]
    assert [each.id for each in await past.learned.lessons(obsolete=False)] == [new]
    await past.say(attempt, r.LessonMark(lesson=old, act=r.LessonAct.RESTORED))
    assert not (await past.lesson(old)).obsolete


async def test_c3_every_mark_is_kept_and_the_last_rating_counts(past: PastAttempts) -> None:
    attempt = await past.attempt()
    lesson = await past.say(attempt, LESSON)
    marks = [
        r.LessonMark(lesson=lesson, act=r.LessonAct.RATED, rating=1),
        r.LessonMark(lesson=lesson, act=r.LessonAct.RATED, rating=4),
        r.LessonMark(lesson=lesson, act=r.LessonAct.RETIRED, author="ann"),
    ]
    await past.say(attempt, *marks)
    found = await past.journal.entries(kinds=[r.Lesson, r.LessonMark])
    assert [each.record for each in found] == [LESSON, *marks]
    assert (await past.lesson(lesson)).rating == 4
    with pytest.raises(JournalError, match="there is no lesson 77"):
        await past.say(attempt, r.LessonMark(lesson=77, act=r.LessonAct.RETIRED))


async def test_lessons_are_read_page_by_page(past: PastAttempts) -> None:
    attempt = await past.attempt()
    ids = [await past.say(attempt, LESSON) for _ in range(5)]
    await past.say(await past.attempt("other"), LESSON)
    first = await past.learned.lessons(project="shop", limit=3)
    rest = await past.learned.lessons(project="shop", before=first[-1].id)
    assert [each.id for each in (*first, *rest)] == ids[::-1]


@pytest.mark.parametrize("odd", ['a "quoted" \\ Größe', "Loop", ""])
async def test_lessons_are_narrowed_by_task_and_failure_class(past: PastAttempts, odd: str) -> None:
    attempt = await past.attempt()
    loop = await past.say(attempt, r.Lesson(text="a", failure_class="loop"))
    said = r.Lesson(text=f'"failure_class":"{odd}" "failure_class":"loop"', failure_class=odd)
    other = await past.say(await past.attempt(task="other"), said)
    half = await past.say(attempt, r.Lesson(text="\ud800", failure_class=odd))

    async def find_lessons(task: str | None, failure_class: str) -> list[int]:
        known = await past.learned.lessons(task=task, failure_class=failure_class)
        return [each.id for each in known]

    assert await find_lessons(None, "loop") == [loop]
    assert await find_lessons(None, odd) == [half, other]
    assert await find_lessons("other", odd) == [other]


async def test_without_a_project_nothing_is_learned(past: PastAttempts) -> None:
    attempt = await past.attempt("")
    await past.say(attempt, LESSON)
    await past.end(attempt)
    assert (await past.learned.lessons(), await past.learned.chores(tries=3)) == ([], [])
    for name in ("shop", "bank", "shop"):
        await past.attempt(name)
    assert await past.learned.projects() == ["bank", "shop"]
    projects = [(await past.journal.task(each)).project for each in (1, 2, 3, 4)]
    assert projects == ["", "shop", "bank", "shop"]
