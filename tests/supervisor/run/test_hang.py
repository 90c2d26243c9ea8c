"""A worker that hangs is ended by a word in the journal, wherever it hangs."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.sandbox import SandboxKind
from midwatch_agents.scripted import Script, play
from midwatch_monitor.config.settings import RunSettings, Sandbox
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Delivery,
    DeliveryState,
    Ending,
    Fault,
    Lifecycle,
    Step,
    TaskTransition,
)
from midwatch_stage.acting import DONE, agent_file, put, script
from midwatch_stage.factories import call, intervention, turn
from midwatch_stage.factories import ended as ending
from midwatch_stage.harness import RunHarness

STOP = intervention(Action.STOP, Actor.OPERATOR, message="it hangs")
STOPPED = ending(Ending.CANCELED, reason="stopped by operator: it hangs")
SHELL = "touch started; sleep 1000 & sleep 1000"

begun = threading.Event()
"""Set once a worker hangs that lives in this process."""
released = threading.Event()
"""Lets the tools go that do not heed a cancellation."""
ended = threading.Event()


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
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


async def never_answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    begun.set()
    await asyncio.Event().wait()
    raise AssertionError


silent = Agent(FunctionModel(never_answer))


def hanging(tool: str) -> Agent[None, str]:
    model = play(script(turn(call(tool)), turn(call("put", path="late.txt")), DONE))
    return Agent(model, tools=[sleep_forever, refuse_to_end, block, block_for_good, put])


asleep = hanging("sleep_forever")
stubborn = hanging("refuse_to_end")
blocked = hanging("block")
gone = hanging("block_for_good")


def script_for(role: Role, key: str) -> Script:
    return script(turn(call("run_command", command=SHELL)), DONE)


SHELL_TASKS = f"""
    models: {{worker: "scripted:{__name__}@0", supervisor: none}}
    tasks: [{{id: fix, goal: Fix it., acceptance: ["true"], max_attempts: 1}}]
"""


def marked(folder: Path) -> list[str]:
    """The commands that run for an attempt below a folder."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


async def stopped(harness: RunHarness, hangs: Callable[[], bool], tasks: str) -> float:
    """Stop the attempt once it hangs; how many seconds its end took."""
    loop = asyncio.get_running_loop()
    run = asyncio.create_task(harness.run(tasks))
    await harness.until(hangs)
    at = loop.time()
    await harness.say(STOP)
    assert await run == 1
    return loop.time() - at


@pytest.mark.parametrize("agent", ["asleep", "silent"])
async def test_requirement_8_a_hung_call_is_stopped_at_once_and_nothing_late_changes_that(
    agent: str, harness: RunHarness
) -> None:
    harness.set(run=RunSettings(sandbox=Sandbox.OFF))
    assert await stopped(harness, begun.is_set, agent_file(__name__, agent)) < 3
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
    assert await stopped(harness, file.exists, SHELL_TASKS) < 5
    assert await harness.last(AttemptTransition) == STOPPED
    assert marked(harness.home) == []


async def test_a_stopped_attempt_leaves_no_process_behind(harness: RunHarness) -> None:
    await prove_no_process_is_left(harness, Sandbox.OFF)


async def test_a_stopped_attempt_leaves_no_process_behind_in_a_sandbox(
    harness: RunHarness, bubblewrap: SandboxKind
) -> None:
    await prove_no_process_is_left(harness, Sandbox.REQUIRED)


@pytest.mark.parametrize(("agent", "faults"), [("stubborn", ["worker"]), ("blocked", [])])
async def test_requirement_8_who_cannot_be_cancelled_is_given_up_and_its_late_result_refused(
    agent: str, faults: list[str], harness: RunHarness
) -> None:
    others = asyncio.all_tasks()
    assert await stopped(harness, begun.is_set, agent_file(__name__, agent)) < 3
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
