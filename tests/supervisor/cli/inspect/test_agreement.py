"""`status`, `show`, the lines of `--json` and the console's row say the same of one journal."""

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import AlertState, Attempt, Ending, Resolution, TaskTransition
from midwatch_monitor.state.attempt import AttemptState
from midwatch_stage.command import ask, objects, read
from midwatch_stage.factories import alert, ended, transition
from midwatch_supervisor.cli import main
from midwatch_supervisor.tui.state.row import Row

TESTS = Path(__file__).parents[3]
BEFORE = TESTS / "monitor" / "journal" / "core" / "journals" / "before.sql"

LATER = [pytest.param(count, marks=pytest.mark.matrix) for count in (60, 250, 320, 1000)]


def cut(folder: Path, entries: int) -> Path:
    """The journal of a demo as it was after so many entries."""
    file = folder / "journal.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(BEFORE.read_text("utf-8"))
        connection.execute("DELETE FROM entry WHERE id > ?", (entries,))
    connection.close()
    return file


@pytest.mark.parametrize("entries", [150, *LATER])
def test_every_reader_says_the_same_of_an_attempt_at_any_moment(
    entries: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = cut(tmp_path, entries)
    said = [each for each in json_lines(capsys, file, "status") if each["attempt"]]
    assert said
    for line in said:
        row = asyncio.run(row_of(file, line["attempt"], line["task"]))
        state, status = row.state, row.state.status.value
        assert (line["lifecycle"], line["health"]) == (row.lifecycle, row.health)
        assert (line["alerts"], line["confidence"]) == (len(state.firing), state.confidence)
        assert (line["steps"], line["requests_used"]) == (
            state.last_step,
            state.budget.requests.used,
        )
        assert line["status"] != line["lifecycle"] or line["progress_percent"] == state.progress
        shown = text(capsys, file, str(state.id))
        assert re.search(rf"^attempt {state.id}, {row.label}: {status}\b", shown, re.M)
        assert f"  health {row.health}, last step {state.last_step}" in shown
        spoken = [
            each["status"]
            for each in json_lines(capsys, file, "show", str(state.id))
            if each["type"] == "attempt"
        ]
        assert (spoken or ["submitted"])[-1] == row.lifecycle


@pytest.mark.parametrize(
    ("ending", "health", "alerts"),
    [(Ending.DONE, "ok", 0), (Ending.UNCHECKED, "suspect", 1), (Ending.UNACCEPTED, "suspect", 1)],
)
async def test_every_reader_says_whether_what_fired_at_the_end_counts(
    journal_file: Path,
    attempt: Attempt,
    write: Callable[..., Awaitable[int]],
    capsys: pytest.CaptureFixture[str],
    ending: Ending,
    health: str,
    alerts: int,
) -> None:
    fires = alert("workspace_conflict", subject="a.py")
    over = replace(fires, state=AlertState.RESOLVED, resolution=Resolution.ENDED)
    end = ended(ending)
    await write(transition(), fires, end, TaskTransition(lifecycle=end.lifecycle), over)
    place = ("--journal", str(journal_file))
    (line,) = await ask(capsys, "status", *place)
    assert (line["health"], line["alerts"]) == (health, alerts)
    shown = await read(capsys, "show", "fix", *place)
    assert f"  health {health}, last step 0" in shown
    assert any(each.strip().startswith("ended warning workspace_conflict") for each in shown)
    row = await row_of(journal_file, attempt.id, "fix")
    assert (row.health, row.rules) == (health, "workspace_conflict" * alerts)


async def row_of(file: Path, attempt: int, task: str) -> Row:
    """The row of the console's table, as it folds an attempt."""
    async with await Journal.open_to_read(file) as journal:
        state = AttemptState(attempt=await journal.attempt(attempt), detailed=False)
        async for entry in journal.all_entries(attempt=attempt):
            state.fold(entry)
    return Row(run=1, task=state.attempt.task, name=task, state=state)


def text(capsys: pytest.CaptureFixture[str], file: Path, id: str) -> str:
    assert main(["show", id, "--journal", str(file)]) == 0
    return capsys.readouterr().out


def json_lines(capsys: pytest.CaptureFixture[str], file: Path, *words: str) -> list[dict[str, Any]]:
    assert main([*words, "--json", "--journal", str(file)]) == 0
    return objects(capsys)
