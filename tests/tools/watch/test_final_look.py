"""A worker that says it is done is asked to look at its own result again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from midwatch_monitor.config.settings import CompletionSettings, MonitorSettings, Settings
from midwatch_monitor.records import Budget, Meter
from midwatch_stage.reading import prompts
from midwatch_stage.worker import Perform


def put(text: str) -> list[tuple[str, dict[str, str]]]:
    return [("put", {"path": "a.py", "text": text})]


def times(refine: int) -> Settings:
    return Settings(
        monitor=MonitorSettings(poll_seconds=0.01), completion=CompletionSettings(refine=refine)
    )


def looks(messages: Sequence[ModelMessage]) -> int:
    """How often the worker was asked."""
    return sum("Before this counts as done" in each for each in prompts(messages))


async def test_r54_the_last_result_is_the_mended_one(perform: Perform, workspace: Path) -> None:
    turns = (put("1"), "Done.", put("2"), "Mended.", put("3"), "Mended again.")
    result = await perform(*turns, settings=times(2))
    assert (result.output, looks(result.all_messages())) == ("Mended again.", 2)
    assert (workspace / "a.py").read_text() == "3"


@pytest.mark.parametrize(
    ("refine", "said", "count"),
    [
        (0, "Nothing to mend.", 0),
        (3, "NOTHING TO FIX", 1),
        (3, "Nothing to mend.", 1),
        (3, "It is fine.", 1),
    ],
)
async def test_r54_it_ends_when_nothing_is_to_be_mended(
    perform: Perform, refine: int, said: str, count: int
) -> None:
    result = await perform(put("1"), "Done.", said, settings=times(refine))
    assert looks(result.all_messages()) == count


async def test_r54_nothing_of_it_where_the_budget_is_nearly_gone(perform: Perform) -> None:
    budget = Budget(requests=Meter(limit=4))
    result = await perform(put("1"), "Done.", settings=times(3), budget=budget)
    assert (result.output, looks(result.all_messages())) == ("Done.", 0)


async def test_r54_the_looks_before_a_crash_count(perform: Perform) -> None:
    def killed() -> str:
        raise RuntimeError("killed")

    turns: list[Any] = [put("1"), "Done.", put("2"), killed]
    with pytest.raises(RuntimeError):
        await perform(*turns, settings=times(1))
    result = await perform(*turns[:3], "Mended.", put("3"), settings=times(1))
    assert (result.output, looks(result.all_messages())) == ("Mended.", 1)
