"""What an insight rests on."""

import pytest

from midwatch_agents.learning.grounding import Ground, ground_of, kept_share

ROUNDING = "It edited the rounding in orders/totals.py five times before it ran the tests once."
CLAIMED = "It said twice that it was done, without having run any of the checks; they failed."


@pytest.mark.parametrize(
    ("insight", "evidence"),
    [
        ("Look at totals.py as a whole before the next edit.", ROUNDING),
        ("Roundings were edited again and again.", f"{ROUNDING} Rounding by halves was wrong."),
        ("Rounding was edited before any test was run.", ROUNDING),
        ("It said too early that it was done; no pytest check was run and they failed.", CLAIMED),
    ],
)
def test_s44_an_insight_refers_to_what_is_told_of_its_attempts(insight: str, evidence: str) -> None:
    assert ground_of(insight, [evidence]) is Ground.FIRM


@pytest.mark.parametrize(
    "insight",
    [
        "Always test your code carefully before you finish.",
        "Read the task well and think before you write.",
        "Make a plan and work step by step.",
        "",
    ],
)
def test_s44_what_fits_any_agent_any_day_is_generic(insight: str) -> None:
    assert ground_of(insight, [ROUNDING, CLAIMED]) is Ground.GENERIC


@pytest.mark.parametrize(
    "insight",
    [
        "Split large database migrations into batches.",
        "The customer prefers short answers in German.",
        "Check the login page in a browser.",
    ],
)
def test_s44_an_insight_about_something_else_has_no_ground(insight: str) -> None:
    assert ground_of(insight, [ROUNDING, CLAIMED]) is Ground.NONE


def test_the_attempts_that_it_does_not_name_are_no_evidence() -> None:
    insight = "Look at totals.py as a whole."
    assert ground_of(insight, [ROUNDING]) is Ground.FIRM
    assert ground_of(insight, [CLAIMED]) is Ground.NONE


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ("Run pytest and ruff.", "Ruff, then pytest.", 1.0),
        ("Run pytest and ruff.", "Run pytest.", 0.5),
        ("Run pytest and ruff.", "Be careful.", 0.0),
        ("", "Be careful.", 1.0),
    ],
)
def test_how_much_of_a_text_is_left_is_counted_by_its_telling_words(
    before: str, after: str, share: float
) -> None:
    assert kept_share(before, after) == share
