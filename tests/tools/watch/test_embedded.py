"""Somebody else's agent under watch works on whatever happens, and pays what tokens.md tells."""

import asyncio
import json
import logging
import re
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import JsonValue
from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from midwatch_monitor import records as r
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.run_lock import is_interrupted, refuse_held
from midwatch_monitor.recorder import working_transition
from midwatch_tests.factories import WHOSE, ended
from midwatch_tests.made_up import SECRETS
from midwatch_tests.reading import answers, records_of
from midwatch_tests.worker import Build, Claim
from midwatch_tools import Watch
from midwatch_tools.attempt_watch import AttemptWatch
from midwatch_tools.tools.board import Board
from midwatch_tools.tools.facts import Facts

T = TypeVar("T")

SAID = {"progress_percent": 10, "confidence": 80, "decision": "continue"}
REFLECT = ("reflect", SAID)


def put_call(text: str) -> tuple[str, dict[str, str]]:
    return ("put", {"path": "a.py", "text": text})


async def read_records(file: Path, kind: type[T]) -> list[T]:
    async with await Journal.open_to_read(file) as journal:
        return await records_of(journal, kind)


async def last_transition(file: Path) -> r.AttemptTransition:
    return (await read_records(file, r.AttemptTransition))[-1]


def drop(file: Path, table: str) -> str:
    with sqlite3.connect(file) as database:
        database.execute(f"DROP TABLE {table}")
    database.close()
    return "broken"


@pytest.fixture
def watch(journal_file: Path, workspace: Path) -> Watch:
    return Watch(name="helper", root=workspace, journal=str(journal_file))


async def test_a_run_becomes_an_attempt_with_all_that_happened(
    worker: Build, watch: Watch, journal_file: Path
) -> None:
    result = await worker([REFLECT, put_call("1")]).run("Fix it.", capabilities=[watch])
    assert answers(result.all_messages(), "reflect")[0].startswith("Recorded.")
    steps = await read_records(journal_file, r.Step)
    assert [(step.tool, len(step.edits)) for step in steps] == [("reflect", 0), ("put", 1), ("", 0)]
    assert steps[0].checkpoint == r.Checkpoint(progress_percent=10, confidence=80)
    assert (await read_records(journal_file, r.Plan))[0] == r.Plan(
        steps=(r.PlanStep(title="Fix it."),)
    )
    assert await last_transition(journal_file) == ended(
        r.Ending.UNCHECKED, reason="the agent finished"
    )
    assert (await read_records(journal_file, r.TaskTransition))[
        -1
    ].lifecycle is r.Lifecycle.COMPLETED


async def test_its_process_holds_its_run_until_it_is_over(watch: Watch, journal_file: Path) -> None:
    agent = Agent(TestModel(), capabilities=[watch])

    @agent.tool_plain
    async def look() -> str:
        async with await Journal.open_to_read(journal_file) as journal:
            with pytest.raises(UsageError, match="another process is working on run 1"):
                await refuse_held(journal, 1, tell=print)
        return "held"

    assert "held" in (await agent.run("Fix it.")).output
    async with await Journal.open_to_read(journal_file) as journal:
        assert not await is_interrupted(journal, 1)


