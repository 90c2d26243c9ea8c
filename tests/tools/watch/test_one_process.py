"""An agent that is watched, and supervised, in its own process."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelRequest
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from midwatch_monitor import records as r
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_tests.reading import guidance, prompts, records_of
from midwatch_tests.worker import SOON, Build, scripted
from midwatch_tools import Watch

FAILED = "E   AssertionError: 3 != 4\nFAILED tests/test_sum.py::test_sum\n[exit code: 1]"


def run_tests() -> str:
    return FAILED


def looped_turns(times: int = 13) -> tuple[Any, ...]:
    """Edits of one file, each with an equal failure of the tests after it."""
    edit = ("put", {"path": "sum.py", "text": "x = 1"})
    return tuple([edit, ("run_tests", {})] for _ in range(times))


@pytest.fixture
def looping_agent(worker: Build) -> Agent[None, str]:
    return worker(*looped_turns(), tools=(run_tests,))


async def test_each_alert_is_a_log_line_and_a_call(
    looping_agent: Agent[None, str],
    journal_file: Path,
    workspace: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    heard: list[r.Alert] = []
    watch = Watch(journal=str(journal_file), root=workspace, on_alert=heard.append)
    await looping_agent.run("Mend the sum.", capabilities=[watch])
    assert any(each.severity is r.Severity.CRITICAL for each in heard)
    lines = [each.message for each in caplog.records if each.name == "midwatch_tools.watch"]
    assert len(lines) == len(heard)
    assert all(each.key.rule in line for each, line in zip(heard, lines, strict=True))


def explode(alert: r.Alert) -> None:
    raise LookupError(alert.summary)


async def explode_later(alert: r.Alert) -> None:
    raise LookupError(alert.summary)


@pytest.mark.parametrize("on_alert", [explode, explode_later])
async def test_a_callback_that_fails_ends_neither_the_watch_nor_the_work(
    looping_agent: Agent[None, str],
    journal_file: Path,
    caplog: pytest.LogCaptureFixture,
    on_alert: Callable[[r.Alert], Any],
) -> None:
    watch = Watch(journal=str(journal_file), on_alert=on_alert)
    assert (await looping_agent.run("Mend the sum.", capabilities=[watch])).output == "Done."
    assert "on_alert failed" in caplog.text
    assert await names(journal_file) == [(1, "agent", 27)]


async def test_an_asynchronous_callback_is_done_before_the_run_has_ended(
    looping_agent: Agent[None, str], journal_file: Path, workspace: Path
) -> None:
    heard: list[r.Alert] = []
    bus = LocalBus()

    async def call(alert: r.Alert) -> None:
        async with bus.subscribe() as hints:
            await hints.wait(0.1)
        heard.append(alert)

    watch = Watch(journal=journal_file, root=str(workspace), on_alert=call)
    await looping_agent.run("Mend the sum.", capabilities=[watch])
    assert any(each.severity is r.Severity.CRITICAL for each in heard)


async def interventions(file: Path) -> list[r.Intervention]:
    async with await Journal.open_to_read(file) as journal:
        return await records_of(journal, r.Intervention)


@pytest.mark.parametrize("supervisor", ["policy", "model"])
async def test_a_supervisor_nudges_in_the_same_process(
    worker: Build, journal_file: Path, workspace: Path, supervisor: str
) -> None:
    heard: list[r.Alert] = []
    bus = LocalBus()

    async def run_slow_tests() -> str:
        async with asyncio.timeout(120), bus.subscribe() as hints:
            while heard and not await interventions(journal_file):
                await hints.wait(0.1)  # which leaves the supervisor time to speak
        return FAILED

    turns: tuple[Any, ...] = tuple([turn[0], ("run_slow_tests", {})] for turn in looped_turns())
    watch = Watch(
        journal=str(journal_file),
        root=workspace,
        settings=SOON,
        bus=bus,
        supervisor="policy" if supervisor == "policy" else TestModel(),
        on_alert=lambda alert: heard.append(alert) if alert.severity.alarm else None,
        seconds=count().__next__,
    )
    agent = worker(*turns, tools=(run_slow_tests,))
    result = await agent.run("Mend the sum.", capabilities=[watch])
    assert guidance(result.all_messages())


def test_a_supervisor_that_cannot_be_is_refused_at_once() -> None:
    with pytest.raises(UserError, match="nobody"):
        Watch(supervisor="nobody:nothing")


@pytest.mark.parametrize(
    ("watch", "offered"),
    [
        ({}, {"reflect", "record_fact"}),
        ({"tools": "reflect"}, {"reflect"}),
        ({"gates": True}, {"reflect", "record_fact", "report_error"}),
        ({"mode": "observe"}, set[str]()),
    ],
    ids=["as it is", "reflect only", "with gates", "observing"],
)
async def test_an_agent_is_offered_what_it_was_asked_for(
    journal_file: Path, watch: dict[str, Any], offered: set[str]
) -> None:
    model = TestModel(call_tools=[])
    await Agent(model).run("Look.", capabilities=[Watch(journal=str(journal_file), **watch)])
    parameters = model.last_model_request_parameters
    assert parameters is not None
    assert {tool.name for tool in parameters.function_tools} == offered


async def test_an_agent_that_is_only_observed_is_told_nothing_and_judged_all_the_same(
    looping_agent: Agent[None, str], journal_file: Path
) -> None:
    heard: list[r.Alert] = []
    watch = Watch(journal=str(journal_file), mode="observe", on_alert=heard.append)
    result = await looping_agent.run("Mend the sum.", capabilities=[watch])
    assert prompts(result.all_messages()) == ["Mend the sum."]
    assert not any(m.instructions for m in result.all_messages() if isinstance(m, ModelRequest))
    assert heard
    assert "missed_checkpoint" not in {each.key.rule for each in heard}


async def test_an_agent_with_a_tool_of_the_same_name_is_only_observed(
    journal_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def reflect(question: str) -> str:
        return "It depends."

    model = TestModel()
    agent = Agent(model, tools=[reflect], capabilities=[Watch(journal=str(journal_file))])
    assert "It depends." in (await agent.run("Look.")).output
    assert "agent has its own tool reflect, so it is only observed" in caplog.text
    assert await names(journal_file) == [(1, "agent", 2)]
    parameters = model.last_model_request_parameters
    assert parameters is not None
    assert [tool.name for tool in parameters.function_tools] == ["reflect"]


async def test_the_error_about_two_watches_on_one_agent_names_them(journal_file: Path) -> None:
    two = [Watch(journal=str(journal_file)) for _ in range(2)]
    with pytest.raises(UserError, match=r"^Midwatch's `Watch` .* tool from Midwatch's `Watch`"):
        await Agent(TestModel(), capabilities=two).run("Look.")


async def names(file: Path) -> list[tuple[int, str, int]]:
    """The tasks in a journal: their run, their name, and how many steps they took."""
    async with await Journal.open_to_read(file) as journal:
        return [
            (task.run, task.name, len(await journal.entries(task=task.id, kinds=(r.Step,))))
            for run in await journal.runs()
            for task in await journal.tasks(run.id)
        ]


async def test_sub_agents_are_tasks_of_their_parents_run(worker: Build, journal_file: Path) -> None:
    child = Agent(
        scripted("Looked."), capabilities=[Watch(journal=str(journal_file), name="child")]
    )

    async def ask_child() -> str:
        return (await child.run("Look.")).output

    watch = Watch(journal=str(journal_file), name="parent")
    agent = worker([("ask_child", {}), ("ask_child", {})], tools=(ask_child,))
    await agent.run("Mend it.", capabilities=[watch])
    await child.run("Look again.")
    assert await names(journal_file) == [
        (1, "parent", 3),
        (1, "parent/1-child", 1),
        (1, "parent/2-child", 1),
        (2, "child", 1),
    ]


async def stream(agent: Agent[None, str]) -> str:
    async with agent.run_stream("Look.") as result:
        return await result.get_output()


async def step_by_step(agent: Agent[None, str]) -> str:
    async with agent.iter("Look.") as run:
        async for _ in run:
            pass
    assert run.result is not None
    return run.result.output


async def in_one_go(agent: Agent[None, str]) -> str:
    return (await agent.run("Look.")).output


async def in_a_thread(agent: Agent[None, str]) -> str:
    def work() -> str:
        with asyncio.Runner() as runner:
            asyncio.set_event_loop(runner.get_loop())
            return agent.run_sync("Look.").output

    return await asyncio.to_thread(work)


async def say(messages: list[ModelMessage], info: Any) -> AsyncIterator[str]:
    yield "Look"
    yield "ed."


@pytest.mark.parametrize("start", [in_one_go, in_a_thread, stream, step_by_step])
async def test_however_it_is_started_a_run_is_an_attempt(
    journal_file: Path, start: Callable[[Agent[None, str]], Any]
) -> None:
    function = scripted("Looked.").function
    assert function is not None
    model = FunctionModel(function, stream_function=say)
    agent = Agent(model, capabilities=[Watch(journal=str(journal_file))])
    assert await start(agent) == "Looked."
    assert await names(journal_file) == [(1, "agent", 1)]


Issue = Callable[[r.Action, r.Actor], Awaitable[None]]


@pytest.fixture
def issue(journal_file: Path, at: datetime) -> Issue:
    """Issues an intervention for the first attempt, as another process does."""

    async def write(action: r.Action, by: r.Actor) -> None:
        said = r.Intervention(action=action, by=by, message="Go on.")
        async with await Journal.open(journal_file) as journal:
            await journal.commit(r.Commit(drafts=(r.Draft(record=said, at=at, task=1, attempt=1),)))

    return write


async def test_an_agent_that_begins_to_wait_for_a_person_is_a_call(
    worker: Build, journal_file: Path, issue: Issue
) -> None:
    heard: list[str] = []

    async def be_paused() -> str:
        await issue(r.Action.PAUSE, r.Actor.OPERATOR)
        return "paused"

    answers: list[asyncio.Future[None]] = []

    def answer(why: str) -> None:
        heard.append(why)
        answers.append(asyncio.ensure_future(issue(r.Action.NUDGE, r.Actor.OPERATOR)))

    watch = Watch(journal=str(journal_file), on_waiting=answer, seconds=count().__next__)
    agent = worker([("be_paused", {})], [("run_tests", {})], tools=(be_paused, run_tests))
    async with asyncio.timeout(300):
        await agent.run("Mend the sum.", capabilities=[watch])
        await asyncio.gather(*answers)
    assert heard == ["Go on."]


async def test_what_is_said_to_an_agent_is_told_once_though_it_asks_again_at_once(
    worker: Build, journal_file: Path, issue: Issue
) -> None:
    async def be_told() -> str:
        await issue(r.Action.NUDGE, r.Actor.OPERATOR)
        return "told"

    watch = Watch(journal=str(journal_file), seconds=count().__next__)
    agent = worker([("be_told", {})], *looped_turns(3), tools=(be_told, run_tests))
    result = await agent.run("Mend the sum.", capabilities=[watch])
    assert len(guidance(result.all_messages())) == 1
    async with await Journal.open_to_read(journal_file) as journal:
        assert len(await records_of(journal, r.Delivery)) == 1


async def test_that_an_agent_needs_a_person_is_logged_and_a_call_once_though_it_works_on_at_once(
    worker: Build, journal_file: Path, issue: Issue, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = 0.0

    async def be_asked_about() -> str:
        nonlocal seconds
        seconds += 1
        await issue(r.Action.ASK_OPERATOR, r.Actor.POLICY)
        return "asked"

    heard: list[str] = []
    watch = Watch(
        journal=str(journal_file),
        supervisor="policy",
        on_waiting=heard.append,
        seconds=lambda: seconds,
    )
    agent = worker([("be_asked_about", {})], *looped_turns(2), tools=(be_asked_about, run_tests))
    await agent.run("Mend the sum.", capabilities=[watch])
    assert caplog.text.count("agent needs a person: Go on.") == 1
    assert heard == ["Go on."]
    async with await Journal.open_to_read(journal_file) as journal:
        assert len(await records_of(journal, r.Delivery)) == 1
