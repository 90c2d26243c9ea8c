"""An operator's operator over the journal of a run that another process conducts, without a bus."""

import asyncio
import os
import pwd
import re
from asyncio.subprocess import Process
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from pydantic_ai import Agent

from midwatch_agents.scripted import Phase, Script, play
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.records import (
    Action,
    Attempt,
    AttemptTransition,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Lifecycle,
)
from midwatch_monitor.state.intervention import InterventionState
from midwatch_supervisor.operator.actions import OperatorActions, operator_name
from midwatch_tests.acting import DONE
from midwatch_tests.factories import call, turn
from midwatch_tests.harness import RunHarness

T = TypeVar("T")

SETTINGS = """
    run: {sandbox: "off"}
    policy: {rules: {explicit_escalation: [ACTION]}, needs_approval: [nudge]}
"""
SECOND = timedelta(seconds=1)


def test_a_person_is_named_where_no_variable_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert operator_name() == pwd.getpwuid(os.getuid()).pw_name


async def hold() -> str:
    """Wait until the file `go` is there."""
    await asyncio.to_thread(Path("held").touch)
    nothing = LocalBus().subscribe()
    while not await asyncio.to_thread(Path("go").exists):
        await nothing.wait(0.01)
    return "held"


async def linger() -> str:
    """Take a moment."""
    await LocalBus().subscribe().wait(0.02)
    return "lingered"


END = Phase(turns=(DONE,))
ESCALATE = turn(call("reflect", progress_percent=10, confidence=60, decision="escalate"))
HOLD = Phase(turns=(turn(call("hold")), DONE))
ASK = Phase(turns=(ESCALATE, turn(call("linger"))))
holder = Agent(play(Script(phases=(HOLD, END))), tools=[hold])
asker = Agent(play(Script(phases=(ASK, END))), tools=[linger])


def tasks(*names: str) -> str:
    """A task for each of the agents above."""
    workers = "\n".join(f"  {name}: {{agent: 'test_actions:{name}'}}" for name in names)
    wanted = "\n".join(
        f"  - {{id: {name}, goal: Do it., worker: {name}, acceptance: ['true'], max_attempts: 1}}"
        for name in names
    )
    return f"models: {{worker: none}}\nworkers:\n{workers}\ntasks:\n{wanted}\n"


class OtherRun:
    """A run of another process, and what an operator does over its journal."""

    def __init__(self, harness: RunHarness) -> None:
        self.harness = harness
        self.operator = OperatorActions(harness.journal, author="ada")

    async def start(self, *names: str, answer: Action = Action.NUDGE) -> Process:
        """Start a run whose policy answers a call for help in one way."""
        (self.harness.folder / "tasks.yaml").write_text(tasks(*names))
        (self.harness.folder / "midwatch.yaml").write_text(SETTINGS.replace("ACTION", answer))
        return await self.harness.start(
            "run", "tasks.yaml", "--headless", "--config", "midwatch.yaml"
        )

    async def attempt(self, name: str) -> Attempt:
        """The attempt at a task, once there is one."""
        found: list[Attempt] = []

        async def has_attempt() -> bool:
            runs = await self.harness.journal.runs()
            for task in await self.harness.journal.tasks(runs[0].id) if runs else []:
                if task.name == name:
                    found.extend(await self.harness.journal.attempts(task.id))
            return bool(found)

        await self.harness.until(has_attempt)
        return found[0]

    async def entry(self, attempt: Attempt, kind: type[T], *, after: int = 0) -> tuple[Entry, T]:
        """The first entry of a kind about an attempt, once it is there."""
        found: list[tuple[Entry, T]] = []

        async def has_entry() -> bool:
            for entry in await self.harness.journal.entries(after, attempt=attempt.id):
                if isinstance(entry.record, kind):
                    found.append((entry, entry.record))
            return bool(found)

        await self.harness.until(has_entry)
        return found[0]

    def release(self) -> None:
        (self.harness.folder / "go").touch()


@pytest.fixture
def other_run(harness: RunHarness) -> OtherRun:
    return OtherRun(harness)


async def test_guidance_reaches_a_run_of_another_process_at_its_next_request(
    other_run: OtherRun,
) -> None:
    process = await other_run.start("holder")
    attempt = await other_run.attempt("holder")
    await other_run.harness.until((other_run.harness.folder / "held").exists)
    id = await other_run.operator.act(attempt, Action.NUDGE, "Look up.")
    other_run.release()
    assert await asyncio.wait_for(process.wait(), 300) == 0
    arrived = Delivery(intervention=id, state=DeliveryState.DELIVERED, step=1)
    assert await other_run.harness.told(Delivery) == [arrived]
    bodies = [
        message.body.decode() for message in await other_run.harness.journal.messages(attempt.id)
    ]
    said = re.compile(rf"\[midwatch [0-9a-f]{{8}} #{id} from your operator\] Look up\.")
    assert [said.search(body) is not None for body in bodies] == [False, False, False, True, False]


@pytest.mark.matrix
async def test_a_decision_that_waits_is_approved_from_another_process(other_run: OtherRun) -> None:
    process = await other_run.start("asker")
    attempt = await other_run.attempt("asker")
    held, asked = await other_run.entry(attempt, Intervention)
    assert asked.needs_approval
    decision = InterventionState.begin(held, asked)
    await other_run.operator.settle(attempt, held.id, decision, agreed=True, step=1)
    assert await asyncio.wait_for(process.wait(), 300) == 0
    stamps = [(each.intervention, each.state) for each in await other_run.harness.told(Delivery)]
    assert stamps == [(held.id, DeliveryState.APPROVED), (held.id, DeliveryState.DELIVERED)]


@pytest.mark.matrix
async def test_an_attempt_that_waits_for_a_person_goes_on_within_a_second(
    other_run: OtherRun,
) -> None:
    process = await other_run.start("asker", "holder", answer=Action.ASK_OPERATOR)
    attempt = await other_run.attempt("asker")
    asked, _ = await other_run.entry(attempt, Intervention)
    _, parked = await other_run.entry(attempt, AttemptTransition, after=asked.id)
    assert parked.lifecycle is Lifecycle.INPUT_REQUIRED
    id = await other_run.operator.act(attempt, Action.RESUME)
    issued, _ = await other_run.entry(attempt, Intervention, after=id - 1)
    answered, state = await other_run.entry(attempt, AttemptTransition, after=id)
    assert state.lifecycle is Lifecycle.WORKING
    assert answered.at - issued.at < SECOND
    other_run.release()
    assert await asyncio.wait_for(process.wait(), 300) == 0