async def test_an_agent_with_one_call_a_tool_is_watched_without_more_requests(watch: Watch) -> None:
    plain = await Agent(TestModel()).run("Fix it.")
    watched = await Agent(TestModel(), capabilities=[watch]).run("Fix it.")
    assert (plain.usage.requests, watched.usage.requests) == (1, 2)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mode": "observ"}, r"Watch\(mode='observ'\): expected one of steer, observe"),
        ({"tools": "reflct"}, r"Watch\(tools='reflct'\): expected one of all, reflect"),
        ({"name": " "}, r"Watch\(name=' '\): a name needs at least one letter"),
        ({"name": "..."}, "a name needs at least one letter"),
        ({"gates": "yes"}, r"Watch\(gates='yes'\): expected True or False"),
        ({"on_alert": "x"}, r"Watch\(on_alert='x'\): expected something to call"),
        ({"on_waiting": 1}, r"Watch\(on_waiting=1\): expected something to call"),
        ({"supervisor": "polciy"}, r"Watch\(supervisor='polciy'\): expected policy or the name of"),
        ({"supervisor": ""}, r"Watch\(supervisor=''\): expected policy or the name of"),
        ({"name": "x" * 81}, "a name has at most 80 characters"),
        ({"root": Path("/nowhere")}, "/nowhere is not a folder"),
        ({"root": "/nowhere"}, "/nowhere is not a folder"),
    ],
)
def test_a_watch_that_cannot_be_meant_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Watch(**wrong)


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("\n  Fix it.\nIt is broken.", "Fix it."),
        ("word " * 1000, f"{'word ' * 23}word…"),
        ([BinaryContent(b"1" * 10_000, media_type="image/png"), "What is this?"], "What is this?"),
        ([BinaryContent(b"1", media_type="image/png")], "helper"),
        (f"Call it with {SECRETS['openai key']}", "Call it with [masked: openai key "),
    ],
    ids=["its first line", "cut", "without pictures", "no text", "without a secret"],
)
async def test_a_run_is_called_by_the_first_line_of_its_prompt(
    worker: Build, watch: Watch, journal_file: Path, prompt: Any, title: str
) -> None:
    await worker().run(prompt, capabilities=[watch])
    async with await Journal.open_to_read(journal_file) as journal:
        assert (await journal.task(1)).title.startswith(title)
    assert (await read_records(journal_file, r.Plan))[0].steps[0].title.startswith(title)


async def test_two_runs_at_once_never_mix(worker: Build, watch: Watch, journal_file: Path) -> None:
    agent = worker([REFLECT], [REFLECT])
    await asyncio.gather(*(agent.run(f"{n}", capabilities=[watch]) for n in range(3)))
    async with await Journal.open_to_read(journal_file) as journal:
        for attempt in (1, 2, 3):
            steps = await journal.entries(attempt=attempt, kinds=[r.Step])
            numbers = [e.record.number for e in steps if isinstance(e.record, r.Step)]
            assert numbers == [1, 2, 3]


async def test_a_conversation_that_is_brought_along_counts_for_no_reminder(
    worker: Build, watch: Watch, journal_file: Path
) -> None:
    agent = worker(*[[put_call(f"{n}")] for n in range(3)])
    before = await agent.run("First.")
    await agent.run("And now?", message_history=before.all_messages(), capabilities=[watch])
    assert [step.request for step in await read_records(journal_file, r.Step)] == [1]
    spent = [
        change.budget for change in await read_records(journal_file, r.Change) if change.budget
    ]
    assert [budget.requests.used for budget in spent] == [1]


async def leave() -> str:
    sys.exit(7)


async def test_a_tool_that_ends_the_program_is_the_reason_of_the_end(journal_file: Path) -> None:
    watch = Watch(journal=journal_file, mode="observe")
    agent = Agent(TestModel(), tools=[leave], capabilities=[watch])
    with pytest.raises(SystemExit):  # it stops the event loop that it is raised in
        await asyncio.to_thread(lambda: asyncio.run(agent.run("Fix it.")))
    (step,) = await read_records(journal_file, r.Step)
    assert (step.tool, step.ok, step.output) == ("leave", False, "SystemExit: 7")
    why = "the tool leave ended the program: SystemExit: 7"
    assert await last_transition(journal_file) == ended(r.Ending.ERROR, reason=why)


async def test_an_agents_error_is_its_own(worker: Build, watch: Watch, journal_file: Path) -> None:
    def explode() -> str:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await worker([("explode", {})], tools=(explode,)).run("Fix it.", capabilities=[watch])
    (step,) = await read_records(journal_file, r.Step)
    assert (step.ok, step.output) == (False, "LookupError: no such thing")
    assert await last_transition(journal_file) == ended(
        r.Ending.ERROR, reason="LookupError: no such thing"
    )


