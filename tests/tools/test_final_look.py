"""A worker that says it is done is asked to look at its own result again."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)

from midwatch_monitor.config.settings import CompletionSettings, MonitorSettings, Settings
from midwatch_monitor.records import Budget, Meter
from midwatch_tests.reading import prompts
from midwatch_tests.worker import Performer
from midwatch_tools.final_look import NOTHING, refine_question

TWICE = CompletionSettings(refine=2)
GOAL = ModelRequest(parts=[UserPromptPart("Fix it.")])
DONE = ModelResponse(parts=[TextPart("Done.")])
FIRST = refine_question([GOAL, DONE], TWICE, None, "0badcafe")
SECOND = FIRST.replace("look 1", "look 2")
ASKED: list[ModelMessage] = [GOAL, DONE, ModelRequest(parts=[UserPromptPart(FIRST)])]


def call(tool: str) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(tool, {})])


def test_r54_it_is_off_by_default() -> None:
    assert CompletionSettings().refine == 0
    assert refine_question([GOAL, DONE], CompletionSettings(), None, "0badcafe") == ""


def test_r54_the_question_names_the_goal_and_the_checks_and_how_to_end_it() -> None:
    assert FIRST.startswith("[midwatch 0badcafe] Before this counts as done (look 1 of 2)")
    assert all(word in FIRST for word in ("goal", "acceptance check", NOTHING))


@pytest.mark.parametrize(
    ("after", "asked"),
    [
        ((call("edit_file"), DONE), SECOND),
        ((call("edit_file"), call("reflect"), DONE), SECOND),
        ((DONE,), ""),
        ((call("reflect"), DONE), ""),
        ((call("read_file"), ModelResponse(parts=[TextPart("Nothing to fix.")])), ""),
        ((call("read_file"), ModelResponse(parts=[TextPart("Nothing to mend.")])), ""),
    ],
)
def test_r54_only_who_mended_is_asked_again(after: tuple[ModelMessage, ...], asked: str) -> None:
    assert refine_question([*ASKED, *after], TWICE, None, "0badcafe") == asked


def test_r54_nobody_is_asked_more_often_than_the_configuration_says() -> None:
    twice = [*ASKED, call("edit_file"), ModelRequest(parts=[UserPromptPart(SECOND)])]
    assert refine_question([*twice, call("edit_file"), DONE], TWICE, None, "0badcafe") == ""


@pytest.mark.parametrize(
    ("budget", "is_asked"),
    [
        (Budget(), True),
        (Budget(requests=Meter(used=17, limit=20)), False),
        (Budget(requests=Meter(used=16, limit=20)), True),
        (Budget(requests=Meter(used=2, limit=4)), False),
        (Budget(cost_usd=Meter(used=0.9, limit=1)), False),
        (Budget(minutes=Meter(used=8, limit=10)), True),
    ],
)
def test_r54_nobody_is_asked_whose_budget_is_nearly_gone(budget: Budget, is_asked: bool) -> None:
    assert bool(refine_question([GOAL, DONE], TWICE, budget, "0badcafe")) is is_asked


def put_call(text: str) -> list[tuple[str, dict[str, str]]]:
    return [("put", {"path": "a.py", "text": text})]


def settings_for_looks(refine: int) -> Settings:
    return Settings(
        monitor=MonitorSettings(poll_seconds=0.01), completion=CompletionSettings(refine=refine)
    )


def count_looks(messages: Sequence[ModelMessage]) -> int:
    """How often the worker was asked."""
    return sum("Before this counts as done" in each for each in prompts(messages))


async def test_r54_the_last_result_is_the_mended_one(perform: Performer) -> None:
    turns = (put_call("1"), "Done.", put_call("2"), "Mended.", put_call("3"), "Mended again.")
    result = await perform(*turns, settings=settings_for_looks(2))
    assert (result.output, count_looks(result.all_messages())) == ("Mended again.", 2)
    assert (perform.workspace / "a.py").read_text() == "3"


async def test_r54_nothing_of_it_where_the_budget_is_nearly_gone(perform: Performer) -> None:
    budget = Budget(requests=Meter(limit=4))
    result = await perform(put_call("1"), "Done.", settings=settings_for_looks(3), budget=budget)
    assert (result.output, count_looks(result.all_messages())) == ("Done.", 0)


async def test_r54_the_looks_before_a_crash_count(perform: Performer) -> None:
    def fail_at_once() -> str:
        raise RuntimeError("killed")

    turns: list[Any] = [put_call("1"), "Done.", put_call("2"), fail_at_once]
    with pytest.raises(RuntimeError):
        await perform(*turns, settings=settings_for_looks(1))
    result = await perform(*turns[:3], "Mended.", put_call("3"), settings=settings_for_looks(1))
    assert (result.output, count_looks(result.all_messages())) == ("Mended.", 1)
