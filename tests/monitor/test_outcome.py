"""Recovered, made worse or no effect: by what was observed, never by a worker's word."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.outcome import InterventionTrial
from midwatch_tests.factories import alert

STALL = r.AlertKey(rule="stalled_progress")
BUDGET = r.AlertKey(rule="budget_burn", subject="requests")
EDITS, OTHER = (r.AlertKey(rule="repeated_edits", subject=path) for path in ("a.py", "b.py"))
BLOCKED = r.AlertKey(rule="blocked_environment", subject="permission")
CONFLICT = r.AlertKey(rule="workspace_conflict", subject="a.py")
FIRING = alert(STALL.rule)
CLEARED = replace(FIRING, state=r.AlertState.RESOLVED, resolution=r.Resolution.CLEARED)
RESTARTED = replace(CLEARED, resolution=r.Resolution.RESTARTED)
ENDED = replace(CLEARED, resolution=r.Resolution.ENDED)
CRITICAL = replace(FIRING, severity=r.Severity.CRITICAL)
PASSED, BROKEN, FEWER = r.Movement.CHECK_PASSED, r.Movement.CHECK_BROKEN, r.Movement.FEWER_FAILURES
FAILURE, CONTENT, PLAN = r.Movement.NEW_FAILURE, r.Movement.NEW_CONTENT, r.Movement.PLAN_STEP
RECOVERED, NO_EFFECT, WORSE = r.Outcome.RECOVERED, r.Outcome.NO_EFFECT, r.Outcome.MADE_WORSE


def alert_about(key: r.AlertKey, alert: r.Alert, **fields: Any) -> r.Alert:
    return replace(alert, key=key, **fields)


def firing_alert(rule: str, *evidence: int, **fields: Any) -> r.Alert:
    return alert_about(r.AlertKey(rule=rule), FIRING, evidence=evidence, **fields)


Trial = Callable[[], InterventionTrial]


def trial_of(*movements: r.Movement, **fields: Any) -> Trial:
    """An intervention that came at a step, and what was observed after it."""
    return partial(_make_trial, *movements, **fields)


def _make_trial(
    *movements: r.Movement,
    answers: tuple[r.AlertKey, ...] = (STALL,),
    then: tuple[r.Alert, ...] = (),
    paths: tuple[str, ...] = (),
    step: int = 1,
    met: str = "",
    **fields: Any,
) -> InterventionTrial:
    firing = {} if fields.get("fresh") else dict.fromkeys(answers, r.Severity.WARNING)
    fields = {"severities": firing, "delivered_step": step, **fields}
    trial = InterventionTrial(intervention=1, answers=answers, **fields)
    trial.see_movement(frozenset(movements), paths, obstacle=met)
    for each in then:
        trial.see_alert(each)
    return trial


def trial_of_grant(*movements: r.Movement) -> Trial:
    return trial_of(*movements, answers=(BUDGET,), grant=True)


def trial_at_step_5(*then: r.Alert) -> Trial:
    """One that answered edits and came at step 5, after which a check passed."""
    return trial_of(PASSED, answers=(EDITS,), then=then, step=5)


NO_WORK = "no check went better since"
ON_EDITS = (alert_about(EDITS, CLEARED),)


@pytest.mark.parametrize("alert", [CLEARED, FIRING, ENDED], ids=["cleared", "firing", "ended"])
@pytest.mark.parametrize(
    ("movement", "outcome"),
    [
        (CONTENT, NO_EFFECT),
        (FAILURE, NO_EFFECT),
        (PLAN, NO_EFFECT),
        (FEWER, RECOVERED),
        (PASSED, RECOVERED),
    ],
)
def test_a_grant_is_judged_by_the_work_whatever_becomes_of_the_alert_about_the_budget(
    movement: r.Movement, outcome: r.Outcome, alert: r.Alert
) -> None:
    found, reason = trial_of_grant(movement)().verdict({BUDGET: alert_about(BUDGET, alert)})
    assert found is outcome
    assert (reason == NO_WORK) is (outcome is NO_EFFECT)


@pytest.mark.parametrize(
    ("trial", "alerts", "outcome", "reason"),
    [
        (trial_of(PASSED), (CLEARED,), RECOVERED, "its alerts resolved; a check passed"),
        (
            trial_of(FEWER),
            (CLEARED,),
            RECOVERED,
            "its alerts resolved; a check failed in fewer places",
        ),
        (
            trial_of(FAILURE),
            (CLEARED,),
            RECOVERED,
            "its alerts resolved; a check failed in a new way",
        ),
        (
            trial_of(CONTENT, PASSED),
            (CLEARED,),
            RECOVERED,
            "its alerts resolved; a check passed, new content was written",
        ),
        (trial_of_grant(FEWER), (), RECOVERED, "the work went on; a check failed in fewer places"),
        (trial_of(PASSED), (ENDED,), NO_EFFECT, "its alerts ended without being cleared"),
        (
            trial_of(PASSED, answers=(STALL, EDITS)),
            (CLEARED, alert_about(EDITS, FIRING)),
            NO_EFFECT,
            "repeated_edits still fires",
        ),
        (
            trial_of(answers=(STALL, EDITS)),
            (FIRING, alert_about(EDITS, FIRING)),
            NO_EFFECT,
            "stalled_progress, repeated_edits still fire",
        ),
        (
            trial_of(answers=(EDITS, OTHER)),
            (alert_about(EDITS, FIRING), alert_about(OTHER, FIRING)),
            NO_EFFECT,
            "repeated_edits still fires",
        ),
        (
            trial_of(PASSED, then=(CRITICAL,)),
            (CLEARED,),
            WORSE,
            "stalled_progress rose to critical",
        ),
        (
            trial_of(PASSED, then=(firing_alert("cycle"),)),
            (CLEARED,),
            WORSE,
            "then cycle fired as well",
        ),
        (
            trial_of(PASSED, severities={}),
            (CLEARED,),
            NO_EFFECT,
            "its alerts had ended before it was delivered",
        ),
    ],
)
def test_a_verdict_names_its_reason(
    trial: Trial, alerts: tuple[r.Alert, ...], outcome: r.Outcome, reason: str
) -> None:
    assert trial().verdict({each.key: each for each in alerts}) == (outcome, reason)


NOTICE = firing_alert("cycle", severity=r.Severity.NOTICE)
PENDING = firing_alert("cycle", state=r.AlertState.PENDING)
LATER = replace(CRITICAL, evidence=(6, 7))
PARTLY = replace(CRITICAL, evidence=(1, 4, 6))


@pytest.mark.parametrize(
    ("trial", "alerts", "outcome"),
    [
        # The worker's word alone is no recovery.
        (trial_of(), (CLEARED,), NO_EFFECT),
        (trial_of(PLAN), (CLEARED,), NO_EFFECT),
        (trial_of(PLAN), (RESTARTED,), NO_EFFECT),
        # An emptied window, or a budget that was raised, needs a proof of its own.
        (trial_of(CONTENT), (RESTARTED,), NO_EFFECT),
        (trial_of(PASSED), (RESTARTED,), RECOVERED),
        (trial_of(FAILURE), (RESTARTED,), RECOVERED),
        (trial_of(CONTENT, answers=(BUDGET,)), (alert_about(BUDGET, CLEARED),), NO_EFFECT),
        (trial_of(FEWER, answers=(BUDGET,)), (alert_about(BUDGET, CLEARED),), RECOVERED),
        # A grant answers for the other alerts, too.
        (trial_of(PASSED, answers=(BUDGET, STALL), grant=True), (FIRING,), NO_EFFECT),
        (trial_of(PASSED, answers=(BUDGET, STALL), grant=True), (CLEARED,), RECOVERED),
        # One more edit of the file that it was stuck on is no proof.
        (trial_of(CONTENT, answers=(EDITS,), paths=("a.py",)), ON_EDITS, NO_EFFECT),
        (trial_of(CONTENT, answers=(EDITS,), paths=("b.py",)), ON_EDITS, RECOVERED),
        (
            trial_of(
                CONTENT, answers=(EDITS,), paths=("b.py",), then=(alert_about(OTHER, FIRING),)
            ),
            ON_EDITS,
            NO_EFFECT,
        ),
        (trial_of(PASSED, BROKEN), (CLEARED,), WORSE),
        # Only what lies wholly after the delivery counts against it.
        (trial_at_step_5(firing_alert("declining_confidence", 3, 6, 8)), ON_EDITS, RECOVERED),
        (trial_at_step_5(firing_alert("declining_confidence", 6, 7, 8)), ON_EDITS, WORSE),
        (trial_at_step_5(firing_alert("stalled_progress", 5, 7, 8)), ON_EDITS, RECOVERED),
        (trial_at_step_5(firing_alert("silence", 5)), ON_EDITS, WORSE),
        (trial_at_step_5(firing_alert("unsupported_claim", 2, 6)), ON_EDITS, WORSE),
        (trial_at_step_5(firing_alert("budget_burn", 6)), ON_EDITS, RECOVERED),
        (trial_at_step_5(alert_about(OTHER, FIRING, evidence=(1, 2, 3, 6))), ON_EDITS, RECOVERED),
        (trial_of(step=5, then=(PARTLY,)), (PARTLY,), NO_EFFECT),
        (trial_of(step=5, then=(LATER,)), (LATER,), WORSE),
        (trial_of(fresh=True, step=0, then=(firing_alert("budget_burn", 9),)), (), WORSE),
        # A notice, a pending alert and the old alerts make nothing worse.
        *(
            (trial_of(PASSED, then=(each,)), (CLEARED,), RECOVERED)
            for each in (NOTICE, PENDING, FIRING, replace(CLEARED, severity=r.Severity.CRITICAL))
        ),
        # An obstacle that is not met again no longer stands in the way.
        (
            trial_of(CONTENT, answers=(BLOCKED,), met="permission", paths=("b.py",)),
            (alert_about(BLOCKED, FIRING),),
            NO_EFFECT,
        ),
        (
            trial_of(CONTENT, answers=(BLOCKED,), met="network", paths=("b.py",)),
            (alert_about(BLOCKED, FIRING),),
            RECOVERED,
        ),
        (trial_of(answers=(BLOCKED,)), (alert_about(BLOCKED, FIRING),), NO_EFFECT),
        # A restart is judged by what the new attempt proves.
        (trial_of(answers=(EDITS,), fresh=True), (), NO_EFFECT),
        (trial_of(CONTENT, answers=(EDITS,), fresh=True), (), NO_EFFECT),
        (trial_of(PASSED, answers=(EDITS,), fresh=True), (), RECOVERED),
        (trial_of(PASSED, fresh=True, then=(FIRING,)), (ENDED,), NO_EFFECT),
        (trial_of(answers=(CONFLICT,), fresh=True), (), RECOVERED),
    ],
)
def test_an_outcome_is_judged_by_what_was_observed(
    trial: Trial, alerts: tuple[r.Alert, ...], outcome: r.Outcome
) -> None:
    assert trial().verdict({each.key: each for each in alerts})[0] is outcome


def test_a_grant_that_runs_out_has_no_effect() -> None:
    trial = trial_of_grant(PASSED)
    found = [trial().verdict({}, each)[0] for each in (r.Ending.OUT_OF_BUDGET, r.Ending.DONE, None)]
    assert found == [NO_EFFECT, RECOVERED, RECOVERED]
    nudged = trial_of(PASSED, answers=(BUDGET,))()
    assert nudged.verdict({}, r.Ending.OUT_OF_BUDGET)[0] is RECOVERED
