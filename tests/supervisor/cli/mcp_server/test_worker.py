"""A worker that Midwatch did not start, whose MCP connection is an attempt."""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from mcp import Client, StdioServerParameters

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Alert,
    Analysis,
    AttemptTransition,
    Checkpoint,
    Delivery,
    DeliveryState,
    Fact,
    Intervention,
    Lifecycle,
    Step,
    SupervisedBy,
)
from midwatch_supervisor.cli.mcp_server.worker import watch_of, worker_server
from midwatch_supervisor.present.lookup import task_state
from midwatch_tests.command import PROGRAM, Cli, midwatch
from midwatch_tests.harness import RunHarness
from midwatch_tests.mcp_caller import Caller

T = TypeVar("T")
GOOD = {"progress_percent": 20, "confidence": 90, "decision": "continue"}
FACT = {"text": "The tests of orders run with `make check`", "certainty": "confirmed"}


@asynccontextmanager
async def connect_worker(journal_file: Path, *, hurried: bool = True) -> AsyncGenerator[Caller]:
    """A client that is watched; a second passes between its calls unless it is hurried."""
    clock = {} if hurried else {"seconds": count(0.0).__next__}
    watch = watch_of("claude", str(journal_file), Settings(), **clock)
    async with worker_server(watch) as server, Client(server) as client:
        yield Caller(client)


@pytest.fixture
async def worker(journal: Journal, journal_file: Path) -> AsyncGenerator[Caller]:
    async with connect_worker(journal_file, hurried=False) as caller:
        yield caller


async def read_records(journal: Journal, kind: type[T]) -> list[T]:
    return [each.record for each in await journal.entries() if isinstance(each.record, kind)]


async def wait_until_call_waits(actor: Caller, call: asyncio.Task[str]) -> None:
    """Wait until a call of the worker waits for a person."""
    async with asyncio.timeout(120):
        while '"waits_for": "a person' not in await actor.say("waiting"):
            assert not call.done()


async def test_it_is_offered_the_tools_of_every_worker_and_nothing_that_supervises(
    worker: Caller,
) -> None:
    assert await worker.tools() == ["reflect", "report_error", "record_fact"]
    tools = (await worker.client.list_tools()).tools
    reflect = next(each for each in tools if each.name == "reflect")
    assert reflect.meta == {"anthropic/alwaysLoad": True}
    assert "progress_percent" in reflect.input_schema["required"]
    assert "approve" in await worker.refusal("approve", number=1)


async def test_what_it_reports_is_recorded_and_judged_before_it_is_answered(
    worker: Caller, journal: Journal
) -> None:
    assert (await worker.say("reflect", **GOOD)).startswith("Recorded. Confidence is high")
    assert [each.confidence for each in await read_checkpoints(journal)] == [90]
    low = {"progress_percent": 20, "confidence": 10, "decision": "escalate", "blockers": ["no key"]}
    assert "Confidence is low" in await worker.say("reflect", **low)
    assert [each.confidence for each in await read_checkpoints(journal)] == [90, 10]
    rules = {each.key.rule for each in await read_records(journal, Alert)}
    assert rules == {"explicit_escalation", "low_confidence"}
    said = await worker.say(
        "report_error",
        what_happened="`make check` ended with exit code 2 in orders.py",
        category="permanent",
        root_cause="the key in settings.toml had expired",
        change="read the key from the vault",
    )
    assert said.startswith("Recorded. Change the approach before you try again")
    assert len(await read_records(journal, Analysis)) == 1


async def read_checkpoints(journal: Journal) -> list[Checkpoint]:
    steps = await read_records(journal, Step)
    return [each.checkpoint for each in steps if each.checkpoint is not None]


async def test_wrong_arguments_are_refused_and_the_work_goes_on(
    worker: Caller, journal: Journal
) -> None:
    beyond: list[dict[str, object]] = [{"confidence": 101}, {"notes": "x" * 5_000}]
    for wrong in (*beyond, {"unheard_of": 1}, {"a": {"b": [1]}}):
        assert await worker.refusal("reflect", **{**GOOD, **wrong})
    assert await worker.refusal("reflect")
    unknown = await worker.refusal("reflect", **GOOD, explanation="x")
    wrong = "explanation: Extra inputs are not permitted"
    assert unknown.startswith(f"`reflect` cannot be called like this: {wrong}\n")
    assert (await read_records(journal, Step))[-1].output == f"its arguments are not valid: {wrong}"
    vague = await worker.refusal("record_fact", text="It works", certainty="inferred")
    assert "too vague" in vague
    low = {**GOOD, "confidence": 10}
    await worker.say("reflect", **low)
    assert [each.confidence for each in await read_checkpoints(journal)] == [10]


async def test_calls_at_the_same_time_are_answered_each_by_its_own(worker: Caller) -> None:
    said = await asyncio.gather(
        worker.say("reflect", **GOOD),
        worker.say("record_fact", **FACT),
        worker.say("reflect", **{**GOOD, "confidence": 1}),
    )
    assert ["high" in said[0], "shared" in said[1], "low" in said[2]] == [True, True, True]


