"""What the originals got wrong about limits, one test for each requirement they taught."""

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.run import AgentRunResult

from midwatch_agents.scripted import Call, Phase, Script, Turn, play
from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    AttemptTransition,
    Budget,
    Change,
    Checkpoint,
    Decision,
    Ending,
    Grant,
    Intervention,
    Plan,
    Step,
    Terms,
)
from midwatch_stage.harness import RunHarness

Perform = Callable[..., Awaitable[AgentRunResult[str]]]

_awaited = threading.Event()
"""Set once the test has seen what the workers wait for."""


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    _awaited.clear()


async def put(ctx: RunContext[object], path: str) -> str:
    """Write a file."""
    await ctx.workspace.write_bytes(path, path.encode())
    return "written"


async def look(at: int) -> str:
    """Look at something."""
    return f"{at} is as it was"


async def hold() -> str:
    """Wait for the test."""
    await asyncio.to_thread(_awaited.wait, 20)
    return "held"


async def hang() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return "awake"


def call(tool: str, **args: object) -> Call:
    return Call(tool=tool, args=json.dumps(args))


def turn(*calls: Call) -> Turn:
    return Turn(calls=calls)


def reporting(progress: int = 10, decision: str = "continue") -> Call:
    return call("reflect", progress_percent=progress, confidence=80, decision=decision)


HELP = reporting(decision="escalate")
ASK = turn(HELP, call("hold"))
PUT = call("put", path="out.txt")
DONE = Turn(say="Done.")
SCRIPTS = {
    "ask": (ASK, DONE),
    "hung": (turn(call("hang")), DONE),
    "cries": (turn(HELP, Call(tool="put", args='{"path": "{n}.txt"}')),),
    "muses": (turn(reporting()),),
    "slow": (
        turn(reporting(0), call("hold")),
        *(turn(reporting(3 * n), call("look", at=n)) for n in range(1, 17)),
        turn(PUT),
        DONE,
    ),
}


def model_for(role: Role, key: str) -> Model:
    if role is Role.WORKER:
        return play(Script(phases=(Phase(turns=SCRIPTS[key]),)))

    async def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await asyncio.Event().wait()
        return ModelResponse(parts=[TextPart("never")])

    return FunctionModel(think)


def tasks(*names: str, more: str = "", check: str = "'true'", supervisor: str = "none") -> str:
    tools = [f"{__name__}:{tool.__name__}" for tool in (put, look, hold, hang)]
    rest = f"max_attempts: 1, {more}" if "max_attempts" not in more else more
    return "\n".join(
        [
            f'models: {{worker: "scripted:{__name__}@0", supervisor: "{supervisor}"}}',
            f"workers: {{clerk: {{kind: task, tools: {tools}}}}}",
            "tasks:",
            *(f"  - {{id: {name}, goal: Do it., acceptance: [{check}], {rest}}}" for name in names),
        ]
    )


def configure(harness: RunHarness, **sections: Any) -> None:
    """Set some sections of the harness's configuration."""
    known = harness.settings.model_dump(include={"monitor", "run"})
    known["monitor"]["tick_seconds"] = 0.05
    harness.settings = Settings.model_validate({**known, **sections})


async def answers(harness: RunHarness, tool: str) -> list[str]:
    return [
        str(part.content)
        for each in await harness.journal.messages(1)
        for message in ModelMessagesTypeAdapter.validate_json(each.body)
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart) and part.tool_name == tool
    ]


async def issued(harness: RunHarness) -> bool:
    return bool(await harness.told(Intervention))


# -- 17 ------------------------------------------------------------------------------------

PERSON = {"timeout_minutes": 0.001}


async def test_requirement_17_the_cap_of_escalations_ends_the_loop_of_who_asks_for_ever(
    harness: RunHarness,
) -> None:
    asks = {"explicit_escalation": ["nudge"]}
    configure(
        harness,
        policy={"rules": asks, "max_escalations": 2, "person": PERSON},
        supervisor={"cooldown": 0},
    )
    assert await harness.run(tasks("cries", more="budget: {requests: null}")) == 4
    actions = [each.action for each in await harness.told(Intervention)]
    assert actions[-2:] == [Action.ASK_OPERATOR, Action.STOP]
    assert len({each.escalation for each in await harness.told(Decision)}) <= 3
    assert (await harness.told(AttemptTransition))[-1].ending is Ending.STUCK