async def test_a_run_may_be_canceled(worker: Build, watch: Watch, journal_file: Path) -> None:
    hanging = asyncio.Event()

    async def hang() -> str:
        hanging.set()
        await asyncio.Event().wait()
        return ""

    agent = worker([("hang", {})], tools=(hang,))
    running = asyncio.create_task(agent.run("Fix it.", capabilities=[watch]))
    await hanging.wait()
    running.cancel()
    await asyncio.wait({running})
    assert await last_transition(journal_file) == ended(r.Ending.CANCELED, reason="canceled")


UNWATCHED = "The work is not watched at the moment; go on with it."


@pytest.fixture
def corrupt(journal_file: Path) -> None:
    journal_file.parent.mkdir()
    journal_file.write_bytes(b"this is no journal" * 1000)


@pytest.mark.usefixtures("corrupt")
async def test_without_a_usable_journal_the_agent_works_unwatched(
    worker: Build, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    result = await worker([REFLECT, put_call("1")]).run("Fix it.", capabilities=[watch])
    assert result.output == "Done."
    assert answers(result.all_messages(), "reflect") == [UNWATCHED]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "unwatched" in caplog.text


FACT = {"text": "The tests of this project run with make test.", "certainty": "confirmed"}


@pytest.mark.parametrize(
    ("table", "said"), [("entry", UNWATCHED), ("lease", "Recorded; it is shared once it has")]
)
async def test_a_journal_that_breaks_midway_ends_the_watch_and_not_the_work(
    worker: Build,
    watch: Watch,
    journal_file: Path,
    caplog: pytest.LogCaptureFixture,
    table: str,
    said: str,
) -> None:
    def break_it() -> str:
        return drop(journal_file, table)

    broken: list[Any] = [("break_it", {}), ("record_fact", FACT)]
    turns: tuple[Any, ...] = ([put_call("1")], broken, [REFLECT], [put_call("2")])
    result = await worker(*turns, tools=(break_it,)).run("Fix it.", capabilities=[watch])
    assert result.output == "Done."
    assert answers(result.all_messages(), "put") == ["written", "written"]
    assert answers(result.all_messages(), "record_fact")[0].startswith(said)
    assert "unwatched from here on" in caplog.text


DOCUMENT = Path(__file__).parents[3] / "docs" / "tokens.md"
PROJECT = '{"workspace": "/p"}'
KNOWN = r.Fact(text="The tests need Redis on port 6379")
FLAT = {"type", "description", "enum", "items", "properties", "required"}
"""The keywords of a schema that grammars of local servers are made from without trouble."""


class FirstRequest:
    """A model that keeps what its first request carried, and is done."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, JsonValue]] = []
        self.instructions = ""
        self.model = FunctionModel(self._answer)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.instructions = info.instructions or ""
        self.schemas = [
            {"name": tool.name, "description": tool.description, "parameters": schema}
            for tool in info.function_tools
            for schema in (tool.parameters_json_schema,)
        ]
        return ModelResponse(parts=[TextPart("Done.")])

    @property
    def bytes(self) -> int:
        """As a server with OpenAI's interface gets them."""
        tools = [{"type": "function", "function": each} for each in self.schemas]
        return sum(len(json.dumps(tool).encode()) for tool in tools) + len(self.instructions)


@pytest.fixture
def run_embedded(journal_file: Path) -> Callable[..., Awaitable[FirstRequest]]:
    async def ask(**watch: Any) -> FirstRequest:
        asked = FirstRequest()
        capability = Watch(journal=str(journal_file), **watch)
        await Agent(asked.model).run("Fix it.", capabilities=[capability])
        return asked

    return ask


@pytest.fixture
async def project_attempt(journal: Journal, at: datetime) -> r.Attempt:
    run = await journal.add_run(source="s", settings="{}", at=at)
    told = {"name": "t", "title": "t", "spec": PROJECT, "project": "/p"}
    task = await journal.add_task(run=run.id, at=at, **told)
    return await journal.add_attempt(task=task.id, number=1, at=at, **WHOSE)


@pytest.fixture
def run_in_task(
    journal: Journal, project_attempt: r.Attempt, claim: Claim, at: datetime
) -> Callable[..., Awaitable[FirstRequest]]:
    """What `midwatch run` would send for a task."""

    async def ask(*plan: str, known: bool = False) -> FirstRequest:
        task = await journal.task(project_attempt.task)
        if known:
            draft = r.Draft(record=KNOWN, at=at, task=task.id, attempt=project_attempt.id)
            await journal.commit(r.Commit(drafts=(draft,)))
            await journal.add_task(run=task.run, name="u", title="u", spec=PROJECT, at=at)
        recorder = await claim(of=project_attempt)
        steps = tuple(r.PlanStep(title=title) for title in plan)
        limited = r.Budget(requests=r.Meter(limit=60))
        await recorder.record(working_transition(), r.Plan(steps=steps), r.Change(budget=limited))
        asked = FirstRequest()
        watch = AttemptWatch(
            recorder,
            board=Board(journal=journal, task=task, attempt=project_attempt),
            facts=Facts(journal=journal, task=task, attempt=project_attempt),
        )
        await Agent(asked.model).run("Fix it.", capabilities=[watch])
        return asked

    return ask


async def documented_sizes() -> dict[str, int]:
    """The rows of the document's table: what adds how many bytes."""
    rows = re.findall(r"(?m)^\| (.+?) +\| +([\d,]+) +\| +[\d,]+ \|", DOCUMENT.read_text())
    return {name: int(count.replace(",", "")) for name, count in rows}


@pytest.mark.parametrize(
    ("row", "watch", "tokens"),
    [
        ('`Watch(mode="observe")`', {"mode": "observe"}, 0),
        ('`Watch(tools="reflect")`', {"tools": "reflect"}, 400),
        ("`Watch()`", {}, 600),
        ("`Watch(gates=True)`", {"gates": True}, 800),
    ],
)
async def test_a_watch_of_ones_own_agent_adds_what_the_document_says(
    run_embedded: Callable[..., Awaitable[FirstRequest]],
    row: str,
    watch: dict[str, Any],
    tokens: int,
) -> None:
    asked = await run_embedded(**watch)
    assert asked.bytes <= 4 * tokens
    assert (await documented_sizes())[row] == asked.bytes


@pytest.mark.parametrize(
    ("row", "plan", "known", "tokens"),
    [
        ("`midwatch run`, a task without plan or known facts", ("do it",), False, 1000),
        ("`midwatch run`, with a plan, known facts and other tasks", ("look", "do"), True, 1600),
    ],
)
async def test_a_run_adds_what_the_document_says(
    run_in_task: Callable[..., Awaitable[FirstRequest]],
    row: str,
    plan: tuple[str, ...],
    known: bool,
    tokens: int,
) -> None:
    asked = await run_in_task(*plan, known=known)
    assert asked.bytes <= 4 * tokens
    assert (await documented_sizes())[row] == asked.bytes


def keywords(schema: JsonValue, depth: int = 0) -> set[str]:
    """All keywords of a schema, and `nested` where it has objects in objects."""
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    inner = schema.get("properties", {})
    assert isinstance(inner, dict)
    if depth and schema.get("type") == "object":
        found.add("nested")
    for each in (*inner.values(), schema.get("items")):
        found |= keywords(each, depth + 1)
    return found


async def test_the_schemas_of_all_tools_are_flat(
    run_in_task: Callable[..., Awaitable[FirstRequest]],
) -> None:
    asked = await run_in_task("look", "do", known=True)
    assert len(asked.schemas) == 9
    for each in asked.schemas:
        assert keywords(each["parameters"]) <= FLAT, each["name"]
