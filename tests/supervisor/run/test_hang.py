"""A worker that hangs is stopped, parked or begun anew; one whose provider fails waits."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.sandbox import SandboxKind
from midwatch_agents.scripted import Script, play
from midwatch_monitor.config.policy import PersonSettings, PolicySettings
from midwatch_monitor.config.settings import ProviderSettings, RunSettings, Sandbox, Settings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import StaleIncarnationError
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
    Fault,
    Intervention,
    Lifecycle,
    Resolution,
    Step,
    TaskTransition,
)
from midwatch_monitor.silence import SILENT
from midwatch_supervisor.run.parking import CUT_SHORT
from midwatch_tests.acting import DONE, agent_file, put, script
from midwatch_tests.factories import call, intervention, turn
from midwatch_tests.factories import ended as ending
from midwatch_tests.harness import RunHarness

STOP = intervention(Action.STOP, Actor.OPERATOR, message="it hangs")
STOPPED = ending(Ending.CANCELED, reason="stopped by operator: it hangs")
SHELL = "touch started; sleep 1000 & sleep 1000"

begun = threading.Event()
"""Set once a worker hangs that lives in this process."""
released = threading.Event()
"""Lets the tools go that do not heed a cancellation."""
ended = threading.Event()
asked: list[int] = []


@pytest.fixture(autouse=True)
def _clear_state() -> None:  # pyright: ignore[reportUnusedFunction]
    asked.clear()
    for event in (begun, released, ended):
        event.clear()


async def sleep_forever() -> str:
    """Hang."""
    begun.set()
    await asyncio.Event().wait()
    return "awake"


async def refuse_to_end() -> str:
    """Hang, and go on when cancelled."""
    begun.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        while not released.is_set():
            await asyncio.shield(asyncio.to_thread(released.wait, 30))
    ended.set()
    return "late"


def block() -> str:
    """Hang in a thread."""
    begun.set()
    released.wait(1000)
    ended.set()
    return "late"


def block_for_good() -> str:
    """Hang in a thread that nobody can wake."""
    Path("blocked").touch()
    threading.Event().wait()
    return "never"


async def never_answer_at_first(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    asked.append(1)
    if len(asked) == 1:
        begun.set()
        await asyncio.Event().wait()
    return ModelResponse(parts=[TextPart("Done.")])


silent = Agent(FunctionModel(never_answer_at_first))


def hanging_agent(tool: str) -> Agent[None, str]:
    model = play(script(turn(call(tool)), turn(call("put", path="late.txt")), DONE))
    return Agent(model, tools=[sleep_forever, refuse_to_end, block, block_for_good, put])


asleep = hanging_agent("sleep_forever")
stubborn = hanging_agent("refuse_to_end")
blocked = hanging_agent("block")
gone = hanging_agent("block_for_good")


def script_for(role: Role, key: str) -> Script:
    return script(turn(call("run_command", command=SHELL)), DONE)


SHELL_TASKS = f"""
    models: {{worker: "scripted:{__name__}@0", supervisor: none}}
    tasks: [{{id: fix, goal: Fix it., acceptance: ["true"], max_attempts: 1}}]
"""


def attempt_commands(folder: Path) -> list[str]:
    """The commands that run for an attempt below a folder."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


async def stop_once_hanging(harness: RunHarness, hangs: Callable[[], bool], tasks: str) -> float:
    """Stop the attempt once it hangs; how many seconds its end took."""
    loop = asyncio.get_running_loop()
    run = asyncio.create_task(harness.run(tasks))
    await harness.until(hangs)
    at = loop.time()
    await harness.say(STOP)
    assert await run == 1
    return loop.time() - at


@pytest.mark.parametrize("agent", ["asleep", "silent"])
async def test_requirement_8_what_hangs_stops_for_good(agent: str, harness: RunHarness) -> None:
    harness.set(run=RunSettings(sandbox=Sandbox.OFF))
    assert await stop_once_hanging(harness, begun.is_set, agent_file(__name__, agent)) < 3
    assert await harness.last(AttemptTransition) == STOPPED
    assert (await harness.last(TaskTransition)).reason == "stopped by operator: it hangs"
    assert [each.state for each in await harness.told(Delivery)] == [DeliveryState.DELIVERED]
    for kind in (AttemptTransition, TaskTransition):
        for late in (Lifecycle.COMPLETED, Lifecycle.WORKING):
            with pytest.raises(StaleIncarnationError, match="a late result cannot change that"):
                await harness.say(kind(lifecycle=late))


async def prove_no_process_is_left(harness: RunHarness, sandbox: Sandbox) -> None:
    file = harness.home / "work/r1/fix-1/started"
    harness.set(run=RunSettings(sandbox=sandbox))
    assert await stop_once_hanging(harness, file.exists, SHELL_TASKS) < 5
    assert await harness.last(AttemptTransition) == STOPPED
    assert attempt_commands(harness.home) == []


async def test_a_stopped_attempt_leaves_no_process_behind(harness: RunHarness) -> None:
    await prove_no_process_is_left(harness, Sandbox.OFF)


async def test_a_stop_empties_the_sandbox(harness: RunHarness, bubblewrap: SandboxKind) -> None:
    await prove_no_process_is_left(harness, Sandbox.REQUIRED)


