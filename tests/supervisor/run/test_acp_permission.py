"""An agent asks a person for a permission: the fake one, with `permission: ask`."""

import json
from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Delivery,
    DeliveryState,
    Ending,
    Step,
)
from midwatch_monitor.rules.identity import END_UNKNOWN
from midwatch_stage.command import midwatch
from midwatch_stage.factories import intervention
from midwatch_stage.fake_agents import (
    GREETS,
    Asked,
    Fake,
    alive,
    beside,
    enough,
    question,
    questions,
    together,
    waits,
)
from midwatch_stage.harness import RunHarness
from midwatch_supervisor.operator.actions import OperatorActions

ASKS = {"ask": "touch ran", "acts": [{"run": "touch ran"}]}
ASK = "permission: ask"


def desk(harness: RunHarness) -> OperatorActions:
    return OperatorActions(harness.journal, author="ada")


async def allow(harness: RunHarness, asked: Asked) -> None:
    await desk(harness).settle(asked.attempt, asked.id, asked.request, agreed=True, step=1)


async def ran(harness: RunHarness) -> list[bool | None]:
    """How the command went that a permission was asked for, each time that it ran."""
    ours = [each for each in await harness.told(Step) if "touch ran" in each.args]
    return [each.ok for each in ours if each.tool == "bash"]


def answers(harness: RunHarness) -> list[dict[str, Any]]:
    """The outcomes that the agent was answered."""
    lines = (harness.folder / "script.answers").read_text().splitlines()
    return [json.loads(line)["result"]["outcome"] for line in lines]


async def test_it_waits_for_a_person_who_approves(harness: RunHarness, fake: Fake) -> None:
    async def person() -> None:
        asked = await question(harness)
        assert (asked.request.tool, asked.request.what) == ("execute", "run `touch ran`")
        await harness.until(lambda: waits(harness, attempt=asked.attempt.id))
        assert await ran(harness) == []
        await allow(harness, asked)
        await enough(harness, asked)

    assert await together(harness.run(beside(harness, fake(ASKS, GREETS, more=ASK))), person()) == 0
    assert await ran(harness) == [True]
    assert answers(harness) == [{"outcome": "selected", "optionId": "allow_once_1"}]
    assert len(await questions(harness)) == 1


async def test_what_is_rejected_is_not_done_and_said_why(harness: RunHarness, fake: Fake) -> None:
    async def person() -> None:
        asked = await question(harness)
        await desk(harness).settle(
            asked.attempt, asked.id, asked.request, agreed=False, comment="Only greet.", step=1
        )
        await enough(harness, asked)

    hears = {"until": r"from your operator\] Only greet\.", "acts": [{"wait": 0.05}]}
    tasks = beside(harness, fake(ASKS, hears, GREETS, more=ASK))
    assert await together(harness.run(tasks), person()) == 0
    assert await ran(harness) == []
    assert answers(harness) == [{"outcome": "selected", "optionId": "reject_once_1"}]
    asked = (await questions(harness))[0]
    states = [each.state for each in await harness.told(Delivery, attempt=asked.attempt.id)]
    assert states == [DeliveryState.DELIVERED]


async def test_what_ends_the_attempt_ends_the_waiting(harness: RunHarness, fake: Fake) -> None:
    async def person() -> None:
        asked = await question(harness)
        await harness.until(lambda: waits(harness, attempt=asked.attempt.id))
        await harness.say(intervention(Action.STOP, Actor.OPERATOR), attempt=asked.attempt.id)
        await harness.until(lambda: over(harness, asked.attempt.id))
        await enough(harness, asked)

    code = await together(harness.run(beside(harness, fake(ASKS, GREETS, more=ASK))), person())
    asked = (await questions(harness))[0]
    last = await harness.last(AttemptTransition, attempt=asked.attempt.id)
    assert (code, last.ending) == (1, Ending.CANCELED)
    assert answers(harness)[0] == {"outcome": "cancelled"}
    assert alive(harness) == []