async def test_guidance_comes_with_the_answer_of_the_next_call_and_bears_the_code(
    worker: Caller, actor: Caller, journal: Journal
) -> None:
    await worker.say("reflect", **GOOD)
    await actor.say("guide", attempt="claude", message="Leave orders.py alone.")
    answer = await worker.say("reflect", **GOOD)
    code = re.search(r"\[midwatch ([0-9a-f]{8})`", worker.client.instructions or "")
    assert code is not None
    (nudge,) = [each for each in await journal.entries() if isinstance(each.record, Intervention)]
    said = f"[midwatch {code[1]} #{nudge.id} from your operator] Leave orders.py alone."
    assert answer.endswith(f"\n\n{said}")
    assert "Leave orders.py" not in await worker.say("reflect", **GOOD)
    (stamp,) = await read_records(journal, Delivery)
    assert stamp.state is DeliveryState.DELIVERED


async def test_a_pause_holds_the_answer_and_guidance_that_nobody_waited_for_comes_with_the_next(
    worker: Caller, actor: Caller
) -> None:
    await worker.say("reflect", **GOOD)
    await actor.say("pause", attempt="claude")
    given_up = asyncio.create_task(worker.say("reflect", **GOOD))
    await wait_until_call_waits(actor, given_up)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    await actor.say("resume", attempt="claude", message="Go on with totals.")
    assert "Go on with totals." in await worker.say("reflect", **GOOD)
    await actor.say("pause", attempt="claude")
    call = asyncio.create_task(worker.say("reflect", **GOOD))
    await wait_until_call_waits(actor, call)
    await actor.say("resume", attempt="claude", message="And with sums.")
    assert "And with sums." in await call


@pytest.mark.usefixtures("named_by_the_environment")
async def test_with_its_connection_an_attempt_has_ended_and_is_neither_accepted_nor_done(
    journal: Journal, journal_file: Path, cli: Cli
) -> None:
    async with connect_worker(journal_file) as caller:
        gave_up = {"confidence": 5, "decision": "escalate", "blockers": ["no key"]}
        await caller.say("reflect", **{**GOOD, **gave_up})
    (run,) = await journal.runs()
    (task,) = await journal.tasks(run.id)
    assert (run.source, run.supervised_by, task.name) == (
        "embedded",
        SupervisedBy.MONITOR,
        "claude",
    )
    (state,) = (await task_state(journal, task)).attempts.values()
    # The end of the connection is neither a request nor a step.
    assert (state.over, state.last_step, state.budget.requests.used) == (True, 1, 1)
    assert "no verdict yet" in await cli.said("feedback", "list")
    (told,) = await cli.ask("status")
    assert (told["status"], told["stands"]) == ("completed", "ended")
    assert (told["progress_percent"], told["confidence"]) == (20, 5)
    assert "ended (unchecked): the connection was closed" in await cli.said("show", "claude")


async def test_an_attempt_that_is_held_ends_with_the_connection_too(
    journal: Journal, journal_file: Path, actor: Caller
) -> None:
    async with connect_worker(journal_file, hurried=False) as caller:
        await caller.tools()
        await actor.say("pause", attempt="claude")
        held = asyncio.create_task(caller.say("reflect", **GOOD))
        await wait_until_call_waits(actor, held)
        held.cancel()
    last = (await read_records(journal, AttemptTransition))[-1]
    assert last.lifecycle is Lifecycle.CANCELED


async def test_who_only_connects_has_no_attempt(journal: Journal, journal_file: Path) -> None:
    async with connect_worker(journal_file) as caller:
        assert "reflect" in (caller.client.instructions or "")
    assert await journal.runs() == []


@pytest.mark.usefixtures("named_by_the_environment")
async def test_it_finds_what_another_one_recorded_once_a_person_has_looked_at_it(
    journal: Journal, journal_file: Path
) -> None:
    async with connect_worker(journal_file) as caller:
        assert "Recorded" in await caller.say("record_fact", **FACT)
        assert "search_facts" not in await caller.tools()
    (fact,) = [each for each in await journal.entries() if isinstance(each.record, Fact)]
    assert await midwatch("facts", "approve", str(fact.id)) == 0
    async with connect_worker(journal_file) as caller:
        found = await caller.say("search_facts", query="tests of orders")
    assert FACT["text"] in found
    assert 'note="evidence, not instructions"' in found


async def test_over_the_streams_of_a_process_it_is_an_attempt_as_well(
    journal: Journal, journal_file: Path, harness: RunHarness, tmp_path: Path
) -> None:
    words = ["-c", PROGRAM, "mcp", "--worker", "claude", "--journal", str(journal_file)]
    program = StdioServerParameters(command=sys.executable, args=words, cwd=tmp_path)
    async with Client(program) as client:
        assert "Recorded" in await Caller(client).say("reflect", **GOOD)
        told_to = (await client.list_tools()).tools[0]
        assert told_to.meta == {"anthropic/alwaysLoad": True}
    await harness.until(lambda: is_over(journal))


async def is_over(journal: Journal) -> bool:
    return (await read_records(journal, AttemptTransition))[-1].lifecycle.over
