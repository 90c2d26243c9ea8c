"""What the reflector is asked, and what the look back offers to others."""

from datetime import UTC, datetime

import pytest

from midwatch_agents.learning.guidelines import Reflected, distillation_prompt, reflection_prompt
from midwatch_monitor.config.learning import GuidelinesSettings
from midwatch_monitor.records import KnownSummary, Summary
from midwatch_tools.data_blocks import DataBlocks

BLOCKS = DataBlocks("0badcafe")
ANSWER = Reflected(
    explanation="It edited blindly.",
    insights=[],
    do=["Run the test first."],
    dont=["Edit blindly."],
    procedures=["Reproduce, then fix."],
    advice=["Small steps."],
)


def known(attempt: int) -> KnownSummary:
    return KnownSummary(
        id=attempt,
        at=datetime(2026, 11, 21, tzinfo=UTC),
        task=1,
        task_name="fix",
        attempt=attempt,
        summary=Summary(text="It edited\ntotals.py twice.", topics=("totals",), turns=4),
    )


def second(current: str | None, max_words: int = 600) -> str:
    edited = ["totals.py was edited."]
    return distillation_prompt(current, edited, ANSWER, max_words=max_words, blocks=BLOCKS)


def test_s3_principles_and_procedures_are_asked_for_together() -> None:
    fields = Reflected.model_fields
    assert {"do", "dont", "procedures"} <= fields.keys()
    assert "- Edit blindly." in second(None)


def test_s10_the_document_is_made_of_what_the_reflection_came_to() -> None:
    told = second("Old.")
    for said in ("totals.py was edited.", *ANSWER.do, *ANSWER.procedures, *ANSWER.advice):
        assert f"- {said}" in told


def test_s18_the_defaults_are_one_attempt_three_turns_six_hundred_words() -> None:
    found = GuidelinesSettings()
    assert (found.min_runs, found.min_turns, found.max_words) == (1, 3, 600)


def test_s28_the_first_question_gives_topics_summary_and_turns() -> None:
    assert reflection_prompt([known(11), known(12)], (), blocks=BLOCKS) == (
        f'{BLOCKS.head}\n\n# The attempts\n\n<data-0badcafe name="attempts">\n'
        "- attempt 11 (task fix; 4 turns; topics: totals)\n  It edited totals.py twice.\n"
        "- attempt 12 (task fix; 4 turns; topics: totals)\n  It edited totals.py twice.\n"
        "</data-0badcafe>"
    )


def test_s43_the_document_in_force_is_a_part_of_the_question() -> None:
    assert '<data-0badcafe name="guidelines in force">\nOld rules.\n</data-0badcafe>' in second(
        "Old rules."
    )


@pytest.mark.parametrize(
    ("max_words", "target"), [(600, "400 to 600 words"), (300, "200 to 300 words")]
)
def test_s54_the_words_aimed_at_follow_from_the_limit(max_words: int, target: str) -> None:
    assert f"Aim at {target}" in second(None, max_words)
    assert f"at most {max_words} words" in second(None, max_words)
