"""What was done in a task, over all its attempts."""

from dataclasses import replace

from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.tasks import BudgetSpec, ModelSpec, TaskSpec, WorkerSpec
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    Attempt,
    Delivery,
    DeliveryState,
    Grant,
    Intervention,
    Outcome,
    PlanCheck,
    Record,
    Ruling,
    Spending,
    Terms,
)
from midwatch_stage import factories as make
from midwatch_supervisor.decide.context import Means
from midwatch_supervisor.decide.history import History
from midwatch_supervisor.decide.reading import means_of
from midwatch_supervisor.present.assignment import Assignment

NONE = Grant()


def history(*records: tuple[int, Record]) -> History:
    """Of pairs of an attempt and a record, with the ids 1, 2, 3 …"""
    found = History()
    for id, (attempt, record) in enumerate(records, start=1):
        found.take(make.entry(id, record, task=4, attempt=attempt))
    return found


def act(
    action: Action, *, petition: int | None = None, grant: Grant = NONE, model: str = ""
) -> Intervention:
    return make.intervention(action, terms=Terms(grant=grant, model=model), petition=petition)


def stamp(intervention: int, state: DeliveryState = DeliveryState.DELIVERED) -> Delivery:
    return make.delivery(intervention, state, author="ann", comment="no")


def test_a_restart_that_is_judged_on_the_next_attempt_belongs_to_the_one_before() -> None:
    found = history(
        (1, act(Action.RESTART)), (1, stamp(1)), (2, make.outcome(1, Outcome.NO_EFFECT))
    )
    (earlier,) = found.earlier(before=2)
    assert (earlier.action, earlier.outcome) == (Action.RESTART, Outcome.NO_EFFECT)
    assert earlier.reason == "it moves"
    assert found.earlier(attempt=2) == ()


def test_the_check_that_an_attempt_failed_is_known_to_the_next_that_runs_none() -> None:
    found = history(
        (1, Acceptance(check="pytest", passed=False)),
        (2, Acceptance(check="ruff", passed=False)),
        (2, Acceptance(check="pytest", passed=False)),
        (2, Acceptance(check="ruff", passed=True)),
        (4, Acceptance(check="pytest", passed=True)),
    )
    assert [found.failed_check(before=each) for each in range(1, 6)] == [
        *("", "pytest", "pytest", "pytest", "")
    ]


def test_what_did_not_arrive_and_what_only_answers_a_worker_was_not_tried() -> None:
    found = history(
        (1, act(Action.NUDGE)),
        (1, act(Action.NUDGE)),
        (1, stamp(2, DeliveryState.EXPIRED)),
        (1, act(Action.GRANT_BUDGET, petition=9)),
        (1, stamp(4)),
        (1, act(Action.PAUSE)),
        (1, stamp(6)),
    )
    assert found.earlier() == ()


def test_what_is_granted_or_under_way_counts_but_not_what_was_lost() -> None:
    five = Grant(requests=5)
    found = history(
        (1, act(Action.GRANT_BUDGET, grant=five)),
        (2, act(Action.GRANT_BUDGET, grant=five, petition=8)),
        (2, act(Action.GRANT_BUDGET, grant=five)),
        (2, stamp(3, DeliveryState.REJECTED)),
    )
    assert (len(found.grants), found.granted) == (2, Grant(requests=10))


def test_an_answer_that_was_rejected_is_none_and_its_reason_is_known() -> None:
    asked = act(Action.GRANT_BUDGET, petition=8)
    rejected = history((1, asked), (1, stamp(1, DeliveryState.REJECTED)))
    assert (rejected.answered(8), rejected.turned_down(8)) == (False, "ann: no")
    assert (history((1, asked)).answered(8), history().answered(8)) == (True, False)


def test_revisions_that_workers_made_are_counted_over_the_whole_task() -> None:
    granted = PlanCheck(plan_step=2, assumption="", reality="", impact="", proposed=("a",))
    pending = replace(granted, ruling=Ruling.PENDING)
    approved = act(Action.REPLAN, petition=2)
    assert history((1, granted), (1, pending), (2, approved)).approved == 2


def test_requirement_17_what_the_supervisor_used_is_counted_by_attempt() -> None:
    used = Spending(role="supervisor", model="m", requests=3)
    other = Spending(role="planner", model="m", requests=9)
    found = history((1, used), (1, used), (2, used), (1, other))
    assert [found.requests_spent(1), found.requests_spent(2), found.requests_spent(3)] == [6, 3, 0]


def attempt(number: int, worker: str) -> Attempt:
    return make.attempt(number, task=4, number=number, worker=worker)


TASK = TaskSpec(
    id="fix",
    goal="Fix it.",
    acceptance=("true",),
    worker="one",
    other_workers=("two", "three"),
    max_attempts=3,
    budget=BudgetSpec(requests=60),
)
MODELS = (ModelSpec(name="big"), ModelSpec(name="bigger"))
ASSIGNED = Assignment(
    task=TASK, worker="one", spec=WorkerSpec(other_models=MODELS), models={}, workspace=None
)


def test_the_means_are_what_had_no_turn_yet() -> None:
    switched = history((1, act(Action.SWITCH_MODEL, model="big")))
    attempts = [attempt(1, "one"), attempt(2, "two")]
    policy = PolicySettings()
    first = means_of(TASK, ASSIGNED, attempts[:1], switched, model="m", policy=policy)
    assert first == Means(
        attempts=2,
        models=("bigger",),
        workers=("two", "three"),
        grant=Grant(requests=15),
        may_split=True,
    )
    second = means_of(TASK, ASSIGNED, attempts, switched, model="m", policy=policy)
    assert (second.attempts, second.workers) == (1, ("three",))


def test_requirement_12_what_came_of_a_split_is_not_split_again() -> None:
    part = ASSIGNED.model_copy(update={"parent": "whole"})
    one = [attempt(1, "one")]
    found = [
        means_of(TASK, each, one, history(), model="m", policy=PolicySettings()).may_split
        for each in (ASSIGNED, part, None)
    ]
    assert found == [True, False, False]


def test_what_a_person_issued_in_other_words_was_not_turned_down() -> None:
    proposed = replace(act(Action.NUDGE), escalation=3, needs_approval=True)
    reworded = replace(proposed, by=Actor.OPERATOR, needs_approval=False)
    turned_down = [(1, proposed), (1, stamp(1, DeliveryState.REJECTED))]
    assert history(*turned_down).rejected_actions(1) == {Action.NUDGE}
    assert history(*turned_down, (1, reworded)).rejected_actions(1) == frozenset()
