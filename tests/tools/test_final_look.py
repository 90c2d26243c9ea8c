"""When a worker that is done is asked to look at its own result again."""

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)

from midwatch_monitor.config.settings import CompletionSettings
from midwatch_monitor.records import Budget, Meter
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
def test_r54_only_a_worker_that_mended_something_is_asked_again(
    after: tuple[ModelMessage, ...], asked: str
) -> None:
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
