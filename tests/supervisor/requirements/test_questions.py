"""What the originals got wrong about questions and listeners, a test for each requirement."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.run import AgentRunResult

from midwatch_agents.scripted import Call, Phase, Script, Turn, play
from midwatch_monitor.bus import CAPACITY, LocalBus, Subscription
from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.config.tasks import Role, TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.records import (
    Actor,
    Attempt,
    AttemptTransition,
    Decision,
    Delivery,
    Entry,
    Escalation,
    EscalationState,
    Hint,
    Intervention,
    Lifecycle,
    Step,
    TaskTransition,
)
from midwatch_stage.harness import RunHarness
from midwatch_supervisor.decide.supervision import Supervision
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.run.launch import Follow, begin_run, conduct
from midwatch_supervisor.tui.state.feed import Feed

Perform = Callable[..., Awaitable[AgentRunResult[str]]]

_asked: list[list[EscalationState]] = []
"""What another reader of the journal saw of the escalation whenever the supervisor was asked."""
_answers = [True]
"""Whether the supervisor's model ever answers."""


async def wait_for(ctx: RunContext[object], name: str) -> str:
    """Wait until there is a file above the workspace."""
    folder = Path(await ctx.workspace.working_dir()).parents[3]
    nothing = LocalBus().subscribe()
    while not (folder / name).exists():
        await nothing.wait(0.005)
    return "there it is"


async def look(at: int) -> str:
    """Look at something."""
    return f"{at} is as it was"


def call(tool: str, **args: object) -> Call:
    return Call(tool=tool, args=json.dumps(args))


HELP = {"progress_percent": 10, "confidence": 80, "decision": "escalate"}
DONE = Turn(say="Done.")
WAIT = call("wait_for", name="go")
LOOKS = tuple(Turn(calls=tuple(call("look", at=9 * n + k) for k in range(9))) for n in range(9))
SCRIPTS = {
    "ask": (Turn(calls=(call("reflect", **HELP), WAIT)), DONE),
    "look": (*LOOKS[:3], DONE),
    "long": (*LOOKS, DONE),
    "gate": (LOOKS[0], Turn(calls=(WAIT,)), *LOOKS[1:3], DONE),
}
NUDGE = {
    "action": "nudge",
    "diagnosis": "wrong_approach",
    "message": "Look at the other file.",
    "rationale": "It asks for help.",
    "evidence": [1],
}


def model_for(role: Role, key: str) -> Model:
    if role is Role.WORKER:
        return play(Script(phases=(Phase(turns=SCRIPTS[key]),)))

    async def decide(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        async with await Journal.open_to_read(_journal[-1]) as journal:
            found = await journal.entries(kinds=(Escalation,))
        _asked.append([each.record.state for each in found if isinstance(each.record, Escalation)])
        if not _answers[0]:
            await asyncio.Event().wait()
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, NUDGE)])

    return FunctionModel(decide, model_name="boss")


_journal: list[Path] = []


