"""An attempt that hangs, or whose provider fails for long, waits or is begun anew."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.scripted import play
from midwatch_monitor.config.policy import PersonSettings, PolicySettings
from midwatch_monitor.config.settings import ProviderSettings, Settings
from midwatch_monitor.records import (
    Action,
    Activity,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    Analysis,
    AnalysisAuthor,
    AttemptTransition,
    Cause,
    Change,
    Delivery,
    DeliveryState,
    Ending,
    Intervention,
    Lifecycle,
    Resolution,
    Step,
)
from midwatch_monitor.silence import SILENT
from midwatch_stage.acting import DONE, agent_file, script
from midwatch_stage.factories import call, intervention, turn
from midwatch_stage.harness import RunHarness
from midwatch_supervisor.run.parking import CUT_SHORT

begun = threading.Event()
asked: list[int] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    begun.clear()
    asked.clear()


async def sleep_forever() -> str:
    """Hang."""
    begun.set()
    await asyncio.Event().wait()
    return "awake"


async def never_answer_at_first(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    asked.append(1)
    if len(asked) == 1:
        begun.set()
        await asyncio.Event().wait()
    return ModelResponse(parts=[TextPart("Done.")])


silent = Agent(FunctionModel(never_answer_at_first))
asleep = Agent(play(script(turn(call("sleep_forever")), DONE)), tools=[sleep_forever])


def question(rule: str = "silence") -> Intervention:
    about = (AlertKey(rule=rule),)
    return intervention(Action.ASK_OPERATOR, message="It hangs. What now?", answers=about)


ANSWER = intervention(Action.NUDGE, Actor.OPERATOR, message="Do without it.")
STOP = intervention(Action.STOP, Actor.OPERATOR)


async def parked(harness: RunHarness, agent: str) -> int:
    """Ask about an attempt that hangs; the exit code of its run."""
    run = asyncio.create_task(harness.run(agent_file(__name__, agent)))
    await harness.until(begun.is_set)
    await harness.say(question())
    return await run


@pytest.mark.parametrize(("agent", "cut"), [("asleep", [CUT_SHORT]), ("silent", [])])
async def test_a_hung_attempt_is_parked_and_goes_on_with_the_answer_without_the_call_that_hung(
    agent: str, cut: list[str], harness: RunHarness
) -> None:
    assert await parked(harness, agent) == 3
    begun.clear()
    state = await harness.last(AttemptTransition)
    assert (state.lifecycle, state.reason) == (Lifecycle.INPUT_REQUIRED, "It hangs. What now?")
    assert (await harness.last(Change)).activity is Activity.WAITING
    await harness.say(ANSWER)
    assert await harness.resume() == 0
    assert not begun.is_set()
    delivered = [each.state for each in await harness.told(Delivery)]
    assert delivered == [DeliveryState.DELIVERED] * 2
    assert [each.output for each in await harness.told(Step) if each.ok is False] == cut
    bodies = "".join(each.body.decode() for each in await harness.journal.messages(1))
    assert (bodies.count("Do without it."), bodies.count(CUT_SHORT)) == (1, len(cut))
    assert len(await harness.journal.attempts(1)) == 1


@pytest.mark.parametrize("seconds", [0.05, 0.001])
async def test_a_parked_attempt_is_stopped_before_its_run_ends_however_often_that_looks(
    harness: RunHarness, seconds: float
) -> None:
    harness.set(monitor={"poll_seconds": seconds})
    assert await parked(harness, "asleep") == 3
    await harness.say(STOP)
    assert await harness.resume() == 1
    assert (await harness.last(AttemptTransition)).ending is Ending.CANCELED


async def test_a_question_for_another_reason_waits_for_the_next_request(
    harness: RunHarness,
) -> None:
    run = asyncio.create_task(harness.run(agent_file(__name__, "asleep")))
    await harness.until(begun.is_set)
    await harness.say(question("same_failure"))
    await harness.say(STOP)
    assert await run == 1
    states = [each.lifecycle for each in await harness.told(AttemptTransition)]
    assert Lifecycle.INPUT_REQUIRED not in states


async def test_with_a_time_limit_for_persons_a_run_waits_for_its_end(harness: RunHarness) -> None:
    harness.set(policy=PolicySettings(person=PersonSettings(timeout_minutes=60)))
    run = asyncio.create_task(parked(harness, "asleep"))

    async def waits() -> bool:
        states = await harness.told(AttemptTransition)
        return bool(states) and states[-1].lifecycle is Lifecycle.INPUT_REQUIRED

    await harness.until(waits)
    done, _ = await asyncio.wait({run}, timeout=0.3)
    assert not done
    await harness.say(ANSWER)
    assert await run == 0


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


fails: list[int] = []
"""The HTTP codes with which the coming requests fail."""


async def answer_or_fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    answered = sum(isinstance(message, ModelResponse) for message in messages)
    if answered and fails:
        raise ModelHTTPError(fails.pop(0), "far away")
    if not answered:
        return ModelResponse(parts=[ToolCallPart("look", {}, "call-1")])
    return ModelResponse(parts=[TextPart("Done.")])


def look() -> str:
    """Look."""
    return "there"


unlucky = Agent(FunctionModel(answer_or_fail), tools=[look])

TASKS = agent_file(__name__, "unlucky")


@pytest.fixture
def _soon(harness: RunHarness) -> None:  # pyright: ignore[reportUnusedFunction]
    harness.set(provider=ProviderSettings(breaker_seconds=0.01, max_outages=3))


@pytest.mark.usefixtures("_soon")
async def test_requirement_9_an_outage_is_sat_out_and_analysed_and_nothing_is_done_twice(
    harness: RunHarness,
) -> None:
    fails[:] = [503, 429]
    assert await harness.run(TASKS) == 0
    told = await harness.told(Analysis)
    assert [(each.by, each.cause) for each in told] == [(AnalysisAuthor.WATCH, Cause.TRANSIENT)] * 2
    assert [step.tool for step in await harness.told(Step)] == ["look", ""]
    assert len(await harness.journal.attempts(1)) == 1


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize(("codes", "analysed"), [([503] * 9, 1), ([401], 0)])
async def test_requirement_9_an_outage_without_end_and_a_refusal_end_the_attempt_with_their_reason(
    codes: list[int], analysed: int, harness: RunHarness
) -> None:
    fails[:] = list(codes)
    assert await harness.run(TASKS) == 1
    state = await harness.last(AttemptTransition)
    assert state.ending is Ending.ERROR
    assert f"status_code: {codes[0]}" in state.reason
    assert len(await harness.told(Analysis)) == analysed
