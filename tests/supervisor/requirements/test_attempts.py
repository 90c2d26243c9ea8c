"""What the originals got wrong about attempts, one test for each requirement they taught."""

import asyncio
import json
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable

import pytest
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.run import AgentRunResult

from midwatch_agents.scripted import Call, Phase, Script, Turn, play
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import ErrorSettings, PolicySettings, Settings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    Analysis,
    AnalysisAuthor,
    AttemptTransition,
    Cause,
    Checkpoint,
    Delivery,
    DeliveryState,
    Ending,
    Intervention,
    Lifecycle,
    Part,
    Step,
    TaskTransition,
    Terms,
)
from midwatch_stage.harness import RunHarness

Perform = Callable[..., Awaitable[AgentRunResult[str]]]

_met: dict[str, set[str]] = defaultdict(set)
"""Who has come to which meeting."""
_hangs = threading.Event()
_released = threading.Event()
_ended = threading.Event()
_asked: list[str] = []
"""The requests that reached the models of this module's own making, by task."""


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    _met.clear()
    _asked.clear()
    for event in (_hangs, _released, _ended):
        event.clear()


async def put(ctx: RunContext[object], path: str) -> str:
    """Write a file."""
    await ctx.workspace.write_bytes(path, b"text")
    return "written"


async def meet(name: str, at: str) -> str:
    """Wait for the other worker."""
    _met[at].add(name)
    nothing = LocalBus().subscribe()
    while len(_met[at]) < 2:
        await nothing.wait(0.005)
    return "met"


async def hang() -> str:
    """Hang."""
    _hangs.set()
    await asyncio.Event().wait()
    return "awake"


async def refuse_to_end() -> str:
    """Hang, and go on when cancelled."""
    _hangs.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        while not _released.is_set():
            await asyncio.shield(asyncio.to_thread(_released.wait, 30))
    _ended.set()
    return "late"


def explode() -> str:
    """Fail in a way that nobody has thought of."""
    raise LookupError("no such thing")


def call(tool: str, **args: object) -> Call:
    return Call(tool=tool, args=json.dumps(args))


def turn(*calls: Call) -> Turn:
    return Turn(calls=calls)


def reporting(progress: int, confidence: int, notes: str = "") -> Call:
    return call(
        "reflect",
        progress_percent=progress,
        confidence=confidence,
        decision="continue",
        notes=notes,
    )


def reports(name: str, *confidences: int) -> tuple[Turn, ...]:
    """Reports with gains, none before the other worker has made its own."""
    return tuple(
        turn(reporting(10 * n, value, f"{name} {n}"), call("meet", name=name, at=f"report {n}"))
        for n, value in enumerate(confidences, start=1)
    )


DONE = Turn(say="Done.")
WORK = (turn(call("put", path="out.txt")), DONE)
REPORT = call(
    "report_error",
    what_happened="The check failed.",
    category="permanent",
    root_cause="I wrote another file.",
    change="I write that file.",
)
SCRIPTS = {
    "sure": (*reports("sure", 81, 82, 83), DONE),
    "unsure": (*reports("unsure", 80, 60, 55), DONE),
    "stubborn": (turn(call("refuse_to_end")), turn(call("put", path="late.txt")), DONE),
    "good": WORK,
    "poor": (turn(REPORT), DONE),
    "hung": (turn(REPORT, call("hang")), DONE),
    "endless": (turn(call("put", path="{n}.txt")),),
    "broken": (turn(call("explode")), DONE),
    "big": (turn(call("put", path="begun.txt")), turn(call("hang"))),
    "big.1": WORK,
    "big.2": WORK,
    "vain": (turn(call("put", path="begun.txt")), turn(call("hang"))),
    "vain.1": (DONE,),
    "vain.2": WORK,
}
ERRORS = {"barred": (401,) * 9, "busy": (503,)}
"""The HTTP codes with which a provider answers before it does its work."""


def model_for(role: Role, key: str) -> Model:
    if key in SCRIPTS:
        return play(Script(phases=(Phase(turns=SCRIPTS[key]),)))

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        _asked.append(key)
        if len(_asked) <= len(ERRORS[key]):
            raise ModelHTTPError(ERRORS[key][len(_asked) - 1], "provider")
        return ModelResponse(parts=[TextPart("Done.")])

    return FunctionModel(answer)