@pytest.mark.parametrize(("agent", "faults"), [("stubborn", ["worker"]), ("blocked", [])])
async def test_requirement_8_who_cannot_be_cancelled_is_given_up_and_its_late_result_refused(
    agent: str, faults: list[str], harness: RunHarness
) -> None:
    others = asyncio.all_tasks()
    assert await stop_once_hanging(harness, begun.is_set, agent_file(__name__, agent)) < 3
    before = await harness.journal.entries()
    assert not ended.is_set()
    released.set()
    await harness.until(ended.is_set)
    await asyncio.gather(*asyncio.all_tasks() - others, return_exceptions=True)
    assert await harness.journal.entries() == before
    assert list(harness.home.rglob("late.txt")) == []
    assert await harness.last(AttemptTransition) == STOPPED
    assert await harness.told(Step) == []
    assert [each.part for each in await harness.told(Fault)] == faults


@pytest.mark.matrix
async def test_a_thread_that_never_ends_does_not_keep_the_process(harness: RunHarness) -> None:
    (harness.folder / "tasks.yaml").write_text(agent_file("test_hang", "gone"))
    (harness.folder / "midwatch.yaml").write_text("run: {grace_seconds: 0.2, sandbox: off}")
    process = await harness.start("run", "tasks.yaml", "--headless", "--config", "midwatch.yaml")
    await harness.until((harness.folder / "blocked").exists)
    await harness.say(STOP)
    out, errors = await asyncio.wait_for(process.communicate(), 300)
    assert (process.returncode, errors) == (1, b"")
    assert b"fix: canceled" in out


def question(rule: str = "silence") -> Intervention:
    about = (AlertKey(rule=rule),)
    return intervention(Action.ASK_OPERATOR, message="It hangs. What now?", answers=about)


ANSWER = intervention(Action.NUDGE, Actor.OPERATOR, message="Do without it.")


async def park_attempt(harness: RunHarness, agent: str) -> int:
    """Ask about an attempt that hangs; the exit code of its run."""
    run = asyncio.create_task(harness.run(agent_file(__name__, agent)))
    await harness.until(begun.is_set)
    await harness.say(question())
    return await run


@pytest.mark.parametrize(("agent", "cut"), [("asleep", [CUT_SHORT]), ("silent", [])])
async def test_a_hung_attempt_is_parked_and_goes_on_with_the_answer_without_the_call_that_hung(
    agent: str, cut: list[str], harness: RunHarness
) -> None:
    assert await park_attempt(harness, agent) == 3
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
async def test_a_parked_attempt_stops_before_its_run(harness: RunHarness, seconds: float) -> None:
    harness.set(monitor={"poll_seconds": seconds})
    assert await park_attempt(harness, "asleep") == 3
    await harness.say(STOP)
    assert await harness.resume() == 1
    assert (await harness.last(AttemptTransition)).ending is Ending.CANCELED


async def test_another_question_waits_for_the_next_request(harness: RunHarness) -> None:
    run = asyncio.create_task(harness.run(agent_file(__name__, "asleep")))
    await harness.until(begun.is_set)
    await harness.say(question("same_failure"))
    await harness.say(STOP)
    assert await run == 1
    states = [each.lifecycle for each in await harness.told(AttemptTransition)]
    assert Lifecycle.INPUT_REQUIRED not in states


async def test_with_a_time_limit_for_persons_a_run_waits_for_its_end(harness: RunHarness) -> None:
    harness.set(policy=PolicySettings(person=PersonSettings(timeout_minutes=60)))
    run = asyncio.create_task(park_attempt(harness, "asleep"))

    async def is_waiting() -> bool:
        states = await harness.told(AttemptTransition)
        return bool(states) and states[-1].lifecycle is Lifecycle.INPUT_REQUIRED

    await harness.until(is_waiting)
    done, _ = await asyncio.wait({run}, timeout=0.3)
    assert not done
    await harness.say(ANSWER)
    assert await run == 0


async def test_a_hung_worker_is_found_by_its_silence_and_begun_anew(harness: RunHarness) -> None:
    soon = {
        **harness.settings.model_dump(),
        "rules": {"silence": {"command": "2s"}},
        "policy": {"rules": {"silence": ["restart", "ask_operator", "stop"]}},
    }
    harness.settings = Settings.model_validate(soon)
    assert await harness.run(agent_file(__name__, "silent", "max_attempts: 2")) == 0
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


SOON = ProviderSettings(breaker_seconds=0.01, max_outages=3)


async def test_requirement_9_an_outage_is_sat_out_and_nothing_redone(harness: RunHarness) -> None:
    harness.set(provider=SOON)
    fails[:] = [503, 429]
    assert await harness.run(TASKS) == 0
    told = await harness.told(Analysis)
    assert [(each.by, each.cause) for each in told] == [(AnalysisAuthor.WATCH, Cause.TRANSIENT)] * 2
    assert [step.tool for step in await harness.told(Step)] == ["look", ""]
    assert len(await harness.journal.attempts(1)) == 1


@pytest.mark.parametrize(("codes", "analysed"), [([503] * 9, 1), ([401], 0)])
async def test_requirement_9_an_outage_without_end_and_a_refusal_end_the_attempt_with_their_reason(
    codes: list[int], analysed: int, harness: RunHarness
) -> None:
    harness.set(provider=SOON)
    fails[:] = codes
    assert await harness.run(TASKS) == 1
    state = await harness.last(AttemptTransition)
    assert state.ending is Ending.ERROR
    assert f"status_code: {codes[0]}" in state.reason
    assert len(await harness.told(Analysis)) == analysed
