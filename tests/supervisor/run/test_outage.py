"""A provider that fails for longer than a request is tried: the attempt goes on where it was."""

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor.config.settings import ProviderSettings
from midwatch_monitor.records import (
    Analysis,
    AnalysisAuthor,
    AttemptTransition,
    Cause,
    Ending,
    Step,
)
from midwatch_stage.acting import agent_file
from midwatch_stage.harness import RunHarness

fails: list[int] = []
"""The HTTP codes with which the coming requests fail."""


async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    answered = sum(isinstance(message, ModelResponse) for message in messages)
    if answered and fails:
        raise ModelHTTPError(fails.pop(0), "far away")
    if not answered:
        return ModelResponse(parts=[ToolCallPart("look", {}, "call-1")])
    return ModelResponse(parts=[TextPart("Done.")])


def look() -> str:
    """Look."""
    return "there"


agent = Agent(FunctionModel(answer), tools=[look])

TASKS = agent_file(__name__, "agent")


@pytest.fixture(autouse=True)
def _soon(harness: RunHarness) -> None:  # pyright: ignore[reportUnusedFunction]
    harness.set(provider=ProviderSettings(breaker_seconds=0.01, max_outages=3))


async def test_an_outage_is_sat_out_and_analysed_and_nothing_is_done_twice(
    harness: RunHarness,
) -> None:
    fails[:] = [503, 429]
    assert await harness.run(TASKS) == 0
    told = await harness.told(Analysis)
    assert [(each.by, each.cause) for each in told] == [(AnalysisAuthor.WATCH, Cause.TRANSIENT)] * 2
    assert [step.tool for step in await harness.told(Step)] == ["look", ""]
    assert len(await harness.journal.attempts(1)) == 1


@pytest.mark.parametrize(("codes", "analysed"), [([503] * 9, 1), ([401], 0)])
async def test_an_outage_without_end_and_a_refusal_end_the_attempt_with_their_reason(
    codes: list[int], analysed: int, harness: RunHarness
) -> None:
    fails[:] = list(codes)
    assert await harness.run(TASKS) == 1
    state = await harness.last(AttemptTransition)
    assert state.ending is Ending.ERROR
    assert f"status_code: {codes[0]}" in state.reason
    assert len(await harness.told(Analysis)) == analysed
