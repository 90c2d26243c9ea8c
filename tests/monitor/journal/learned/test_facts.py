"""A fact in the journal: who said it, whether it is shared, and what stands in its place."""

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_tests.harness import PastAttempts

FACT = r.Fact(
    text="The tests need a database.",
    certainty=r.Certainty.CONFIRMED,
    files=("tests/conftest.py",),
    tags=("tests",),
    value='{"port": 5432}',
)
PENDING = r.Fact(text="The build takes long.", state=r.FactState.PENDING)


def make_mark(fact: int, act: r.FactAct, instead: int | None = None) -> r.FactMark:
    return r.FactMark(fact=fact, act=act, instead=instead, reason="because", author="ann")


async def find_facts_like(past: PastAttempts, **wanted: object) -> list[int]:
    of = r.LearnedQuery(project="shop", **wanted)  # pyright: ignore[reportArgumentType]
    return [each.id for each in await past.learned.facts_like(of)]


async def test_a_fact_comes_back_as_it_was_said(past: PastAttempts) -> None:
    attempt = await past.attempt(task="totals")
    id = await past.say(attempt, FACT)
    assert await past.fact(id) == r.KnownFact(
        id=id,
        at=past.at,
        project="shop",
        task="totals",
        attempt=attempt.id,
        fact=FACT,
        state=r.FactState.UNREVIEWED,
        sources=(attempt.id,),
    )


@pytest.mark.parametrize(
    ("acts", "state", "ended"),
    [
        ([], r.FactState.PENDING, None),
        ([r.FactAct.REVIEWED, r.FactAct.RELEASED], r.FactState.REVIEWED, None),
        ([r.FactAct.RELEASED], r.FactState.UNREVIEWED, None),
        ([r.FactAct.REMOVED], r.FactState.PENDING, r.FactAct.REMOVED),
        ([r.FactAct.REVIEWED, r.FactAct.RETIRED], r.FactState.REVIEWED, r.FactAct.RETIRED),
        ([r.FactAct.REVIEWED, r.FactAct.RETIRED, r.FactAct.RESTORED], r.FactState.REVIEWED, None),
        ([r.FactAct.REMOVED, r.FactAct.RESTORED], r.FactState.UNREVIEWED, None),
    ],
)
async def test_marks_say_how_a_fact_stands(
    past: PastAttempts, acts: list[r.FactAct], state: r.FactState, ended: r.FactAct | None
) -> None:
    attempt = await past.attempt()
    id = await past.say(attempt, PENDING)
    for act in acts:
        await past.say(attempt, make_mark(id, act))
    known = await past.fact(id)
    reason = "because" if acts else ""
    assert (known.state, known.ended, known.reason) == (state, ended, reason)
    assert known.live is (ended is None)
    assert known.shared == bool(await find_facts_like(past, text="build"))
    assert [each.id for each in await past.learned.facts()] == ([id] if known.live else [])


async def test_whoever_said_a_fact_said_what_stands_in_its_place(past: PastAttempts) -> None:
    one, two, three = [await past.attempt(task=name) for name in ("a", "b", "c")]
    first, second, third = [await past.say(each, FACT) for each in (one, two, three)]
    await past.say(two, make_mark(second, r.FactAct.REPLACED, third))
    await past.say(one, make_mark(first, r.FactAct.REPLACED, second))
    assert (await past.fact(third)).sources == (one.id, two.id, three.id)
    assert [(await past.fact(each)).instead for each in (first, second, third)] == [
        *(second, third, None)
    ]
    assert [each.id for each in await past.learned.facts(attempt=one.id)] == [third]
    assert len(await past.learned.facts(attempt=one.id, live=False)) == 3


@pytest.mark.parametrize(
    ("acts", "ended"),
    [
        ([r.FactAct.REMOVED, r.FactAct.REVIEWED], r.FactAct.REMOVED),
        ([r.FactAct.REMOVED, r.FactAct.RETIRED], r.FactAct.REMOVED),
        ([r.FactAct.REMOVED, r.FactAct.REPLACED], r.FactAct.REPLACED),
        ([r.FactAct.REPLACED, r.FactAct.RESTORED], None),
        ([r.FactAct.RETIRED, r.FactAct.RESTORED, r.FactAct.REMOVED], r.FactAct.REMOVED),
    ],
)
async def test_a_fact_says_what_ended_it(
    past: PastAttempts, acts: list[r.FactAct], ended: r.FactAct | None
) -> None:
    attempt = await past.attempt()
    old, new = [await past.say(attempt, FACT) for _ in range(2)]
    for act in acts:
        await past.say(attempt, make_mark(old, act, new if act is r.FactAct.REPLACED else None))
    known = await past.fact(old)
    instead = new if ended is r.FactAct.REPLACED else None
    assert (known.ended, known.live, known.instead) == (ended, ended is None, instead)


async def test_a_mark_on_no_fact_or_back_to_the_one_before_is_refused(past: PastAttempts) -> None:
    attempt = await past.attempt()
    one, two = [await past.say(attempt, FACT) for _ in range(2)]
    for mark in (make_mark(77, r.FactAct.REVIEWED), make_mark(one, r.FactAct.REPLACED, 77)):
        with pytest.raises(JournalError, match="there is no fact 77"):
            await past.say(attempt, mark)
    await past.say(attempt, make_mark(one, r.FactAct.REPLACED, two))
    with pytest.raises(StaleIncarnationError, match="already replaces"):
        await past.say(attempt, make_mark(two, r.FactAct.REPLACED, one))


async def test_facts_of_most_files_come_first_then_tags_then_words(past: PastAttempts) -> None:
    attempt = await past.attempt()
    words = await past.say(attempt, r.Fact(text="The cart is slow."))
    tag = await past.say(attempt, r.Fact(text="…", tags=("speed",)))
    both = await past.say(attempt, r.Fact(text="…", files=("cart.py", "b.py")))
    one, other = [await past.say(attempt, r.Fact(text="…", files=("b.py",))) for _ in range(2)]
    await past.say(attempt, r.Fact(text="Something else.", files=("c.py",)))
    found = await find_facts_like(
        past, text="Make the cart fast", tags=("speed",), files=("cart.py", "b.py")
    )
    assert found == [both, other, one, tag, words]


async def test_facts_of_another_project_are_not_found(past: PastAttempts) -> None:
    await past.say(await past.attempt("bank"), FACT)
    await past.attempt("shop")
    assert await find_facts_like(past, text=FACT.text, tags=FACT.tags, files=FACT.files) == []
    assert await past.learned.facts(project="shop") == []


async def test_of_a_plan_of_any_length_the_first_files_count(past: PastAttempts) -> None:
    attempt = await past.attempt()
    first, _ = [
        await past.say(attempt, r.Fact(text=text, files=(text,))) for text in ("a.py", "z.py")
    ]
    files = ("a.py", *(f"{number}.py" for number in range(2000)), "z.py")
    assert await find_facts_like(past, files=files) == [first]
