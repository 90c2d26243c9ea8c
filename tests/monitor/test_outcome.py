"""Recovered, made worse or no effect: by what was observed, never by a worker's word."""

from dataclasses import replace

import pytest

from midwatch_monitor.outcome import InterventionTrial
from midwatch_monitor.records import (
    Alert,
    AlertKey,
    AlertState,
    Ending,
    Movement,
    Outcome,
    Resolution,
    Severity,
)
from midwatch_stage.factories import alert

STALL = AlertKey(rule="stalled_progress")
BUDGET = AlertKey(rule="budget_burn", subject="requests")
EDITS = AlertKey(rule="repeated_edits", subject="a.py")

FIRING = alert(STALL.rule)
CLEARED = replace(FIRING, state=AlertState.RESOLVED, resolution=Resolution.CLEARED)
RESTARTED = replace(CLEARED, resolution=Resolution.RESTARTED)
ENDED = replace(CLEARED, resolution=Resolution.ENDED)


def trial(*answers: AlertKey, fresh: bool = False, grant: bool = False) -> InterventionTrial:
    answers = answers or (STALL,)
    severities = {} if fresh else dict.fromkeys(answers, Severity.WARNING)
    return InterventionTrial(
        intervention=1,
        answers=answers,
        severities=severities,
        delivered_step=1,
        fresh=fresh,
        grant=grant,
    )


def moved(
    tried: InterventionTrial, *movements: Movement, paths: tuple[str, ...] = ()
) -> InterventionTrial:
    tried.see_movement(frozenset(movements), paths)
    return tried


def verdict(tried: InterventionTrial, *alerts: Alert) -> Outcome:
    return tried.verdict({alert.key: alert for alert in alerts})[0]


@pytest.mark.parametrize(
    ("movements", "said"),
    [
        ({Movement.CHECK_PASSED}, "a check passed"),
        ({Movement.FEWER_FAILURES}, "a check failed in fewer places"),
        ({Movement.NEW_FAILURE}, "a check failed in a new way"),
        ({Movement.NEW_CONTENT}, "new content was written"),
        (
            {Movement.NEW_CONTENT, Movement.CHECK_PASSED},
            "a check passed, new content was written",
        ),
    ],
)
def test_cleared_alerts_and_an_observed_movement_are_a_recovery(
    movements: set[Movement], said: str
) -> None:
    tried = moved(trial(), *movements)
    assert tried.verdict({STALL: CLEARED}) == (
        Outcome.RECOVERED,
        f"its alerts resolved; {said}",
    )


@pytest.mark.parametrize("movements", [(), (Movement.PLAN_STEP,)])
@pytest.mark.parametrize("alert", [CLEARED, RESTARTED])
def test_the_workers_word_alone_is_no_recovery(
    alert: Alert, movements: tuple[Movement, ...]
) -> None:
    assert verdict(moved(trial(), *movements), alert) is Outcome.NO_EFFECT


@pytest.mark.parametrize(
    ("movement", "outcome"),
    [
        (Movement.NEW_CONTENT, Outcome.NO_EFFECT),
        (Movement.CHECK_PASSED, Outcome.RECOVERED),
        (Movement.NEW_FAILURE, Outcome.RECOVERED),
    ],
)
def test_an_emptied_window_needs_a_proof_of_its_own(movement: Movement, outcome: Outcome) -> None:
    assert verdict(moved(trial(), movement), RESTARTED) is outcome


@pytest.mark.parametrize(
    ("movement", "outcome"),
    [
        (Movement.NEW_CONTENT, Outcome.NO_EFFECT),
        (Movement.FEWER_FAILURES, Outcome.RECOVERED),
    ],
)
def test_an_alert_that_a_grant_ends_proves_no_recovery(
    movement: Movement, outcome: Outcome
) -> None:
    assert verdict(moved(trial(BUDGET), movement), replace(CLEARED, key=BUDGET)) is outcome


@pytest.mark.parametrize("alert", [CLEARED, FIRING, ENDED], ids=["cleared", "firing", "ended"])
@pytest.mark.parametrize(
    ("movement", "expected"),
    [
        (Movement.NEW_CONTENT, (Outcome.NO_EFFECT, "no check went better since")),
        (Movement.NEW_FAILURE, (Outcome.NO_EFFECT, "no check went better since")),
        (Movement.PLAN_STEP, (Outcome.NO_EFFECT, "no check went better since")),
        (
            Movement.FEWER_FAILURES,
            (Outcome.RECOVERED, "the work went on; a check failed in fewer places"),
        ),
        (Movement.CHECK_PASSED, (Outcome.RECOVERED, "the work went on; a check passed")),
    ],
)
def test_a_grant_is_judged_by_the_work_whatever_becomes_of_the_alert_about_the_budget(
    movement: Movement, expected: tuple[Outcome, str], alert: Alert
) -> None:
    tried = moved(trial(BUDGET, grant=True), movement)
    assert tried.verdict({BUDGET: replace(alert, key=BUDGET)}) == expected


