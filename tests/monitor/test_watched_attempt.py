"""One attempt as the monitor sees it: folded from entries, whatever writes them."""

from dataclasses import replace

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.watched_attempt import WatchedAttempt
from midwatch_tests.factories import (
    acceptance,
    alert,
    attempt,
    delivery,
    edit,
    entries,
    escalation,
    intervention,
    reflecting,
    step,
    transition,
)

KEY = r.AlertKey(rule="cycle")
ALERT = alert(KEY.rule)
CLEARED = replace(ALERT, state=r.AlertState.RESOLVED, resolution=r.Resolution.CLEARED)
NUDGE = intervention(escalation=1, answers=(KEY,))
RESTART = replace(NUDGE, action=r.Action.RESTART)


def fold_attempt(*records: r.Record) -> WatchedAttempt:
    """After records with the ids 1, 2, 3 …; outcomes are due after four steps."""
    view = WatchedAttempt(state=AttemptState(attempt=attempt()), outcome_after=4)
    for each in entries(*records):
        view.fold(each)
    return view


def delivered_outcomes(view: WatchedAttempt) -> dict[int, r.Outcome | None]:
    return {each.id: each.outcome for each in view.state.interventions.delivered}


def interventions_under_way(view: WatchedAttempt) -> list[int]:
    return [each.id for each in view.state.interventions.under_way]


def acts(count: int) -> list[r.Step]:
    return [step(n) for n in range(1, count + 1)]


OPEN, ANSWERED, CLOSED = (escalation(state=state) for state in r.EscalationState)
WORKING = transition()


@pytest.mark.parametrize(
    ("records", "may"),
    [
        ((WORKING,), True),
        ((OPEN,), False),
        ((OPEN, OPEN, ANSWERED), False),
        ((OPEN, CLOSED, OPEN), False),
        ((*acts(3), OPEN, CLOSED, step(4), step(5)), False),
        ((*acts(3), OPEN, CLOSED, step(4), step(5), step(6)), True),
        ((*2 * (OPEN, CLOSED), *acts(3)), True),
        ((*3 * (OPEN, CLOSED), *acts(3)), False),
        ((transition(r.Lifecycle.INPUT_REQUIRED),), False),
        ((transition(r.Lifecycle.FAILED),), False),
        ((WORKING, intervention(r.Action.STOP)), False),
        ((WORKING, intervention(r.Action.STOP), delivery(2)), False),
        ((r.Change(lifecycle=r.Lifecycle.INPUT_REQUIRED), WORKING), True),
    ],
)
def test_entries_tell_what_keeps_an_attempt_quiet(records: tuple[r.Record, ...], may: bool) -> None:
    assert fold_attempt(*records).may_escalate(cooldown=3, cap=2) == may


@pytest.mark.parametrize(
    ("records", "under_way", "judged"),
    [
        ((ALERT, NUDGE, delivery(2)), [], {2: None}),
        ((NUDGE, delivery(1, r.DeliveryState.APPROVED)), [1], {}),
        ((NUDGE, delivery(1, r.DeliveryState.REJECTED)), [], {}),
        ((NUDGE, delivery(1, r.DeliveryState.EXPIRED)), [], {}),
        ((replace(NUDGE, by=r.Actor.OPERATOR, answers=()), delivery(1)), [], {}),
    ],
    ids=["delivered", "approved", "rejected", "expired", "an operator's own act"],
)
def test_only_a_delivered_answer_is_judged(
    records: tuple[r.Record, ...], under_way: list[int], judged: dict[int, r.Outcome | None]
) -> None:
    view = fold_attempt(*records)
    assert interventions_under_way(view) == under_way
    assert [*view.trials] == [*judged]
    assert all(each.severities == {KEY: r.Severity.WARNING} for each in view.trials.values())


def test_an_outcome_is_due_after_so_many_steps_and_only_once() -> None:
    asked = (ALERT, NUDGE, delivery(2))
    assert fold_attempt(*asked, *acts(3)).due_outcomes() == ()
    reason = f"{KEY.rule} still fires"
    report = r.OutcomeReport(intervention=2, outcome=r.Outcome.NO_EFFECT, step=4, reason=reason)
    view = fold_attempt(*asked, *acts(4))
    assert view.due_outcomes() == (report,)
    again = fold_attempt(*asked, *acts(4), report)
    assert (again.due_outcomes(), delivered_outcomes(again)) == ((), {2: r.Outcome.NO_EFFECT})
    assert again.unhelped == NUDGE.answers


@pytest.mark.parametrize(
    "late",
    [
        (acceptance(), transition(r.Lifecycle.COMPLETED)),
        (step(5), replace(ALERT, severity=r.Severity.CRITICAL)),
        (r.Change(budget=r.Budget()), replace(ALERT, key=r.AlertKey(rule="budget_burn"))),
    ],
)
def test_what_comes_after_an_outcome_was_due_counts_no_more(late: tuple[r.Record, ...]) -> None:
    asked = (ALERT, NUDGE, delivery(2), *acts(4), r.Change(), CLEARED)
    assert fold_attempt(*asked, *late).due_outcomes() == fold_attempt(*asked).due_outcomes()


def test_a_passed_acceptance_check_is_a_movement() -> None:
    view = fold_attempt(
        NUDGE, delivery(1), acceptance(check="a", passed=False), acceptance(check="b")
    )
    assert view.trials[1].movements == {r.Movement.CHECK_PASSED}


def run(number: int, exit_code: int, *, path: str = "") -> r.Step:
    edits = (edit(path, str(number)),) if path else ()
    return step(number, "t", args="a", ok=None, exit_code=exit_code, edits=edits)


