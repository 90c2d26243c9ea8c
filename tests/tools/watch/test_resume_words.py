"""After a crash a history goes on where it ends, whatever stands in it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.run import AgentRunResult

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    Delivery,
    DeliveryState,
    Intervention,
    Record,
)
from midwatch_stage.watched import uncoded

Perform = Callable[..., Coroutine[Any, Any, AgentRunResult[str]]]
QUIET = Settings.model_validate({"reflect": {"remind_every": 0}})
NUDGE = Intervention(action=Action.NUDGE, by=Actor.POLICY, message="Look.")


def told(messages: list[ModelMessage]) -> list[str]:
    """What the worker was told, which tools returned something, and when it answered."""
    words: list[str] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            words.append("answer")
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                words.append(uncoded(str(part.content)))
            elif isinstance(part, ToolReturnPart):
                words.append(part.tool_name)
    return words


async def test_what_is_said_after_a_crash_is_stored_where_something_was_said_before(
    journal: Journal,
    attempt: Attempt,
    perform: Perform,
    write: Callable[[Record], Awaitable[int]],
) -> None:
    hanging, going = asyncio.Event(), asyncio.Event()
    issued: list[int] = []

    async def hear() -> str:
        issued.append(await write(NUDGE))
        return "listen"

    async def hang() -> str:
        hanging.set()
        await going.wait()
        return "at last"

    turns: Any = ([("hear", {})], [("hear", {})], [("hang", {})], "Done.")
    working = asyncio.create_task(perform(*turns, tools=(hear, hang), settings=QUIET))
    await hanging.wait()
    working.cancel()
    await asyncio.wait({working})
    going.set()
    issued.append(await write(NUDGE))
    await perform(*turns, tools=(hear, hang), settings=QUIET)

    stored = [
        message
        for each in await journal.messages(attempt.id)
        for message in ModelMessagesTypeAdapter.validate_json(each.body)
    ]
    said = [f"[midwatch #{id} from your policy] Look." for id in issued]
    assert told(stored) == [
        *("Fix it.", "answer"),
        *("hear", said[0], "answer"),
        *("hear", said[1], "answer"),
        *("hang", said[2], "answer"),
    ]
    stamps = [entry.record for entry in await journal.entries(kinds=(Delivery,))]
    assert [stamp for stamp in stamps if isinstance(stamp, Delivery)] == [
        Delivery(intervention=id, state=DeliveryState.DELIVERED, step=step)
        for step, id in enumerate(issued, start=1)
    ]
