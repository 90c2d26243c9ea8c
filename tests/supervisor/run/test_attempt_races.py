"""What happens at one moment: an end and a question, an answer and a pause, a stop and Ctrl-C."""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.left_processes import process_mark
from midwatch_agents.sandbox import MARK
from midwatch_monitor.config.policy import PersonSettings, PolicySettings
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    Attempt,
    AttemptTransition,
    Commit,
    Delivery,
    Entry,
    Intervention,
    Lifecycle,
    TaskTransition,
)
from midwatch_tests.factories import draft, intervention, task_transition
from midwatch_tests.harness import RunHarness
from midwatch_tests.matrix import matrix

DONE = ModelResponse(parts=[TextPart("Done.")])


class Scene:
    """What workers did, and what lets them go on."""

    def __init__(self) -> None:
        self.asking: list[asyncio.Task[Any]] = []
        """Who has made a request that is not answered at once."""
        self.cancelled = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_end = asyncio.Event()
        self.other_over = asyncio.Event()

    async def hang(self, *, until: asyncio.Event | None = None) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.asking.append(task)
        await (until or asyncio.Event()).wait()


scenes: list[Scene] = []


@pytest.fixture(autouse=True)
def scene() -> Scene:
    scenes[:] = [Scene()]
    return scenes[0]


