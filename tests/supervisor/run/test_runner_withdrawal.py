"""Tasks that a person takes back while their run goes on: these are over, the others go on."""

import asyncio

import pytest

from midwatch_agents.scripted import Script
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Ending,
    Lifecycle,
    Part,
    Terms,
)
from midwatch_stage.acting import DONE, gate, script, task_file
from midwatch_stage.factories import call, intervention, task_transition, transition, turn
from midwatch_stage.harness import RunHarness
from midwatch_supervisor.operator.tasks import WithdrawalResult, Withdrawer

CANCELED = task_transition(Lifecycle.CANCELED, reason="canceled by ada")


def script_for(role: Role, key: str) -> Script:
    return script(turn(call("gate", leaves="out.txt")), DONE)


async def begun(harness: RunHarness) -> "asyncio.Task[int]":
    """A run whose first task waits, `b` after it, `c` after `b`, and `d` after the first."""
    items = [
        f"id: {name}, goal: Do it., acceptance: [file: out.txt], depends_on: [{before}]"
        for name, before in (("a", ""), ("b", "a"), ("c", "b"), ("d", "a"))
    ]
    tasks = task_file(__name__, *items, tools=(gate,), defaults="workspace: null")
    run = asyncio.create_task(harness.run(tasks))
    await harness.until(harness.home.joinpath("work/r1/a-1/out.txt").exists)
    return run


async def withdraw(harness: RunHarness, name: str) -> list[WithdrawalResult]:
    journal = harness.journal
    (run,) = await journal.runs()
    task = next(each for each in await journal.tasks(run.id) if each.name == name)
    done = await Withdrawer(journal, bus=LocalBus(), author="ada").withdraw(run, task)
    return [each.course for each in done]


async def test_what_waits_in_a_run_is_canceled_and_the_others_go_on(harness: RunHarness) -> None:
    run = await begun(harness)
    assert await withdraw(harness, "b") == [WithdrawalResult.CANCELED]
    harness.open_gate()
    assert await run == 1
    found = await harness.ends()
    assert found.pop("b") == CANCELED
    reason = "it depends on b, which is canceled"
    assert found.pop("c") == task_transition(Lifecycle.FAILED, reason=reason)
    assert [each.lifecycle for each in found.values()] == 2 * [Lifecycle.COMPLETED]


async def test_what_is_under_way_is_canceled_and_what_depends_on_it_fails(
    harness: RunHarness,
) -> None:
    run = await begun(harness)
    assert await withdraw(harness, "a") == [WithdrawalResult.STOPPING]
    assert await run == 1
    found = await harness.ends()
    assert found["a"] == CANCELED
    reason = "it depends on a, which is canceled"
    assert found["b"] == found["d"] == task_transition(Lifecycle.FAILED, reason=reason)
    (ended,) = [e for e in await harness.told(AttemptTransition) if e.lifecycle.over]
    assert ended == transition(Lifecycle.CANCELED, reason="canceled by ada", ending=Ending.CANCELED)


async def test_what_was_canceled_stays_so_when_its_run_is_gone_on_with(
    harness: RunHarness,
) -> None:
    run = await begun(harness)
    run.cancel()
    await asyncio.wait({run})
    await withdraw(harness, "b")
    harness.open_gate()
    assert await harness.resume() == 1
    found = await harness.ends()
    assert found["b"] == CANCELED
    assert found["d"].lifecycle is Lifecycle.COMPLETED


async def test_a_part_that_has_not_begun_is_canceled_and_the_whole_fails_by_it(
    harness: RunHarness,
) -> None:
    run = await begun(harness)
    parts = (Part(title="First", goal="Do it."), Part(title="Second", goal="Do it."))
    await harness.say(intervention(Action.SPLIT, Actor.SUPERVISOR, terms=Terms(parts=parts)))
    await harness.until(harness.home.joinpath("work/r1/a.1-1/out.txt").exists)
    assert await withdraw(harness, "a.2") == [WithdrawalResult.CANCELED]
    harness.open_gate()
    assert await run == 1
    found = await harness.ends()
    assert (found["a.1"].lifecycle, found["a.2"]) == (Lifecycle.COMPLETED, CANCELED)
    reason = "its part a.2 canceled: canceled by ada"
    assert found["a"] == task_transition(Lifecycle.FAILED, reason=reason)


async def test_no_worker_is_set_to_an_attempt_that_is_over(harness: RunHarness) -> None:
    run = await begun(harness)
    run.cancel()
    await asyncio.wait({run})
    await harness.say(transition(Lifecycle.CANCELED))  # since the runner has looked
    harness.open_gate()
    with pytest.raises(StaleIncarnationError, match="attempt 1 is already over"):
        await harness.resume()
