"""What the originals got wrong about attempts and limits, a test for each requirement they taught.

8 and 12 are proved where such runs are: `run/test_hang.py` and `run/test_split.py`.
"""

import asyncio
import re
import threading
from collections import defaultdict
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.scripted import Call, Turn, play
from midwatch_monitor.bus import LocalBus
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
    TaskTransition,
    Terms,
)
from midwatch_tests.acting import DONE, REPORT, put, script, task_file
from midwatch_tests.factories import call, checkpoint, intervention, turn
from midwatch_tests.harness import RunHarness
from midwatch_tests.reading import answers

_met: dict[str, set[str]] = defaultdict(set)
"""Who has come to which meeting."""
_hangs = threading.Event()
_awaited = threading.Event()
"""Set once the test has seen what the workers wait for."""


@pytest.fixture(autouse=True)
def _clear_state() -> None:  # pyright: ignore[reportUnusedFunction]
    _met.clear()
    _hangs.clear()
    _awaited.clear()


async def look(at: int) -> str:
    """Look at something."""
    return f"{at} is as it was"


async def meet(name: str, at: str) -> str:
    """Wait for the other worker."""
    _met[at].add(name)
    nothing = LocalBus().subscribe()
    while len(_met[at]) < 2:
        await nothing.wait(0.005)
    return "met"


async def hold() -> str:
    """Wait for the test."""
    await asyncio.to_thread(_awaited.wait, 20)
    return "held"


async def hang() -> str:
    """Hang."""
    _hangs.set()
    await asyncio.Event().wait()
    return "awake"


def explode() -> str:
    """Fail in a way that nobody has thought of."""
    raise LookupError("no such thing")


def reflect_call(
    progress: int = 10, confidence: int = 80, decision: str = "continue", notes: str = ""
) -> Call:
    given = {"progress_percent": progress, "confidence": confidence, "decision": decision}
    return call("reflect", **given, notes=notes)


def report_turns(name: str, *confidences: int) -> tuple[Turn, ...]:
    """Reports with gains, none before the other worker has made its own."""
    return tuple(
        turn(
            reflect_call(10 * n, value, notes=f"{name} {n}"),
            call("meet", name=name, at=f"report {n}"),
        )
        for n, value in enumerate(confidences, start=1)
    )


HELP = reflect_call(decision="escalate")
PUT = call("put", path="out.txt")
SCRIPTS = {
    "sure": script(*report_turns("sure", 81, 82, 83), DONE),
    "unsure": script(*report_turns("unsure", 80, 60, 55), DONE),
    "good": script(turn(PUT), DONE),
    "poor": script(turn(REPORT), DONE),
    "hung": script(turn(REPORT, call("hang")), DONE),
    "endless": script(turn(call("put", path="{n}.txt"))),
    "broken": script(turn(call("explode")), DONE),
    "ask": script(turn(HELP, call("hold")), DONE),
    "cries": script(turn(HELP, call("put", path="{n}.txt"))),
    "muses": script(turn(reflect_call())),
    "slow": script(
        turn(reflect_call(0), call("hold")),
        *(turn(reflect_call(3 * n), call("look", at=n)) for n in range(1, 17)),
        turn(PUT),
        DONE,
    ),
}