def test_a_grant_answers_for_the_other_alerts_too() -> None:
    tried = moved(trial(BUDGET, STALL, grant=True), Movement.CHECK_PASSED)
    assert verdict(tried, FIRING) is Outcome.NO_EFFECT
    assert verdict(tried, CLEARED) is Outcome.RECOVERED


def test_a_grant_that_runs_out_has_no_effect() -> None:
    tried = moved(trial(BUDGET, grant=True), Movement.CHECK_PASSED)
    found = [tried.verdict({}, each)[0] for each in (Ending.OUT_OF_BUDGET, Ending.DONE, None)]
    assert found == [Outcome.NO_EFFECT, Outcome.RECOVERED, Outcome.RECOVERED]
    nudged = moved(trial(BUDGET), Movement.CHECK_PASSED)
    assert nudged.verdict({}, Ending.OUT_OF_BUDGET)[0] is Outcome.RECOVERED


def test_an_ended_attempt_clears_nothing() -> None:
    tried = moved(trial(), Movement.CHECK_PASSED)
    assert tried.verdict({STALL: ENDED}) == (
        Outcome.NO_EFFECT,
        "its alerts ended without being cleared",
    )


def test_every_answered_alert_must_be_resolved() -> None:
    tried = moved(trial(STALL, EDITS), Movement.CHECK_PASSED)
    assert tried.verdict({STALL: CLEARED, EDITS: replace(FIRING, key=EDITS)}) == (
        Outcome.NO_EFFECT,
        "repeated_edits still fires",
    )


def test_several_alerts_that_go_on_still_fire() -> None:
    alerts = {STALL: FIRING, EDITS: replace(FIRING, key=EDITS)}
    said = "stalled_progress, repeated_edits still fire"
    assert trial(STALL, EDITS).verdict(alerts) == (Outcome.NO_EFFECT, said)


def test_a_rule_that_fires_for_two_reasons_is_named_once() -> None:
    other = replace(EDITS, subject="b.py")
    alerts = {EDITS: replace(FIRING, key=EDITS), other: replace(FIRING, key=other)}
    said = "repeated_edits still fires"
    assert trial(EDITS, other).verdict(alerts) == (Outcome.NO_EFFECT, said)


@pytest.mark.parametrize(
    ("path", "outcome"), [("a.py", Outcome.NO_EFFECT), ("b.py", Outcome.RECOVERED)]
)
def test_one_more_edit_of_the_file_it_was_stuck_on_is_no_proof(path: str, outcome: Outcome) -> None:
    tried = moved(trial(EDITS), Movement.NEW_CONTENT, paths=(path,))
    assert verdict(tried, replace(CLEARED, key=EDITS)) is outcome


def test_a_higher_severity_is_worse() -> None:
    tried = moved(trial(), Movement.CHECK_PASSED)
    tried.see_alert(replace(FIRING, severity=Severity.CRITICAL))
    reason = "stalled_progress rose to critical"
    assert tried.verdict({STALL: CLEARED}) == (Outcome.MADE_WORSE, reason)


def test_another_rule_that_fires_is_worse() -> None:
    tried = moved(trial(), Movement.CHECK_PASSED)
    tried.see_alert(replace(FIRING, key=AlertKey(rule="cycle")))
    assert tried.verdict({STALL: CLEARED}) == (Outcome.MADE_WORSE, "then cycle fired as well")


def test_a_check_that_passed_and_now_fails_is_worse() -> None:
    tried = moved(trial(), Movement.CHECK_PASSED, Movement.CHECK_BROKEN)
    assert verdict(tried, CLEARED) is Outcome.MADE_WORSE


@pytest.mark.parametrize(
    ("rule", "evidence", "outcome"),
    [
        ("declining_confidence", (3, 6, 8), Outcome.RECOVERED),
        ("declining_confidence", (6, 7, 8), Outcome.MADE_WORSE),
        ("stalled_progress", (5, 7, 8), Outcome.RECOVERED),
        ("repeated_call", (4, 8), Outcome.RECOVERED),
        ("error_streak", (5, 6, 7, 8), Outcome.RECOVERED),
        ("low_confidence", (6,), Outcome.MADE_WORSE),
        ("silence", (5,), Outcome.MADE_WORSE),
        ("unsupported_claim", (2, 6), Outcome.MADE_WORSE),
        ("budget_burn", (6,), Outcome.RECOVERED),
    ],
)
def test_only_what_lies_wholly_after_the_delivery_counts_against_it(
    rule: str, evidence: tuple[int, ...], outcome: Outcome
) -> None:
    tried = moved(replace(trial(EDITS), delivered_step=5), Movement.CHECK_PASSED)
    tried.see_alert(replace(FIRING, key=AlertKey(rule=rule), evidence=evidence))
    assert verdict(tried, replace(CLEARED, key=EDITS)) is outcome


