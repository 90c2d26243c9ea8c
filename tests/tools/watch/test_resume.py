"""A crash loses nothing and repeats nothing that matters."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.records import Delivery, Step
from midwatch_tests.factories import delivery, intervention
from midwatch_tests.reading import answers, guidance
from midwatch_tests.watched import uncoded
from midwatch_tests.worker import Performer

QUIET = Settings.model_validate({"reflect": {"remind_every": 0}})
NUDGE = intervention(message="Look.")


class Machine:
    """A tool that hangs once, and counts; whoever waits for it to hang can end the process."""

    def __init__(self) -> None:
        self.hanging = asyncio.Event()
        self.done: list[str] = []
        self.asked: list[int] = []

    async def act(self, name: str) -> str:
        self.done.append(name)
        return f"{name} done"

    async def hang(self) -> str:
        self.done.append("hang")
        if not self.hanging.is_set():
            self.hanging.set()
            await asyncio.Event().wait()
        return "at last"

    @property
    def tools(self) -> tuple[Callable[..., Awaitable[str]], ...]:
        return self.act, self.hang

    def turn(self, number: int, *calls: tuple[str, dict[str, str]]) -> Callable[[], Any]:
        """A turn that counts how often it was asked for."""

        def answer() -> list[tuple[str, dict[str, str]]]:
            self.asked.append(number)
            return list(calls)

        return answer


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def crash(machine: Machine, perform: Performer) -> Callable[..., Awaitable[None]]:
    """Works until the machine hangs, and ends there as a killed process would."""

    async def run(*turns: Any, steps: int = 0) -> None:
        working = asyncio.create_task(perform(*turns, tools=machine.tools))
        async with asyncio.timeout(120):
            await machine.hanging.wait()
            while len(await perform.journal.entries(kinds=[Step])) < steps:
                pass
        working.cancel()
        await asyncio.wait({working})

    return run


async def test_what_was_answered_and_delivered_is_not_asked_for_or_said_again(
    machine: Machine, crash: Callable[..., Awaitable[None]], perform: Performer
) -> None:
    await perform.write(NUDGE)
    turns: Any = (machine.turn(1, ("act", {"name": "a"})), machine.turn(2, ("hang", {})))
    await crash(*turns)
    result = await perform(*turns, tools=machine.tools)
    assert machine.asked == [1, 2]
    assert len(guidance(result.all_messages())) == 1
    assert result.output == "Done."


async def test_a_call_that_was_running_runs_again_with_its_id_and_a_recorded_one_does_not(
    machine: Machine, crash: Callable[..., Awaitable[None]], perform: Performer
) -> None:
    said: dict[str, object] = {"progress_percent": 10, "confidence": 90, "decision": "continue"}
    turn: Any = [("act", {"name": "a"}), ("hang", {}), ("reflect", said)]
    await crash(turn, steps=2)
    assert {step.tool for step in await perform.records(Step)} == {"act", "reflect"}
    result = await perform(turn, tools=machine.tools)
    assert machine.done == ["a", "hang", "hang"]
    *before, hung, end = await perform.records(Step)
    assert {(each.tool, each.call) for each in before} == {
        ("act", "call-0-0"),
        ("reflect", "call-0-2"),
    }
    assert (hung.number, hung.tool, hung.call) == (3, "hang", "call-0-1")
    assert (end.number, end.tool, end.call) == (4, "", "")
    assert answers(result.all_messages(), "act") == ["a done"]
    assert answers(result.all_messages(), "hang") == ["at last"]


async def test_the_journal_holds_the_whole_history_once_and_numbers_go_on_without_gaps(
    machine: Machine, crash: Callable[..., Awaitable[None]], perform: Performer
) -> None:
    turns: Any = ([("act", {"name": "a"})], [("hang", {})], [("act", {"name": "b"})])
    await crash(*turns)
    result = await perform(*turns, tools=machine.tools)
    saved = await perform.journal.messages(perform.attempt.id)
    assert [each.index for each in saved] == list(range(len(result.all_messages())))
    seqs = [entry.seq for entry in await perform.journal.entries() if entry.seq is not None]
    assert seqs == list(range(1, len(seqs) + 1))
    assert [step.request for step in await perform.records(Step)] == [1, 2, 3, 4]


def words_of(messages: list[ModelMessage]) -> list[str]:
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


async def test_what_is_said_after_a_crash_is_stored_as_what_was_before(perform: Performer) -> None:
    hanging, going = asyncio.Event(), asyncio.Event()
    issued: list[int] = []

    async def hear() -> str:
        issued.append(await perform.write(NUDGE))
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
    issued.append(await perform.write(NUDGE))
    await perform(*turns, tools=(hear, hang), settings=QUIET)

    stored = [
        message
        for each in await perform.journal.messages(perform.attempt.id)
        for message in ModelMessagesTypeAdapter.validate_json(each.body)
    ]
    said = [f"[midwatch #{id} from your policy] Look." for id in issued]
    assert words_of(stored) == [
        *("Fix it.", "answer"),
        *("hear", said[0], "answer"),
        *("hear", said[1], "answer"),
        *("hang", said[2], "answer"),
    ]
    assert await perform.records(Delivery) == [
        delivery(id, step=step) for step, id in enumerate(issued, start=1)
    ]
