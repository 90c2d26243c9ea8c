from datetime import timedelta

import pytest

from midwatch_monitor.records import (
    Action,
    Activity,
    AlertKey,
    AlertState,
    Budget,
    BudgetRequest,
    Change,
    DeliveryState,
    Ending,
    Grant,
    Health,
    Lifecycle,
    Meter,
    PlanCheck,
    Record,
    Ruling,
    Severity,
)
from midwatch_stage.factories import (
    AT,
    alert,
    delivery,
    ended,
    entry,
    intervention,
    plan,
    reflecting,
    transition,
)
from midwatch_supervisor.tui.state.row import TREND, Need, Row

HELD = intervention(Action.RESTART, needs_approval=True)
WORKING = transition()
ASKS = transition(Lifecycle.INPUT_REQUIRED, reason="Which port?")
DONE = transition(Lifecycle.COMPLETED)
NOTICE, WARNING, CRITICAL = (alert(severity=each) for each in Severity)
RESOLVED = alert(state=AlertState.RESOLVED)
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
REVISION = PlanCheck(
    plan_step=2, assumption="", reality="none", impact="", proposed=("x",), ruling=Ruling.PENDING
)


def folded(*records: Record) -> Row:
    """A row after records with ids from 1, a minute apart."""
    row = Row(run=1, task=1, name="fix", attempt=1, number=1, model="m")
    for id, record in enumerate(records, start=1):
        row.fold(entry(id, record, at=AT + timedelta(minutes=id)))
    return row


@pytest.mark.parametrize(
    ("records", "need"),
    [
        ((), Need.QUEUED),
        ((WORKING,), Need.WORKING),
        ((WORKING, NOTICE), Need.WORKING),
        ((WORKING, WARNING), Need.SUSPECT),
        ((WORKING, CRITICAL), Need.STUCK),
        ((WORKING, CRITICAL, HELD), Need.APPROVAL),
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
            (WORKING, WARNING, alert("silence", Severity.CRITICAL)),
            Health.STUCK,
        ),
        ((WORKING, WARNING, RESOLVED), Health.OK),
        ((WORKING, CRITICAL, ASKS), Health.OK),
    ],
)
def test_health_is_what_the_worst_firing_alert_says_of_one_that_works(
    records: tuple[Record, ...], health: Health
) -> None:
    assert folded(*records).health is health


@pytest.mark.parametrize("state", DeliveryState)
def test_a_decision_that_was_dealt_with_waits_no_more(state: DeliveryState) -> None:
    row = folded(WORKING, HELD, delivery(2, state))
    assert (row.need, row.held, row.needed_since) == (Need.WORKING, {}, None)


def test_it_has_waited_since_the_first_thing_that_it_waits_for() -> None:
    assert folded(WORKING, HELD, HELD, ASKS).needed_since == AT + timedelta(minutes=2)


def test_an_answer_leaves_a_held_decision_waiting() -> None:
    row = folded(WORKING, HELD, ASKS, WORKING)
    assert (row.need, row.needed_since) == (Need.APPROVAL, AT + timedelta(minutes=2))


def test_progress_belongs_to_the_plan_step() -> None:
    row = folded(WORKING, reflecting(4, 80, 70), Change(plan_step=2, plan_steps=5))
    assert (row.progress, list(row.trend), row.plan_step, row.plan_steps) == (None, [70], 2, 5)


def test_the_trend_is_of_the_last_confidences() -> None:
    row = folded(*(reflecting(4, 0, confidence) for confidence in range(30)))
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
    row = folded(plan("a", "b", done=1))
    assert (row.plan_step, row.plan_steps) == (2, 2)


def test_an_alert_that_fires_again_is_not_acknowledged() -> None:
    row = folded(WORKING, CRITICAL)
    row.acknowledged.add(AlertKey(rule="cycle"))
    for id, record in ((3, RESOLVED), (4, CRITICAL)):
        row.fold(entry(id, record))
    assert row.acknowledged == set()


def test_a_row_keeps_what_was_asked_until_it_is_answered() -> None:
    asking = folded(WORKING, BUDGET, REVISION)
    assert (asking.petitions, asking.need) == ({2: BUDGET, 3: REVISION}, Need.WORKING)
    grant = intervention(Action.GRANT_BUDGET, petition=2, needs_approval=True)
    asking.fold(entry(4, grant))
    assert (asking.petitions, asking.held) == ({3: REVISION}, {4: grant})


def test_the_end_of_an_attempt_ends_what_it_asked_for() -> None:
    asking = folded(WORKING, BUDGET, transition(Lifecycle.FAILED))
    assert (asking.petitions, asking.asked_since) == ({}, None)


def test_a_row_shows_the_model_in_force() -> None:
    assert folded(WORKING, Change(model="big")).model == "big"


def test_a_split_row_is_over_and_well() -> None:
    split = folded(ended(Ending.SPLIT))
    assert (split.standing, split.need, split.health) == ("split", Need.OVER, Health.OK)
