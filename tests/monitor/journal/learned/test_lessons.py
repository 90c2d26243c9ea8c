"""A lesson in the journal: where it comes from, who was given it, and what that came to."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection, text

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Ending,
    Feedback,
    Guidelines,
    KnownLesson,
    Lesson,
    LessonAct,
    LessonMark,
    LessonOrigin,
    Method,
    Origin,
    Recall,
    Recalled,
)
from midwatch_stage.harness import PastAttempts
from midwatch_stage.reading import uses

REJECTED = Feedback(accepted=False, comment="Totals are wrong.", author="ann")
LESSON = Lesson(
    text="I rounded each line; round the sum instead.",
    failure_class="wrong_result",
    insights=("Round once, at the end.",),
    tags=("money",),
    kind="coder",
    files=("shop/total.py",),
    steps=(3, 5),
    model="openai:gpt",
)


def given(*lessons: int, method: Method = Method.TASK) -> Recall:
    found = (Recalled(lesson=each, method=method, score=0.5) for each in lessons)
    return Recall(lessons=tuple(found), tokens=90)


async def used(
    past: PastAttempts, lesson: int, *said: Feedback, ending: Ending | None = None
) -> None:
    """An attempt that is given a lesson, ends, and is judged."""
    attempt = await past.attempt()
    await past.say(attempt, given(lesson))
    if ending is not None:
        await past.end(attempt, ending)
    for verdict in said:
        await past.say(attempt, verdict)


async def counted(past: PastAttempts, lesson: int) -> tuple[int, int, int]:
    known = await past.lesson(lesson)
    return known.used, known.helped, known.hurt


async def test_r12_a_verdict_names_its_attempt_its_task_and_who_gave_it(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt()
    id = await past.say(attempt, REJECTED)
    (entry,) = await past.journal.entries(kinds=[Feedback])
    assert (entry.id, entry.task, entry.attempt) == (id, attempt.task, attempt.id)
    assert entry.record == REJECTED


@pytest.mark.parametrize(
    ("wanted", "index"),
    [("attempt = 1", "entry_attempt_id_ix"), ("kind = 'feedback'", "entry_kind_id_ix")],
)
async def test_r13_verdicts_are_found_by_an_index(
    past: PastAttempts, wanted: str, index: str
) -> None:
    def plan(connection: Connection) -> str:
        query = f"EXPLAIN QUERY PLAN SELECT body FROM entry WHERE {wanted} ORDER BY id DESC"
        return " ".join(row.detail for row in connection.execute(text(query)))

    told = await past.journal.read(plan)
    assert index in told
    assert "TEMP B-TREE" not in told


async def test_r20_every_verdict_on_an_attempt_is_there_in_its_order(past: PastAttempts) -> None:
    attempt = await past.attempt()
    verdicts = [REJECTED, Feedback(accepted=True, origin=Origin.IMPLIED), REJECTED]
    for verdict in verdicts:
        await past.say(attempt, verdict)
    assert await past.told(Feedback, attempt) == verdicts


async def test_r14_a_lesson_comes_back_with_its_verdict_and_its_attempt(
    past: PastAttempts,
) -> None:
    """And with the model that wrote it (R27), and the steps that it rests on (S35)."""
    attempt = await past.attempt(task="totals")
    verdict = await past.say(attempt, REJECTED)
    more = {"verdict": verdict, "origin": Origin.EXPLICIT, "sources": (attempt.id,)}
    lesson = replace(LESSON, **more)
    id = await past.say(attempt, lesson)
    assert await past.lesson(id) == KnownLesson(
        id=id, at=past.at, project="shop", task="totals", attempt=attempt.id, lesson=lesson
    )


async def test_r14_a_lesson_cannot_explain_a_verdict_that_is_not_there(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt()
    with pytest.raises(JournalError, match="FOREIGN KEY"):
        await past.say(attempt, Lesson(text="…", verdict=999))
    assert await past.told(Lesson) == []


async def test_r15_uses_are_counted_and_the_last_is_dated(past: PastAttempts) -> None:
    lesson = await past.say(await past.attempt(), LESSON)
    for _ in range(2):
        await past.say(await past.attempt(), given(lesson))
    known = await past.lesson(lesson)
    assert (known.used, known.last_used) == (2, past.at)


async def test_r16_whether_it_helped_and_whether_it_is_obsolete_is_known(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt()
    lesson = await past.say(attempt, LESSON)
    await used(past, lesson, ending=Ending.DONE)
    await used(past, lesson, ending=Ending.STUCK)
    await used(past, lesson, ending=Ending.ERROR)
    assert await counted(past, lesson) == (3, 1, 1)
    await past.say(attempt, LessonMark(lesson=lesson, act=LessonAct.RETIRED))
    assert (await past.lesson(lesson)).obsolete


async def test_r18_a_use_says_how_the_lesson_was_found(past: PastAttempts) -> None:
    one, two = [await past.say(await past.attempt(), LESSON) for _ in range(2)]
    attempt = await past.attempt()
    better = Recalled(lesson=two, method=Method.TAGS, score=0.75)
    worse = Recalled(lesson=one, method=Method.KIND, score=0.25)
    await past.say(attempt, Recall(lessons=(worse, better)))
    assert await uses(past.journal, attempt.id) == [better, worse]


EXPLICIT = [Feedback(accepted=yes) for yes in (False, True)]
IMPLIED = [Feedback(accepted=yes, origin=Origin.IMPLIED) for yes in (False, True)]


@pytest.mark.parametrize(
    ("ending", "said", "came_to"),
    [
        (None, [], (0, 0)),
        (Ending.ERROR, [], (0, 0)),
        (Ending.CANCELED, [], (0, 0)),
        (Ending.DONE, [], (1, 0)),
        (Ending.OUT_OF_BUDGET, [], (0, 1)),
        (Ending.DONE, [EXPLICIT[0]], (0, 1)),
        (Ending.DONE, [IMPLIED[0]], (0, 1)),
        (Ending.UNACCEPTED, [EXPLICIT[1]], (1, 0)),
        (Ending.DONE, [EXPLICIT[0], IMPLIED[1]], (0, 1)),
        (Ending.DONE, [IMPLIED[0], EXPLICIT[1]], (1, 0)),
        (Ending.DONE, [EXPLICIT[0], EXPLICIT[1]], (1, 0)),
    ],
)
async def test_r18_the_strongest_and_then_the_newest_verdict_counts(
    past: PastAttempts, ending: Ending | None, said: list[Feedback], came_to: tuple[int, int]
) -> None:
    lesson = await past.say(await past.attempt(), LESSON)
    await used(past, lesson, *said, ending=ending)
    assert await counted(past, lesson) == (1, *came_to)


async def test_r18_how_an_attempt_ends_does_not_outvote_a_person(past: PastAttempts) -> None:
    lesson = await past.say(await past.attempt(), LESSON)
    attempt = await past.attempt()
    await past.say(attempt, given(lesson))
    await past.say(attempt, EXPLICIT[0])
    await past.end(attempt, Ending.DONE)
    assert await counted(past, lesson) == (1, 0, 1)


async def test_r34_one_lesson_counts_once_for_an_attempt_that_goes_on(past: PastAttempts) -> None:
    lesson = await past.say(await past.attempt(), LESSON)
    attempt = await past.attempt()
    await past.say(attempt, given(lesson, lesson))
    await past.say(attempt, given(lesson))
    assert await counted(past, lesson) == (1, 0, 0)


async def test_r34_a_lesson_that_is_gone_does_not_hold_up_the_attempt(past: PastAttempts) -> None:
    attempt = await past.attempt()
    elsewhere = await past.say(await past.attempt("other"), LESSON)
    await past.say(attempt, given(elsewhere, 999))
    assert await uses(past.journal, attempt.id) == []


async def test_s36_a_lesson_of_several_attempts_is_found_by_each(past: PastAttempts) -> None:
    one, two, three = [await past.attempt(task=name) for name in ("a", "b", "c")]
    lesson = await past.say(two, Lesson(text="…", sources=(one.id, two.id)))
    known = [await past.learned.lessons(attempt=each.id) for each in (one, two, three)]
    assert [[each.id for each in found] for found in known] == [[lesson], [lesson], []]


@pytest.mark.parametrize("project", ["other", ""])
async def test_s36_a_source_is_an_attempt_of_the_project(past: PastAttempts, project: str) -> None:
    own, strange = await past.attempt(), await past.attempt(project)
    with pytest.raises(JournalError, match="attempt 2 does not belong to the project"):
        await past.say(own, Lesson(text="…", sources=(strange.id,)))


async def test_r56_from_a_lesson_the_log_leads_back_to_the_work(past: PastAttempts) -> None:
    attempt = await past.attempt()
    await past.end(attempt)
    verdict = await past.say(attempt, REJECTED)
    lesson = await past.say(attempt, Lesson(text="…", verdict=verdict))
    known = await past.lesson(lesson)
    (said,) = await past.journal.entries(verdict - 1, limit=1)
    assert (said.id, said.record, said.attempt) == (known.lesson.verdict, REJECTED, known.attempt)


async def test_r71_what_is_obsolete_is_kept_and_left_out_where_one_asks(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt()
    old, new = [await past.say(attempt, LESSON) for _ in range(2)]
    await past.say(attempt, LessonMark(lesson=old, act=LessonAct.ARCHIVED))
    assert [each.id for each in await past.learned.lessons()] == [new, old]
    assert [each.id for each in await past.learned.lessons(obsolete=False)] == [new]
    await past.say(attempt, LessonMark(lesson=old, act=LessonAct.RESTORED))
    assert not (await past.lesson(old)).obsolete


async def test_c2_lessons_and_insights_of_a_look_back_stand_in_one_place(
    past: PastAttempts,
) -> None:
    one, two = await past.attempt(task="a"), await past.attempt(task="b")
    lesson = await past.say(one, LESSON)
    sources = (one.id, two.id)
    insight = await past.say(two, Lesson(text="…", born=LessonOrigin.REFLECTION, sources=sources))
    proposal = Guidelines(version=1, text="…", sources=sources)
    version = await past.say(two, proposal)
    assert [each.id for each in await past.learned.lessons(attempt=one.id)] == [insight, lesson]
    assert (await past.learned.guidelines_version(version)).guidelines.sources == sources


async def test_c3_the_log_keeps_the_lesson_and_every_mark_on_it(past: PastAttempts) -> None:
    attempt = await past.attempt()
    lesson = await past.say(attempt, LESSON)
    marks = [
        LessonMark(lesson=lesson, act=LessonAct.RATED, rating=2),
        LessonMark(lesson=lesson, act=LessonAct.RETIRED, author="ann"),
    ]
    await past.say(attempt, *marks)
    found = await past.journal.entries(kinds=[Lesson, LessonMark])
    assert [each.record for each in found] == [LESSON, *marks]


async def test_the_last_rating_of_a_lesson_counts(past: PastAttempts) -> None:
    attempt = await past.attempt()
    lesson = await past.say(attempt, LESSON)
    for rating in (1, 4):
        await past.say(attempt, LessonMark(lesson=lesson, act=LessonAct.RATED, rating=rating))
    assert (await past.lesson(lesson)).rating == 4


async def test_a_mark_on_no_lesson_is_refused(past: PastAttempts) -> None:
    attempt = await past.attempt()
    with pytest.raises(JournalError, match="there is no lesson 77"):
        await past.say(attempt, LessonMark(lesson=77, act=LessonAct.RETIRED))


async def test_lessons_are_read_page_by_page(past: PastAttempts) -> None:
    attempt = await past.attempt()
    ids = [await past.say(attempt, LESSON) for _ in range(5)]
    await past.say(await past.attempt("other"), LESSON)
    first = await past.learned.lessons(project="shop", limit=3)
    rest = await past.learned.lessons(project="shop", before=first[-1].id)
    assert [each.id for each in (*first, *rest)] == ids[::-1]


@pytest.mark.parametrize("odd", ["wrong place", 'a "quoted" \\ Größe', "Loop", ""])
async def test_lessons_are_narrowed_by_task_and_failure_class(past: PastAttempts, odd: str) -> None:
    attempt = await past.attempt()
    loop = await past.say(attempt, Lesson(text="a", failure_class="loop"))
    said = Lesson(text=f'"failure_class":"{odd}" "failure_class":"loop"', failure_class=odd)
    other = await past.say(await past.attempt(task="other"), said)
    half = await past.say(attempt, Lesson(text="\ud800", failure_class=odd))

    async def found(task: str | None, failure_class: str) -> list[int]:
        known = await past.learned.lessons(task=task, failure_class=failure_class)
        return [each.id for each in known]

    assert await found(None, "loop") == [loop]
    assert await found(None, odd) == [half, other]
    assert await found("other", odd) == [other]


async def test_of_a_task_without_a_project_nothing_is_learned(past: PastAttempts) -> None:
    attempt = await past.attempt("")
    await past.say(attempt, LESSON)
    await past.end(attempt)
    assert await past.learned.lessons() == []
    assert await past.learned.projects() == []
    assert await past.learned.chores(tries=3) == []


async def test_projects_are_named_and_kept_with_their_tasks(past: PastAttempts) -> None:
    for name in ("shop", "bank", "shop"):
        await past.attempt(name)
    assert await past.learned.projects() == ["bank", "shop"]
    assert [(await past.journal.task(each)).project for each in (1, 2, 3)] == [
        *("shop", "bank", "shop")
    ]


async def test_a_reader_of_the_journal_sees_what_is_learned(past: PastAttempts) -> None:
    id = await past.say(await past.attempt(), LESSON)
    async with await past.journal.open_to_read(past.journal.name) as reader:
        (known,) = await Learned(reader).lessons()
    assert (known.id, known.at) == (id, past.at)
    assert past.at.utcoffset() == timedelta(0)