@pytest.mark.parametrize(
    ("evidence", "outcome"), [((1, 4, 6), Outcome.NO_EFFECT), ((6, 7), Outcome.MADE_WORSE)]
)
def test_a_rise_counts_as_worse_only_where_all_of_it_came_after(
    evidence: tuple[int, ...], outcome: Outcome
) -> None:
    tried = replace(trial(), delivered_step=5)
    risen = replace(FIRING, severity=Severity.CRITICAL, evidence=evidence)
    tried.see_alert(risen)
    assert verdict(tried, risen) is outcome


def test_edits_of_another_file_before_the_delivery_are_not_held_against_it() -> None:
    tried = moved(replace(trial(EDITS), delivered_step=5), Movement.CHECK_PASSED)
    other = AlertKey(rule="repeated_edits", subject="b.py")
    tried.see_alert(replace(FIRING, key=other, evidence=(1, 2, 3, 6)))
    assert verdict(tried, replace(CLEARED, key=EDITS)) is Outcome.RECOVERED


@pytest.mark.parametrize(
    ("met", "movements", "outcome"),
    [
        ("permission", (Movement.NEW_CONTENT,), Outcome.NO_EFFECT),
        ("network", (Movement.NEW_CONTENT,), Outcome.RECOVERED),
        ("", (), Outcome.NO_EFFECT),
    ],
)
def test_an_obstacle_that_is_not_met_again_no_longer_stands_in_the_way(
    met: str, movements: tuple[Movement, ...], outcome: Outcome
) -> None:
    key = AlertKey(rule="blocked_environment", subject="permission")
    tried = trial(key)
    tried.see_movement(frozenset(movements), ("b.py",), obstacle=met)
    assert verdict(tried, replace(FIRING, key=key)) is outcome


def test_a_new_attempt_answers_for_the_whole_of_its_budget() -> None:
    tried = replace(trial(fresh=True), delivered_step=0)
    tried.see_alert(replace(FIRING, key=AlertKey(rule="budget_burn"), evidence=(9,)))
    assert verdict(tried) is Outcome.MADE_WORSE


@pytest.mark.parametrize(
    "alert",
    [
        replace(FIRING, key=AlertKey(rule="cycle"), severity=Severity.NOTICE),
        replace(FIRING, key=AlertKey(rule="cycle"), state=AlertState.PENDING),
        FIRING,
        replace(CLEARED, severity=Severity.CRITICAL),
    ],
)
def test_a_notice_a_pending_one_or_the_old_one_makes_nothing_worse(alert: Alert) -> None:
    tried = moved(trial(), Movement.CHECK_PASSED)
    tried.see_alert(alert)
    assert verdict(tried, CLEARED) is Outcome.RECOVERED


def test_the_same_rule_about_another_file_is_no_recovery() -> None:
    tried = moved(trial(EDITS), Movement.NEW_CONTENT, paths=("b.py",))
    other = replace(FIRING, key=AlertKey(rule="repeated_edits", subject="b.py"))
    tried.see_alert(other)
    assert verdict(tried, replace(CLEARED, key=EDITS)) is Outcome.NO_EFFECT


@pytest.mark.parametrize(
    ("movements", "outcome"),
    [
        ((), Outcome.NO_EFFECT),
        ((Movement.NEW_CONTENT,), Outcome.NO_EFFECT),
        ((Movement.CHECK_PASSED,), Outcome.RECOVERED),
    ],
)
def test_a_restart_is_judged_by_what_the_new_attempt_proves(
    movements: tuple[Movement, ...], outcome: Outcome
) -> None:
    assert verdict(moved(trial(EDITS, fresh=True), *movements)) is outcome


def test_a_restart_that_ends_in_the_same_alert_had_no_effect() -> None:
    tried = moved(trial(fresh=True), Movement.CHECK_PASSED)
    tried.see_alert(FIRING)
    assert verdict(tried, ENDED) is Outcome.NO_EFFECT


def test_what_ended_before_an_intervention_arrived_is_not_its_doing() -> None:
    late = moved(replace(trial(), severities={}), Movement.CHECK_PASSED)
    assert late.verdict({STALL: CLEARED}) == (
        Outcome.NO_EFFECT,
        "its alerts had ended before it was delivered",
    )


def test_a_conflict_that_a_new_attempt_does_not_have_is_over() -> None:
    key = AlertKey(rule="workspace_conflict", subject="a.py")
    assert verdict(trial(key, fresh=True)) is Outcome.RECOVERED
