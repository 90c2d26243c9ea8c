"""What waits for a person, and what happens when nobody answers in time."""

from typing import Any

import pytest

from midwatch_monitor.config.policy import PersonSettings, Unanswered, Unapproved
from midwatch_monitor.records import (
    BY_TIMEOUT,
    Action,
    Actor,
    BudgetRequest,
    Delivery,
    DeliveryState,
    Ending,
    Grant,
    Intervention,
    Lifecycle,
    PermissionRequest,
    Record,
)
from midwatch_monitor.state.run import RunState
from midwatch_stage import factories as make
from midwatch_supervisor.decide.supervision import overdue

LATE = "nobody answered within 30 minutes"
HELD = make.intervention(Action.RESTART, needs_approval=True)
PARKED = make.transition(Lifecycle.INPUT_REQUIRED)
ASKED = (make.intervention(Action.ASK_OPERATOR, message="What now?"), make.delivery(), PARKED)
PAUSED = (make.intervention(Action.PAUSE, Actor.OPERATOR), make.delivery(), PARKED)
PERMISSION = (PermissionRequest(tool="execute", what="run `make`"), PARKED)
OVER = make.ended(Ending.STUCK)
REQUEST = BudgetRequest(wanted=Grant(requests=5), reason="more")
GRANT = make.intervention(Action.GRANT_BUDGET, petition=1)
HELD_GRANT = make.intervention(Action.GRANT_BUDGET, petition=1, needs_approval=True)


def by_operator(action: Action = Action.NUDGE, **fields: Any) -> Intervention:
    return make.intervention(action, Actor.OPERATOR, **fields)


def state(*records: Record) -> RunState:
    """Of one attempt, with the entries 1, 2, 3 … written at the start."""
    found = RunState()
    for id, record in enumerate(records, start=1):
        found.fold(make.entry(id, record, at=make.AT, task=4, attempt=5))
    return found


def due(
    *records: Record, minutes: float = 30, began: float = 0, limit: float = 30, **person: Any
) -> list[Delivery | Intervention]:
    """What is written so many minutes later, where a person is waited for `limit` minutes."""
    settings = PersonSettings(timeout_minutes=limit, **person)
    now, start = make.after(minutes=minutes), make.after(minutes=began)
    found = overdue(state(*records), settings, now, began=start)
    assert all((each.task, each.attempt) == (4, 5) for each in found)
    return [each.record for each in found]


@pytest.mark.parametrize(
    ("approval", "stamp"),
    [(Unapproved.REJECT, DeliveryState.REJECTED), (Unapproved.APPROVE, DeliveryState.APPROVED)],
)
def test_what_nobody_approved_in_time_is_late(approval: Unapproved, stamp: DeliveryState) -> None:
    assert due(HELD, minutes=29.9, approval=approval) == []
    late = make.delivery(1, stamp, author=BY_TIMEOUT, comment=LATE)
    assert due(HELD, approval=approval) == [late]


GO_ON = "Go on without an answer, with the safest way that you know."


@pytest.mark.parametrize(
    ("question", "action", "said"),
    [
        (Unanswered.STOP, Action.STOP, f"{LATE}: What now?"),
        (Unanswered.RESUME, Action.RESUME, f"{LATE}: What now? {GO_ON}"),
    ],
)
def test_who_waits_long_goes_on_or_ends(question: Unanswered, action: Action, said: str) -> None:
    assert due(*ASKED, minutes=29, question=question) == []
    act = make.intervention(action, author=BY_TIMEOUT, message=said)
    assert due(*ASKED, question=question) == [act]


@pytest.mark.parametrize("question", Unanswered)
def test_a_permission_that_nobody_gave_in_time_is_refused(question: Unanswered) -> None:
    said = f"Refused: {LATE}. You may not run `make`."
    assert due(*PERMISSION, minutes=29) == []
    refusal = make.intervention(author=BY_TIMEOUT, message=said, petition=1)
    assert due(*PERMISSION, question=question) == [refusal]


@pytest.mark.parametrize(
    ("records", "count"),
    [
        ((*ASKED, by_operator(message="Use b.py.")), 0),
        ((*ASKED, make.transition()), 0),
        ((*ASKED, OVER), 0),
        ((*ASKED, make.intervention(Action.RESUME)), 0),
        ((*ASKED, make.intervention()), 1),
        ((*PERMISSION, by_operator(Action.RESUME)), 1),
        ((*PERMISSION, by_operator()), 1),
        ((*PERMISSION, by_operator(petition=1)), 0),
        (PAUSED, 0),
        *(((HELD, make.delivery(1, each)), 0) for each in DeliveryState),
    ],
    ids=[
        "a word of a person answers",
        "work that goes on answers",
        "an end answers",
        "an order to go on answers",
        "what the policy says meanwhile answers no question",
        "an order to go on gives no permission",
        "nor does a word",
        "its own answer does",
        "an attempt that a person paused waits for ever",
        *(f"what is {each} is no longer held" for each in DeliveryState),
    ],
)
def test_what_still_waits_is_late(records: tuple[Record, ...], count: int) -> None:
    assert len(due(*records)) == count


def test_without_a_limit_a_person_is_waited_for_as_long_as_it_takes() -> None:
    assert due(*ASKED, HELD, minutes=1e6, limit=0) == []


def test_the_time_in_which_nothing_ran_is_held_against_nobody() -> None:
    assert due(HELD, minutes=59, began=30) == []
    assert len(due(HELD, minutes=60, began=30)) == 1


@pytest.mark.parametrize(
    ("records", "still"),
    [
        ((REQUEST,), True),
        ((REQUEST, GRANT), False),
        ((REQUEST, HELD_GRANT), False),
        ((REQUEST, HELD_GRANT, make.delivery(2, DeliveryState.REJECTED)), True),
        ((REQUEST, OVER), False),
    ],
)
def test_a_request_is_open_until_it_has_an_answer(records: tuple[Record, ...], still: bool) -> None:
    assert bool(state(*records).requests) is still
