"""Rules over budgets, plans, claims and neighbours, each in a run of a task file to its end.

Only the rule in question is on, so that what happens is its own doing; the policy answers it, and
the worker does what it is told.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor import records as r
from midwatch_monitor.config.rules import Rules
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.rules import rule_settings
from midwatch_tests.factories import call, turn
from midwatch_tests.harness import RunHarness

_seen = {"notices": threading.Event(), "answers": threading.Event()}
"""Set once the test has seen what it waits for; until then the workers hold."""


async def write_file(ctx: RunContext[object], path: str, text: str) -> str:
    """Write a file."""
    await ctx.workspace.write_bytes(path, text.encode())
    return "written"


async def look(at: str) -> str:
    """Look at something."""
    return f"{at} is as it was"


async def run_command(command: str) -> str:
    """Run a command; it fails."""
    return "FAILED test_a.py::test_a\n1 failed in 0.1s\n[exit code: 1]"


async def hold(until: str) -> str:
    """Wait for the test."""
    await asyncio.to_thread(_seen[until].wait, 20)
    return "held"


def reflect_call(percent: int, notes: str = "") -> Call:
    said = {"progress_percent": percent, "confidence": 60, "decision": "continue"}
    return call("reflect", **said, notes=notes)


PUT = turn(call("write_file", path="out.txt", text="one"))
NOTICED, ANSWERED = (turn(call("hold", until=each)) for each in ("notices", "answers"))
DONE = turn(say="Done.")


def look_turns(count: int) -> tuple[Turn, ...]:
    return tuple(turn(call("look", at=f"place {n}")) for n in range(count))


def script_until_guidance(*turns: Turn) -> Script:
    """The turns, until guidance comes; then the work is done."""
    return Script(phases=(Phase(turns=(*turns, ANSWERED)), Phase(turns=(PUT, DONE))))


EDITOR = Script(phases=(Phase(turns=(NOTICED, PUT, ANSWERED, DONE)),))
SCRIPTS = {
    "lost": script_until_guidance(*look_turns(12)),
    "slow": script_until_guidance(turn(reflect_call(10)), *look_turns(34)),
    "bold": script_until_guidance(
        turn(call("run_command", command="pytest")), turn(reflect_call(90, "All tests pass now."))
    ),
    "one": EDITOR,
    "two": EDITOR,
}


def script_for(role: Role, key: str) -> Script:
    return SCRIPTS[key]


def tasks(*lines: str) -> str:
    tools = [f"{__name__}:{tool.__name__}" for tool in (write_file, look, run_command, hold)]
    return "\n".join(
        [
            f'models: {{worker: "scripted:{__name__}@0", supervisor: none}}',
            f"workers: {{clerk: {{kind: task, tools: {tools}}}}}",
            "tasks:",
            *(f"  - {{goal: Do it., acceptance: [{{file: out.txt}}], {line}}}" for line in lines),
        ]
    )


@pytest.fixture
def turn_on_only(harness: RunHarness) -> "TurnOnOnly":
    """A harness on which one rule is on."""

    def build(rule: str) -> RunHarness:
        named: dict[str, Any] = {name: {"enabled": name == rule} for name in rule_settings(Rules())}
        rules = Rules.model_validate({"agreement": False, **named})
        harness.settings = harness.settings.model_copy(update={"rules": rules})
        return harness

    return build


TurnOnOnly = Callable[[str], RunHarness]


async def play(harness: RunHarness, text: str, *, alerts: int, notices: int = 0) -> int:
    """Run tasks whose workers hold for so many notices, then for all alerts and an answer."""
    for event in _seen.values():
        event.clear()
    run = asyncio.create_task(harness.run(text))

    async def has_notices() -> bool:
        return len(await firing_alerts(harness)) >= notices

    async def has_intervention() -> bool:
        told = len(await firing_alerts(harness)) >= alerts
        return told and bool(await harness.told(r.Intervention))

    await harness.until(has_notices)
    _seen["notices"].set()
    await harness.until(has_intervention)
    _seen["answers"].set()
    return await run


async def firing_alerts(harness: RunHarness) -> list[tuple[str, str]]:
    """The alerts as they fired or rose, each with its summary."""
    alerts = await harness.told(r.Alert)
    return [(each.severity.value, each.summary) for each in alerts if each.firing]


async def delivered_actions(harness: RunHarness) -> list[r.Action]:
    """What was delivered for an escalation."""
    told = await harness.journal.entries(kinds=(r.Intervention, r.Delivery))
    acts = {each.id: each.record for each in told if isinstance(each.record, r.Intervention)}
    stamps = [each.record for each in told if isinstance(each.record, r.Delivery)]
    arrived = [each.intervention for each in stamps if each.state is r.DeliveryState.DELIVERED]
    return [acts[id].action for id in arrived if acts[id].escalation is not None]


async def test_a_plan_step_that_takes_more_than_its_share_is_found(
    turn_on_only: TurnOnOnly,
) -> None:
    harness = turn_on_only("steps_on_plan_step")
    line = "id: lost, plan: [Find it, Mend it, Test it], budget: {requests: 18}"
    assert await play(harness, tasks(line), alerts=2) == 0
    assert await firing_alerts(harness) == [
        ("notice", "6 steps on one plan step, which was given 6 requests"),
        ("warning", "12 steps on one plan step, which was given 6 requests"),
    ]
    assert await delivered_actions(harness) == [r.Action.REPLAN]


async def test_a_budget_that_goes_faster_than_the_work_is_found(turn_on_only: TurnOnOnly) -> None:
    harness = turn_on_only("budget_burn")
    code = await play(harness, tasks("id: slow, budget: {requests: 40}"), alerts=2)
    assert await firing_alerts(harness) == [
        ("notice", "75 % of the requests are used, and 10 % of the work is done"),
        ("warning", "90 % of the requests are used, and 10 % of the work is done"),
    ]
    # So late a nudge could not be judged any more.
    assert (code, await delivered_actions(harness)) == (0, [r.Action.GRANT_BUDGET])


async def test_a_claim_that_the_last_test_run_contradicts_is_found(
    turn_on_only: TurnOnOnly,
) -> None:
    harness = turn_on_only("unsupported_claim")
    code = await play(harness, tasks("id: bold"), alerts=1)
    [(severity, summary)] = await firing_alerts(harness)
    assert (severity, code) == ("warning", 0)
    assert "pass" in summary
    assert await delivered_actions(harness) == [r.Action.NUDGE]


async def test_two_attempts_on_one_file_are_noticed_and_then_escalated(
    turn_on_only: TurnOnOnly,
) -> None:
    harness = turn_on_only("workspace_conflict")
    (harness.folder / "project").mkdir()
    (harness.folder / "project" / "out.txt").write_text("zero")
    more = "workspace: project, plan: [{title: Mend it, files: [out.txt]}]"
    text = tasks(f"id: one, {more}", f"id: two, {more}")
    assert await play(harness, text, notices=2, alerts=4) == 0
    first = await harness.journal.entries(kinds=(r.Alert, r.Escalation))
    assert [isinstance(each.record, r.Alert) for each in first[:2]] == [True, True]
    assert sorted(await firing_alerts(harness)) == [
        ("notice", "task one, still in progress, also plans to change out.txt"),
        ("notice", "task two, still in progress, also plans to change out.txt"),
        ("warning", "task one, still in progress, also changed out.txt"),
        ("warning", "task two, still in progress, also changed out.txt"),
    ]
    assert await delivered_actions(harness)
