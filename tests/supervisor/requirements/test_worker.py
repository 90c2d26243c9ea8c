"""What the originals got wrong in what a worker is told, a test for each requirement."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.run import AgentRunResult

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AttemptTransition,
    ClaimState,
    Completion,
    Decision,
    Entry,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Plan,
    PlanStep,
    PlanStepState,
    Step,
)
from midwatch_stage.harness import RunHarness
from midwatch_stage.watched import uncoded
from midwatch_supervisor.cli import main

Perform = Callable[..., Awaitable[AgentRunResult[str]]]

_awaited = threading.Event()
"""Set once the test has seen what the workers wait for."""


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    _awaited.clear()


async def put(ctx: RunContext[object], path: str) -> str:
    """Write a file."""
    await ctx.workspace.write_bytes(path, path.encode())
    return "written"


async def look(at: int) -> str:
    """Look at something."""
    return f"{at} is as it was"


async def run_command(command: str) -> str:
    """Run a command."""
    return "1 failed in 0.1s\n[exit code: 1]" if "broken" in command else "3 passed in 0.1s"


async def hold() -> str:
    """Wait for the test."""
    await asyncio.to_thread(_awaited.wait, 20)
    return "held"


async def hang() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return "awake"


def call(tool: str, **args: object) -> Call:
    return Call(tool=tool, args=json.dumps(args))


def turn(*calls: Call) -> Turn:
    return Turn(calls=calls)


def reporting(progress: int = 10, decision: str = "continue") -> Call:
    return call("reflect", progress_percent=progress, confidence=80, decision=decision)


def completing(*files: str, claims: tuple[str, ...] = ()) -> Call:
    functional = [{"what": claim, "state": "passed"} for claim in claims]
    return call(
        "complete_step",
        goal="It is written.",
        files=files,
        structural=[],
        functional=functional,
        confidence=80,
    )


def planning(*titles: str) -> Call:
    return call("set_plan", steps=titles)


HELP = reporting(decision="escalate")
ASK = turn(HELP, call("hold"))
PUT = call("put", path="out.txt")
TEST = call("run_command", command="pytest")
REPORT = call(
    "report_error",
    what_happened="The check failed.",
    category="permanent",
    root_cause="I wrote nothing.",
    change="I plan anew.",
)
CHECK = call(
    "check_plan",
    assumption="The file is there.",
    reality="It is.",
    impact="None.",
    options=["Go on."],
    choice="Go on.",
)
DONE = Turn(say="Done.")


def script(*phases: tuple[Turn, ...], again: tuple[Turn, ...] = ()) -> Script:
    return Script(
        phases=tuple(Phase(turns=turns) for turns in phases),
        again=(Phase(turns=again),) if again else (),
    )


SCRIPTS = {
    "ask": script((ASK, DONE)),
    "hung": script((turn(call("hang")), DONE)),
    "talks": script((ASK,), (turn(reporting()), turn(reporting(20)), turn(reporting(30)), DONE)),
    "mends": script((ASK,), (turn(reporting(), PUT), turn(TEST), turn(call("look", at=1)), DONE)),
    "revises": script(
        (turn(planning("another way")), DONE), again=(turn(REPORT, planning("a third way")), DONE)
    ),
    "claims": script(
        (
            turn(completing(claims=("all tests pass",))),
            turn(PUT),
            turn(completing("out.txt", claims=("all tests pass",))),
            turn(CHECK, call("look", at=1)),
            DONE,
        )
    ),
}


def script_for(role: Role, key: str) -> Script:
    return SCRIPTS[key]


def tasks(*names: str, more: str = "", check: str = "'true'") -> str:
    tools = [f"{__name__}:{tool.__name__}" for tool in (put, look, run_command, hold, hang)]
    rest = f"max_attempts: 1, {more}" if "max_attempts" not in more else more
    return "\n".join(
        [
            f'models: {{worker: "scripted:{__name__}@0", supervisor: none}}',
            f"workers: {{clerk: {{kind: task, tools: {tools}}}}}",
            "tasks:",
            *(f"  - {{id: {name}, goal: Do it., acceptance: [{check}], {rest}}}" for name in names),
        ]
    )


def configure(harness: RunHarness, **sections: Any) -> None:
    """Set some sections of the harness's configuration."""
    known = harness.settings.model_dump(include={"monitor", "run"})
    known["monitor"]["tick_seconds"] = 0.05
    harness.settings = Settings.model_validate({**known, **sections})


async def messages(harness: RunHarness, attempt: int = 1) -> list[ModelMessage]:
    return [
        message
        for each in await harness.journal.messages(attempt)
        for message in ModelMessagesTypeAdapter.validate_json(each.body)
    ]


def parts(message: ModelMessage, kind: type[ToolReturnPart | UserPromptPart]) -> list[str]:
    """The texts of the results or of the prompts of a request."""
    if not isinstance(message, ModelRequest):
        return []
    return [uncoded(str(part.content)) for part in message.parts if isinstance(part, kind)]


async def answers(harness: RunHarness, tool: str, attempt: int = 1) -> list[str]:
    return [
        str(part.content)
        for message in await messages(harness, attempt)
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart) and part.tool_name == tool
    ]


async def issued(harness: RunHarness) -> bool:
    return bool(await harness.told(Intervention))


# -- 4 -------------------------------------------------------------------------------------