@pytest.fixture(autouse=True)
def _fresh(journal_file: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    _journal[:] = [journal_file]
    _asked.clear()
    _answers[:] = [True]


def tasks(name: str, *, supervisor: str = "none", module: str = __name__) -> str:
    tools = [f"{module}:{tool.__name__}" for tool in (wait_for, look)]
    return f"""
        models: {{worker: "scripted:{module}@0", supervisor: "{supervisor}"}}
        workers: {{clerk: {{kind: task, tools: {tools}}}}}
        tasks: [{{id: {name}, goal: Do it., acceptance: ["true"], max_attempts: 1}}]
    """


async def states(journal: Journal) -> list[EscalationState]:
    found = await journal.entries(kinds=(Escalation,))
    return [each.record.state for each in found if isinstance(each.record, Escalation)]


# -- 14 ------------------------------------------------------------------------------------


async def test_requirement_14_a_question_is_stored_before_it_is_asked_and_outlives_a_restart(
    harness: RunHarness,
) -> None:
    _answers[:] = [False]
    text = tasks("ask", supervisor=f"scripted:{__name__}")
    run = asyncio.create_task(harness.run(text))
    await harness.until(lambda: bool(_asked))
    run.cancel()  # while the supervisor thinks
    await asyncio.wait({run})
    assert _asked == [[EscalationState.OPEN]]
    assert await states(harness.journal) == [EscalationState.OPEN]
    assert await harness.told(Decision) == []
    _answers[:] = [True]
    again = asyncio.create_task(harness.resume())
    await harness.until(lambda: issued(harness))
    (harness.folder / "go").touch()
    assert await again == 0
    (decision,) = await harness.told(Decision)
    assert (decision.by, decision.author, decision.escalation) == (Actor.SUPERVISOR, "boss", 1)
    assert {each.id for each in await harness.told(Escalation)} == {1}
    messages = "".join(each.body.decode() for each in await harness.journal.messages(1))
    assert messages.count("Look at the other file.") == 1


async def issued(harness: RunHarness) -> bool:
    return bool(await harness.told(Intervention))


def monitor(journal: Journal, at: datetime) -> Monitor:
    return Monitor(journal=journal, bus=LocalBus(), settings=Settings(), run=1, clock=lambda: at)


async def test_requirement_14_without_a_supervisor_it_is_kept_and_answered_once_there_is_one(
    journal: Journal, attempt: Attempt, at: datetime, perform: Perform, harness: RunHarness
) -> None:
    def killed() -> str:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        await perform([("reflect", HELP)], killed)
    for _ in range(2):  # another process the second time
        await monitor(journal, at).look(everything=True)
    assert await states(journal) == [EscalationState.OPEN]
    assert await harness.told(Decision) == []
    supervision = Supervision(
        journal=journal,
        bus=LocalBus(),
        settings=Settings(monitor=MonitorSettings(poll_seconds=0.01)),
        run=1,
        clock=lambda: at,
    )
    helper = asyncio.create_task(supervision.run())
    await harness.until(lambda: issued(harness))
    helper.cancel()
    await asyncio.wait({helper})
    assert await states(journal) == [EscalationState.OPEN, EscalationState.ANSWERED]
    await perform([("reflect", HELP)])
    assert len(await harness.told(Delivery)) == 1


# -- 15 ------------------------------------------------------------------------------------


class Deaf(LocalBus):
    """A bus that nothing comes through."""

    def publish(self, hint: Hint) -> None:
        """Lose it."""

    def subscribe(self, attempt: int | None = None) -> Subscription:
        return Subscription()


async def conducted(
    harness: RunHarness,
    name: str,
    bus: LocalBus,
    follow: Follow,
) -> int:
    """Run a task over a bus of our own, with somebody who follows it; the exit code."""
    wanted = assignments(TaskFile.model_validate(yaml.safe_load(tasks(name))), harness.folder)
    resources, jobs = await begin_run(
        harness.journal,
        wanted,
        source="t",
        settings=harness.settings,
        home=harness.home,
        learning=RunLearning,
    )
    learning = RunLearning(
        harness.journal, settings=harness.settings, clock=resources.clock, bus=bus
    )
    return await conduct(replace(resources, bus=bus, learning=learning), jobs, follow)


async def ignore(entries: Sequence[Entry]) -> None:
    return


async def test_requirement_15_without_a_listener_or_a_bus_the_work_goes_on(
    harness: RunHarness,
) -> None:
    assert await conducted(harness, "look", Deaf(), ignore) == 0
    assert len(await harness.told(Step)) == 28


async def test_requirement_15_who_takes_no_hints_loses_the_oldest_and_holds_nobody_up(
    harness: RunHarness,
) -> None:
    bus = LocalBus()
    slow = bus.subscribe()
    for entry in range(CAPACITY):
        bus.publish(Hint(entry=-entry, kind="step"))
    assert await conducted(harness, "look", bus, ignore) == 0
    left = await slow.wait(0)
    last = await harness.journal.last_id()
    assert len(left) == CAPACITY
    assert slow.dropped > 28
    assert [hint.entry for hint in left[:1]] == [-slow.dropped]
    assert left[-1].entry == last


async def test_requirement_15_a_console_that_hangs_holds_nobody_up_and_then_misses_nothing(
    harness: RunHarness,
) -> None:
    awake, heard = asyncio.Event(), list[int]()

    async def follow(entries: Sequence[Entry]) -> None:
        await awake.wait()
        heard.extend(entry.id for entry in entries)

    run = asyncio.create_task(conducted(harness, "look", LocalBus(), follow))
    await harness.until(lambda: is_over(harness))
    assert heard == []
    awake.set()
    assert await run == 0
    assert heard == [entry.id for entry in await harness.journal.entries()]


async def is_over(harness: RunHarness) -> bool:
    found = await harness.told(AttemptTransition)
    return bool(found) and found[-1].lifecycle is Lifecycle.COMPLETED


@pytest.mark.matrix
async def test_requirement_15_a_reader_of_the_output_that_takes_nothing_holds_nobody_up(
    harness: RunHarness,
) -> None:
    (harness.folder / "tasks.yaml").write_text(tasks("long", module="test_questions"))
    process = await harness.start("run", "tasks.yaml", "--json", pipesize=4096, limit=1024)
    await harness.until(lambda: is_over(harness))
    assert process.stdout is not None
    lines = (await asyncio.wait_for(process.stdout.read(), 300)).splitlines()
    assert await process.wait() == 0
    assert sum(json.loads(line)["type"] == "step" for line in lines) == len(
        await harness.told(Step)
    )


async def test_requirement_15_who_attaches_midway_gets_all_from_the_beginning_in_sequence(
    harness: RunHarness, journal_file: Path
) -> None:
    run = asyncio.create_task(harness.run(tasks("gate")))
    await harness.until(lambda: at_the_gate(harness))
    entries: list[Entry] = []
    async with await Journal.open_to_read(journal_file) as own:
        feed = Feed(own, run=1, bus=LocalBus(), poll_seconds=0.01, hertz=1_000)
        async with asyncio.timeout(120), aclosing(feed.batches()) as batches:
            async for batch in batches:
                entries += batch.entries
                (harness.folder / "go").touch()
                if any(ends(each) for each in batch.entries):
                    break
    assert await run == 0
    assert entries == (await harness.journal.entries())[: len(entries)]
    numbers = [entry.seq for entry in entries if entry.attempt == 1 and entry.seq is not None]
    assert numbers == list(range(1, len(numbers) + 1))


def ends(entry: Entry) -> bool:
    return isinstance(entry.record, TaskTransition) and entry.record.lifecycle.over


async def at_the_gate(harness: RunHarness) -> bool:
    return len(await harness.told(Step)) == 9
