"""When two facts say the same, and what is left of them then."""

import pytest

from midwatch_monitor.records import Certainty, Fact, FactMaker, FactState
from midwatch_tools.tools.duplicates import covers, joined, same

CONFIRMED = Certainty.CONFIRMED
FACT = Fact(text="The tests need Redis", value="8080", files=("a.py",))


@pytest.mark.parametrize(
    "other",
    [
        Fact(text="the tests  need\nredis"),
        Fact(text="The tests need Redis", value="8080", files=("a.py", "b.py")),
    ],
)
def test_v7_facts_are_the_same_but_for_case_and_white_space(other: Fact) -> None:
    assert same(FACT, other)


@pytest.mark.parametrize(
    "other",
    [
        Fact(text="The tests need a Redis"),
        Fact(text="Redis the tests need"),
        Fact(text="The tests need Redis 7"),
        Fact(text="The tests need Redis", value="9090"),
        Fact(text="The tests need Redis", files=("b.py",)),
    ],
)
def test_v3_what_differs_in_a_word_a_value_or_all_files_is_another_fact(other: Fact) -> None:
    assert not same(FACT, other)


@pytest.mark.parametrize(
    ("known", "new", "answer"),
    [
        (Fact(text="t"), Fact(text="t"), True),
        (Fact(text="t", certainty=CONFIRMED), Fact(text="t"), True),
        (Fact(text="t"), Fact(text="t", certainty=CONFIRMED), False),
        (Fact(text="t"), Fact(text="t", value="1"), False),
        (Fact(text="t"), Fact(text="t", files=("a",)), False),
        (Fact(text="t", value="1", files=("a", "b")), Fact(text="t", files=("a",)), True),
    ],
)
def test_a_known_fact_covers_what_says_no_more(known: Fact, new: Fact, answer: bool) -> None:
    assert covers(known, new) is answer


def test_joined_facts_keep_all_that_either_says() -> None:
    known = Fact(text="t", certainty=CONFIRMED, files=("a",), tags=("db",), value='{"p":1}')
    new = Fact(
        text="T",
        files=("b",),
        tags=("ci",),
        state=FactState.REVIEWED,
        maker=FactMaker.EXTRACTION,
        sources=(7,),
    )
    assert joined(known, new) == Fact(
        text="t",
        certainty=CONFIRMED,
        files=("a", "b"),
        tags=("db", "ci"),
        value='{"p":1}',
        state=FactState.REVIEWED,
        maker=FactMaker.EXTRACTION,
        sources=(7,),
    )
