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
from midwatch_tests.harness import PastAttempts

RARE = "kubernetes deployment manifest namespace ingress controller certificate rotation operator"


async def find_texts(past: PastAttempts, wanted: LearnedQuery, *, limit: int = 50) -> list[str]:
    candidates = await past.learned.candidates(wanted, limit=limit)
    return [each.known.lesson.text for each in candidates]


async def find_texts_like(past: PastAttempts, text: str, project: str = "shop") -> list[str]:
    return await find_texts(past, LearnedQuery(project=project, text=text))


async def write_lessons(
    past: PastAttempts, *lessons: Lesson, task: str = "other", project: str = "shop"
) -> int:
    return await past.say(await past.attempt(project, task=task), *lessons)


EVERY_WAY = {
    "task": "fix",
    "text": "Why is the rounding wrong?",
    "tags": ("MONEY",),
    "files": ("shop/total.py",),
}


@pytest.mark.parametrize("way", EVERY_WAY)
async def test_r17_each_way_finds_its_own_in_its_project(past: PastAttempts, way: str) -> None:
    lesson = Lesson(text="Rounding goes last.", tags=("Money",), files=("shop/total.py",))
    await write_lessons(past, lesson, task="fix", project="bank")
    await write_lessons(past, lesson, task="fix")
    odd = Lesson(
        text="Elsewhere.", tags=("file", "shop/total.py"), files=("shop/Total.py", "money")
    )
    await write_lessons(past, odd)
    wanted = LearnedQuery(project="shop", **{way: EVERY_WAY[way]})  # pyright: ignore[reportArgumentType]
    (candidate,) = await past.learned.candidates(wanted)
    assert (candidate.known.lesson, candidate.known.project) == (lesson, "shop")
    assert (candidate.bm25 > 0) is (way == "text")
    assert await find_texts(past, replace(wanted, project="nobody")) == []


async def test_r71_what_is_obsolete_is_found_in_no_way(past: PastAttempts) -> None:
    attempt = await past.attempt(task="fix")
    lesson = Lesson(text="Rounding.", tags=("money",), files=("shop/total.py",))
    id = await past.say(attempt, lesson)
    wanted = LearnedQuery(project="shop", **EVERY_WAY)  # pyright: ignore[reportArgumentType]
    for _ in range(2):
        await past.say(attempt, LessonMark(lesson=id, act=LessonAct.RETIRED))
        assert await find_texts(past, wanted) == []
    await past.say(attempt, LessonMark(lesson=id, act=LessonAct.RESTORED))
    assert await find_texts(past, wanted) == ["Rounding."]


async def test_every_way_has_its_place_where_there_are_too_many(past: PastAttempts) -> None:
    many = [Lesson(text=f"task {number}") for number in range(30)]
    await write_lessons(past, *many, task="fix")
    await write_lessons(past, Lesson(text="tagged", tags=("money",)))
    await write_lessons(past, Lesson(text="rounding"))
    wanted = LearnedQuery(project="shop", task="fix", tags=("money",), text="rounding")
    assert await find_texts(past, wanted, limit=4) == ["task 29", "tagged", "rounding", "task 28"]


async def test_r29_more_tags_in_common_come_first_in_any_letters(past: PastAttempts) -> None:
    for tags in (("api", "Billing"), ("API",), ("billing",), ("ui",), ()):
        await write_lessons(past, Lesson(text=" ".join(tags), tags=tags))
    wanted = LearnedQuery(project="shop", tags=("API", "billing"))
    assert await find_texts(past, wanted) == ["api Billing", "billing", "API"]
    assert await find_texts(past, replace(wanted, tags=())) == []


async def test_what_stands_in_the_text_weighs_more(past: PastAttempts) -> None:
    await write_lessons(past, Lesson(text="One two tag.", tags=("rounding",)))
    await write_lessons(past, Lesson(text="One two insight.", insights=("Rounding.",)))
    await write_lessons(past, Lesson(text="Rounding two three."))
    texts = ["Rounding two three.", "One two insight.", "One two tag."]
    assert await find_texts_like(past, "rounding") == texts


ODD = ['"', "'", "AND OR NOT NEAR", 'a" OR "b', "text:x", "-x", "^y*", "\0 nul", "p1:*", "日本 ☃ é"]


