"""What the reflector is asked, and what the look back offers to others."""

import ast
import inspect
from datetime import UTC, datetime
from pathlib import Path

import pytest

from midwatch_agents.learning import guidelines
from midwatch_agents.learning.guidelines import (
    DEFAULT_GUIDELINES,
    Insight,
    ReflectionResult,
    distillation_prompt,
    reflect_on_runs,
    reflection_prompt,
)
from midwatch_agents.learning.looking_back import DISTILLING, REFLECTING, Reflected
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
FIRST, SECOND = " ".join(REFLECTING.split()), " ".join(DISTILLING.split())


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


@pytest.mark.parametrize("part", ["explanation", "principles", "procedures", "advice", "insights"])
def test_s2_one_question_asks_for_every_kind_of_reflection(part: str) -> None:
    assert part in FIRST


def test_s3_principles_and_procedures_are_asked_for_together() -> None:
    fields = Reflected.model_fields
    assert {"do", "dont", "procedures"} <= fields.keys()
    assert "- Edit blindly." in second(None)


def test_s8_the_process_counts_and_not_the_topic() -> None:
    assert "Reflect on how the work was done, not on what it was about" in FIRST
    assert "How to work, not who the agent is" in SECOND


def test_s10_the_document_is_made_of_what_the_reflection_came_to() -> None:
    told = second("Old.")
    for said in ("totals.py was edited.", *ANSWER.do, *ANSWER.procedures, *ANSWER.advice):
        assert f"- {said}" in told


def test_s17_summaries_the_text_in_force_a_model_and_a_configuration_are_given() -> None:
    names = list(inspect.signature(reflect_on_runs).parameters)
    assert names[:4] == ["summaries", "current", "model", "config"]


def test_s18_the_defaults_are_one_attempt_three_turns_six_hundred_words() -> None:
    found = DEFAULT_GUIDELINES
    assert (found.min_runs, found.min_turns, found.max_words) == (1, 3, 600)
    assert GuidelinesSettings() == found


def test_s19_a_result_has_insights_a_text_and_why_there_is_none() -> None:
    assert ReflectionResult(skipped=True, reason="no qualifying attempts") == ReflectionResult(
        insights=(), guidelines=None, skipped=True, reason="no qualifying attempts"
    )


def test_s20_an_insight_has_a_content_topics_and_sources() -> None:
    insight = Insight(content="x", topics=("a",), sources=(1,))
    assert (insight.content, insight.topics, insight.sources) == ("x", ("a",), (1,))


def test_s28_the_first_question_gives_topics_summary_and_turns() -> None:
    assert reflection_prompt([known(11), known(12)], blocks=BLOCKS) == (
        f'{BLOCKS.head}\n\n# The attempts\n\n<data-0badcafe name="attempts">\n'
        "- attempt 11 (task fix; 4 turns; topics: totals)\n  It edited totals.py twice.\n"
        "- attempt 12 (task fix; 4 turns; topics: totals)\n  It edited totals.py twice.\n"
        "</data-0badcafe>"
    )


def test_s29_the_document_is_written_to_the_agent_in_raw_markdown() -> None:
    assert "Write to the agent that reads it, as instructions" in SECOND
    for heading in ("Working style", "Working rules", "Known patterns", "To improve"):
        assert f"`## {heading}`" in SECOND


def test_s31_the_whole_document_is_written_anew() -> None:
    assert "You write the whole document anew" in SECOND
    assert "Write the whole document now" in second("Old.")


def test_s32_what_holds_is_kept_and_what_is_stale_dropped() -> None:
    assert "Keep what still holds" in SECOND
    assert "drop what is stale or said twice" in SECOND


def test_s39_news_are_never_appended() -> None:
    assert "Never append a list of news" in SECOND


def test_s43_the_document_in_force_is_a_part_of_the_question() -> None:
    assert '<data-0badcafe name="guidelines in force">\nOld rules.\n</data-0badcafe>' in second(
        "Old rules."
    )


def test_s45_what_is_in_force_weighs_more_than_what_is_new() -> None:
    assert "where old and new disagree, it weighs more" in SECOND


@pytest.mark.parametrize(
    ("max_words", "target"), [(600, "400 to 600 words"), (300, "200 to 300 words")]
)
def test_s54_the_words_aimed_at_follow_from_the_limit(max_words: int, target: str) -> None:
    assert f"Aim at {target}" in second(None, max_words)
    assert f"at most {max_words} words" in second(None, max_words)


def test_c14_there_is_one_limit_and_one_length_that_is_complained_about() -> None:
    assert (GuidelinesSettings().max_words, guidelines.TOO_LONG) == (600, 1000)
    assert "Aim at 400 to 600 words" in second(None)


def test_s57_what_others_need_is_exported() -> None:
    wanted = {"reflect_on_runs", "reflection_prompt", "distillation_prompt"}
    wanted |= {"DEFAULT_GUIDELINES", "ReflectionResult", "Insight"}
    taken = {name for file in Path("supervisor").rglob("*.py") for name in _taken(file)}
    assert wanted | taken <= set(guidelines.__all__)
    assert {"reflect_on_runs", "ReflectionResult", "Insight"} <= taken


def _taken(file: Path) -> list[str]:
    """What a module imports from the one that looks back."""
    return [
        alias.name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == guidelines.__name__
        for alias in node.names
    ]
