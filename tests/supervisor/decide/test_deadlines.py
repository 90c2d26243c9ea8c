"""What waits for a person, and what happens when nobody answers in time."""

from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.config.policy import PersonSettings, Unanswered, Unapproved
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    AttemptTransition,
    BudgetRequest,
    Delivery,
    DeliveryState,
    Ending,
    Entry,
    Escalation,
    EscalationState,
    Grant,
    Intervention,
    Lifecycle,
    PermissionRequest,
    Record,
)
from midwatch_monitor.state.run import RunState
from midwatch_supervisor.decide.deadlines import AUTHOR, Due, overdue

START = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
PERSON = PersonSettings(timeout_minutes=30)
HELD = Intervention(action=Action.RESTART, by=Actor.POLICY, needs_approval=True)
ASKED = Intervention(action=Action.ASK_OPERATOR, by=Actor.POLICY, message="What now?")
PARKED = AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED)
OVER = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.STUCK)
REQUEST = BudgetRequest(wanted=Grant(requests=5), reason="more")


def agenda(*records: Record) -> RunState:
    """Of one attempt, with the entries 1, 2, 3 … written at the start."""
    found = RunState()
    for id, record in enumerate(records, start=1):
        found.fold(Entry(id=id, record=record, at=START, task=4, attempt=5))
    return found


def stamp(intervention: int, state: DeliveryState) -> Delivery:
    return Delivery(intervention=intervention, state=state)


def due(
    now: RunState, minutes: float = 30, person: PersonSettings = PERSON, *, began: float = 0
) -> tuple[Due, ...]:
    at = START + timedelta(minutes=minutes)
    return overdue(now, person, at, began=START + timedelta(minutes=began))


def parked(*after: Record, by: Intervention = ASKED) -> RunState:
    return agenda(by, stamp(1, DeliveryState.DELIVERED), PARKED, *after)


@pytest.mark.parametrize(
    ("approval", "state"),
    [
        (Unapproved.REJECT, DeliveryState.REJECTED),
        (Unapproved.APPROVE, DeliveryState.APPROVED),
    ],
)
def test_what_nobody_approved_in_time_is_stamped_as_the_policy_says(
    approval: Unapproved, state: DeliveryState
) -> None:
    person = PersonSettings(timeout_minutes=30, approval=approval)
    late = Delivery(
        intervention=1, state=state, author=AUTHOR, comment="nobody answered within 30 minutes"
    )
    assert due(agenda(HELD), 29.9, person) == ()
    assert due(agenda(HELD), 30, person) == (Due(task=4, attempt=5, record=late),)


@pytest.mark.parametrize(
    ("question", "action", "said"),
    [
        (Unanswered.STOP, Action.STOP, "nobody answered within 30 minutes: What now?"),
        (
            Unanswered.RESUME,
            Action.RESUME,
            "nobody answered within 30 minutes: What now? Go on without an answer, with the "
            "safest way that you know.",
        ),
    ],
)
def test_who_waits_too_long_goes_on_or_ends_with_the_true_reason(
    question: Unanswered, action: Action, said: str
) -> None:
    person = PersonSettings(timeout_minutes=30, question=question)
    act = Intervention(action=action, by=Actor.POLICY, author=AUTHOR, message=said)
    assert due(parked(), 29, person) == ()
    assert due(parked(), 30, person) == (Due(task=4, attempt=5, record=act),)


def test_without_a_limit_a_person_is_waited_for_as_long_as_it_takes() -> None:
    assert due(parked(HELD), 1e6, PersonSettings()) == ()


NUDGE = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, message="Use b.py.")
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
RESUME = Intervention(action=Action.RESUME, by=Actor.POLICY)


@pytest.mark.parametrize(
    "after", [NUDGE, WORKING, OVER, RESUME], ids=lambda each: type(each).__name__
)
def test_an_answered_question_is_no_longer_late(after: Record) -> None:
    assert due(parked(after)) == ()


def test_what_the_policy_says_meanwhile_answers_no_question() -> None:
    nudge = Intervention(action=Action.NUDGE, by=Actor.POLICY)
    assert [each.attempt for each in due(parked(nudge))] == [5]


PERMISSION = PermissionRequest(tool="execute", what="run `make`")


@pytest.mark.parametrize("question", Unanswered)
def test_a_permission_that_nobody_gave_in_time_is_refused_whatever_becomes_of_questions(
    question: Unanswered,
) -> None:
    person = PersonSettings(timeout_minutes=30, question=question)
    refusal = Intervention(
        action=Action.NUDGE,
        by=Actor.POLICY,
        author=AUTHOR,
        message="Refused: nobody answered within 30 minutes. You may not run `make`.",
        petition=1,
    )
    asked = agenda(PERMISSION, PARKED)
    assert due(asked, 29) == ()
    assert due(asked, 30, person) == (Due(task=4, attempt=5, record=refusal),)


@pytest.mark.parametrize("action", [Action.RESUME, Action.NUDGE])
def test_only_its_own_answer_ends_the_waiting_for_a_permission(action: Action) -> None:
    other = Intervention(action=action, by=Actor.OPERATOR, message="Go on.")
    own = Intervention(action=action, by=Actor.OPERATOR, petition=1)
    assert len(due(agenda(PERMISSION, PARKED, other))) == 1
    assert due(agenda(PERMISSION, PARKED, own)) == ()


def test_an_attempt_that_a_person_paused_waits_for_ever() -> None:
    pause = Intervention(action=Action.PAUSE, by=Actor.OPERATOR)
    assert due(parked(by=pause)) == ()


@pytest.mark.parametrize("state", DeliveryState)
def test_what_was_stamped_is_no_longer_held(state: DeliveryState) -> None:
    assert due(agenda(HELD, stamp(1, state))) == ()


def test_an_escalation_is_open_until_it_is_answered() -> None:
    one = Escalation(id=8, attempt=5, state=EscalationState.OPEN, alerts=(AlertKey(rule="cycle"),))
    answered = Escalation(id=8, attempt=5, state=EscalationState.ANSWERED, alerts=())
    assert list(agenda(one).escalations) == [8]
    assert list(agenda(one, answered).escalations) == []


def grant(*, needs_approval: bool = False) -> Intervention:
    return Intervention(
        action=Action.GRANT_BUDGET,
        by=Actor.POLICY,
        petition=1,
        needs_approval=needs_approval,
    )


@pytest.mark.parametrize(
    ("records", "still"),
    [
        ((REQUEST,), True),
        ((REQUEST, grant()), False),
        ((REQUEST, grant(needs_approval=True)), False),
        ((REQUEST, grant(needs_approval=True), stamp(2, DeliveryState.REJECTED)), True),
        ((REQUEST, OVER), False),
    ],
)
def test_what_a_worker_asks_for_is_open_until_it_has_an_answer(
    records: tuple[Record, ...], still: bool
) -> None:
    assert bool(agenda(*records).requests) is still


def test_the_time_in_which_nothing_ran_is_held_against_nobody() -> None:
    assert due(agenda(HELD), 59, began=30) == ()
    assert len(due(agenda(HELD), 60, began=30)) == 1
