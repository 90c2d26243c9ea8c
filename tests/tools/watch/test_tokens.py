"""What a watch adds to each request of an agent, in bytes; docs/tokens.md tells it."""

import json
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import working_transition
from midwatch_monitor.records import (
    Attempt,
    Budget,
    Change,
    Commit,
    Draft,
    Fact,
    Meter,
    Plan,
    PlanStep,
)
from midwatch_stage.worker import Claim
from midwatch_tools import Watch
from midwatch_tools.attempt_watch import AttemptWatch
from midwatch_tools.tools.board import Board
from midwatch_tools.tools.facts import Facts

DOCUMENT = Path(__file__).parents[3] / "docs" / "tokens.md"
PROJECT = '{"workspace": "/p"}'
KNOWN = Fact(text="The tests need Redis on port 6379")
FLAT = {"type", "description", "enum", "items", "properties", "required"}
"""The keywords of a schema that grammars of local servers are made from without trouble."""


class Asked:
    """A model that keeps what its first request carried, and is done."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, JsonValue]] = []
        self.instructions = ""
        self.model = FunctionModel(self._answer)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.instructions = info.instructions or ""
        self.schemas = [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters_json_schema,
            }
            for tool in info.function_tools
        ]
        return ModelResponse(parts=[TextPart("Done.")])

    @property
    def bytes(self) -> int:
        """As a server with OpenAI's interface gets them."""
        tools = [{"type": "function", "function": each} for each in self.schemas]
        return sum(len(json.dumps(tool).encode()) for tool in tools) + len(self.instructions)


@pytest.fixture
def embedded(journal_file: Path) -> Callable[..., Awaitable[Asked]]:
    async def ask(**watch: Any) -> Asked:
        asked = Asked()
        capability = Watch(journal=str(journal_file), **watch)
        await Agent(asked.model).run("Fix it.", capabilities=[capability])
        return asked

    return ask


@pytest.fixture
async def attempt(journal: Journal, at: datetime) -> Attempt:
    run = await journal.add_run(source="s", settings="{}", at=at)
    task = await journal.add_task(
        run=run.id, name="t", title="t", spec=PROJECT, project="/p", at=at
    )
    whose = {"worker": "w", "model": "m", "node": "n", "workspace": "/w"}
    return await journal.add_attempt(task=task.id, number=1, at=at, **whose)


@pytest.fixture
def started(
    journal: Journal, attempt: Attempt, claim: Claim, at: datetime
) -> Callable[..., Awaitable[Asked]]:
    """What `midwatch run` would send for a task."""

    async def ask(*plan: str, known: bool = False) -> Asked:
        task = await journal.task(attempt.task)
        if known:
            draft = Draft(record=KNOWN, at=at, task=task.id, attempt=attempt.id)
            await journal.commit(Commit(drafts=(draft,)))
            await journal.add_task(run=task.run, name="u", title="u", spec=PROJECT, at=at)
        recorder = await claim(of=attempt)
        steps = tuple(PlanStep(title=title) for title in plan)
        limited = Budget(requests=Meter(limit=60))
        await recorder.record(working_transition(), Plan(steps=steps), Change(budget=limited))
        asked = Asked()
        watch = AttemptWatch(
            recorder,
            board=Board(journal=journal, task=task, attempt=attempt),
            facts=Facts(journal=journal, task=task, attempt=attempt),
        )
        await Agent(asked.model).run("Fix it.", capabilities=[watch])
        return asked

    return ask


async def told() -> dict[str, int]:
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
    embedded: Callable[..., Awaitable[Asked]], row: str, watch: dict[str, Any], tokens: int
) -> None:
    asked = await embedded(**watch)
    assert asked.bytes <= 4 * tokens
    assert (await told())[row] == asked.bytes


@pytest.mark.parametrize(
    ("row", "plan", "known", "tokens"),
    [
        ("`midwatch run`, a task without plan or known facts", ("do it",), False, 1000),
        ("`midwatch run`, with a plan, known facts and other tasks", ("look", "do"), True, 1600),
    ],
)
async def test_a_run_adds_what_the_document_says(
    started: Callable[..., Awaitable[Asked]],
    row: str,
    plan: tuple[str, ...],
    known: bool,
    tokens: int,
) -> None:
    asked = await started(*plan, known=known)
    assert asked.bytes <= 4 * tokens
    assert (await told())[row] == asked.bytes


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
    started: Callable[..., Awaitable[Asked]],
) -> None:
    asked = await started("look", "do", known=True)
    assert len(asked.schemas) == 9
    for each in asked.schemas:
        assert keywords(each["parameters"]) <= FLAT, each["name"]
