"""Where a task and its attempts stand, folded from entries that are written down here."""

from dataclasses import replace

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_monitor.state.run import RunState
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.present.waiting import task_waits_for
from midwatch_tests import factories as make

BUDGET = r.BudgetRequest(wanted=r.Grant(requests=20), reason="two files left")
REVISION = r.PlanCheck(
    plan_step=2, assumption="", reality="", impact="", proposed=("x",), ruling=r.Ruling.PENDING
)
ANSWER = make.intervention(
    r.Action.GRANT_BUDGET, terms=r.Terms(grant=r.Grant(requests=5)), petition=1
)
SPLIT = make.ended(r.Ending.SPLIT, reason="split in two")
PARKED = make.transition(r.Lifecycle.INPUT_REQUIRED, reason="Which port?")


def fold_task(*records: r.Record) -> TaskState:
    """The task after records of its first attempt, with ids from 1."""
    account = TaskState(task=make.task())
    account.meet(make.attempt())
    for each in make.entries(*records):
        account.fold(each)
    return account


def fold_attempt(*records: r.Record) -> AttemptState:
    return fold_task(*records).attempts[1]


def test_the_model_in_force_is_the_one_that_it_was_switched_to() -> None:
    assert fold_attempt().model == "scripted"
    assert fold_attempt(r.Change(model="other"), r.Change(plan_step=2)).model == "other"


def test_petitions_wait_until_they_are_answered() -> None:
    assert fold_attempt(BUDGET, REVISION).open_requests == {1: BUDGET, 2: REVISION}
    assert fold_attempt(BUDGET, REVISION, ANSWER).open_requests == {2: REVISION}


def test_who_is_over_asks_for_nothing_any_more() -> None:
    assert fold_attempt(BUDGET, SPLIT).open_requests == {}


@pytest.mark.parametrize(
    ("stamp", "answer"),
    [
        (None, replace(ANSWER, needs_approval=True)),
        (r.DeliveryState.APPROVED, ANSWER),
        (r.DeliveryState.DELIVERED, ANSWER),
        (r.DeliveryState.REJECTED, None),
    ],
)
def test_an_answer_stands_unless_it_was_rejected(
    stamp: r.DeliveryState | None, answer: r.Intervention | None
) -> None:
    stamps = [make.delivery(2, stamp)] if stamp else []
    told = fold_attempt(BUDGET, replace(ANSWER, needs_approval=True), *stamps)
    assert told.answer(1) == answer


def test_a_split_attempt_is_no_failure_and_its_task_waits_for_the_parts() -> None:
    account = fold_task(SPLIT)
    split = account.attempts[1]
    assert (split.status, split.health) == (AttemptStatus.SPLIT, r.Health.OK)
    assert task_waits_for(account) == "the tasks that it was split into"


def test_what_others_used_is_summed_by_role_and_model() -> None:
    review = r.Spending(role="reviewer", model="m", requests=2, tokens=900)
    account = fold_task(review, review, r.Spending(role="planner", model="m", requests=1))
    assert list(account.spent.values()) == [
        r.Spending(role="reviewer", model="m", requests=4, tokens=1800),
        r.Spending(role="planner", model="m", requests=1),
    ]


def test_a_task_whose_attempt_waits_for_a_person_waits_too_and_says_why_until_it_is_over() -> None:
    waits = fold_task(make.task_transition(), PARKED)
    assert (waits.lifecycle, waits.reason) == (r.Lifecycle.INPUT_REQUIRED, "Which port?")
    stopped = make.task_transition(r.Lifecycle.CANCELED)
    assert fold_task(make.task_transition(), PARKED, stopped).lifecycle is r.Lifecycle.CANCELED


def test_checks_are_those_of_the_attempt_that_ran_some_last() -> None:
    task = TaskState(task=make.task())
    first, second = make.acceptance(check="a"), make.acceptance(check="b", passed=False)
    for id, check in ((1, first), (2, second)):
        task.meet(make.attempt(id, number=id))
        task.fold(make.entry(id, check, attempt=id))
    assert (task.checked, task.checks) == (2, {"b": second})


def test_meters_that_begin_anew_are_added_up() -> None:
    shown = (10, 12, 3)
    meters = (r.Change(budget=r.Budget(tokens=r.Meter(used=each))) for each in shown)
    assert fold_task(*meters).used.tokens == 15


# -- what of a run is open ----------------------------------------------------------------------

HELD = make.intervention(r.Action.GRANT_BUDGET, petition=1, needs_approval=True)
REJECTED = make.delivery(2, r.DeliveryState.REJECTED, step=3)
OVER = make.transition(r.Lifecycle.FAILED)


def test_an_escalation_needs_no_decision_once_the_worker_was_told_to_stop() -> None:
    run = RunState()
    stops = make.intervention(r.Action.STOP), make.delivery(2)
    for each in make.entries(make.escalation(), *stops):
        run.fold(each)
    assert run.escalations == {}


@pytest.mark.parametrize(
    ("records", "open_ones"),
    [
        ([BUDGET, HELD], []),
        ([BUDGET, HELD, REJECTED], [1]),
        ([BUDGET, HELD, OVER, REJECTED], []),
        ([BUDGET, HELD, REJECTED, OVER], []),
    ],
    ids=["answered", "its answer was rejected", "rejected after the end", "over after that"],
)
def test_a_question_is_open_again_once_its_answer_was_rejected_unless_its_attempt_is_over(
    records: list[r.Record], open_ones: list[int]
) -> None:
    run = RunState()
    for each in make.entries(*records):
        run.fold(each)
    assert list(run.requests) == open_ones
