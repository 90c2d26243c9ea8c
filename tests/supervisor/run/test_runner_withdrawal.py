"""Tasks that a person takes back while their run goes on: these are over, the others go on."""

import asyncio
from pathlib import Path

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Intervention,
    Lifecycle,
    Part,
    TaskTransition,
    Terms,
)
from midwatch_stage.harness import RunHarness
from midwatch_supervisor.operator.tasks import WithdrawalCourse, Withdrawer

CANCELED = TaskTransition(lifecycle=Lifecycle.CANCELED, reason="canceled by ada")


async def gate(ctx: RunContext[object]) -> str:
    """Leave a file, and wait until there is a file `go` above the workspace."""
    folder = Path(await ctx.workspace.working_dir())
    (folder / "out.txt").write_text("here")
    nothing = LocalBus().subscribe()
    while not (folder.parents[3] / "go").exists():
        await nothing.wait(0.02)
    return "open"


def script_for(role: Role, key: str) -> Script:
    return Script(phases=(Phase(turns=(Turn(calls=(Call(tool="gate"),)), Turn(say="Done."))),))


async def begun(harness: RunHarness) -> "asyncio.Task[int]":
    """A run whose first task waits, `b` after it, `c` after `b`, and `d` after the first."""
    run = asyncio.create_task(
        harness.run(f"""
        models: {{worker: "scripted:{__name__}@0", supervisor: none}}
        workers: {{clerk: {{kind: task, tools: ["{__name__}:gate"]}}}}
        defaults: {{workspace: null}}
        tasks:
          - {{id: a, goal: Do it., acceptance: [file: out.txt]}}
          - {{id: b, goal: Do it., acceptance: [file: out.txt], depends_on: [a]}}
          - {{id: c, goal: Do it., acceptance: [file: out.txt], depends_on: [b]}}
          - {{id: d, goal: Do it., acceptance: [file: out.txt], depends_on: [a]}}
        """)
    )
    await harness.until(harness.home.joinpath("work/r1/a-1/out.txt").exists)
    return run


async def withdraw(harness: RunHarness, name: str) -> list[WithdrawalCourse]:
    journal = harness.journal
    (run,) = await journal.runs()
    task = next(each for each in await journal.tasks(run.id) if each.name == name)
    done = await Withdrawer(journal, bus=LocalBus(), author="ada").withdraw(run, task)
    return [each.course for each in done]


def open_gate(harness: RunHarness) -> None:
    (harness.folder / "go").touch()


async def ends(harness: RunHarness) -> dict[str, TaskTransition]:
    found: dict[str, TaskTransition] = {}
    for task in await harness.journal.tasks(1):
        for entry in await harness.journal.entries(task=task.id, kinds=(TaskTransition,)):
            if isinstance(entry.record, TaskTransition):
                found[task.name] = entry.record
    return found


async def test_what_waits_in_a_run_is_canceled_and_the_others_go_on(harness: RunHarness) -> None:
    run = await begun(harness)
    assert await withdraw(harness, "b") == [WithdrawalCourse.CANCELED]
    open_gate(harness)
    assert await run == 1
    found = await ends(harness)
    assert found.pop("b") == CANCELED
    assert found.pop("c") == TaskTransition(
        lifecycle=Lifecycle.FAILED, reason="it depends on b, which is canceled"
    )
    assert [each.lifecycle for each in found.values()] == 2 * [Lifecycle.COMPLETED]


async def test_what_was_canceled_stays_so_when_its_run_is_gone_on_with(
    harness: RunHarness,
) -> None:
    run = await begun(harness)
    run.cancel()
    await asyncio.wait({run})
    await withdraw(harness, "b")
    open_gate(harness)
    assert await harness.resume() == 1
    found = await ends(harness)
    assert found["b"] == CANCELED
    assert found["d"].lifecycle is Lifecycle.COMPLETED


async def test_a_part_that_has_not_begun_is_canceled_and_the_whole_fails_by_it(
    harness: RunHarness,
) -> None:
    run = await begun(harness)
    parts = (Part(title="First", goal="Do it."), Part(title="Second", goal="Do it."))
    terms = Terms(parts=parts)
    await harness.say(Intervention(action=Action.SPLIT, by=Actor.SUPERVISOR, terms=terms))
    await harness.until(harness.home.joinpath("work/r1/a.1-1/out.txt").exists)
    assert await withdraw(harness, "a.2") == [WithdrawalCourse.CANCELED]
    open_gate(harness)
    assert await run == 1
    found = await ends(harness)
    assert (found["a.1"].lifecycle, found["a.2"]) == (Lifecycle.COMPLETED, CANCELED)
    assert found["a"].reason == "its part a.2 canceled: canceled by ada"


async def test_no_worker_is_set_to_an_attempt_that_is_over(harness: RunHarness) -> None:
    run = await begun(harness)
    run.cancel()
    await asyncio.wait({run})
    await harness.say(
        AttemptTransition(lifecycle=Lifecycle.CANCELED)
    )  # since the runner has looked
    open_gate(harness)
    with pytest.raises(StaleIncarnationError, match="attempt 1 is already over"):
        await harness.resume()
