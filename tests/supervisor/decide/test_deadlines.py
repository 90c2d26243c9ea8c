"""What waits for a person, and what happens when nobody answers in time."""

import pytest

from midwatch_monitor.config.policy import PersonSettings, Unanswered, Unapproved
from midwatch_monitor.records import (
    BY_TIMEOUT,
    Action,
    Actor,
    BudgetRequest,
    DeliveryState,
    Ending,
    EscalationState,
    Grant,
    Intervention,
    Lifecycle,
    PermissionRequest,
    Record,
)
from midwatch_monitor.state.run import RunState
from midwatch_stage.factories import (
    AT,
    after,
    delivery,
    ended,
    entry,
    escalation,
    intervention,
    transition,
)
from midwatch_supervisor.decide.supervision import DueQuestions, overdue

PERSON = PersonSettings(timeout_minutes=30)
HELD = intervention(Action.RESTART, needs_approval=True)
ASKED = intervention(Action.ASK_OPERATOR, message="What now?")
PARKED = transition(Lifecycle.INPUT_REQUIRED)
OVER = ended(Ending.STUCK)
REQUEST = BudgetRequest(wanted=Grant(requests=5), reason="more")


def agenda(*records: Record) -> RunState:
    """Of one attempt, with the entries 1, 2, 3 … written at the start."""
    found = RunState()
    for id, record in enumerate(records, start=1):
        found.fold(entry(id, record, at=AT, task=4, attempt=5))
    return found


def due(
    now: RunState, minutes: float = 30, person: PersonSettings = PERSON, *, began: float = 0
) -> tuple[DueQuestions, ...]:
    return overdue(now, person, after(minutes=minutes), began=after(minutes=began))


def parked(*later: Record, by: Intervention = ASKED) -> RunState:
    return agenda(by, delivery(), PARKED, *later)


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
    late = delivery(1, state, author=BY_TIMEOUT, comment="nobody answered within 30 minutes")
    assert due(agenda(HELD), 29.9, person) == ()
    assert due(agenda(HELD), 30, person) == (DueQuestions(task=4, attempt=5, record=late),)


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
    act = intervention(action, author=BY_TIMEOUT, message=said)
    assert due(parked(), 29, person) == ()
    assert due(parked(), 30, person) == (DueQuestions(task=4, attempt=5, record=act),)


def test_without_a_limit_a_person_is_waited_for_as_long_as_it_takes() -> None:
    assert due(parked(HELD), 1e6, PersonSettings()) == ()


@pytest.mark.parametrize(
    "answer",
    [
        intervention(Action.NUDGE, Actor.OPERATOR, message="Use b.py."),
        transition(),
        OVER,
        intervention(Action.RESUME),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_answered_question_is_no_longer_late(answer: Record) -> None:
    assert due(parked(answer)) == ()


def test_what_the_policy_says_meanwhile_answers_no_question() -> None:
    assert [each.attempt for each in due(parked(intervention()))] == [5]


PERMISSION = PermissionRequest(tool="execute", what="run `make`")


@pytest.mark.parametrize("question", Unanswered)
def test_a_permission_that_nobody_gave_in_time_is_refused_whatever_becomes_of_questions(
    question: Unanswered,
) -> None:
    person = PersonSettings(timeout_minutes=30, question=question)
    refusal = intervention(
        author=BY_TIMEOUT,
        message="Refused: nobody answered within 30 minutes. You may not run `make`.",
        petition=1,
    )
    asked = agenda(PERMISSION, PARKED)
    assert due(asked, 29) == ()
    assert due(asked, 30, person) == (DueQuestions(task=4, attempt=5, record=refusal),)


@pytest.mark.parametrize("action", [Action.RESUME, Action.NUDGE])
def test_only_its_own_answer_ends_the_waiting_for_a_permission(action: Action) -> None:
    other = intervention(action, Actor.OPERATOR, message="Go on.")
    own = intervention(action, Actor.OPERATOR, petition=1)
    assert len(due(agenda(PERMISSION, PARKED, other))) == 1
    assert due(agenda(PERMISSION, PARKED, own)) == ()


def test_an_attempt_that_a_person_paused_waits_for_ever() -> None:
    assert due(parked(by=intervention(Action.PAUSE, Actor.OPERATOR))) == ()


@pytest.mark.parametrize("state", DeliveryState)
def test_what_was_stamped_is_no_longer_held(state: DeliveryState) -> None:
    assert due(agenda(HELD, delivery(1, state))) == ()


def test_an_escalation_is_open_until_it_is_answered() -> None:
    one, answered = escalation(8), escalation(8, state=EscalationState.ANSWERED)
    assert list(agenda(one).escalations) == [8]
    assert list(agenda(one, answered).escalations) == []


GRANT = intervention(Action.GRANT_BUDGET, petition=1)
HELD_GRANT = intervention(Action.GRANT_BUDGET, petition=1, needs_approval=True)


@pytest.mark.parametrize(
    ("records", "still"),
    [
        ((REQUEST,), True),
        ((REQUEST, GRANT), False),
        ((REQUEST, HELD_GRANT), False),
        ((REQUEST, HELD_GRANT, delivery(2, DeliveryState.REJECTED)), True),
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
