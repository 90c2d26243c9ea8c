"""What a journal and a conversation hold, for tests that look at what came of a run."""

import re
from collections.abc import Sequence
from typing import TypeVar

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from sqlalchemy import Connection, select

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.records import Erasure, Method, Recalled
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_tests.watched import uncoded

T = TypeVar("T")


async def records_of(journal: Journal, kind: type[T], attempt: int | None = None) -> list[T]:
    """The records of a kind, in the order of the journal."""
    entries = await journal.entries(attempt=attempt)
    return [entry.record for entry in entries if isinstance(entry.record, kind)]


def answers(messages: Sequence[ModelMessage], tool: str = "") -> list[str]:
    """What the model got back from a tool, or from all of them; refusals too."""
    return [
        part.model_response_str()
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart) and tool in ("", part.tool_name)
    ]


def turned_away(messages: Sequence[ModelMessage], tool: str = "run_command") -> list[bool]:
    """Of each call of a tool, whether the gate refused it."""
    return [text.startswith(HELD_BACK) for text in answers(messages, tool)]


def prompts(messages: Sequence[ModelMessage]) -> list[str]:
    """What the model was told by users and by Midwatch."""
    return [
        str(part.content)
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


def guidance(messages: Sequence[ModelMessage]) -> list[str]:
    """What supervisors, operators and the policy said to the model, without Midwatch's code."""
    numbered = re.compile(r"\[midwatch [0-9a-f]{8} #")
    return [uncoded(each) for each in prompts(messages) if numbered.match(each)]


def last_words(messages: Sequence[ModelMessage]) -> str:
    """All that stands in the last message, without the code of its data blocks."""
    parts = messages[-1].parts
    return uncoded("\n".join(str(getattr(part, "content", "")) for part in parts))


async def uses(journal: Journal, attempt: int) -> list[Recalled]:
    """The lessons that an attempt was given, as the index has them, the best first."""

    def ask(connection: Connection) -> list[Recalled]:
        table = tables.lesson_use
        query = select(table).where(table.c.attempt == attempt)
        rows = connection.execute(query.order_by(table.c.score.desc(), table.c.lesson.desc()))
        return [
            Recalled(lesson=row.lesson, method=Method(row.method), score=row.score) for row in rows
        ]

    return await journal.read(ask)


async def erasures(journal: Journal) -> list[Erasure]:
    """What was deleted, oldest first."""

    def ask(connection: Connection) -> list[Erasure]:
        query = select(tables.erasure).order_by(tables.erasure.c.id)
        return [Erasure(**row) for row in connection.execute(query).mappings()]

    return await journal.read(ask)