def tasks(*names: str, more: str = "max_attempts: 2", check: str = "'true'") -> str:
    tools = [f"{__name__}:{tool.__name__}" for tool in (put, meet, hang, refuse_to_end, explode)]
    return "\n".join(
        [
            f'models: {{worker: "scripted:{__name__}@0", supervisor: none}}',
            f"workers: {{clerk: {{kind: task, tools: {tools}}}}}",
            "tasks:",
            *(f"  - {{id: {name}, goal: Do it., acceptance: [{check}], {more}}}" for name in names),
        ]
    )


async def attempts_at(harness: RunHarness) -> dict[str, list[int]]:
    """The ids of the attempts at each task."""
    return {
        task.name: [each.id for each in await harness.journal.attempts(task.id)]
        for task in await harness.journal.tasks(1)
    }


async def checkpoints(harness: RunHarness, attempt: int) -> list[Checkpoint]:
    steps = await harness.told(Step, attempt=attempt)
    return [step.checkpoint for step in steps if step.checkpoint is not None]


def reported(*confidences: int, name: str) -> list[Checkpoint]:
    return [
        Checkpoint(progress_percent=10 * n, confidence=value, notes=f"{name} {n}")
        for n, value in enumerate(confidences, start=1)
    ]


async def history(harness: RunHarness, attempt: int) -> str:
    return "".join(each.body.decode() for each in await harness.journal.messages(attempt))


# -- 5 -------------------------------------------------------------------------------------


async def test_requirement_5_two_workers_in_parallel_never_mix_their_checkpoints(
    harness: RunHarness,
) -> None:
    assert await harness.run(tasks("sure", "unsure")) == 0
    (sure,), (unsure,) = (await attempts_at(harness)).values()
    assert set(_met) == {"report 1", "report 2", "report 3"}  # neither went ahead of the other
    assert await checkpoints(harness, sure) == reported(81, 82, 83, name="sure")
    assert await checkpoints(harness, unsure) == reported(80, 60, 55, name="unsure")
    assert await harness.told(Alert, attempt=sure) == []
    (fell, *_) = await harness.told(Alert, attempt=unsure)
    assert (fell.key.rule, fell.value) == ("declining_confidence", 25)
    assert "unsure 1" not in await history(harness, sure)
    assert "sure 1" not in (await history(harness, unsure)).replace("unsure", "")


# -- 8 -------------------------------------------------------------------------------------

STOP = Intervention(action=Action.STOP, by=Actor.OPERATOR, message="enough")
STOPPED = AttemptTransition(
    lifecycle=Lifecycle.CANCELED, reason="stopped by operator: enough", ending=Ending.CANCELED
)


async def test_requirement_8_a_cancelled_worker_does_nothing_more_and_its_result_comes_too_late(
    harness: RunHarness,
) -> None:
    others = asyncio.all_tasks()
    run = asyncio.create_task(harness.run(tasks("stubborn")))
    await harness.until(_hangs.is_set)
    await harness.say(STOP)
    assert await run == 1
    before = await harness.journal.entries()
    _released.set()
    await harness.until(_ended.is_set)
    await asyncio.gather(*asyncio.all_tasks() - others, return_exceptions=True)
    assert await harness.journal.entries() == before
    assert list(harness.home.rglob("late.txt")) == []
    assert (await harness.told(AttemptTransition))[-1] == STOPPED
    assert (await harness.told(TaskTransition))[-1].reason == STOPPED.reason


@pytest.mark.parametrize("late", [Lifecycle.COMPLETED, Lifecycle.WORKING])
async def test_requirement_8_nothing_that_comes_late_overwrites_a_status(
    late: Lifecycle, harness: RunHarness
) -> None:
    run = asyncio.create_task(harness.run(tasks("hung")))
    await harness.until(_hangs.is_set)
    await harness.say(STOP)
    await run
    for state in (AttemptTransition(lifecycle=late), TaskTransition(lifecycle=late)):
        with pytest.raises(StaleIncarnationError, match="a late result cannot change that"):
            await harness.say(state)
    assert (await harness.told(AttemptTransition))[-1] == STOPPED
    assert (await harness.told(TaskTransition))[-1].lifecycle is Lifecycle.CANCELED


