"""The stated confidence of an attempt, beside what such confidence was worth so far."""

from pathlib import Path

import pytest

from midwatch_monitor.records import Change, Ending
from midwatch_stage.console import console_in
from midwatch_stage.factories import ended, reflecting


@pytest.mark.parametrize(
    ("attempts", "words"),
    [(5, "confidence 80% (worth 7% so far)  coder"), (4, "confidence 80%  coder")],
)
async def test_the_header_tells_it_once_there_are_enough_attempts(
    tmp_path: Path, attempts: int, words: str
) -> None:
    async with console_in(tmp_path, size=(120, 30)) as seat:
        for number in range(attempts):
            await seat.write(reflecting(1, 40, 80), ended(Ending.STUCK), task=f"task-{number}")
        await seat.open_attempt(f"task-{attempts - 1}")
        await seat.until(lambda: words in seat.text("#standing"))


async def test_the_header_says_where_the_rules_do_not_go_by_it(tmp_path: Path) -> None:
    records = Change(confidence_counts=False), reflecting(1, 40, 80)
    async with console_in(tmp_path, *records, size=(120, 30)) as seat:
        await seat.open_attempt()
        await seat.until(lambda: "confidence 80% (worthless)" in seat.text("#standing"))