@pytest.mark.parametrize("text", [*ODD, 'a\'b\\c "d" & | ! ( ) : * <-> %s :x'])
async def test_no_text_is_too_odd_to_be_searched_for(past: PastAttempts, text: str) -> None:
    await write_lessons(past, Lesson(text=f"Rounding {text}", tags=(text,)))
    wanted = LearnedQuery(project="shop", text=f"{text} rounding", tags=(text,), files=(text,))
    assert len(await find_texts(past, wanted)) == 1


WRITTEN = {
    "Die Prüfung der Währung": ["Prüfung Währung"],
    "Die Pru\u0308fung": ["PRÜFUNG"],
    "Straße": ["STRASSE"],
    "Sprawdzić żółć": ["Żółć"],
    "İstanbul": ["İSTANBUL"],
    "rounding": ["RounDing"],
    "port 8080": ["8080"],
    "utf8 and sha256": ["SHA256"],
    "日本語": ["日本語"],
    "x" * 3000: ["x" * 3000],
    **{
        name: ["total_cents", "totalCents", "total", "Cents", "totalcents"]
        for name in ("total_cents", "totalCents", "TOTAL_CENTS")
    },
}
"""How a word was written, and how it is asked for."""


async def test_words_are_found_however_they_are_written(past: PastAttempts) -> None:
    for number, (text, asked) in enumerate(WRITTEN.items()):
        await write_lessons(
            past, Lesson(text=text), Lesson(text="Prufung Else"), project=f"p{number}"
        )
        for wanted in asked:
            assert await find_texts_like(past, wanted, f"p{number}") == [text], (text, wanted)


async def test_rare_words_of_another_project_push_out_none_of_ones_own(past: PastAttempts) -> None:
    own = [Lesson(text=f"Invoices were rounded by line {number}.") for number in range(5)]
    await write_lessons(past, Lesson(text=f"{RARE} webhook"), project="bank")
    await write_lessons(past, *own)
    assert len(await find_texts_like(past, f"invoices rounded {RARE} webhook")) == 5


async def test_words_that_nobody_used_push_out_none_that_somebody_did(past: PastAttempts) -> None:
    await write_lessons(past, Lesson(text="Totals are cents."))
    assert await find_texts_like(past, f"{RARE} authentication: fix the totals") == [
        "Totals are cents."
    ]


async def test_the_words_of_many_lessons_give_way_to_those_of_few(past: PastAttempts) -> None:
    common = [f"everywhere{number}" for number in range(MOST_WORDS)]
    many = [Lesson(text=" ".join(common)) for _ in range(3)]
    await write_lessons(past, *many, Lesson(text="Rare."))
    assert "Rare." in await find_texts_like(past, " ".join((*common, "rare")))


@pytest.mark.parametrize("others", [0, 3, 50])
async def test_a_large_project_finds_its_own_among_others(past: PastAttempts, others: int) -> None:
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


@pytest.mark.parametrize(
    ("known", "chosen"),
    [
        (
            {f"word-{number}": number for number in range(20, 0, -1)},
            [f"word-{number}" for number in range(1, MOST_WORDS + 1)],
        ),
        ({"rare": 5, "common": 19_000, "everywhere": 50_000}, ["rare", "common"]),
        ({"everywhere": 50_000}, ["everywhere"]),
        ({}, []),
    ],
    ids=["many", "everywhere and others", "everywhere", "none"],
)
def test_a_search_is_made_of_the_rarest_words_and_weighs_none_that_stands_everywhere(
    known: dict[str, int], chosen: list[str]
) -> None:
    assert rarest_words(known) == chosen


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Fix the cart-total() in shop/x.py:12", "fix the cart total in shop x py 12"),
        ("cart_total", "cart total carttotal"),
        ("cartTotal", "cart total carttotal"),
        ("CART_TOTAL", "cart total carttotal"),
        ("__cart_Total__", "cart total carttotal"),
        ("HTTPServer", "http server httpserver"),
        ("sha256Sum", "sha256 sum sha256sum"),
        ("größeÄndern", "grösse ändern grösseändern"),
        ("URLs", "urls"),
        ("B2B", "b2b"),
        ("_", ""),
        ("x" * 99, "x" * 64),
    ],
)
def test_a_name_is_its_words_and_all_of_them_in_one(text: str, words: str) -> None:
    assert words_of(text) == words.split()
