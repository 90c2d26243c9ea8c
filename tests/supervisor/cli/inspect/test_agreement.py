"""`status`, `show`, the console, the figures and MCP say the same of one journal."""

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from midwatch_monitor import records as r
from midwatch_monitor.journal import Journal
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.cli import main
from midwatch_supervisor.cli.mcp_server.supervising import supervising_server
from midwatch_supervisor.tui.state.attention import AttentionQueue
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import Row
from midwatch_tests.command import ask, objects, printed_now, read
from midwatch_tests.factories import (
    alert,
    delivery,
    ended,
    escalation,
    intervention,
    task_transition,
    transition,
)
from midwatch_tests.mcp_caller import Caller

TESTS = Path(__file__).parents[3]
BEFORE = TESTS / "monitor" / "journal" / "core" / "journals" / "before.sql"
LATER = [pytest.param(count, marks=pytest.mark.matrix) for count in (60, 250, 320, 1000)]
Capture = pytest.CaptureFixture[str]
Write = Callable[..., Awaitable[int]]


def journal_after(folder: Path, entries: int) -> Path:
    """The journal of a demo as it was after so many entries."""
    file = folder / "journal.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(BEFORE.read_text("utf-8"))
        connection.execute("DELETE FROM entry WHERE id > ?", (entries,))
    connection.close()
    return file


@pytest.mark.parametrize("entries", [150, *LATER])
def test_every_reader_says_the_same_of_an_attempt_at_any_moment(
    entries: int, tmp_path: Path, capsys: Capture
) -> None:
    file = journal_after(tmp_path, entries)
    place = ("--journal", str(file))
    said = [each for each in said_in_lines(capsys, "status", *place) if each["attempt"]]
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
        shown = printed_now(capsys, "show", str(state.id), *place)
        assert re.search(rf"^attempt {state.id}, {row.label}: {status}\b", shown, re.M)
        assert f"  health {row.health}, last step {state.last_step}" in shown
        spoken = [
            each["status"]
            for each in said_in_lines(capsys, "show", str(state.id), *place)
            if each["type"] == "attempt"
        ]
        assert (spoken or ["submitted"])[-1] == row.lifecycle


@pytest.mark.parametrize(
    ("ending", "health", "alerts"),
    [
        (r.Ending.DONE, "ok", 0),
        (r.Ending.UNCHECKED, "suspect", 1),
        (r.Ending.UNACCEPTED, "suspect", 1),
    ],
)
async def test_every_reader_says_whether_what_fired_at_the_end_counts(
    journal_file: Path,
    attempt: r.Attempt,
    write: Write,
    capsys: Capture,
    ending: r.Ending,
    health: str,
    alerts: int,
) -> None:
    fires = alert("workspace_conflict", subject="a.py")
    over = replace(fires, state=r.AlertState.RESOLVED, resolution=r.Resolution.ENDED)
    end = ended(ending)
    await write(transition(), fires, end, task_transition(end.lifecycle), over)
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


def said_in_lines(capsys: Capture, *words: str) -> list[dict[str, Any]]:
    assert main([*words, "--json"]) == 0
    return objects(capsys)


FIRST = 4
"""The journal id of the first record of a case."""
ASKS = intervention(r.Action.ASK_OPERATOR, message="Which port?"), delivery(FIRST)
PARKED = transition(r.Lifecycle.INPUT_REQUIRED, reason="Which port?")
PAUSED = intervention(r.Action.PAUSE), delivery(FIRST), PARKED
HELD = intervention(r.Action.RESTART, needs_approval=True)
STUCK = alert(severity=r.Severity.CRITICAL)
RESUME = intervention(r.Action.RESUME, r.Actor.OPERATOR)
ANSWER = intervention(r.Action.NUDGE, r.Actor.OPERATOR, message="8080")
STOP = intervention(r.Action.STOP, r.Actor.OPERATOR)
MAY = r.PermissionRequest(tool="execute", what="run `make`")
BUDGET = r.BudgetRequest(wanted=r.Grant(requests=5), reason="more")
READ_ONLY = r.Change(acts=())


@pytest.mark.parametrize(
    ("records", "needs"),
    [
        ((), False),
        ((STUCK,), True),
        ((STUCK, escalation()), False),
        ((STUCK, escalation(), escalation(state=r.EscalationState.CLOSED)), True),
        ((STUCK, ANSWER), False),
        ((*ASKS, PARKED), True),
        ((*ASKS, PARKED, ANSWER), False),
        ((*ASKS, STUCK, PARKED, ANSWER), False),
        (PAUSED, True),
        ((*PAUSED, RESUME), False),
        ((*PAUSED, STOP), False),
        ((HELD,), True),
        ((HELD, STOP), False),
        ((HELD, delivery(FIRST, r.DeliveryState.APPROVED)), False),
        ((MAY, PARKED), True),
        ((MAY, PARKED, intervention(r.Action.RESUME, r.Actor.OPERATOR, petition=FIRST)), False),
        ((BUDGET,), True),
        ((READ_ONLY, transition(r.Lifecycle.INPUT_REQUIRED)), False),
        ((HELD, transition(r.Lifecycle.COMPLETED)), False),
    ],
)
@pytest.mark.usefixtures("named_by_the_environment")
async def test_every_surface_says_the_same_of_who_needs_a_person(
    journal: Journal,
    journal_file: Path,
    attempt: r.Attempt,
    write: Write,
    capsys: Capture,
    records: tuple[r.Record, ...],
    needs: bool,
) -> None:
    await write(transition(), *records)
    (line,) = await ask(capsys, "status")
    figures = "\n".join(await read(capsys, "metrics"))
    shown = await read(capsys, "status")
    async with Client(supervising_server(str(journal_file), author=None)) as client:
        caller = Caller(client)
        waiting = await caller.say("waiting")
        listed = await caller.say("list_attempts", only_needing_a_person=True)
    said = {
        "status": line["needs_person"],
        "figures": bool(re.search(r"^midwatch_waiting_for_person 1$", figures, re.M)),
        "console": bool((await queue_of(journal, attempt)).count),
        "waiting": '"attempt": 1' in waiting,
        "list": '"attempt": 1' in listed,
    }
    assert said == dict.fromkeys(said, needs)
    if needs and line["waits_for"] is None:
        assert any(each.startswith("fix needs you: it ") for each in shown)
        assert '"waits_for": "it ' in waiting


async def queue_of(journal: Journal, attempt: r.Attempt) -> AttentionQueue:
    """What the console lists of one attempt."""
    board = FleetBoard()
    board.meet_task(await journal.task(attempt.task))
    board.meet_attempt(attempt)
    for each in await journal.entries():
        board.fold(each)
    return AttentionQueue(board)