# -- 9 -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more", "reason", "endings", "code"),
    [
        ("good", "max_attempts: 1", "every acceptance check passed", [Ending.DONE], 0),
        (
            "poor", "max_attempts: 2", "acceptance failed: file out.txt",
            [Ending.UNACCEPTED, Ending.UNACCEPTED], 1,
        ),
        (
            "endless", "max_attempts: 2, budget: {requests: 3}", "out of budget: 3 of 3 requests",
            [Ending.OUT_OF_BUDGET], 4,
        ),
        ("broken", "max_attempts: 2", "LookupError: no such thing", [Ending.ERROR], 1),
        ("barred", "max_attempts: 2", "ModelHTTPError: status_code: 401", [Ending.ERROR], 1),
    ],
)  # fmt: skip
async def test_requirement_9_the_true_reason_is_stored_and_decides_whether_another_attempt_is_made(
    name: str, more: str, reason: str, endings: list[Ending], code: int, harness: RunHarness
) -> None:
    policy = PolicySettings(max_grants=0)
    harness.settings = harness.settings.model_copy(update={"policy": policy})
    assert await harness.run(tasks(name, more=more, check="file: out.txt")) == code
    states = [state for state in await harness.told(AttemptTransition) if state.ending]
    assert [state.ending for state in states] == endings
    assert {state.reason[: len(reason)] for state in states} == {reason}
    assert (await harness.told(TaskTransition))[-1].reason == states[-1].reason


async def test_requirement_9_who_was_restarted_is_tried_again_and_who_was_stopped_is_not(
    harness: RunHarness,
) -> None:
    run = asyncio.create_task(harness.run(tasks("hung", more="max_attempts: 3")))
    for number, action in enumerate((Action.RESTART, Action.STOP), start=1):
        await harness.until(_hangs.is_set)
        _hangs.clear()
        word = Intervention(action=action, by=Actor.OPERATOR, message="enough")
        await harness.say(word, attempt=number)
    assert await run == 1
    states = [state for state in await harness.told(AttemptTransition) if state.ending]
    assert [(state.ending, state.reason) for state in states] == [
        (Ending.RESTARTED, "restarted by operator: enough"),
        (Ending.CANCELED, "stopped by operator: enough"),
    ]


@pytest.mark.parametrize(("name", "asked", "code"), [("busy", 2, 0), ("barred", 1, 1)])
async def test_requirement_9_a_passing_reason_is_waited_out_and_a_lasting_one_ends_the_attempt(
    name: str, asked: int, code: int, harness: RunHarness
) -> None:
    assert await harness.run(tasks(name)) == code
    assert len(_asked) == asked
    causes = [(each.cause, each.by) for each in await harness.told(Analysis)]
    assert causes == ([(Cause.TRANSIENT, AnalysisAuthor.WATCH)] if name == "busy" else [])


@pytest.mark.parametrize(
    ("policy", "runs"), [(Cause.PERMANENT, 1), (Cause.UNKNOWN, 2), (Cause.TRANSIENT, 3)]
)
async def test_requirement_9_an_error_of_unknown_cause_is_treated_as_the_settings_say(
    policy: Cause, runs: int, perform: Perform, harness: RunHarness
) -> None:
    errors = ErrorSettings(unknown=policy, transient_tries=2, backoff_seconds=0)
    same = ("run_command", {"command": "out broken"})
    unknown = {**json.loads(REPORT.args), "category": "unknown"}
    again = [("report_error", unknown), same]
    await perform([same], again, [same], [same], settings=Settings(errors=errors))
    steps = [step for step in await harness.told(Step) if step.tool == "run_command"]
    refused = [step.output.startswith("[midwatch] refused") for step in steps]
    assert refused == [False] * runs + [True] * (4 - runs)
    (analysis, *_) = await harness.told(Analysis)
    assert analysis.cause is Cause.UNKNOWN


# -- 12 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "code"), [("big", 0), ("vain", 1)])
async def test_requirement_12_a_split_makes_child_tasks_and_its_parent_is_not_retried(
    name: str, code: int, harness: RunHarness
) -> None:
    run = asyncio.create_task(harness.run(tasks(name, more="max_attempts: 3")))
    await harness.until(_hangs.is_set)
    parts = tuple(Part(title=f"Part {n}", goal="Write out.txt.") for n in (1, 2))
    await harness.say(
        Intervention(action=Action.SPLIT, by=Actor.SUPERVISOR, terms=Terms(parts=parts))
    )
    assert await run == code
    made = await attempts_at(harness)
    assert list(made) == [name, f"{name}.1", f"{name}.2"]
    assert len(made[name]) == 1
    assert (await harness.told(AttemptTransition, attempt=1))[-1].ending is Ending.SPLIT
    assert (await harness.told(Delivery))[0].state is DeliveryState.DELIVERED
    before = await harness.journal.entries()
    assert await harness.resume() == code
    assert await harness.journal.entries() == before
