"""What the originals got wrong in what a worker is told, a test for each requirement."""

import asyncio
import json
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse

from midwatch_agents.scripted import Call, Script
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AttemptTransition,
    ClaimState,
    Completion,
    Decision,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Plan,
    Step,
)
from midwatch_supervisor.cli import main
from midwatch_tests.acting import DONE, REPORT, put, script, task_file
from midwatch_tests.factories import call, intervention, turn
from midwatch_tests.harness import RunHarness
from midwatch_tests.reading import answers, prompts
from midwatch_tests.watched import uncoded

_awaited = threading.Event()
"""Set once the test has seen what the workers wait for."""


@pytest.fixture(autouse=True)
def _clear_state() -> None:  # pyright: ignore[reportUnusedFunction]
    _awaited.clear()


async def look(at: int) -> str:
    """Look at something."""
    return f"{at} is as it was"


async def run_command(command: str) -> str:
    """Run a command."""
    return "3 passed in 0.1s"


async def hold() -> str:
    """Wait for the test."""
    await asyncio.to_thread(_awaited.wait, 20)
    return "held"


async def hang() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return "awake"


def reflect_call(progress: int = 10, decision: str = "continue") -> Call:
    return call("reflect", progress_percent=progress, confidence=80, decision=decision)


def complete_step_call(*files: str) -> Call:
    claims = [{"what": "all tests pass", "state": "passed"}]
    proof = {"files": files, "structural": [], "functional": claims, "confidence": 80}
    return call("complete_step", goal="It is written.", **proof)


def set_plan_call(title: str) -> Call:
    return call("set_plan", steps=[title])


ASK = turn(reflect_call(decision="escalate"), call("hold"))
PUT = call("put", path="out.txt")
LOOK = call("look", at=1)
CHECK = call(
    "check_plan",
    assumption="The file is there.",
    reality="It is.",
    impact="None.",
    options=["Go on."],
    choice="Go on.",
)
TALK = (turn(reflect_call()), turn(reflect_call(20)), turn(reflect_call(30)))
WORK = (turn(reflect_call(), PUT), turn(call("run_command", command="pytest")), turn(LOOK))
SCRIPTS = {
    "ask": script(ASK, DONE),
    "hung": script(turn(call("hang")), DONE),
    "talks": script(ASK, *TALK, DONE),
    "mends": script(ASK, *WORK, DONE),
    "revises": script(
        turn(set_plan_call("another way")),
        DONE,
        again=(turn(REPORT, set_plan_call("a third way")), DONE),
    ),
    "claims": script(
        turn(complete_step_call()),
        turn(PUT),
        turn(complete_step_call("out.txt")),
        turn(CHECK, LOOK),
        DONE,
    ),
}


def script_for(role: Role, key: str) -> Script:
    return SCRIPTS[key]


def tasks(*names: str, more: str = "max_attempts: 1", check: str = "'true'") -> str:
    items = (f"id: {name}, goal: Do it., acceptance: [{check}], {more}" for name in names)
    return task_file(__name__, *items, tools=(put, look, run_command, hold, hang))


def configure(harness: RunHarness, **sections: Any) -> None:
    """Set some sections of the harness's configuration."""
    known = harness.settings.model_dump(include={"monitor", "run"})
    known["monitor"]["tick_seconds"] = 0.05
    harness.settings = Settings.model_validate({**known, **sections})


async def messages(harness: RunHarness, attempt: int = 1) -> list[ModelMessage]:
    bodies = [each.body for each in await harness.journal.messages(attempt)]
    return [each for body in bodies for each in ModelMessagesTypeAdapter.validate_json(body)]


async def has_intervention(harness: RunHarness) -> bool:
    return bool(await harness.told(Intervention))


