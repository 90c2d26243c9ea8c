"""The stated confidence of an attempt, beside what such confidence was worth so far."""

from pathlib import Path

import pytest
from textual.widgets import Static

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Change, Ending
from midwatch_stage.console import console_on
from midwatch_stage.factories import AT, ended, reflecting


@pytest.mark.parametrize(
    ("attempts", "words"),
    [(5, "confidence 80% (so far worth 7%)  coder"), (4, "confidence 80%  coder")],
)
async def test_the_header_tells_it_once_there_are_enough_attempts(
    tmp_path: Path, attempts: int, words: str
) -> None:
    async with await Journal.open(tmp_path / "journal.db") as journal:
        await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
        async with console_on(journal, size=(120, 30)) as seat:
            for number in range(attempts):
                await seat.write(reflecting(1, 40, 80), ended(Ending.STUCK), task=f"task-{number}")
            view = await seat.open_attempt(f"task-{attempts - 1}")
            standing = view.query_one("#standing", Static)
            await seat.until(lambda: words in str(standing.content))


async def test_the_header_says_where_the_rules_do_not_go_by_it(tmp_path: Path) -> None:
    async with await Journal.open(tmp_path / "journal.db") as journal:
        await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
        async with console_on(journal, size=(120, 30)) as seat:
            await seat.write(Change(confidence_counts=False), reflecting(1, 40, 80), task="task")
            view = await seat.open_attempt("task")
            standing = view.query_one("#standing", Static)
            await seat.until(lambda: "confidence 80% (worth nothing)" in str(standing.content))
