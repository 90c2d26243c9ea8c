"""`status`, the console, the figures and MCP count the same attempts as needing a person."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from mcp import Client

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    BudgetRequest,
    Change,
    DeliveryState,
    EscalationState,
    Grant,
    Lifecycle,
    PermissionRequest,
    Record,
    Severity,
)
from midwatch_stage.command import ask, read
from midwatch_stage.factories import alert, delivery, escalation, intervention, transition
from midwatch_stage.mcp_caller import Caller
from midwatch_supervisor.cli.mcp_server.supervising import supervising_server
from midwatch_supervisor.tui.state.attention import AttentionQueue
from midwatch_supervisor.tui.state.board import FleetBoard

Write = Callable[..., Awaitable[int]]
Capture = pytest.CaptureFixture[str]
FIRST = 4
"""The journal id of the first record of a case."""
ASKS = intervention(Action.ASK_OPERATOR, message="Which port?"), delivery(FIRST)
PARKED = transition(Lifecycle.INPUT_REQUIRED, reason="Which port?")
PAUSED = intervention(Action.PAUSE), delivery(FIRST), PARKED
HELD = intervention(Action.RESTART, needs_approval=True)
STUCK = alert(severity=Severity.CRITICAL)
RESUME = intervention(Action.RESUME, Actor.OPERATOR)
ANSWER = intervention(Action.NUDGE, Actor.OPERATOR, message="8080")
STOP = intervention(Action.STOP, Actor.OPERATOR)
MAY = PermissionRequest(tool="execute", what="run `make`")
BUDGET = BudgetRequest(wanted=Grant(requests=5), reason="more")
READ_ONLY = Change(acts=())


@pytest.mark.parametrize(
    ("records", "needs"),
    [
        ((), False),
        ((STUCK,), True),
        ((STUCK, escalation()), False),
        ((STUCK, escalation(), escalation(state=EscalationState.CLOSED)), True),
        ((STUCK, ANSWER), False),
        ((*ASKS, PARKED), True),
        ((*ASKS, PARKED, ANSWER), False),
        ((*ASKS, STUCK, PARKED, ANSWER), False),
        (PAUSED, True),
        ((*PAUSED, RESUME), False),
        ((*PAUSED, STOP), False),
        ((HELD,), True),
        ((HELD, STOP), False),
        ((HELD, delivery(FIRST, DeliveryState.APPROVED)), False),
        ((MAY, PARKED), True),
        ((MAY, PARKED, intervention(Action.RESUME, Actor.OPERATOR, petition=FIRST)), False),
        ((BUDGET,), True),
        ((READ_ONLY, transition(Lifecycle.INPUT_REQUIRED)), False),
        ((HELD, transition(Lifecycle.COMPLETED)), False),
    ],
)
@pytest.mark.usefixtures("named_by_the_environment")
async def test_every_surface_says_the_same_of_who_needs_a_person(
    journal: Journal,
    journal_file: Path,
    attempt: Attempt,
    write: Write,
    capsys: Capture,
    records: tuple[Record, ...],
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


async def queue_of(journal: Journal, attempt: Attempt) -> AttentionQueue:
    """What the console lists of one attempt."""
    board = FleetBoard()
    board.meet_task(await journal.task(attempt.task))
    board.meet_attempt(attempt)
    for each in await journal.entries():
        board.fold(each)
    return AttentionQueue(board)
