"""What workers ask for, in the rows, the queue and the timeline of the console."""

from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    Attempt,
    AttemptTransition,
    BudgetRequest,
    Change,
    Delivery,
    DeliveryState,
    Ending,
    Entry,
    Grant,
    Health,
    Intervention,
    Lifecycle,
    PlanCheck,
    Record,
    Ruling,
    Severity,
    Task,
    Terms,
)
from midwatch_supervisor.tui.bell import Bell
from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline
from midwatch_supervisor.tui.state.attention import Queue, Waiting, waiting
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.row import Need, Row

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
TASK = Task(id=1, run=1, name="fix", title="", spec="{}")
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
REVISION = PlanCheck(
    plan_step=2, assumption="", reality="none", impact="", proposed=("x",), ruling=Ruling.PENDING
)
HELD = Intervention(
    action=Action.GRANT_BUDGET,
    by=Actor.SUPERVISOR,
    terms=Terms(grant=Grant(requests=5)),
    petition=2,
    needs_approval=True,
)
CRITICAL = Alert(
    key=AlertKey(rule="cycle"),
    severity=Severity.CRITICAL,
    state=AlertState.FIRING,
    value=3,
    summary="round",
    since_step=1,
    step=3,
)


def attempt(id: int = 1) -> Attempt:
    return Attempt(
        id=id, task=1, number=id, worker="w", model="m", node="n", workspace="", started_at=AT
    )


def entry(id: int, record: Record, of: int = 1) -> Entry:
    return Entry(id=id, record=record, at=AT + timedelta(seconds=id), task=1, attempt=of)


def row(*records: Record) -> Row:
    """Attempt 1 after some records, with ids from 1."""
    found = Row(run=1, task=1, name="fix", attempt=1, number=1, model="m")
    for id, record in enumerate(records, start=1):
        found.fold(entry(id, record))
    return found


def test_a_row_keeps_what_was_asked_until_it_is_answered() -> None:
    asking = row(WORKING, BUDGET, REVISION)
    assert (asking.petitions, asking.need) == ({2: BUDGET, 3: REVISION}, Need.WORKING)
    asking.fold(entry(4, HELD))
    assert (asking.petitions, asking.held) == ({3: REVISION}, {4: HELD})


def test_the_end_of_an_attempt_ends_what_it_asked_for() -> None:
    asking = row(WORKING, BUDGET, AttemptTransition(lifecycle=Lifecycle.FAILED))
    assert (asking.petitions, asking.asked_since) == ({}, None)


def test_a_row_shows_the_model_in_force() -> None:
    assert row(WORKING, Change(model="big")).model == "big"


def test_a_split_row_is_over_and_well() -> None:
    split = row(AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.SPLIT))
    assert (split.standing, split.need, split.health) == ("split", Need.OVER, Health.OK)


def test_what_is_asked_for_is_shown_since_it_was_asked() -> None:
    asking = row(WORKING, BUDGET, REVISION)
    assert waiting(asking) == Waiting(
        row=asking,
        need=Need.WORKING,
        since=AT + timedelta(seconds=2),
        what="asks for budget: 20 requests (two files left); asks to revise its plan: x (none)",
    )


def test_a_held_grant_is_shown_with_how_much_it_gives() -> None:
    assert waiting(row(WORKING, HELD)).what == (
        "supervisor wants to grant_budget (5 requests): (no message)"
    )


def test_nobody_is_called_for_what_others_may_answer() -> None:
    assert Bell(opened_at=AT).hear([waiting(row(WORKING, BUDGET))]) is None


def test_who_asks_stands_last_in_the_queue() -> None:
    board = Board()
    board.meet_task(TASK)
    for id in (1, 2):
        board.meet_attempt(attempt(id))
    seen = Queue(board)
    for id, (of, record) in enumerate(
        [(1, WORKING), (1, BUDGET), (2, WORKING), (2, CRITICAL)], start=1
    ):
        board.fold(entry(id, record, of))
    assert [each.attempt for each in seen.rows] == [2, 1]


def test_who_was_answered_leaves_the_queue() -> None:
    board = Board()
    board.meet_task(TASK)
    board.meet_attempt(attempt())
    queue = Queue(board)
    for each in (entry(1, WORKING), entry(2, BUDGET)):
        board.fold(each)
    assert len(queue.rows) == 1
    answer = entry(3, Intervention(action=Action.NUDGE, by=Actor.POLICY, petition=2))
    board.fold(answer)
    queue.hear([answer])
    assert queue.rows == []


@pytest.mark.parametrize(
    ("stamps", "said"),
    [
        ((), "20 requests (grant_budget waits for approval): two files left"),
        ((DeliveryState.DELIVERED,), "20 requests (granted 5 requests): two files left"),
        ((DeliveryState.REJECTED,), "20 requests (pending): two files left"),
    ],
)
def test_the_timeline_tells_with_a_request_what_was_answered(
    stamps: tuple[DeliveryState, ...], said: str
) -> None:
    story = AttemptTimeline(TASK, attempt())
    stamped = [Delivery(intervention=3, state=state) for state in stamps]
    for id, record in enumerate([WORKING, BUDGET, HELD, *stamped], start=1):
        story.fold(entry(id, record))
    assert story.items[1].told.text == said