async def test_requirement_4_a_parked_worker_is_not_flagged_while_a_hung_one_beside_it_is(
    harness: RunHarness, journal_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = dict.fromkeys(("model", "command", "idle", "unmoved"), "1s")
    asks = {"explicit_escalation": ["ask_operator"], "silence": ["observe"]}
    configure(
        harness,
        rules={"silence": limits},
        policy={"rules": asks, "person": {"timeout_minutes": 60}},
    )
    run = asyncio.create_task(harness.run(tasks("ask", "hung")))
    await harness.until(lambda: issued(harness))
    _awaited.set()
    asks_first, _ = await harness.journal.tasks(1)
    (asking,) = await harness.journal.attempts(asks_first.id)  # which of both begins first is open

    async def waited() -> bool:
        found = await harness.journal.entries(attempt=asking.id, kinds=(AttemptTransition,))
        since = datetime.now(UTC) - found[-1].at
        return _lifecycle(found[-1]) is Lifecycle.INPUT_REQUIRED and since > timedelta(seconds=2)

    await harness.until(waited)
    assert await asyncio.to_thread(main, ["status", "--json", "--journal", str(journal_file)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["task"], line["lifecycle"], line["health"]) for line in lines] == [
        ("ask", "input-required", "stuck"),  # by its own call for help, not by its silence
        ("hung", "working", "unknown"),
    ]
    parked = (await harness.journal.entries(attempt=asking.id, kinds=(AttemptTransition,)))[-1].at
    flagged = await harness.told(Alert, attempt=asking.id)
    assert "explicit_escalation" in {alert.key.rule for alert in flagged}
    # Until then a slow machine may have kept it silent for a second, too.
    silent = [alert for alert in flagged if alert.key.rule == "silence" and alert.firing]
    assert [alert for alert in silent if alert.since_at is None or alert.since_at > parked] == []
    for attempt in (1, 2):
        await harness.say(Intervention(action=Action.STOP, by=Actor.OPERATOR), attempt=attempt)
    assert await run == 1


def _lifecycle(entry: Entry) -> Lifecycle | None:
    return entry.record.lifecycle if isinstance(entry.record, AttemptTransition) else None


# -- 10 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "outcome"), [("talks", Outcome.NO_EFFECT), ("mends", Outcome.RECOVERED)]
)
async def test_requirement_10_the_next_turn_holds_the_answer_and_only_a_change_resolves_it(
    name: str, outcome: Outcome, harness: RunHarness
) -> None:
    run = asyncio.create_task(harness.run(tasks(name)))
    await harness.until(lambda: issued(harness))
    _awaited.set()
    assert await run == 0
    (entry,) = await harness.journal.entries(kinds=(Intervention,))
    (decision,) = await harness.told(Decision)
    first, second, *_ = _turns(await messages(harness))
    (guidance,) = [text for each in second for text in parts(each, UserPromptPart)]
    assert not any("[midwatch #" in text for each in first for text in parts(each, UserPromptPart))
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


# -- 11 ------------------------------------------------------------------------------------


async def test_requirement_11_a_revision_keeps_what_is_completed_and_what_is_skipped(
    perform: Perform, journal: Journal
) -> None:
    steps = (
        PlanStep(title="draw it", state=PlanStepState.SKIPPED),
        PlanStep(title="write it"),
        PlanStep(title="test it"),
    )
    wrote = ("put", {"path": "a.py", "text": "1"})
    finished = ("complete_step", json.loads(completing("a.py").args))
    await perform([wrote, finished], [("set_plan", {"steps": ["try it"]})], plan=steps)
    found = [each.record for each in await journal.entries(kinds=(Plan,))]
    last = found[-1]
    assert isinstance(last, Plan)
    assert [(step.title, step.state) for step in last.steps] == [
        ("draw it", PlanStepState.SKIPPED),
        ("write it", PlanStepState.DONE),
        ("try it", PlanStepState.OPEN),
    ]
    assert last.revision == 1


async def test_requirement_11_revisions_are_capped_per_task_and_one_too_many_fails_visibly(
    harness: RunHarness,
) -> None:
    configure(harness, plan={"max_revisions": 1})
    more = "plan: [write it, test it], max_attempts: 2"
    assert await harness.run(tasks("revises", more=more, check="'false'")) == 1
    assert (await harness.told(Plan, attempt=1))[-1].open_titles == ("another way",)
    assert [plan.revision for plan in await harness.told(Plan, attempt=2)] == [0]
    (refused,) = [each for each in await harness.told(Step, attempt=2) if each.tool == "set_plan"]
    assert refused.ok is False
    assert "1 of 1 revisions of this task's plan are used" in refused.output
    (told,) = await answers(harness, "set_plan", 2)
    assert "go on with the plan as it is" in told


# -- 16 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unproven", "accepted"), [("flag", [False, True]), ("refuse", [False, False])]
)
async def test_requirement_16_a_claim_without_file_or_test_lowers_confidence_or_is_refused(
    unproven: str, accepted: list[bool], harness: RunHarness
) -> None:
    configure(harness, completion={"unproven": unproven})
    assert await harness.run(tasks("claims", more="plan: [write it, test it]")) == 0
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
    plan = (await harness.told(Plan))[-1]
    assert plan.current == 1 + accepted[1]
    assert whole.doubts == plan.flags
