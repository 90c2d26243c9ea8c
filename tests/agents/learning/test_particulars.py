"""What is specific to an attempt, and what any worker could be told."""

import pytest

from midwatch_agents.learning.case import Alarm, Case
from midwatch_agents.learning.classes import class_of, named_class
from midwatch_agents.learning.likeness import ALIKE, likeness, subject
from midwatch_agents.learning.particulars import cited_steps, grounded, named_files, names, specific
from midwatch_monitor.config.learning import FAILURE_CLASSES
from midwatch_monitor.records import Acceptance, Feedback

CASE = Case(
    title="Round the totals",
    goal="The billing totals are rounded up to whole cents.",
    files=("src/totals.py", "tests/test_totals.py"),
    verdict=Feedback(accepted=False, comment="Negative amounts are wrong."),
    findings=(Alarm(rule="repeated_edits", summary="totals.py was edited 8 times", steps=(4, 8)),),
    checks=(
        Acceptance(check="make check", passed=False, detail="ValueError: negative"),
        Acceptance(check=".venv/bin/pytest -q", passed=True),
    ),
    steps=12,
    shown=(11, 12),
)


def test_a_name_is_what_looks_like_code() -> None:
    text = "Call `go on`, round_up() or json.loads in src/app.py; a TypeError, e.g. EACCES --fast."
    assert names(text) == {
        "go on", "round_up", "json.loads", "src/app.py", "app.py", "typeerror", "eacces", "--fast",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "It edited totals.py before it had read it.",
        "It never looked at `tests/test_totals.py`.",
        "The ValueError was there from the start.",
        "Run `make check` first.",
        "It should have run pytest itself.",
        "At step 4 it took the wrong turn.",
        "Negative amounts were never tried.",
        "It set off repeated_edits for nothing.",
    ],
)
def test_r53_a_lesson_that_names_something_of_the_attempt_is_specific(text: str) -> None:
    assert specific(text, CASE)


@pytest.mark.parametrize(
    "text",
    [
        "The worker should have been more careful and tested its changes thoroughly.",
        "Always read the task before you begin, and run the tests when you are done.",
        "The attempt failed because the requirements were not understood. Read them again.",
        "It broke parser.py, which raised a KeyError.",
        "At step 7 it took the wrong turn.",
        "Ask for help early, e.g. when a test fails.",
    ],
)
def test_r53_what_fits_any_attempt_or_none_is_not_specific(text: str) -> None:
    assert not specific(text, CASE)


def test_files_are_taken_only_from_the_case() -> None:
    assert named_files("It wrote totals.py and reader.py.", CASE) == ("src/totals.py",)


def test_steps_are_named_by_their_numbers() -> None:
    text = "At steps 4, 5 and 12 it went wrong, after Step 2. Plan step 3 was done in 9 steps."
    assert cited_steps(text) == {2, 4, 5, 12}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You forgot the header.", "missed_requirement"),
        ("This was changed in the wrong file.", "wrong_location"),
        ("It broke the export, which used to work.", "broke_existing"),
        ("The numbers are wrong.", "wrong_result"),
        ("Two bugs are left.", "wrong_result"),
        ("The debugger is left on.", "other"),
        ("No.", "other"),
        ("  ", "unknown"),
    ],
)
def test_r26_the_first_class_whose_words_fit_counts(text: str, expected: str) -> None:
    assert class_of(text, FAILURE_CLASSES) == expected


def test_r26_the_order_of_the_classes_decides_and_is_ones_own() -> None:
    classes = {"late": ("too late",), "all": ("too",)}
    assert [class_of(each, classes) for each in ("Too late!", "too early")] == ["late", "all"]
    assert class_of("a missing file", classes) == "other"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("wrong_result", "wrong_result"),
        ("Wrong result", "wrong_result"),
        ("unknown", "unknown"),
        ("hubris", "other"),
        ("", "other"),
    ],
)
def test_r26_a_class_that_nobody_configured_is_another(named: str, expected: str) -> None:
    assert named_class(named, FAILURE_CLASSES) == expected


def test_lessons_are_alike_by_their_words_and_not_by_the_step() -> None:
    one = "It edited totals.py at step 4 without reading the negative amounts in it."
    assert likeness(one, one.replace("step 4", "steps 5 and 8")) == 1.0
    assert likeness(one, "It edited app.py and never ran the export.") < ALIKE
    assert likeness("", one) == 0.0


ROUNDING = "It edited the rounding in orders/totals.py five times before it ran the tests once."


@pytest.mark.parametrize(
    ("insight", "expected"),
    [
        ("Look at totals.py as a whole before the next edit.", True),
        ("The rounding was edited again and again.", True),
        ("Always test your code carefully before you finish.", False),
        ("Make a plan and work step by step.", False),
        ("", False),
        ("Split large database migrations into batches.", False),
        ("Check the login page in a browser.", False),
    ],
)
def test_s44_an_insight_refers_to_what_is_told_and_not_to_any_day(
    insight: str, expected: bool
) -> None:
    assert grounded(insight, ROUNDING, subject(ROUNDING)) is expected
