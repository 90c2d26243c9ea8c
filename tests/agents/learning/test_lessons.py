"""Which lessons an attempt is given: relevant before recent, what helped before what hurt."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from midwatch_agents.learning.lessons import choose_lessons, how_many, worth
from midwatch_monitor.config.learning import LessonSettings
from midwatch_monitor.records import (
    Candidate,
    KnownLesson,
    LearnedQuery,
    Lesson,
    Method,
    Origin,
    Recalled,
)

NOW = datetime(2026, 11, 20, tzinfo=UTC)
TEXTS = ("It rounded the totals down in app.py.", *(f"It broke part {n}." for n in range(1, 6)))
WANTED = LearnedQuery(
    project="shop",
    task="totals",
    text="Round the totals of an invoice up",
    tags=("billing",),
    kind="coder",
    files=("app.py", "tests/test_app.py"),
)


def known_lesson(id: int, text: str = "", *, task: str = "other", **more: Any) -> KnownLesson:
    """A lesson that is `id` hours old."""
    of_it = {name: more.pop(name) for name in ("tags", "kind", "files", "origin") if name in more}
    lesson = Lesson(text=text or TEXTS[id % len(TEXTS)], **of_it)
    at = NOW - timedelta(hours=id)
    given: dict[str, Any] = {"project": "shop", "task": task, "attempt": id}
    return KnownLesson(id=id, at=at, lesson=lesson, **{**given, **more})


def ids(
    *lessons: KnownLesson | Candidate, limit: int = 5, wanted: LearnedQuery = WANTED
) -> list[int]:
    given = [each if isinstance(each, Candidate) else Candidate(known=each) for each in lessons]
    return [each.lesson for each in choose_lessons(given, wanted, limit=limit)]


def test_r32_ways_of_finding_count_in_their_order_and_each_lesson_once() -> None:
    """Four of the five come from another task (R74)."""
    words = "The totals of an invoice were rounded by hand"
    lessons = [
        Candidate(known=known_lesson(1, words), bm25=9.0, words=3),
        Candidate(known=known_lesson(2, "It left a lock behind.", files=("app.py",))),
        Candidate(
            known=known_lesson(3, f"{words}, twice over again somehow", kind="coder"),
            bm25=3.0,
            words=3,
        ),
        Candidate(known=known_lesson(4, "It caught everything.", tags=("Billing", "tax"))),
        Candidate(known=known_lesson(5, "It forgot the header.", task="totals"), bm25=1.0),
    ]
    assert choose_lessons(lessons, WANTED, limit=5) == (
        Recalled(lesson=5, method=Method.TASK, score=0.5),
        Recalled(lesson=4, method=Method.TAGS, score=0.25),
        Recalled(lesson=3, method=Method.KIND, score=0.1667),
        Recalled(lesson=2, method=Method.FILES, score=0.25),
        Recalled(lesson=1, method=Method.TEXT, score=0.5),
    )


def test_c15_a_newer_lesson_does_not_push_out_a_better_one() -> None:
    old = known_lesson(900, TEXTS[0], tags=("billing",))
    new = [known_lesson(id, TEXTS[id], tags=("billing", "x", "y", "z")) for id in (1, 2, 3)]
    assert ids(*new, old, limit=1) == [900]


def test_r28_of_lessons_that_are_as_good_the_newer_comes_first_and_no_obsolete_one() -> None:
    """To retire a lesson is all that it takes to unlearn it (R49)."""
    lessons = [known_lesson(id, task="totals", obsolete=id == 1) for id in (3, 1, 2)]
    elsewhere = known_lesson(4, task="totals", project="bank")
    assert ids(*lessons, elsewhere) == [2, 3]


def test_r29_a_tag_in_common_finds_a_lesson_and_more_of_them_find_it_first() -> None:
    wanted = replace(WANTED, tags=("billing", "csv"))
    one = known_lesson(1, tags=("billing", "tax"))
    both = known_lesson(2, tags=("CSV", "billing"))
    assert ids(one, both, known_lesson(3, tags=("ui",)), wanted=wanted) == [2, 1]
    assert ids(known_lesson(1, tags=("billing",)), wanted=replace(WANTED, tags=())) == []


@pytest.mark.parametrize(("words", "found"), [(2, [1]), (1, []), (0, [])])
def test_r30_the_same_kind_counts_only_with_words_in_common(words: int, found: list[int]) -> None:
    assert ids(Candidate(known=known_lesson(1, kind="coder"), bm25=3.0, words=words)) == found


def test_r31_without_an_embedder_words_find_a_lesson_and_a_single_one_does_not() -> None:
    alike = Candidate(known=known_lesson(1), bm25=4.0, words=2)
    noise = Candidate(known=known_lesson(2), bm25=3.9, words=1)
    assert ids(alike, noise) == [1]


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (3, 3), (50, 5), (-1, 0)])
def test_r33_no_more_lessons_than_asked_for_and_at_most_five(limit: int, count: int) -> None:
    lessons = [known_lesson(id, task="totals") for id in range(6)]
    assert len(ids(*lessons, limit=limit)) == count


def test_r33_lessons_that_say_the_same_are_given_once() -> None:
    text = "It rounded the totals of app.py down."
    lessons = [
        known_lesson(1, text, task="totals"),
        known_lesson(2, f" {text.upper()}\n", task="totals"),
    ]
    assert ids(*lessons) == [1]


def test_r58_what_helped_comes_before_what_hurt() -> None:
    hurt = known_lesson(1, task="totals", hurt=2)
    unused = known_lesson(2, task="totals")
    helped = known_lesson(3, task="totals", helped=2)
    assert ids(hurt, unused, helped) == [3, 2, 1]


@pytest.mark.parametrize(
    ("became", "given"),
    [
        ({"helped": 0, "hurt": 2}, True),
        ({"helped": 0, "hurt": 3}, False),
        ({"helped": 1, "hurt": 3}, False),
        ({"helped": 9, "rating": 1}, False),
        ({"rating": 2}, True),
    ],
)
def test_r58_what_hurts_or_misleads_is_left_out(became: dict[str, Any], given: bool) -> None:
    assert ids(known_lesson(1, task="totals", **became)) == [1] * given


def test_r58_a_person_weighs_more_than_the_checks_and_a_good_rating_more_than_none() -> None:
    automatic = known_lesson(1, task="totals")
    implied = known_lesson(2, task="totals", origin=Origin.IMPLIED)
    explicit = known_lesson(3, task="totals", origin=Origin.EXPLICIT)
    assert ids(automatic, implied, explicit) == [3, 2, 1]
    assert ids(automatic, replace(known_lesson(4, task="totals"), rating=5)) == [4, 1]


@pytest.mark.parametrize(("helped", "hurt", "value"), [(0, 0, 0.5), (2, 0, 0.75), (0, 2, 0.25)])
def test_c12_a_lessons_worth_is_between_0_and_1(helped: int, hurt: int, value: float) -> None:
    lesson = known_lesson(1, task="totals", helped=helped, hurt=hurt)
    assert worth(lesson) == value
    assert choose_lessons([Candidate(known=lesson)], WANTED, limit=1)[0].score == value


@pytest.mark.parametrize(
    ("helped", "hurt", "number"),
    [(0, 0, 3), (2, 0, 3), (9, 1, 5), (7, 3, 4), (5, 5, 3), (4, 6, 2), (2, 8, 1), (0, 3, 1)],
)
def test_r52_r59_the_number_is_three_or_follows_how_recent_lessons_did(
    helped: int, hurt: int, number: int
) -> None:
    lessons = [known_lesson(1, helped=helped, hurt=hurt, last_used=NOW)]
    assert how_many(LessonSettings(adaptive=True), lessons) == number
    assert how_many(LessonSettings(), lessons) == 3
    assert how_many(LessonSettings(in_prompt=0, adaptive=True), lessons) == 0


def test_r59_only_the_newest_uses_count() -> None:
    old = known_lesson(1, hurt=50, last_used=NOW - timedelta(days=9))
    assert (
        how_many(LessonSettings(adaptive=True), [old, known_lesson(2, helped=20, last_used=NOW)])
        == 5
    )
