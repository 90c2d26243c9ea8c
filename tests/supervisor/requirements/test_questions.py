"""What the originals got wrong about questions and listeners, a test for each requirement."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.scripted import Script, play
from midwatch_monitor.bus import LocalBus, Subscription
from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.config.tasks import Role, TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.records import (
    Actor,
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
)
from midwatch_supervisor.decide.supervision import Supervision
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.run.launch import begin_run, conduct
from midwatch_tests.acting import DONE, script, task_file
from midwatch_tests.deciding import answer
from midwatch_tests.factories import call, turn
from midwatch_tests.harness import RunHarness
from midwatch_tests.reading import records_of
from midwatch_tests.worker import Perform

_asked: list[list[EscalationState]] = []
"""What another reader of the journal saw of the escalation whenever the supervisor was asked."""
_answers = [True]
"""Whether the supervisor's model ever answers."""
_journal: list[Path] = []


@pytest.fixture(autouse=True)
def _clear_state(journal_file: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    _journal[:] = [journal_file]
    _asked.clear()
    _answers[:] = [True]


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


HELP = {"progress_percent": 10, "confidence": 80, "decision": "escalate"}
LOOKS = tuple(turn(*(call("look", at=9 * n + k) for k in range(9))) for n in range(9))


def script_for(role: Role, key: str) -> Script:
    asks = turn(call("reflect", **HELP), call("wait_for", name="go"))
    return script(*{"ask": (asks,), "look": LOOKS[:3], "long": LOOKS}[key], DONE)


def model_for(role: Role, key: str) -> Model:
    if role is Role.WORKER:
        return play(script_for(role, key))

    async def decide(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        async with await Journal.open_to_read(_journal[-1]) as journal:
            _asked.append(await states(journal))
        if not _answers[0]:
            await asyncio.Event().wait()
        nudge = answer("nudge", message="Look at the other file.")
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, nudge)])

    return FunctionModel(decide, model_name="boss")


def tasks(name: str, module: str = __name__) -> str:
    text = f'id: {name}, goal: Do it., acceptance: ["true"], max_attempts: 1'
    return task_file(module, text, tools=(wait_for, look)).replace(__name__, module)


async def states(journal: Journal) -> list[EscalationState]:
    return [each.state for each in await records_of(journal, Escalation)]


async def has_intervention(harness: RunHarness) -> bool:
    return bool(await harness.told(Intervention))


async def test_requirement_14_a_question_outlives_a_restart(harness: RunHarness) -> None:
    _answers[:] = [False]
    text = tasks("ask").replace("supervisor: none", f'supervisor: "scripted:{__name__}"')
    run = asyncio.create_task(harness.run(text))
    await harness.until(lambda: bool(_asked))
    run.cancel()  # while the supervisor thinks
    await asyncio.wait({run})
    assert _asked == [[EscalationState.OPEN]]
    assert await states(harness.journal) == [EscalationState.OPEN]
    assert await harness.told(Decision) == []
    _answers[:] = [True]
    again = asyncio.create_task(harness.resume())
    await harness.until(lambda: has_intervention(harness))
    harness.open_gate()
    assert await again == 0
    (decision,) = await harness.told(Decision)
    assert (decision.by, decision.author, decision.escalation) == (Actor.SUPERVISOR, "boss", 1)
    assert {each.id for each in await harness.told(Escalation)} == {1}
    messages = "".join(each.body.decode() for each in await harness.journal.messages(1))
    assert messages.count("Look at the other file.") == 1


async def test_requirement_14_without_a_supervisor_it_is_kept_and_answered_once_there_is_one(
    journal: Journal, at: datetime, perform: Perform, harness: RunHarness
) -> None:
    def lose_connection() -> str:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        await perform([("reflect", HELP)], lose_connection)
    soon = Settings(monitor=MonitorSettings(poll_seconds=0.01))
    for _ in range(2):  # another process the second time
        one = Monitor(journal=journal, bus=LocalBus(), settings=soon, run=1, clock=lambda: at)
        await one.look(everything=True)
    assert await states(journal) == [EscalationState.OPEN]
    assert await harness.told(Decision) == []
    other = Supervision(journal=journal, bus=LocalBus(), settings=soon, run=1, clock=lambda: at)
    await other.settle()
    assert await states(journal) == [EscalationState.OPEN, EscalationState.ANSWERED]
    await perform([("reflect", HELP)])
    assert len(await harness.told(Delivery)) == 1


class LossyBus(LocalBus):
    """A bus that loses every hint."""

    def publish(self, hint: Hint) -> None:
        """Lose the hint."""

    def subscribe(self, attempt: int | None = None) -> Subscription:
        return Subscription()


async def is_over(harness: RunHarness) -> bool:
    found = await harness.told(AttemptTransition)
    return bool(found) and found[-1].lifecycle is Lifecycle.COMPLETED


async def test_requirement_15_a_console_that_hangs_holds_nobody_up(harness: RunHarness) -> None:
    """Also without a bus."""
    awake, heard, bus = asyncio.Event(), list[int](), LossyBus()

    async def follow(entries: Sequence[Entry]) -> None:
        await awake.wait()
        heard.extend(entry.id for entry in entries)

    wanted = assignments(TaskFile.model_validate(yaml.safe_load(tasks("look"))), harness.folder)
    settings, home = harness.settings, harness.home
    resources, jobs = await begin_run(
        *(harness.journal, wanted), source="t", settings=settings, home=home, learning=RunLearning
    )
    clock = resources.clock
    learning = RunLearning(harness.journal, settings=settings, clock=clock, bus=bus)
    resources = replace(resources, bus=bus, learning=learning)
    run = asyncio.create_task(conduct(resources, jobs, follow))
    await harness.until(lambda: is_over(harness))
    assert len(await harness.told(Step)) == 28
    assert heard == []
    awake.set()
    assert await run == 0
    assert heard == [entry.id for entry in await harness.journal.entries()]


@pytest.mark.matrix
async def test_requirement_15_who_takes_no_output_holds_nobody_up(harness: RunHarness) -> None:
    (harness.folder / "tasks.yaml").write_text(tasks("long", module="test_questions"))
    process = await harness.start("run", "tasks.yaml", "--json", pipesize=4096, limit=1024)
    await harness.until(lambda: is_over(harness))
    assert process.stdout is not None
    lines = (await asyncio.wait_for(process.stdout.read(), 300)).splitlines()
    assert await process.wait() == 0
    assert sum(json.loads(line)["type"] == "step" for line in lines) == len(
        await harness.told(Step)
    )