async def over(harness: RunHarness, attempt: int) -> bool:
    return (await harness.last(AttemptTransition, attempt=attempt)).lifecycle.over


async def test_what_is_allowed_later_is_allowed_once(harness: RunHarness, fake: Fake) -> None:
    assert await harness.run(fake(ASKS, ASKS, GREETS, more=ASK)) == 3
    assert alive(harness) == []
    assert await harness.resume() == 3
    assert len(await questions(harness)) == 1
    await allow(harness, await question(harness))
    assert await harness.resume() == 3
    assert await ran(harness) == [True]
    first, second = await questions(harness)
    assert second.request == replace(first.request, step=second.request.step)
    await allow(harness, second)
    assert await harness.resume() == 3  # a new session asks for both again, and one is allowed


async def test_who_goes_on_later_hears_what_it_may_do(harness: RunHarness, fake: Fake) -> None:
    hears = {"until": r"operator lets you run `touch ran`", "acts": [{"wait": 0.05}]}
    assert await harness.run(fake(ASKS, hears, ASKS, GREETS, more=ASK, loads=True)) == 3
    asked = await question(harness)
    await allow(harness, asked)
    assert await harness.resume() == 0
    assert await ran(harness) == [True]
    assert len(await questions(harness)) == 1
    told = [each.body.decode() for each in await harness.journal.messages(asked.attempt.id)]
    assert "".join(told).count("Your operator lets you run `touch ran`.") == 1


@pytest.mark.long
async def test_killed_while_it_waits_it_goes_on_with_what_a_command_said(
    harness: RunHarness, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = beside(harness, fake(ASKS, GREETS, more=ASK))
    (harness.folder / "tasks.yaml").write_text(tasks)
    (harness.folder / "midwatch.yaml").write_text("run: {sandbox: off}\nmode: off\n")
    process = await harness.start("run", "tasks.yaml", "--headless")
    asked = await question(harness)
    await harness.until(lambda: waits(harness, attempt=asked.attempt.id))
    process.kill()
    await process.wait()
    await enough(harness, asked)
    approve = f"`midwatch approve {asked.id}"  # of another journal
    where = ("--journal", harness.journal.name)
    assert await midwatch("status", *where) == 0
    assert f" {approve}" in capsys.readouterr().out
    assert await midwatch("show", "hello", *where) == 0
    assert f"permission to run `touch ran`: {approve}" in capsys.readouterr().out
    assert await midwatch("approve", str(asked.id), *where) == 0
    assert capsys.readouterr().out == f"approved permission {asked.id} for hello#1\n"
    again = await harness.start("resume", "--headless")
    _, errors = await again.communicate()
    assert again.returncode == 0, errors
    assert await ran(harness) == [True]


async def test_rejected_between_two_runs_it_is_told_why(harness: RunHarness, fake: Fake) -> None:
    hears = {"until": r"from your operator\] Only greet\.", "acts": [ASKS]}
    (harness.folder / "midwatch.yaml").write_text("run: {sandbox: off}\n")
    assert await harness.run(fake(hears, GREETS, more=ASK)) == 3
    asked = await question(harness)
    where = ("--journal", harness.journal.name)
    assert await midwatch("reject", str(asked.id), "--comment", "Only greet.", *where) == 0
    assert await harness.resume() == 0
    assert await ran(harness) == []
    calls = [each for each in await harness.told(Step) if "touch ran" in each.args]
    assert [(each.ok, each.output) for each in calls] == [(None, END_UNKNOWN)]


async def test_a_command_named_like_our_tool_is_asked_for(harness: RunHarness, fake: Fake) -> None:
    assert await harness.run(fake({"ask": "echo midwatch reflect"}, GREETS, more=ASK)) == 3
    (asked,) = await questions(harness)
    assert asked.request.what == "run `echo midwatch reflect`"