@pytest.mark.parametrize(
    ("budget", "ending", "mode"),
    [
        ("requests: 9", Ending.OUT_OF_BUDGET, Mode.OFF),  # no rule is to be faster than it
        ("requests: null", Ending.STUCK, Mode.ACT),
    ],
)
async def test_requirement_17_the_cap_of_reflections_ends_the_loop_of_who_only_reflects(
    budget: str, ending: Ending, mode: Mode, harness: RunHarness
) -> None:
    policy = {"person": PERSON, "max_grants": 0}
    configure(harness, mode=mode, reflect={"max_reflections": 3}, policy=policy)
    assert await harness.run(tasks("muses", more=f"budget: {{{budget}}}")) == 4
    said = [step.checkpoint is not None for step in await harness.told(Step)]
    assert said[:4] == [True, True, True, False]
    plans = len(await harness.told(Plan))
    assert sum(said) <= 3 * plans
    assert (await harness.told(AttemptTransition))[-1].ending is ending


async def test_requirement_17_a_time_limit_ends_what_hangs(harness: RunHarness) -> None:
    assert await harness.run(tasks("hung", more="budget: {minutes: 0.005}")) == 4
    assert (await harness.told(AttemptTransition))[-1].ending is Ending.OUT_OF_BUDGET


async def test_requirement_17_a_supervisor_that_never_answers_is_waited_for_only_so_long(
    harness: RunHarness,
) -> None:
    configure(harness, supervisor={"timeout_seconds": 0.2, "tries": 1})
    run = asyncio.create_task(harness.run(tasks("ask", supervisor=f"scripted:{__name__}")))
    await harness.until(lambda: issued(harness))
    _awaited.set()
    assert await run == 0
    assert {each.by for each in await harness.told(Decision)} == {Actor.POLICY}


@pytest.mark.parametrize(
    ("then", "code", "ending"), [("stop", 4, Ending.STUCK), ("resume", 0, Ending.DONE)]
)
async def test_requirement_17_a_person_who_never_answers_is_waited_for_only_so_long(
    then: str, code: int, ending: Ending, harness: RunHarness
) -> None:
    asks = {"explicit_escalation": ["ask_operator"]}
    configure(harness, policy={"rules": asks, "person": {**PERSON, "question": then}})
    run = asyncio.create_task(harness.run(tasks("ask")))
    await harness.until(lambda: issued(harness))
    _awaited.set()
    assert await asyncio.wait_for(run, 300) == code
    assert (await harness.told(AttemptTransition))[-1].ending is ending


# -- 22 ------------------------------------------------------------------------------------

MORE = Intervention(
    action=Action.GRANT_BUDGET, by=Actor.OPERATOR, terms=Terms(grant=Grant(requests=2))
)
_TOLD = re.compile(r"([\d,.]+) of ([\d,.]+) (\w+) \(")
Meters = dict[str, tuple[float, float | None]]


def seen_by_worker(answer: str) -> Meters:
    """What the budget's line in an answer says: used and limit of each resource."""
    found = _TOLD.findall(answer.partition("Budget: ")[2])
    return {name: (_number(used), _number(limit)) for used, limit, name in found}


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def seen_by_rules(budget: Budget) -> Meters:
    return {
        name: (meter.used, meter.limit)
        for name, meter in (("requests", budget.requests), ("tokens", budget.tokens))
    }


async def test_requirement_22_the_worker_and_the_detector_see_the_same_budget(
    harness: RunHarness,
) -> None:
    configure(harness, mode="advise")
    run = asyncio.create_task(
        harness.run(tasks("slow", more="budget: {requests: 18, tokens: 900000}"))
    )
    await harness.until(lambda: reported(harness))
    await harness.say(MORE)
    _awaited.set()
    assert await run == 0
    said = [seen_by_worker(answer) for answer in await answers(harness, "reflect")]
    budget, by_rules, burnt = Budget(), list[Meters](), list[tuple[float, float]]()
    for entry in await harness.journal.entries(attempt=1):
        match entry.record:
            case Change(budget=Budget() as budget):
                pass
            case Step(checkpoint=Checkpoint()):
                by_rules.append(seen_by_rules(budget))
            case Alert(key=AlertKey(rule="budget_burn"), value=value, state=AlertState.FIRING):
                used, limit = budget.requests.used, budget.requests.limit or 0
                burnt.append((value, 100 * used / limit))
            case _:
                pass
    assert said == by_rules
    assert [each["requests"][1] for each in said] == [18] + [20] * 16
    assert burnt == [(75, 75), (90, 90)]


async def reported(harness: RunHarness) -> bool:
    return bool(await harness.told(Step))
