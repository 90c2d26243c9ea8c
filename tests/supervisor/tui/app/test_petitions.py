"""What a worker asks for is answered by keys; budgets and models are given by keys as well."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Static

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    BudgetRequest,
    Delivery,
    DeliveryState,
    Grant,
    Intervention,
    Lifecycle,
    PlanCheck,
    Record,
    Ruling,
    Terms,
)
from midwatch_stage.seat import Seat, seated
from midwatch_supervisor.tui.widgets.dialogs import TextDialog

WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="[b]two[/b] files left")
REVISION = PlanCheck(
    plan_step=2, assumption="", reality="", impact="", proposed=("x", "y"), ruling=Ruling.PENDING
)
MINE = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, author="ada")
GRANT = replace(MINE, action=Action.GRANT_BUDGET, message="Granted.")
SWITCH = replace(MINE, action=Action.SWITCH_MODEL)
HELD = replace(
    GRANT, by=Actor.POLICY, terms=Terms(grant=Grant(requests=5)), petition=4, needs_approval=True
)


Sit = Callable[..., AbstractAsyncContextManager[Seat[Journal]]]


@pytest.fixture
def sit(tmp_path: Path) -> Sit:
    """Opens the console on a journal that holds `records` of one attempt, with ids from 4."""

    @asynccontextmanager
    async def seat(*records: Record) -> AsyncGenerator[Seat[Journal]]:
        async with (
            await Journal.open(tmp_path / "journal.db") as journal,
            seated(journal, WORKING, *records) as operator,
        ):
            yield operator

    return seat


async def test_a_request_is_approved_with_what_was_wanted(sit: Sit) -> None:
    async with sit(BUDGET) as seat:
        await seat.press("a")
        terms = Terms(grant=Grant(requests=20))
        assert await seat.written() == [replace(GRANT, terms=terms, petition=seat.before)]


async def test_a_revision_is_approved_with_what_was_proposed(sit: Sit) -> None:
    async with sit(REVISION) as seat:
        await seat.press("a")
        approved = replace(MINE, action=Action.REPLAN, message="Approved.", plan=("x", "y"))
        assert await seat.written() == [replace(approved, petition=seat.before)]


@pytest.mark.parametrize(("comment", "heard"), [("", "Refused."), ("no", "no")])
async def test_a_petition_is_refused_with_a_reason(sit: Sit, comment: str, heard: str) -> None:
    async with sit(BUDGET) as seat:
        await seat.press("r", *comment, "enter")
        assert await seat.written() == [replace(MINE, message=heard, petition=seat.before)]


async def test_a_refusal_quotes_what_was_asked_as_it_is(sit: Sit) -> None:
    async with sit(BUDGET) as seat:
        await seat.press("r")
        quote = seat.app.screen.query_one(".quote Static", Static)
        assert str(quote.content) == "asks for budget: 20 requests ([b]two[/b] files left)"


async def test_a_petition_that_was_answered_while_the_dialog_stood_open_is_left_alone(
    sit: Sit,
) -> None:
    async with sit(BUDGET) as seat:
        await seat.press("B")
        await seat.write(replace(MINE, by=Actor.POLICY, petition=seat.before))
        await seat.press("enter")
        assert await seat.written() == []


async def test_rejecting_the_answer_of_the_policy_tells_the_worker(sit: Sit) -> None:
    async with sit(BUDGET, HELD) as seat:
        held = seat.before
        await seat.press("r", *"no", "enter")
        stamp = Delivery(
            intervention=held, state=DeliveryState.REJECTED, author="ada", comment="no"
        )
        written = await seat.written()
        assert written == [stamp, replace(MINE, message="no", petition=HELD.petition)]


async def test_budget_is_granted_in_other_amounts_with_a_message(sit: Sit) -> None:
    async with sit(BUDGET) as seat:
        await seat.press("B", *", 5 minutes", "ctrl+j", *"go", "enter")
        terms = Terms(grant=Grant(requests=20, minutes=5))
        assert await seat.written() == [
            replace(GRANT, message="go", terms=terms, petition=seat.before)
        ]


async def test_a_grant_that_is_not_readable_is_not_sent(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("B", *"lots", "enter")
        assert isinstance(seat.app.screen, TextDialog)
        hint = seat.app.screen.query_one(".hint", Static)
        assert str(hint.content).startswith("write amounts of requests")
        await seat.press("escape")
        assert await seat.written() == []


async def test_the_model_is_switched_by_its_name(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("M", *"big", "enter")
        assert await seat.written() == [replace(SWITCH, terms=Terms(model="big"))]


async def test_who_asks_stands_in_the_attention_queue(sit: Sit) -> None:
    async with sit(BUDGET) as seat:
        (line,) = seat.app.queue.calling
        assert line.what == "asks for budget: 20 requests ([b]two[/b] files left)"
        await seat.press("3", "a")
        assert len(await seat.written()) == 1