async def test_requirement_4_a_parked_worker_is_not_flagged_while_a_hung_one_beside_it_is(
    harness: RunHarness, journal_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = dict.fromkeys(("model", "command", "idle", "unmoved"), "1s")
    asks = {"explicit_escalation": ["ask_operator"], "silence": ["observe"]}
    policy = {"rules": asks, "person": {"timeout_minutes": 60}}
    configure(harness, rules={"silence": limits}, policy=policy)
    run = asyncio.create_task(harness.run(tasks("ask", "hung")))
    await harness.until(lambda: has_intervention(harness))
    _awaited.set()
    asks_first, _ = await harness.journal.tasks(1)
    (asking,) = await harness.journal.attempts(asks_first.id)  # which of both begins first is open

    async def parking_time() -> datetime | None:
        last = (await harness.journal.entries(attempt=asking.id, kinds=(AttemptTransition,)))[-1]
        assert isinstance(last.record, AttemptTransition)
        return last.at if last.record.lifecycle is Lifecycle.INPUT_REQUIRED else None

    async def has_waited() -> bool:
        since = await parking_time()
        return since is not None and datetime.now(UTC) - since > timedelta(seconds=2)

    await harness.until(has_waited)
    assert await asyncio.to_thread(main, ["status", "--json", "--journal", str(journal_file)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["task"], line["lifecycle"], line["health"]) for line in lines] == [
        ("ask", "input-required", "stuck"),  # by its own call for help, not by its silence
        ("hung", "working", "unknown"),
    ]
    flagged = await harness.told(Alert, attempt=asking.id)
    assert "explicit_escalation" in {alert.key.rule for alert in flagged}
    # Until then a slow machine may have kept it silent for a second, too.
    since, parked = [each for each in flagged if each.key.rule == "silence"], await parking_time()
    assert parked is not None
    assert [a for a in since if a.firing and (a.since_at is None or a.since_at > parked)] == []
    for attempt in (1, 2):
        await harness.say(intervention(Action.STOP, Actor.OPERATOR), attempt=attempt)
    assert await run == 1


@pytest.mark.parametrize(
    ("name", "outcome"), [("talks", Outcome.NO_EFFECT), ("mends", Outcome.RECOVERED)]
)
async def test_requirement_10_the_next_turn_holds_the_answer_and_only_a_change_resolves_it(
    name: str, outcome: Outcome, harness: RunHarness
) -> None:
    run = asyncio.create_task(harness.run(tasks(name)))
    await harness.until(lambda: has_intervention(harness))
    _awaited.set()
    assert await run == 0
    (entry,) = await harness.journal.entries(kinds=(Intervention,))
    (decision,) = await harness.told(Decision)
    first, second, *_ = _turns(await messages(harness))
    (guidance,) = map(uncoded, prompts(second))
    assert not any("[midwatch #" in uncoded(text) for text in prompts(first))
    assert guidance.startswith(f"[midwatch #{entry.id} from your policy]")
    assert decision.message in guidance
    (verdict, *_) = await harness.told(OutcomeReport)
    assert (verdict.intervention, verdict.outcome) == (entry.id, outcome)


def _turns(history: Sequence[ModelMessage]) -> list[list[ModelMessage]]:
    """What was new to the model in each of its turns."""
    turns: list[list[ModelMessage]] = [[]]
    for message in history:
        if isinstance(message, ModelResponse):
            turns.append([])
        else:
            turns[-1].append(message)
    return turns


async def test_requirement_11_one_revision_too_many_is_refused(harness: RunHarness) -> None:
    configure(harness, plan={"max_revisions": 1})
    more = "plan: [write it, test it], max_attempts: 2"
    assert await harness.run(tasks("revises", more=more, check="'false'")) == 1
    assert (await harness.last(Plan, attempt=1)).open_titles == ("another way",)
    assert [plan.revision for plan in await harness.told(Plan, attempt=2)] == [0]
    (refused,) = [each for each in await harness.told(Step, attempt=2) if each.tool == "set_plan"]
    assert refused.ok is False
    assert "1 of 1 revisions of this task's plan are used" in refused.output
    (told,) = answers(await messages(harness, 2), "set_plan")
    assert "go on with the plan as it is" in told


@pytest.mark.parametrize(
    ("unproven", "accepted"), [("flag", [False, True]), ("refuse", [False, False])]
)
async def test_requirement_16_a_claim_without_file_or_test_lowers_confidence_or_is_refused(
    unproven: str, accepted: list[bool], harness: RunHarness
) -> None:
    configure(harness, completion={"unproven": unproven})
    more = "plan: [write it, test it], max_attempts: 1"
    assert await harness.run(tasks("claims", more=more)) == 0
    *claimed, whole = await harness.told(Completion)
    assert [each.accepted for each in claimed] == accepted
    tests = [claim for each in claimed for claim in each.claims if claim.what == "all tests pass"]
    assert [claim.state for claim in tests] == [ClaimState.UNPROVEN] * 2
    assert [each.confidence for each in claimed] == [40, 60]
    assert claimed[0].doubts[0].startswith("nothing was observed that proves it")
    assert bool(claimed[1].flag) is accepted[1]
    opened = [claim.what for claim in whole.claims if claim.state is ClaimState.UNPROVEN]
    assert opened == [f"plan step: {title}" for title in ("write it", "test it")[accepted[1] :]]
    assert whole.confidence < 80
    plan = await harness.last(Plan)
    assert plan.current == 1 + accepted[1]
    assert whole.doubts == plan.flags