async def hang(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    await scenes[0].hang()
    return DONE


async def resist_cancel_at_first(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    first, ended = not scenes[0].asking, scenes[0].may_end
    try:
        await scenes[0].hang()
    except asyncio.CancelledError:
        scenes[0].cancelled.set()
    while first and not ended.is_set():
        with suppress(asyncio.CancelledError):
            await ended.wait()
    return DONE


async def take_time(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    await scenes[0].may_end.wait()
    return DONE


async def call_first(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart("listen")]) if len(messages) == 1 else DONE


async def listen() -> str:
    """Wait for a word."""
    await scenes[0].hang(until=scenes[0].may_go_on)
    return "heard"


hanging = Agent(FunctionModel(hang))
stubborn = Agent(FunctionModel(resist_cancel_at_first))
slow = Agent(FunctionModel(take_time))
calling = Agent(FunctionModel(call_first), tools=[listen])


def tasks(*lines: str) -> str:
    names = ("hanging", "stubborn", "slow", "calling")
    workers = ", ".join(f'{each}: {{agent: "{__name__}:{each}"}}' for each in names)
    listed = [f"{{{line}, goal: Do it., acceptance: ['true']}}" for line in lines]
    return f"""
        models: {{worker: none}}
        workers: {{{workers}}}
        tasks: [{", ".join(listed)}]
    """


QUESTION = intervention(
    Action.ASK_OPERATOR, message="It hangs. What now?", answers=(AlertKey(rule="silence"),)
)
PAUSE = intervention(Action.PAUSE, Actor.OPERATOR)
ANSWER = intervention(Action.NUDGE, Actor.OPERATOR, message="Do without it.")
STOP = intervention(Action.STOP, Actor.OPERATOR)


async def say(harness: RunHarness, record: Intervention) -> None:
    """Say it to the attempt at the first task, whichever attempt was the first."""
    (attempt,) = await harness.journal.attempts(1)
    await harness.say(record, attempt=attempt.id)


async def wait_until_parked(harness: RunHarness, times: int = 1) -> None:
    """Wait until the attempt at the first task was parked so often."""
    (attempt,) = await harness.journal.attempts(1)

    async def is_parked() -> bool:
        told = await harness.told(AttemptTransition, attempt=attempt.id)
        return sum(each.lifecycle is Lifecycle.INPUT_REQUIRED for each in told) == times

    await harness.until(is_parked)


def is_task_end(commit: Commit) -> bool:
    records = [each.record for each in commit.drafts]
    return any(isinstance(each, TaskTransition) and each.lifecycle.over for each in records)


class SlowJournal(Journal):
    """A journal whose word that a task is over comes some turns of the loop later."""

    turns = 0

    async def commit(self, commit: Commit) -> tuple[Entry, ...]:
        entries = await super().commit(commit)
        if is_task_end(commit):
            for _ in range(self.turns):
                await asyncio.sleep(0)
        return entries


@pytest.mark.parametrize("turns", matrix(*range(4)))
async def test_a_task_whose_turn_has_just_come_is_begun_though_another_waits(
    turns: int, location: str, harness: RunHarness, scene: Scene
) -> None:
    harness.set(monitor={"poll_seconds": 0.000_001})
    names = ("id: one, worker: hanging", "id: two, worker: slow")
    later = "id: three, worker: slow, depends_on: [two]"
    async with await SlowJournal.open(location) as harness.journal:
        harness.journal.turns = turns
        run = asyncio.create_task(harness.run(tasks(*names, later)))
        await harness.until(lambda: bool(scene.asking))
        await say(harness, QUESTION)
        await wait_until_parked(harness)
        scene.may_end.set()
        assert await run == 3
        states = [each.lifecycle for each in await harness.told(TaskTransition)]
        assert states.count(Lifecycle.COMPLETED) == 2


async def test_who_ends_late_leaves_the_question(harness: RunHarness, scene: Scene) -> None:
    harness.set(policy=PolicySettings(person=PersonSettings(timeout_minutes=60)))
    run = asyncio.create_task(harness.run(tasks("id: one, worker: stubborn")))
    await harness.until(lambda: len(scene.asking) == 1)
    await say(harness, QUESTION)
    await wait_until_parked(harness)
    await say(harness, ANSWER)
    await harness.until(lambda: len(scene.asking) == 2)
    scene.may_end.set()
    await asyncio.wait({scene.asking[0]})
    await say(harness, QUESTION)
    await wait_until_parked(harness, 2)
    await say(harness, STOP)
    assert await run == 1


async def test_a_run_broken_off_leaves_no_process(harness: RunHarness, scene: Scene) -> None:
    harness.set(run={"grace_seconds": 20})
    run = asyncio.create_task(harness.run(tasks("id: one, worker: stubborn")))
    await harness.until(lambda: bool(scene.asking))
    mark = process_mark(str(harness.home / "work" / "r1" / "one-1"), 1)
    left = await asyncio.create_subprocess_exec("sleep", "60", env={**os.environ, MARK: mark})
    await say(harness, STOP)
    await scene.cancelled.wait()
    run.cancel()
    scene.may_end.set()
    await asyncio.wait({run})
    async with asyncio.timeout(120):
        assert await left.wait() == -signal.SIGKILL


class DelayedAnswerJournal(Journal):
    """A journal in which a person answers just before the attempt is parked, and that says so only
    once another task is over."""

    parked: int | None = None
    """The attempt."""

    async def commit(self, commit: Commit) -> tuple[Entry, ...]:
        parks = [each for each in commit.drafts if isinstance(each.record, Delivery)]
        if parks and self.parked is None:
            self.parked = parks[0].attempt
            answer = replace(parks[0], record=ANSWER, seq=None)
            await super().commit(Commit(drafts=(answer,)))
            scenes[0].may_end.set()
        entries = await super().commit(commit)
        if is_task_end(commit):
            scenes[0].other_over.set()
        return entries

    async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
        said = rest.get("kinds") == (Intervention, Delivery)
        if said and self.parked is not None and rest.get("attempt") == self.parked:
            await scenes[0].other_over.wait()
            for _ in range(10):  # whoever looks at the other's end does so meanwhile
                await asyncio.sleep(0)
        return await super().entries(after, **rest)


async def test_a_run_does_not_end_for_an_attempt_that_was_answered_as_it_parked(
    location: str, harness: RunHarness, scene: Scene
) -> None:
    harness.set(monitor={"poll_seconds": 3600})
    both = tasks("id: one, worker: calling", "id: two, worker: slow")
    async with await DelayedAnswerJournal.open(location) as harness.journal:
        run = asyncio.create_task(harness.run(both))
        await harness.until(lambda: bool(scene.asking))
        await say(harness, PAUSE)
        scene.may_go_on.set()
        assert await run == 0


class CancellingJournal(Journal):
    """A journal in which a run is cancelled as it reads its last words."""

    conducted: "asyncio.Task[int] | None" = None

    async def entries(self, after: int = 0, **rest: Any) -> list[Entry]:
        found = await super().entries(after, **rest)
        run = self.conducted
        if run is not None and run is asyncio.current_task() and rest.keys() == {"run"}:
            run.cancel()
            await asyncio.sleep(0)
        return found


async def test_a_run_that_is_cancelled_with_its_last_words_is_cancelled(
    location: str, harness: RunHarness, scene: Scene
) -> None:
    scene.may_end.set()
    async with await CancellingJournal.open(location) as journal:
        harness.journal = journal
        run = asyncio.create_task(harness.run(tasks("id: one, worker: slow")))
        journal.conducted = run
        await asyncio.wait({run})
        assert run.cancelled()


class WithdrawingJournal(Journal):
    """A journal in which a task is canceled at the moment at which it fails."""

    async def attempts(self, task: int) -> list[Attempt]:
        state = task_transition(Lifecycle.CANCELED, reason="canceled by ada")
        canceled = draft(state, at=datetime.now(UTC), task=task, attempt=None)
        await self.commit(Commit(drafts=(canceled,)))
        raise WorkspaceError("the disk is gone")


async def test_a_task_canceled_as_it_fails_is_no_failure(
    location: str, harness: RunHarness
) -> None:
    async with await WithdrawingJournal.open(location) as harness.journal:
        assert await harness.run(tasks("id: one, worker: slow")) == 1
        assert (await harness.last(TaskTransition)).lifecycle is Lifecycle.CANCELED