def model_for(role: Role, key: str) -> Model:
    async def bar(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ModelHTTPError(401, "provider")

    return FunctionModel(bar) if key == "barred" else play(SCRIPTS[key])


def tasks(*names: str, more: str = "max_attempts: 1", check: str = "'true'") -> str:
    items = (f"id: {name}, goal: Do it., acceptance: [{check}], {more}" for name in names)
    return task_file(__name__, *items, tools=(put, look, meet, hold, hang, explode))


def configure(harness: RunHarness, **sections: Any) -> None:
    """Set some sections of the harness's configuration."""
    known = harness.settings.model_dump(include={"monitor", "run"})
    known["monitor"]["tick_seconds"] = 0.05
    harness.settings = Settings.model_validate({**known, **sections})


async def has_intervention(harness: RunHarness) -> bool:
    return bool(await harness.told(Intervention))


# -- 5 -------------------------------------------------------------------------------------


async def checkpoints(harness: RunHarness, attempt: int) -> list[Checkpoint]:
    steps = await harness.told(Step, attempt=attempt)
    return [step.checkpoint for step in steps if step.checkpoint is not None]


def expected_checkpoints(*confidences: int, name: str) -> list[Checkpoint]:
    numbered = enumerate(confidences, start=1)
    return [checkpoint(10 * n, value, notes=f"{name} {n}") for n, value in numbered]


async def test_requirement_5_two_workers_never_mix_their_checkpoints(harness: RunHarness) -> None:
    assert await harness.run(tasks("sure", "unsure")) == 0
    (sure,), (unsure,) = [
        [each.id for each in await harness.journal.attempts(task.id)]
        for task in await harness.journal.tasks(1)
    ]
    assert set(_met) == {"report 1", "report 2", "report 3"}  # neither went ahead of the other
    assert await checkpoints(harness, sure) == expected_checkpoints(81, 82, 83, name="sure")
    assert await checkpoints(harness, unsure) == expected_checkpoints(80, 60, 55, name="unsure")
    assert await harness.told(Alert, attempt=sure) == []
    (fell, *_) = await harness.told(Alert, attempt=unsure)
    assert (fell.key.rule, fell.value) == ("declining_confidence", 25)
    heard = [
        "".join(each.body.decode() for each in await harness.journal.messages(attempt))
        for attempt in (sure, unsure)
    ]
    assert "unsure 1" not in heard[0]
    assert "sure 1" not in heard[1].replace("unsure", "")


# -- 9 -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more", "reason", "endings", "code"),
    [
        ("good", "", "every acceptance check passed", [Ending.DONE], 0),
        ("poor", "", "acceptance failed: file out.txt", [Ending.UNACCEPTED] * 2, 1),
        (
            *("endless", "budget: {requests: 3}", "out of budget: 3 of 3 requests"),
            *([Ending.OUT_OF_BUDGET], 4),
        ),
        ("broken", "", "LookupError: no such thing", [Ending.ERROR], 1),
        ("barred", "", "ModelHTTPError: status_code: 401", [Ending.ERROR], 1),
    ],
)
async def test_requirement_9_the_true_reason_is_stored_and_decides_whether_another_attempt_is_made(
    name: str, more: str, reason: str, endings: list[Ending], code: int, harness: RunHarness
) -> None:
    harness.set(policy={"max_grants": 0})
    more = f"max_attempts: 2, {more}"
    assert await harness.run(tasks(name, more=more, check="file: out.txt")) == code
    states = [state for state in await harness.told(AttemptTransition) if state.ending]
    assert [state.ending for state in states] == endings
    assert {state.reason[: len(reason)] for state in states} == {reason}
    assert (await harness.last(TaskTransition)).reason == states[-1].reason


async def test_requirement_9_a_restart_tries_again_and_a_stop_does_not(harness: RunHarness) -> None:
    run = asyncio.create_task(harness.run(tasks("hung", more="max_attempts: 3")))
    for number, action in enumerate((Action.RESTART, Action.STOP), start=1):
        await harness.until(_hangs.is_set)
        _hangs.clear()
        word = intervention(action, Actor.OPERATOR, message="enough")
        await harness.say(word, attempt=number)
    assert await run == 1
    states = [state for state in await harness.told(AttemptTransition) if state.ending]
    assert [(state.ending, state.reason) for state in states] == [
        (Ending.RESTARTED, "restarted by operator: enough"),
        (Ending.CANCELED, "stopped by operator: enough"),
    ]


# -- 17 ------------------------------------------------------------------------------------

PERSON = {"timeout_minutes": 0.001}


