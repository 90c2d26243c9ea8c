"""Lessons are found by task, tags, files and words, and never those that are obsolete."""

from dataclasses import replace

import pytest

from midwatch_monitor.journal.learned import search
from midwatch_monitor.journal.learned.search import (
    MOST_WORDS,
    TextIndex,
    Wording,
    rarest_words,
    search_words,
    words_of,
)
from midwatch_monitor.records import LearnedQuery, Lesson, LessonAct, LessonMark
from midwatch_stage.harness import PastAttempts


async def found(past: PastAttempts, wanted: LearnedQuery, *, limit: int = 50) -> list[str]:
    candidates = await past.learned.candidates(wanted, limit=limit)
    return [each.known.lesson.text for each in candidates]


async def told(
    past: PastAttempts, *lessons: Lesson, task: str = "other", project: str = "shop"
) -> int:
    return await past.say(await past.attempt(project, task=task), *lessons)


@pytest.mark.parametrize(
    "wanted",
    [
        LearnedQuery(project="shop", task="fix"),
        LearnedQuery(project="shop", tags=("money", "x")),
        LearnedQuery(project="shop", tags=("MONEY",)),
        LearnedQuery(project="shop", files=("shop/total.py",)),
        LearnedQuery(project="shop", text="Why is the rounding wrong?"),
    ],
)
async def test_r17_each_way_finds_its_own(past: PastAttempts, wanted: LearnedQuery) -> None:
    lesson = Lesson(text="Rounding goes last.", tags=("Money",), files=("shop/total.py",))
    await told(past, lesson, task="fix")
    await told(past, Lesson(text="Elsewhere.", tags=("file",), files=("shop/Total.py",)))
    assert await found(past, wanted) == ["Rounding goes last."]


async def test_a_tag_is_no_file(past: PastAttempts) -> None:
    await told(past, Lesson(text="…", tags=("total.py",)))
    assert await found(past, LearnedQuery(project="shop", files=("total.py",))) == []


async def test_what_was_not_found_by_its_words_has_no_worth_by_them(past: PastAttempts) -> None:
    await told(past, Lesson(text="Rounding."), task="fix")
    (candidate,) = await past.learned.candidates(
        LearnedQuery(project="shop", task="fix", text="Something else")
    )
    assert candidate.bm25 == 0


async def test_another_project_gives_nothing(past: PastAttempts) -> None:
    await told(past, Lesson(text="p1 rounding", tags=("money",)), task="fix", project="bank")
    await past.attempt("shop")
    for project in ("shop", "nobody"):
        wanted = LearnedQuery(project=project, task="fix", text="p1 rounding bank", tags=("money",))
        assert await found(past, wanted) == []


async def test_r71_what_is_obsolete_is_found_in_no_way(past: PastAttempts) -> None:
    lesson = Lesson(text="Rounding.", tags=("money",), files=("a.py",))
    attempt = await past.attempt(task="fix")
    id = await past.say(attempt, lesson)
    wanted = LearnedQuery(
        project="shop", task="fix", text="rounding", tags=("money",), files=("a.py",)
    )
    await past.say(attempt, LessonMark(lesson=id, act=LessonAct.RETIRED))
    assert await found(past, wanted) == []
    await past.say(attempt, LessonMark(lesson=id, act=LessonAct.RETIRED))
    await past.say(attempt, LessonMark(lesson=id, act=LessonAct.RESTORED))
    assert await found(past, wanted) == ["Rounding."]


async def test_every_way_has_its_place_where_there_are_too_many(past: PastAttempts) -> None:
    many = [Lesson(text=f"task {number}") for number in range(30)]
    await told(past, *many, task="fix")
    await told(past, Lesson(text="tagged", tags=("money",)))
    await told(past, Lesson(text="rounding"))
    wanted = LearnedQuery(project="shop", task="fix", tags=("money",), text="rounding")
    assert await found(past, wanted, limit=4) == ["task 29", "tagged", "rounding", "task 28"]


async def test_r29_more_tags_in_common_come_first_however_they_are_written(
    past: PastAttempts,
) -> None:
    for tags in (("api", "Billing"), ("API",), ("billing",), ("ui",), ()):
        await told(past, Lesson(text=" ".join(tags), tags=tags))
    wanted = LearnedQuery(project="shop", tags=("API", "billing"))
    assert await found(past, wanted) == ["api Billing", "billing", "API"]
    assert await found(past, replace(wanted, tags=())) == []


@pytest.mark.parametrize(
    "text",
    [
        '"',
        "'",
        "AND OR NOT NEAR",
        'a" OR "b',
        "text:x",
        "-x",
        "^y*",
        "\0 nul",
        "p1:*",
        "日本語 ☃ é",
    ],
)
async def test_no_text_is_too_odd_to_be_searched_for(past: PastAttempts, text: str) -> None:
    await told(past, Lesson(text=f"Rounding {text}", tags=(text,)))
    wanted = LearnedQuery(project="shop", text=f"{text} rounding", tags=(text,), files=(text,))
    assert await found(past, wanted) == [f"Rounding {text}"]


@pytest.mark.parametrize("others", [0, 3, 50])
async def test_a_large_project_finds_its_own_among_those_of_others(
    past: PastAttempts, others: int
) -> None:
    own = {key: Wording(text=f"Text {key}, rounding.") for key in range(1, 2101)}
    best = {key: Wording(text="Rounding.") for key in range(3001, 3001 + others)}
    await past.journal.write(search.put, TextIndex.LESSONS, 1, own)
    if best:
        await past.journal.write(search.put, TextIndex.LESSONS, 2, best)
    found = await past.journal.read(search.find, TextIndex.LESSONS, 1, "rounding", 10)
    assert len(found) == 10
    assert {key for key, _ in found} <= set(own)


def test_words_that_say_something_are_looked_for_the_longest_first() -> None:
    said = "The total of a cart_total is off by 10, and TOTAL is in x"
    assert search_words(said) == ["carttotal", "total", "cart"]


def test_a_search_is_made_of_the_rarest_words() -> None:
    known = {f"word-{number}": number for number in range(20, 0, -1)}
    assert rarest_words(known) == [f"word-{number}" for number in range(1, MOST_WORDS + 1)]


@pytest.mark.parametrize(
    ("known", "chosen"),
    [
        ({"rare": 5, "common": 19_000, "everywhere": 50_000}, ["rare", "common"]),
        ({"everywhere": 50_000}, ["everywhere"]),
        ({}, []),
    ],
)
def test_words_that_stand_everywhere_are_not_weighed(
    known: dict[str, int], chosen: list[str]
) -> None:
    assert rarest_words(known) == chosen


def test_words_are_cut_at_everything_that_is_no_letter_or_digit() -> None:
    assert words_of("Fix the cart-total() in shop/Total.py:12") == [
        *("fix", "the", "cart", "total", "in", "shop", "total", "py", "12")
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cart_total", ["cart", "total", "carttotal"]),
        ("cartTotal", ["cart", "total", "carttotal"]),
        ("CART_TOTAL", ["cart", "total", "carttotal"]),
        ("__cart_Total__", ["cart", "total", "carttotal"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("sha256Sum", ["sha256", "sum", "sha256sum"]),
        ("größeÄndern", ["grösse", "ändern", "grösseändern"]),
        ("URLs", ["urls"]),
        ("B2B", ["b2b"]),
        ("Total", ["total"]),
        ("_", []),
        ("x" * 99, ["x" * 64]),
    ],
)
def test_a_name_is_its_words_and_all_of_them_in_one(name: str, words: list[str]) -> None:
    assert words_of(name) == words
