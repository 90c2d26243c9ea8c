"""When two facts say the same, and what is left of them then."""

import pytest

from midwatch_monitor.words import Certainty, Fact, FactMaker, FactState
from midwatch_tools.duplicates import covers, joined, likeness, same, says_the_same

CONFIRMED = Certainty.CONFIRMED


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The tests need Redis on port 6379", "Tests need a Redis on port 6379."),
        ("The integration tests run with make check", "The integration test runs with make check"),
        ("The schema lives in db/schema.sql", "the schema lives in `db/schema.sql`"),
        ("Run the linter before the tests", "Run linter before tests"),
    ],
)
def test_v7_two_wordings_of_one_thing_are_the_same(one: str, other: str) -> None:
    assert says_the_same(one, other, alike=0.7)
    assert says_the_same(other, one, alike=0.7)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The app uses React 18 with hooks", "The app uses React 19 with hooks"),
        ("Port 80 of the host maps to 8080", "Port 8080 of the host maps to 80"),
        ("The slow tests run in the nightly CI", "The slow tests never run in the nightly CI"),
        (
            "Feature flags are enabled in production by default here",
            "Feature flags are disabled in production by default here",
        ),
        (
            "Orders of all customers are stored in one MySQL database table",
            "Orders of all customers are stored in one PostgreSQL database table",
        ),
        ("Migrations run before the server starts", "The server starts before migrations run"),
        ("The tests need Redis", "The linter is ruff"),
        ("", ""),
    ],
)
def test_v3_what_differs_in_what_matters_is_not_the_same(one: str, other: str) -> None:
    assert not says_the_same(one, other, alike=0.5)


def test_the_share_of_common_words_is_what_the_configuration_says() -> None:
    one, other = "tests need redis running locally", "tests need redis"
    assert likeness(one, other) == pytest.approx(0.6)
    assert says_the_same(one, other, alike=0.6)
    assert not says_the_same(one, other, alike=0.61)


def test_values_and_files_must_not_contradict() -> None:
    text = "The port of the test server"
    fact = Fact(text=text, value="8080", files=("a.py",))
    assert same(fact, Fact(text=text), alike=0.8)
    assert same(fact, Fact(text=text, value="8080", files=("a.py", "b.py")), alike=0.8)
    assert not same(fact, Fact(text=text, value="9090"), alike=0.8)
    assert not same(fact, Fact(text=text, files=("b.py",)), alike=0.8)


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
    known = Fact(
        text="The tests need Redis",
        certainty=CONFIRMED,
        files=("a",),
        tags=("db",),
        value='{"p":1}',
    )
    new = Fact(
        text="The tests need Redis running",
        files=("b",),
        tags=("ci",),
        state=FactState.REVIEWED,
        maker=FactMaker.EXTRACTION,
        sources=(7,),
    )
    assert joined(known, new) == Fact(
        text="The tests need Redis running",
        certainty=CONFIRMED,
        files=("a", "b"),
        tags=("db", "ci"),
        value='{"p":1}',
        state=FactState.REVIEWED,
        maker=FactMaker.EXTRACTION,
        sources=(7,),
    )
