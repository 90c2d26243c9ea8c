"""Figures of the work itself: tasks, plans, stated confidence, spending."""

from midwatch_monitor import records as r
from midwatch_monitor.metrics.runs import (
    Bin,
    ConfidenceFigures,
    PlanFigures,
    PlanSum,
    Reservation,
    RunMetrics,
    Source,
    SpendingFigures,
    TaskFigures,
    Usage,
)
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_tests.factories import (
    acceptance,
    after,
    ended,
    entries,
    feedback,
    reflecting,
    task_transition,
    transition,
)

DONE, STUCK = ended(), ended(r.Ending.STUCK)
OVER = task_transition(r.Lifecycle.COMPLETED, reason="all passed", passed=2, total=2)


def log(
    *records: r.Record, attempt: int | None = 1, task: int = 1, minute: int = 0
) -> list[r.Entry]:
    """Records as they stand in the journal, all of one minute."""
    return entries(*records, attempt=attempt, task=task, at=after(minutes=minute))


def make_budget_change(requests: int, tokens: int) -> r.Change:
    return r.Change(budget=r.Budget(requests=r.Meter(used=requests), tokens=r.Meter(used=tokens)))


def test_a_task_is_told_with_its_time_and_what_its_attempts_used() -> None:
    told = [
        *log(task_transition(r.Lifecycle.SUBMITTED), attempt=None),
        *log(transition(r.Lifecycle.SUBMITTED), minute=1),
        *log(make_budget_change(4, 900), STUCK, minute=2),
        *log(DONE, attempt=2, minute=3),
        *log(OVER, attempt=None, minute=5),
    ]
    assert RunMetrics(told).figures().tasks == (
        TaskFigures(
            task=1,
            lifecycle=r.Lifecycle.COMPLETED,
            stands=AttemptStatus.COMPLETED,
            reason="all passed",
            attempts=2,
            passed=2,
            total=2,
            seconds=240,
            usage=Usage(requests=4, tokens=900),
        ),
    )


def test_of_a_task_that_ended_before_it_began_by_the_clock_no_time_is_told() -> None:
    told = [*log(transition(), minute=9), *log(DONE, minute=9), *log(OVER, attempt=None, minute=5)]
    (task,) = RunMetrics(told).figures().tasks
    assert task.seconds is None


def test_a_task_of_which_only_the_attempt_moves_stands_where_that_does() -> None:
    """As a session does, that somebody else started."""
    watched = r.Change(lifecycle=r.Lifecycle.WORKING, acts=(r.Action.OBSERVE,))
    idle = r.Change(lifecycle=r.Lifecycle.INPUT_REQUIRED)
    for told, lifecycle, stands in (
        ((watched,), r.Lifecycle.WORKING, AttemptStatus.WORKING),
        ((watched, idle), r.Lifecycle.INPUT_REQUIRED, AttemptStatus.IDLE),
    ):
        (task,) = RunMetrics(log(*told)).figures().tasks
        assert (task.lifecycle, task.stands, task.seconds) == (lifecycle, stands, None)


def test_plan_steps_count_as_they_stood_when_the_attempt_was_over() -> None:
    first = r.Plan(steps=(r.PlanStep(title="a"), r.PlanStep(title="b")))
    second = r.Plan(
        steps=(
            r.PlanStep(title="a", state=r.PlanStepState.DONE, flag="no test"),
            r.PlanStep(title="b", state=r.PlanStepState.SKIPPED),
        ),
        revision=1,
    )
    unfinished = log(first, attempt=3, task=2)
    told = [*log(first, STUCK), *log(first, second, DONE, attempt=2), *log(OVER, attempt=None)]
    last = PlanSum(plans=1, done=1, skipped=1, closed=1, flagged=1, revisions=1)
    every = PlanSum(plans=2, done=1, skipped=1, open=2, closed=1, flagged=1, revisions=1)
    assert RunMetrics([*told, *unfinished]).figures().plans == PlanFigures(
        attempts=every, tasks=last
    )


