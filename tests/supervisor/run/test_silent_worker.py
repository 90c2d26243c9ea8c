"""A worker of which nothing is heard any more is ended and begun anew, and the run goes on."""

import asyncio
from collections.abc import Iterator

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.records import Action, Alert, AlertState, Ending, Intervention, Resolution
from midwatch_monitor.silence import SILENT
from midwatch_stage.acting import agent_file
from midwatch_stage.harness import RunHarness

hangs: list[bool] = []
"""Whether the next requests are never answered; afterwards all are."""


async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if hangs and hangs.pop():
        await asyncio.Event().wait()
    return ModelResponse(parts=[TextPart("Done.")])


late = Agent(FunctionModel(answer))


@pytest.fixture
def _one_hangs() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    hangs.append(True)
    yield
    hangs.clear()


@pytest.mark.usefixtures("_one_hangs")
async def test_a_hung_worker_is_found_by_its_silence_and_begun_anew(harness: RunHarness) -> None:
    soon = {
        **harness.settings.model_dump(),
        "rules": {"silence": {"command": "2s"}},
        "policy": {"rules": {"silence": ["restart", "ask_operator", "stop"]}},
    }
    harness.settings = Settings.model_validate(soon)
    assert await harness.run(agent_file(__name__, "late", "max_attempts: 2")) == 0
    assert await harness.endings() == [Ending.RESTARTED, Ending.DONE]
    (restart,) = await harness.told(Intervention)
    assert (restart.action, restart.answers) == (Action.RESTART, (SILENT,))
    alerts = await harness.told(Alert, attempt=1)
    assert [(each.key, each.state, each.resolution) for each in alerts] == [
        (SILENT, AlertState.FIRING, None),
        (SILENT, AlertState.RESOLVED, Resolution.ENDED),
    ]
