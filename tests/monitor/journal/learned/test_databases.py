"""What is learned is the same in a file, in memory and in PostgreSQL."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.search import MOST_WORDS
from midwatch_stage.harness import PastAttempts
from midwatch_stage.reading import erasures, uses

ODD = 'a\'b\\c "d" & | ! ( ) : * <-> %s :x 日本語 ☃'
ROUNDING = r.Lesson(text="Rounding goes last.", insights=("Sum first.",), tags=("money",))


@pytest.fixture(params=["file", "memory", "postgresql"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Journal]:
    match request.param:
        case "file":
            where = str(tmp_path / "journal.db")
        case "memory":
            where = ":memory:"
        case _:
            where = request.getfixturevalue("postgres_journal")
    async with await Journal.open(where) as opened:
        yield opened


async def test_lessons_are_found_used_and_retired(past: PastAttempts) -> None:
    attempt = await past.attempt()
    await past.say(await past.attempt("bank", task="x"), ROUNDING)
    plain, odd = [await past.say(attempt, each) for each in (ROUNDING, r.Lesson(text=ODD))]
    wanted = r.LearnedQuery(project="shop", text=f"{ODD} rounding", tags=("money",), files=(ODD,))
    found = await past.learned.candidates(wanted)
    assert [each.known.id for each in found if each.bm25 > 0] == [plain, odd]
    use = r.Recalled(lesson=plain, method=r.Method.KIND, score=0.5)
    await past.say(attempt, r.Recall(lessons=(use, r.Recalled(lesson=999, method=r.Method.TASK))))
    assert await uses(past.journal, attempt.id) == [use]
    await past.end(attempt, r.Ending.DONE)
    await past.say(attempt, r.Feedback(accepted=False))
    known = await past.lesson(plain)
    assert (known.used, known.helped, known.hurt) == (1, 0, 1)
    await past.say(attempt, r.LessonMark(lesson=odd, act=r.LessonAct.RETIRED))
    assert [each.known.id for each in await past.learned.candidates(wanted)] == [plain]
    live = await past.learned.lessons(project="shop", attempt=attempt.id, obsolete=False)
    assert live == [known]


async def test_what_stands_in_the_text_weighs_more(past: PastAttempts) -> None:
    attempt = await past.attempt()
    tag = await past.say(attempt, r.Lesson(text="One two three.", tags=("rounding",)))
    insight = await past.say(attempt, r.Lesson(text="One two three.", insights=("Rounding.",)))
    text = await past.say(attempt, r.Lesson(text="Rounding two three."))
    found = await past.learned.candidates(r.LearnedQuery(project="shop", text="rounding"))
    assert [each.known.id for each in found] == [text, insight, tag]


RARE = "kubernetes deployment manifest namespace ingress controller certificate rotation operator"


async def alike(past: PastAttempts, text: str, project: str = "shop") -> list[str]:
    found = await past.learned.candidates(r.LearnedQuery(project=project, text=text))
    return [each.known.lesson.text for each in found]


async def test_the_rare_words_of_another_project_push_out_none_of_ones_own(
    past: PastAttempts,
) -> None:
    own = [r.Lesson(text=f"Invoices were rounded by line {number}.") for number in range(5)]
    await past.say(await past.attempt("bank"), r.Lesson(text=f"{RARE} webhook"))
    await past.say(await past.attempt(), *own)
    assert len(await alike(past, f"invoices rounded {RARE} webhook")) == 5


async def test_words_that_nobody_used_push_out_none_that_somebody_did(past: PastAttempts) -> None:
    await past.say(await past.attempt(), r.Lesson(text="Totals are cents."))
    assert await alike(past, f"{RARE} authentication: fix the totals") == ["Totals are cents."]


async def test_the_words_of_many_lessons_give_way_to_those_of_few(past: PastAttempts) -> None:
    common = [f"everywhere{number}" for number in range(MOST_WORDS)]
    many = [r.Lesson(text=" ".join(common)) for _ in range(3)]
    await past.say(await past.attempt(), *many, r.Lesson(text="Rare."))
    assert "Rare." in await alike(past, " ".join((*common, "rare")))


WRITTEN = {
    "Die Prüfung der Währung": ["Prüfung Währung"],
    "Die Pru\u0308fung": ["PRÜFUNG"],
    "Straße": ["STRASSE"],
    "Sprawdzić żółć": ["Żółć"],
    "İstanbul": ["İSTANBUL"],
    "ROUNDING": ["rounding"],
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
        project = f"p{number}"
        await past.say(
            await past.attempt(project), r.Lesson(text=text), r.Lesson(text="Prufung Else")
        )
        for wanted in asked:
            assert await alike(past, wanted, project) == [text], (text, wanted)


async def test_facts_are_found_reviewed_and_replaced(past: PastAttempts) -> None:
    one, two = await past.attempt(task="a"), await past.attempt(task="b")
    old = await past.say(one, r.Fact(text="The port is 80.", state=r.FactState.PENDING))
    new = await past.say(two, r.Fact(text="The port is 443.", files=("net.py",)))
    wanted = r.LearnedQuery(project="shop", text="Which port", files=("net.py",))
    assert [each.id for each in await past.learned.facts_like(wanted)] == [new]
    await past.say(one, r.FactMark(fact=old, act=r.FactAct.REVIEWED))
    assert [each.id for each in await past.learned.facts_like(wanted)] == [new, old]
    await past.say(one, r.FactMark(fact=old, act=r.FactAct.REPLACED, instead=new))
    (known,) = await past.learned.facts(project="shop")
    assert (known.id, known.sources) == (new, (one.id, two.id))


async def test_guidelines_are_decided_once(past: PastAttempts) -> None:
    attempt = await past.attempt()
    one, two = [
        await past.say(attempt, r.Guidelines(version=version, text="…")) for version in (1, 2)
    ]
    approved = [r.GuidelinesMark(guidelines=id, act=r.GuidelinesAct.APPROVED) for id in (one, two)]
    await past.say(attempt, *approved)
    with pytest.raises(StaleIncarnationError, match="is former"):
        await past.say(attempt, approved[0])
    await past.say(attempt, r.GuidelinesMark(guidelines=two, act=r.GuidelinesAct.ROLLED_BACK))
    live = await past.learned.live_guidelines("shop")
    assert live is not None
    assert live.id == one


async def test_chores_are_done_and_summaries_looked_back_at(past: PastAttempts) -> None:
    attempt = await past.attempt()
    await past.say(attempt, r.Fact(text="…", state=r.FactState.PENDING))
    about = await past.end(attempt)
    chores = await past.learned.chores(tries=1, attempt=attempt.id)
    assert [each.chore for each in chores] == [r.Chore.LESSON, r.Chore.SUMMARY, r.Chore.REVIEW]
    for chore, state in (
        (r.Chore.LESSON, r.StudyState.FAILED),
        (r.Chore.REVIEW, r.StudyState.DONE),
    ):
        await past.say(attempt, r.Study(about=about, chore=chore, state=state))
    done = r.Study(about=about, chore=r.Chore.SUMMARY, state=r.StudyState.DONE)
    id = await past.say(attempt, done, r.Summary(text="…"))
    assert await past.learned.chores(tries=1) == []
    assert [each.id for each in await past.learned.summaries("shop")] == [id]
    await past.say(attempt, r.Reflection(watermark=id, attempts=(attempt.id,)))
    assert await past.learned.watermark("shop") == id


async def test_a_project_is_forgotten(past: PastAttempts) -> None:
    attempt = await past.attempt()
    lesson = await past.say(attempt, ROUNDING)
    await past.say(attempt, r.Recall(lessons=(r.Recalled(lesson=lesson, method=r.Method.TASK),)))
    await past.end(attempt)
    would = await past.learned.footprint("shop")
    done = await past.learned.forget("shop", author="ann", at=past.at)
    assert (would.entries, done.entries) == (5, 5)
    assert (await erasures(past.journal))[-1] == done
    assert await past.learned.projects() == []
    assert await past.learned.lessons(ids=[lesson]) == []