async def test_requirement_17_a_cap_ends_the_loop_of_who_asks_for_ever(harness: RunHarness) -> None:
    asks = {"explicit_escalation": ["nudge"]}
    policy = {"rules": asks, "max_escalations": 2, "person": PERSON}
    configure(harness, policy=policy, supervisor={"cooldown": 0})
    cries = tasks("cries", more="max_attempts: 1, budget: {requests: null}")
    assert await harness.run(cries) == 4
    actions = [each.action for each in await harness.told(Intervention)]
    assert actions[-2:] == [Action.ASK_OPERATOR, Action.STOP]
    assert len({each.escalation for each in await harness.told(Decision)}) <= 3
    assert (await harness.last(AttemptTransition)).ending is Ending.STUCK


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
    muses = tasks("muses", more=f"max_attempts: 1, budget: {{{budget}}}")
    assert await harness.run(muses) == 4
    said = [step.checkpoint is not None for step in await harness.told(Step)]
    assert said[:4] == [True, True, True, False]
    assert sum(said) <= 3 * len(await harness.told(Plan))
    assert (await harness.last(AttemptTransition)).ending is ending


@pytest.mark.parametrize(
    ("then", "code", "ending"), [("stop", 4, Ending.STUCK), ("resume", 0, Ending.DONE)]
)
async def test_requirement_17_a_person_who_never_answers_is_waited_for_only_so_long(
    then: str, code: int, ending: Ending, harness: RunHarness
) -> None:
    asks = {"explicit_escalation": ["ask_operator"]}
    configure(harness, policy={"rules": asks, "person": {**PERSON, "question": then}})
    run = asyncio.create_task(harness.run(tasks("ask")))
    await harness.until(lambda: has_intervention(harness))
    _awaited.set()
    assert await asyncio.wait_for(run, 300) == code
    assert (await harness.last(AttemptTransition)).ending is ending


# -- 22 ------------------------------------------------------------------------------------

Meters = dict[str, tuple[float, float | None]]


def worker_meters(answer: str) -> Meters:
    """What the budget's line in an answer says: used and limit of each resource."""
    told = answer.partition("Budget: ")[2].replace(",", "")
    found = re.findall(r"([\d.]+) of ([\d.]+) (\w+) \(", told)
    return {name: (float(used), float(limit)) for used, limit, name in found}


def rule_meters(budget: Budget) -> Meters:
    meters = (("requests", budget.requests), ("tokens", budget.tokens))
    return {name: (meter.used, meter.limit) for name, meter in meters}


async def test_requirement_22_worker_and_detector_see_one_budget(harness: RunHarness) -> None:
    configure(harness, mode="advise")
    slow = tasks("slow", more="max_attempts: 1, budget: {requests: 18, tokens: 900000}")
    run = asyncio.create_task(harness.run(slow))

    async def has_step() -> bool:
        return bool(await harness.told(Step))

    await harness.until(has_step)
    more = Terms(grant=Grant(requests=2))
    await harness.say(intervention(Action.GRANT_BUDGET, Actor.OPERATOR, terms=more))
    _awaited.set()
    assert await run == 0
    bodies = [each.body for each in await harness.journal.messages(1)]
    history = [each for body in bodies for each in ModelMessagesTypeAdapter.validate_json(body)]
    said = [worker_meters(each) for each in answers(history, "reflect")]
    budget, by_rules, burnt = Budget(), list[Meters](), list[tuple[float, float]]()
    for entry in await harness.journal.entries(attempt=1):
        match entry.record:
            case Change(budget=Budget() as budget):
                pass
            case Step(checkpoint=Checkpoint()):
                by_rules.append(rule_meters(budget))
            case Alert(key=AlertKey(rule="budget_burn"), value=value, state=AlertState.FIRING):
                used, limit = budget.requests.used, budget.requests.limit or 0
                burnt.append((value, 100 * used / limit))
            case _:
                pass
    assert said == by_rules
    assert [each["requests"][1] for each in said] == [18] + [20] * 16
    assert burnt == [(75, 75), (90, 90)]