def test_a_task_that_nobody_planned_is_no_plan() -> None:
    own = r.Plan(steps=(r.PlanStep(title="the task"),))
    assert RunMetrics([*log(own, DONE), *log(OVER, attempt=None)]).figures().plans == PlanFigures()
    written = r.Plan(steps=(r.PlanStep(title="the task", files=("a.py",)),))
    figures = RunMetrics([*log(written, DONE), *log(OVER, attempt=None)]).figures().plans
    assert figures.attempts == PlanSum(plans=1, open=1)


def test_claims_of_completion_are_taken_reserved_or_refused() -> None:
    plain = r.Completion(plan_step=1, goal="a", confidence=90, accepted=True)
    flagged = r.Completion(plan_step=2, goal="b", confidence=60, accepted=True, flag="untested")
    refused = r.Completion(
        plan_step=0, goal="c", confidence=90, accepted=False, doubts=("no file",)
    )
    assert RunMetrics(log(plain, flagged, refused)).figures().plans == PlanFigures(
        accepted=2,
        reserved=1,
        refused=1,
        reservations=(Reservation(task=1, plan_step=2, goal="b", flag="untested"),),
    )


WHOLE = r.Completion(plan_step=0, goal="all", confidence=70, accepted=True)
"""What is claimed of the whole is no stated confidence."""


def test_an_attempt_counts_by_what_it_said_last_and_its_checks_by_their_last_result() -> None:
    told = [
        *log(reflecting(1, confidence=20), reflecting(2, confidence=100)),
        *log(WHOLE, acceptance(passed=False), acceptance(passed=True), DONE),
        *log(reflecting(1, confidence=95), acceptance(passed=False), STUCK, attempt=2),
        *log(reflecting(1, confidence=50), attempt=3),
    ]
    share = Share(hits=1, of=2)
    by_checkpoint, by_completion = RunMetrics(told).figures().confidence
    assert by_checkpoint == ConfidenceFigures(
        source=Source.CHECKPOINT,
        attempts=2,
        error=by_checkpoint.error,
        bins=(Bin(low=90, high=100, attempts=share, checks=share),),
    )
    assert round(by_checkpoint.error or 0, 4) == 0.475
    assert by_completion == ConfidenceFigures(source=Source.COMPLETION)


def test_a_persons_verdict_wins_over_the_checks() -> None:
    claim = r.Completion(plan_step=1, goal="all", confidence=70, accepted=True)
    told = log(claim, acceptance(passed=True), DONE, feedback(accepted=False))
    assert RunMetrics(told).figures().confidence[1].bins == (
        Bin(low=70, high=79, attempts=Share(hits=0, of=1), checks=Share(hits=1, of=1)),
    )


def test_a_meter_is_read_once_over_all_attempts_and_again_where_it_begins_anew() -> None:
    told = [
        *log(make_budget_change(1, 100), make_budget_change(2, 250)),
        *log(make_budget_change(2, 250), make_budget_change(3, 300), attempt=2),
        *log(make_budget_change(1, 40), attempt=3),
        *log(make_budget_change(1, 10), attempt=4, task=2),
    ]
    assert RunMetrics(told).figures().spending.workers == Usage(requests=5, tokens=350)


def test_other_models_are_told_by_role_and_as_a_share_of_the_workers() -> None:
    spent = r.Spending(role="supervisor", model="m", requests=1, tokens=30, cost_usd=0.5)
    planned = r.Spending(role="planner", model="m", requests=2, tokens=20)
    told = [*log(make_budget_change(4, 200)), *log(spent, spent), *log(planned, attempt=None)]
    found = RunMetrics(told).figures().spending
    assert found == SpendingFigures(
        workers=Usage(requests=4, tokens=200),
        roles=(
            ("planner", Usage(requests=2, tokens=20)),
            ("supervisor", Usage(requests=2, tokens=60, cost_usd=1.0)),
        ),
    )
    assert found.share(found.around) == 0.4
    assert SpendingFigures().share(Usage(tokens=5)) is None  # of workers that used nothing