def check_step(number: int, exit_code: int) -> r.Step:
    return step(number, args='{"command": "pytest"}', ok=not exit_code, exit_code=exit_code)


def test_what_steps_and_plans_move_is_seen_by_the_trial() -> None:
    view = fold_attempt(
        run(1, 1), NUDGE, delivery(2), run(2, 0, path="a.py"), r.Change(plan_step=2)
    )
    assert view.trials[2].movements == {
        r.Movement.CHECK_PASSED,
        r.Movement.NEW_CONTENT,
        r.Movement.PLAN_STEP,
    }
    assert view.trials[2].moved_paths == {"a.py"}


def test_what_moved_before_the_delivery_does_not_count() -> None:
    view = fold_attempt(run(1, 1), run(2, 0, path="a.py"), NUDGE, delivery(3), run(3, 0))
    assert view.trials[3].movements == set()


def test_a_check_that_older_edits_broke_is_not_held_against_an_intervention() -> None:
    edited = step(2, "edit_file", edits=(edit("a.py", "1"),))
    before = (check_step(1, 0), edited, NUDGE, delivery(3))
    assert fold_attempt(*before, check_step(3, 1)).trials[3].worse == ""
    again = fold_attempt(*before, check_step(3, 1), check_step(4, 0), check_step(5, 1))
    assert again.trials[3].worse == "a check that passed now fails"
    late = fold_attempt(
        check_step(1, 0), edited, check_step(3, 0), NUDGE, delivery(4), check_step(4, 1)
    )
    assert late.trials[4].worse == "a check that passed now fails"


def test_obstacles_that_are_met_are_seen_by_the_trial() -> None:
    output = "bash: java: command not found"
    refused = step(1, args="java A", ok=False, exit_code=127, output=output)
    assert fold_attempt(NUDGE, delivery(1), refused).trials[1].met == {"missing program java"}


def test_a_window_that_began_before_the_delivery_makes_nothing_worse() -> None:
    judge = Judge(Rules())
    steps = [reflecting(number, 10 * number, stated) for number, stated in enumerate((90, 80), 1)]
    told = [record for each in steps for record in (each, *judge.observe(each).alerts)]
    last = reflecting(3, 30, 60)
    fires = judge.observe(last).alerts
    assert [each.key.rule for each in fires if each.firing] == ["declining_confidence"]
    view = fold_attempt(*told, ALERT, NUDGE, delivery(len(told) + 2), last, *fires)
    assert [trial.worse for trial in view.trials.values()] == [""]


def test_what_a_person_silenced_is_not_heard() -> None:
    silence = intervention(r.Action.SILENCE, r.Actor.OPERATOR, answers=(KEY,))
    assert fold_attempt(ALERT).alerts_to_escalate == (ALERT,)
    view = fold_attempt(ALERT, silence)
    assert (view.alert_acts(), view.alerts_to_escalate) == ((delivery(2),), (ALERT,))
    taken = fold_attempt(ALERT, silence, delivery(2))
    assert (taken.alert_acts(), taken.alerts_to_escalate, taken.trials) == ((), (), {})
    assert fold_attempt(ALERT, silence, delivery(2), CLEARED, ALERT).alerts_to_escalate == ()


def test_an_answer_that_was_refused_leaves_its_escalation_stranded() -> None:
    assert fold_attempt(OPEN, ANSWERED, NUDGE).stranded is None
    assert fold_attempt(OPEN, ANSWERED, NUDGE, delivery(3)).stranded is None
    refused = fold_attempt(OPEN, ANSWERED, NUDGE, delivery(3, r.DeliveryState.REJECTED))
    assert refused.stranded == ANSWERED
    assert fold_attempt(OPEN).stranded is None


def test_an_escalation_that_a_stop_answered_stays_answered_until_the_attempt_ends() -> None:
    stop = replace(NUDGE, action=r.Action.STOP)
    view = fold_attempt(OPEN, ANSWERED, stop, delivery(3))
    assert (view.stranded, view.state.escalation) == (None, ANSWERED)
    assert (
        fold_attempt(OPEN, ANSWERED, stop, delivery(3, r.DeliveryState.EXPIRED)).stranded
        == ANSWERED
    )


def test_a_delivered_restart_waits_for_the_next_attempt() -> None:
    assert fold_attempt(RESTART).restart is None
    view = fold_attempt(RESTART, delivery(1))
    assert view.restart is not None
    assert (view.restart.id, view.trials) == (1, {})


def test_a_restart_that_answers_no_alert_is_judged_by_nothing() -> None:
    view, successor = fold_attempt(replace(RESTART, answers=()), delivery(1)), fold_attempt()
    view.hand_over(successor)
    assert (view.restart, successor.trials) == (None, {})


@pytest.mark.parametrize(
    ("rule", "severity", "worse"),
    [
        ("budget_burn", r.Severity.WARNING, ""),
        ("budget_burn", r.Severity.CRITICAL, "budget_burn rose to critical"),
        ("silence", r.Severity.WARNING, "then silence fired as well"),
    ],
)
def test_what_fired_at_the_end_of_the_attempt_before_is_not_held_against_its_restart(
    rule: str, severity: r.Severity, worse: str
) -> None:
    burning = alert("budget_burn")
    ended = replace(burning, state=r.AlertState.RESOLVED, resolution=r.Resolution.ENDED)
    view, successor = fold_attempt(ALERT, burning, RESTART, delivery(3), ended), fold_attempt()
    view.hand_over(successor)
    successor.fold(*entries(alert(rule, severity=severity)))
    assert successor.trials[3].worse == worse
