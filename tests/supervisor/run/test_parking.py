"""An attempt that hangs is asked about, waits for a person, and goes on with the answer."""

import asyncio
import threading

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.scripted import Call, Phase, Script, Turn, play
from midwatch_monitor.config.policy import PersonSettings, PolicySettings
from midwatch_monitor.records import (
    Action,
    Activity,
    Actor,
    AlertKey,
    AttemptTransition,
    Change,
    Delivery,
    DeliveryState,
    Ending,
    Intervention,
    Lifecycle,
    Step,
)
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
asleep = Agent(
    play(
        Script(
            phases=(Phase(turns=(Turn(calls=(Call(tool="sleep_forever"),)), Turn(say="Done."))),)
        )
    ),
    tools=[sleep_forever],
)


def tasks(agent: str) -> str:
    return f"""
        models: {{worker: none}}
        workers: {{coder: {{agent: "{__name__}:{agent}"}}}}
        tasks: [{{id: fix, goal: Fix it., acceptance: ["true"], max_attempts: 1}}]
    """


def question(rule: str = "silence") -> Intervention:
    return Intervention(
        action=Action.ASK_OPERATOR,
        by=Actor.POLICY,
        message="It hangs. What now?",
        answers=(AlertKey(rule=rule),),
    )


ANSWER = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, message="Do without it.")
STOP = Intervention(action=Action.STOP, by=Actor.OPERATOR)


async def parked(harness: RunHarness, agent: str) -> int:
    """Ask about an attempt that hangs; the exit code of its run."""
    run = asyncio.create_task(harness.run(tasks(agent)))
    await harness.until(begun.is_set)
    await harness.say(question())
    return await run


@pytest.mark.parametrize("agent", ["asleep", "silent"])
async def test_a_hung_attempt_is_parked_and_goes_on_with_the_answer(
    agent: str, harness: RunHarness
) -> None:
    assert await parked(harness, agent) == 3
    state = (await harness.told(AttemptTransition))[-1]
    assert (state.lifecycle, state.reason) == (Lifecycle.INPUT_REQUIRED, "It hangs. What now?")
    assert (await harness.told(Change))[-1].activity is Activity.WAITING
    await harness.say(ANSWER)
    assert await harness.resume() == 0
    delivered = [each.state for each in await harness.told(Delivery)]
    assert delivered == [DeliveryState.DELIVERED] * 2
    bodies = "".join(each.body.decode() for each in await harness.journal.messages(1))
    assert bodies.count("Do without it.") == 1
    assert len(await harness.journal.attempts(1)) == 1


async def test_a_call_that_hung_is_not_made_again_and_says_so(harness: RunHarness) -> None:
    assert await parked(harness, "asleep") == 3
    begun.clear()
    await harness.say(ANSWER)
    assert await harness.resume() == 0
    assert not begun.is_set()
    steps = [(each.tool, each.ok, each.output) for each in await harness.told(Step)]
    assert steps[0] == ("sleep_forever", False, CUT_SHORT)
    bodies = "".join(each.body.decode() for each in await harness.journal.messages(1))
    assert bodies.count(CUT_SHORT) == 1


async def test_a_parked_attempt_that_hung_can_be_stopped(harness: RunHarness) -> None:
    assert await parked(harness, "asleep") == 3
    await harness.say(STOP)
    assert await harness.resume() == 4
    assert (await harness.told(AttemptTransition))[-1].ending is Ending.STUCK


async def test_a_run_does_not_end_while_a_parked_attempt_is_being_stopped(
    harness: RunHarness,
) -> None:
    looks_often = harness.settings.monitor.model_copy(update={"poll_seconds": 0.001})
    harness.settings = harness.settings.model_copy(update={"monitor": looks_often})
    assert await parked(harness, "asleep") == 3
    await harness.say(STOP)
    assert await harness.resume() == 4


async def test_a_question_for_another_reason_waits_for_the_next_request(
    harness: RunHarness,
) -> None:
    run = asyncio.create_task(harness.run(tasks("asleep")))
    await harness.until(begun.is_set)
    await harness.say(question("same_failure"))
    await harness.say(STOP)
    assert await run == 4
    assert Lifecycle.INPUT_REQUIRED not in [
        e.lifecycle for e in await harness.told(AttemptTransition)
    ]


async def test_with_a_time_limit_for_persons_a_run_waits_for_its_end(harness: RunHarness) -> None:
    policy = PolicySettings(person=PersonSettings(timeout_minutes=60))
    harness.settings = harness.settings.model_copy(update={"policy": policy})
    run = asyncio.create_task(parked(harness, "asleep"))

    async def waits() -> bool:
        states = await harness.told(AttemptTransition)
        return bool(states) and states[-1].lifecycle is Lifecycle.INPUT_REQUIRED

    await harness.until(waits)
    done, _ = await asyncio.wait({run}, timeout=0.3)
    assert not done
    await harness.say(ANSWER)
    assert await run == 0
