"""When two facts say the same, and what is left of them then."""

import pytest

from midwatch_monitor.records import Certainty, Fact, FactMaker, FactState
from midwatch_tools.tools.duplicates import covers, joined, likeness, same, says_the_same

CONFIRMED = Certainty.CONFIRMED


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The tests need Redis on port 6379", "Tests need a Redis on port 6379."),
        ("The integration tests run with make check", "The integration test runs with make check"),
        ("The schema lives in db/schema.sql", "the schema lives in `db/schema.sql`"),
        ("Run the linter before the tests", "Run linter before tests"),
        ("CI needs the variable CI_TOKEN", "The CI needs the variable `CI_TOKEN`."),
        ("The limit of orders is > 10", "Limit of the orders is > 10"),
        ("Orders are cached by the API", "The order is cached by the API"),
        (
            "The worker retries each failed job in the end",
            "The worker retried each failed job in the end",
        ),
        ("Run pytest with -x in CI", "run `pytest` with `-x` in CI"),
        ("The suite uses Redis as it is in memory", "The suite uses a redis as it is in memory"),
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Module a imports module b at load time", "Module b imports module a at load time"),
        ("alice reviews the changes of bob first", "bob reviews the changes of alice first"),
        (
            "Users are deleted when accounts are closed",
            "Accounts are closed when users are deleted",
        ),
        (
            "The service is enabled in staging and disabled in production",
            "The service is disabled in staging and enabled in production",
        ),
        (
            "Retries are enabled in staging and disables in production",
            "Retries are disabled in staging and enables in production",
        ),
        ("The orders service calls the payments", "The orders service is called by the payments"),
        ("The export is written from the cache", "The export is written to the cache"),
    ],
)
def test_v3_the_same_words_in_another_order_are_not_the_same(one: str, other: str) -> None:
    assert not says_the_same(one, other, alike=0.5)
    assert not says_the_same(other, one, alike=0.5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The ratio must be > 10 for orders", "The ratio must be < 10 for orders"),
        ("The ratio must be >= 10 for orders", "The ratio must be > 10 for orders"),
        ("The limit of the queue is -5", "The limit of the queue is 5"),
        ("The limit of the queue is \u22125", "The limit of the queue is 5"),
        ("The share of the cache is 5%", "The share of the cache is 5"),
        (
            "The flag --foo is required by the build of docs",
            "The flag is required by the build of docs",
        ),
        ("Pass --foo and bar to the build", "Pass foo and --bar to the build"),
        ("Run pytest -x in the nightly build", "Run pytest in the nightly build"),
        ("Run the suite if CI == 1 here", "Run the suite if CI != 1 here"),
        ("Set $HOME in the build of docs", "Set HOME in the build of docs"),
    ],
)
def test_v3_signs_and_flags_count_like_numbers(one: str, other: str) -> None:
    assert not says_the_same(one, other, alike=0.5)
    assert not says_the_same(other, one, alike=0.5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("class Foo in app/a.py", "class foo in app/a.py"),
        ("Use TOTALS.py not totals.py", "Use totals.py not TOTALS.py"),
        ("`Foo` holds the totals", "`foo` holds the totals"),
        ("Set DEBUG in the build of docs", "Set debug in the build of docs"),
        ("Rows go to the table user at night", "Rows go to the table users at night"),
        ("For orders plan A is used", "For orders plan is used"),
        ("The private name is __init and old", "The private name is init and old"),
    ],
)
def test_v3_names_are_compared_letter_by_letter(one: str, other: str) -> None:
    assert not says_the_same(one, other, alike=0.5)


@pytest.mark.parametrize(
    "word",
    [
        *("hardly", "rarely", "seldom", "barely", "sometimes", "only", "always", "not", "nearly"),
        *("formerly", "unsafely", "was", "off", "NEVER"),
    ],
)
def test_v3_one_word_that_turns_or_narrows_makes_another_fact(word: str) -> None:
    said = "The slow job of the docs is {}allowed to fail in the nightly build of main"
    assert not says_the_same(said.format(""), said.format(f"{word} "), alike=0.5)
    assert says_the_same(said.format(""), said.format("long "), alike=0.5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("server", "service"),
        ("java", "javascript"),
        ("read", "readonly"),
        ("read", "ready"),
        ("https", "http"),
        ("import", "important"),
        ("us", "used"),
        ("bar", "bard"),
        ("miss", "missing"),
        ("can", "must"),
        ("and", "or"),
        ("mode", "mod"),
    ],
)
def test_v3_words_that_only_begin_alike_are_different_words(one: str, other: str) -> None:
    said = "The orders of all customers go with the {} in the nightly build"
    assert not says_the_same(said.format(one), said.format(other), alike=0.5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("use", "using"),
        ("uses", "used"),
        ("run", "running"),
        ("retry", "retries"),
        ("log", "logged"),
    ],
)
def test_forms_of_one_word_are_one_word(one: str, other: str) -> None:
    said = "The orders of all customers {} the cache in the nightly build"
    assert says_the_same(said.format(one), said.format(other), alike=0.5)


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
        (Fact(text="needs Redis"), Fact(text="needs Redis running"), False),
        (Fact(text="needs Redis running"), Fact(text="needs a Redis"), True),
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
