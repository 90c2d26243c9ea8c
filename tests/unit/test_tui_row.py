from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.records import (
    Action,
    Activity,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    AttemptTransition,
    Budget,
    Change,
    Checkpoint,
    Delivery,
    DeliveryState,
    Entry,
    Health,
    Intervention,
    Lifecycle,
    Meter,
    Plan,
    PlanStep,
    PlanStepState,
    Record,
    Severity,
    Step,
    StepKind,
)
from midwatch_supervisor.tui.state.row import TREND, Need, Row

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
HELD = Intervention(action=Action.RESTART, by=Actor.POLICY, needs_approval=True)
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
ASKS = AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED, reason="Which port?")
DONE = AttemptTransition(lifecycle=Lifecycle.COMPLETED)


def alert(severity: Severity, *, rule: str = "cycle", firing: bool = True) -> Alert:
    return Alert(
        key=AlertKey(rule=rule),
        severity=severity,
        state=AlertState.FIRING if firing else AlertState.RESOLVED,
        value=3,
        summary="",
        since_step=1,
        step=4,
    )


def folded(*records: Record) -> Row:
    """A row after records with ids from 1, a minute apart."""
    row = Row(run=1, task=1, name="fix", attempt=1, number=1)
    for id, record in enumerate(records, start=1):
        at = AT + timedelta(minutes=id)
        row.fold(Entry(id=id, record=record, at=at, task=1, attempt=1))
    return row


def report(progress: int, confidence: int) -> Step:
    said = Checkpoint(progress_percent=progress, confidence=confidence)
    return Step(number=4, kind=StepKind.CHECKPOINT, checkpoint=said)


@pytest.mark.parametrize(
    ("records", "need"),
    [
        ((), Need.QUEUED),
        ((WORKING,), Need.WORKING),
        ((WORKING, alert(Severity.NOTICE)), Need.WORKING),
        ((WORKING, alert(Severity.WARNING)), Need.SUSPECT),
        ((WORKING, alert(Severity.CRITICAL)), Need.STUCK),
        ((WORKING, alert(Severity.CRITICAL), HELD), Need.APPROVAL),
        ((WORKING, HELD, ASKS), Need.ANSWER),
        ((WORKING, HELD, DONE), Need.OVER),
    ],
)
def test_a_row_needs_a_person_for_what_is_most_urgent(
    records: tuple[Record, ...], need: Need
) -> None:
    assert folded(*records).need is need


@pytest.mark.parametrize(
    ("records", "health"),
    [
        (
            (WORKING, alert(Severity.WARNING), alert(Severity.CRITICAL, rule="silence")),
            Health.STUCK,
        ),
        ((WORKING, alert(Severity.WARNING), alert(Severity.WARNING, firing=False)), Health.OK),
        ((WORKING, alert(Severity.CRITICAL), ASKS), Health.OK),
    ],
)
def test_health_is_what_the_worst_firing_alert_says_of_one_that_works(
    records: tuple[Record, ...], health: Health
) -> None:
    assert folded(*records).health is health


@pytest.mark.parametrize("state", DeliveryState)
def test_a_decision_that_was_dealt_with_waits_no_more(state: DeliveryState) -> None:
    row = folded(WORKING, HELD, Delivery(intervention=2, state=state))
    assert (row.need, row.held, row.needed_since) == (Need.WORKING, {}, None)


def test_it_has_waited_since_the_first_thing_that_it_waits_for() -> None:
    assert folded(WORKING, HELD, HELD, ASKS).needed_since == AT + timedelta(minutes=2)


def test_an_answer_leaves_a_held_decision_waiting() -> None:
    row = folded(WORKING, HELD, ASKS, WORKING)
    assert (row.need, row.needed_since) == (Need.APPROVAL, AT + timedelta(minutes=2))


def test_progress_belongs_to_the_plan_step() -> None:
    row = folded(WORKING, report(80, 70), Change(plan_step=2, plan_steps=5))
    assert (row.progress, list(row.trend), row.plan_step, row.plan_steps) == (None, [70], 2, 5)


def test_the_trend_is_of_the_last_confidences() -> None:
    row = folded(*(report(0, confidence) for confidence in range(30)))
    assert list(row.trend) == list(range(30 - TREND, 30))


def test_what_it_does_is_told_until_it_does_something_else() -> None:
    budget = Budget(requests=Meter(used=6, limit=12))
    row = folded(
        WORKING,
        Change(activity=Activity.COMMAND, doing="pytest"),
        Change(budget=budget),
    )
    assert (row.activity, row.doing, row.used) == (Activity.COMMAND, "pytest", 0.5)
    assert folded(Change(activity=Activity.COMMAND, doing="pytest"), DONE).doing == ""


def test_used_is_the_share_of_what_is_nearest_to_its_limit() -> None:
    budget = Budget(requests=Meter(used=6, limit=60), tokens=Meter(used=900, limit=1000))
    assert folded(Change(budget=budget)).used == 0.9
    assert folded(Change(budget=Budget(tokens=Meter(used=900)))).used is None


def test_a_plan_says_which_step_is_next() -> None:
    steps = (PlanStep(title="a", state=PlanStepState.DONE), PlanStep(title="b"))
    row = folded(Plan(steps=steps))
    assert (row.plan_step, row.plan_steps) == (2, 2)


def test_an_alert_that_fires_again_is_not_acknowledged() -> None:
    row = folded(WORKING, alert(Severity.CRITICAL))
    row.acknowledged.add(AlertKey(rule="cycle"))
    for id, firing in ((3, False), (4, True)):
        record = alert(Severity.CRITICAL, firing=firing)
        row.fold(Entry(id=id, record=record, at=AT, task=1, attempt=1))
    assert row.acknowledged == set()
