"""Where an attempt stands, and that every reader is told the same."""

from copy import deepcopy
from dataclasses import replace

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AlertStatus, AttemptStatus, planned
from midwatch_monitor.state.run import RunState, judges
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.inspect.status import status_line
from midwatch_supervisor.present.waiting import attempt_waits_for
from midwatch_supervisor.tui.state.row import Row
from midwatch_tests.factories import (
    alert,
    attempt,
    away,
    decision,
    delivery,
    ended,
    entries,
    entry,
    escalation,
    feedback,
    intervention,
    outcome,
    plan,
    reflecting,
    run,
    step,
    task,
    task_transition,
    transition,
)

WORKING = transition()
AWAY = away()
WAITING = transition(r.Lifecycle.INPUT_REQUIRED)
CYCLE = r.AlertKey(rule="cycle")
FIRES = alert("cycle")
PAUSE = intervention(r.Action.PAUSE, r.Actor.OPERATOR)
ASK = intervention(r.Action.ASK_OPERATOR, message="Which database?")
RESUME = intervention(r.Action.RESUME, r.Actor.OPERATOR)
STOP = intervention(r.Action.STOP, r.Actor.OPERATOR)
RESTART = intervention(r.Action.RESTART, r.Actor.SUPERVISOR, needs_approval=True)
ANSWER = intervention(r.Action.NUDGE, r.Actor.OPERATOR, message="The small one.")


def fold_attempt(*records: r.Record, judged: bool = True) -> AttemptState:
    state = AttemptState(attempt=attempt(), judged=judged)
    for each in entries(*records):
        state.fold(each)
    return state


HELD = intervention(needs_approval=True)
DONE, APPROVED, REJECTED = (
    delivery(2, state)
    for state in (r.DeliveryState.DELIVERED, r.DeliveryState.APPROVED, r.DeliveryState.REJECTED)
)
END = "you to end it in its terminal: told to stop, still running"
APPROVAL = "approval of {}: `midwatch approve 2` or `midwatch reject 2`"


@pytest.mark.parametrize(
    ("records", "status", "waits_for"),
    [
        ((PAUSE,), "pausing…", "delivery of pause (2)"),
        ((PAUSE, RESUME), "resuming…", "delivery of resume (3)"),
        ((PAUSE, STOP, RESUME), "stopping…", "delivery of stop (3)"),
        ((STOP, DONE, RESTART), "stopping…", ""),
        ((STOP, DONE, DONE, RESTART), "stopping…", END),
        ((RESTART,), "working", APPROVAL.format("restart")),
        ((RESTART, APPROVED), "restarting…", "delivery of restart (2)"),
        ((PAUSE, DONE, WAITING, RESUME), "resuming…", "delivery of resume (5)"),
        ((ASK, DONE, WAITING, ANSWER), "resuming…", "delivery of nudge (5)"),
        ((HELD, WAITING, APPROVED), "resuming…", "delivery of nudge (2)"),
        ((HELD, WAITING, REJECTED), "resuming…", ""),
        ((STOP, ended(r.Ending.STUCK)), "failed", ""),
        ((PAUSE, DONE, WAITING), "paused", "a person to resume it"),
        ((PAUSE, DONE, WAITING, RESUME, delivery(5), WORKING), "working", ""),
        ((ASK, DONE, WAITING), "waits for you", "an answer: Which database?"),
        ((WAITING,), "waits for you", "a person"),
        ((escalation(),), "working", "a decision"),
        ((AWAY,), "working", "the provider: HTTP 503 from http://far.test/v1"),
        ((AWAY, away(since=40, over=True)), "working", ""),
        ((HELD,), "working", APPROVAL.format("nudge")),
        ((HELD, WAITING), "waits for you", APPROVAL.format("nudge")),
        ((ended(r.Ending.RESTARTED),), "restarted", ""),
        ((ended(r.Ending.SPLIT),), "split", ""),
        ((ended(),), "completed", ""),
    ],
)
def test_one_word_says_where_an_attempt_stands_and_another_what_it_waits_for(
    records: tuple[r.Record, ...], status: str, waits_for: str
) -> None:
    assert fold_attempt().status.value == "submitted"
    state = fold_attempt(WORKING, *records)
    assert (state.status.value, attempt_waits_for(state)) == (status, waits_for)


ASKED = (ANSWER, ASK, delivery(3), WAITING)
STANDS = (HELD, WAITING)


@pytest.mark.parametrize(
    ("records", "goes_on"),
    [
        (ASKED, False),  # an answer from before the question does not count
        ((*ASKED, ANSWER), True),
        ((*ASKED, replace(ANSWER, needs_approval=True)), False),
        (STANDS, False),
        ((*STANDS, REJECTED), True),
        ((*STANDS, APPROVED), True),
        ((*STANDS, ASK, delivery(4), REJECTED), False),
    ],
)
def test_an_attempt_goes_on_once_its_question_is_answered_or_its_proposal_decided(
    records: tuple[r.Record, ...], goes_on: bool
) -> None:
    assert fold_attempt(WORKING, *records).goes_on is goes_on


@pytest.mark.parametrize(
    ("records", "health"),
    [
        ((), r.Health.OK),
        ((alert(severity=r.Severity.NOTICE),), r.Health.NOTICE),
        ((FIRES,), r.Health.SUSPECT),
        ((FIRES, WAITING), r.Health.SUSPECT),
        ((alert(severity=r.Severity.CRITICAL),), r.Health.STUCK),
        ((alert("silence"),), r.Health.UNKNOWN),
        ((FIRES, alert(state=r.AlertState.RESOLVED)), r.Health.OK),
        ((AWAY, FIRES), r.Health.SUSPECT),
    ],
)
def test_health_is_not_ok_beside_an_alert(records: tuple[r.Record, ...], health: r.Health) -> None:
    state = fold_attempt(WORKING, *records)
    assert state.health is health
    assert (health is r.Health.OK) is not bool(state.firing)


def test_what_fired_when_an_attempt_ended_stays_its_health_and_its_count() -> None:
    gone = replace(FIRES, state=r.AlertState.RESOLVED)
    left = replace(gone, resolution=r.Resolution.ENDED)
    over = r.AttemptTransition(lifecycle=r.Lifecycle.COMPLETED)
    ended = fold_attempt(WORKING, FIRES, left, over)
    assert (ended.health, ended.unresolved, ended.firing) == (r.Health.SUSPECT, (FIRES,), ())
    pended = fold_attempt(WORKING, replace(FIRES, state=r.AlertState.PENDING), left, over)
    assert (pended.health, pended.unresolved) == (r.Health.OK, ())
    assert fold_attempt(WORKING, FIRES, gone, over).health is r.Health.OK


@pytest.mark.parametrize(
    ("ends", "health"),
    [
        ((ended(),), r.Health.OK),
        ((ended(), feedback(accepted=True)), r.Health.OK),
        ((ended(), feedback(accepted=False)), r.Health.SUSPECT),
        ((ended(r.Ending.UNCHECKED),), r.Health.SUSPECT),
        ((ended(r.Ending.UNACCEPTED),), r.Health.SUSPECT),
        ((ended(r.Ending.CANCELED),), r.Health.SUSPECT),
    ],
)
def test_what_fired_at_the_end_does_not_count_against_a_result_that_passed_its_checks(
    ends: tuple[r.Record, ...], health: r.Health
) -> None:
    left = replace(FIRES, state=r.AlertState.RESOLVED, resolution=r.Resolution.ENDED)
    for records in ((*ends, left), (left, *ends)):
        state = fold_attempt(WORKING, FIRES, *records)
        assert (state.health, bool(state.unresolved)) == (health, health is not r.Health.OK)


@pytest.mark.parametrize(
    ("records", "health"),
    [
        ((AWAY,), r.Health.UNKNOWN),
        ((AWAY, alert(severity=r.Severity.NOTICE)), r.Health.UNKNOWN),
        ((away(next_try=None),), r.Health.UNKNOWN),
        ((away(seconds=4),), r.Health.OK),
        ((away(seconds=2), away(since=3, seconds=2)), r.Health.UNKNOWN),
        ((AWAY, r.Change(activity=r.Activity.MODEL)), r.Health.UNKNOWN),
        ((AWAY, away(since=40, over=True)), r.Health.OK),
        ((AWAY, ended()), r.Health.OK),
    ],
)
def test_health_is_unknown_during_an_outage(
    records: tuple[r.Record, ...], health: r.Health
) -> None:
    assert fold_attempt(WORKING, *records).health is health


def test_an_attempt_that_nobody_judges_is_not_judged_and_never_ok() -> None:
    assert fold_attempt(WORKING, step(1), judged=False).health is r.Health.NOT_JUDGED
    assert judges(run(settings='{"mode": "act"}'))
    assert not judges(run(settings='{"mode": "off"}'))


def test_an_alert_says_how_it_stands_now() -> None:
    seen = intervention(r.Action.ACKNOWLEDGE, r.Actor.OPERATOR, answers=(CYCLE,))
    hushed = intervention(r.Action.SILENCE, r.Actor.OPERATOR, answers=(CYCLE,))
    gone = alert(state=r.AlertState.RESOLVED, resolution=r.Resolution.CLEARED)

    def status(*records: r.Record) -> AlertStatus:
        return fold_attempt(WORKING, *records).alert_status(CYCLE)

    assert status(alert(state=r.AlertState.PENDING)) is AlertStatus.PENDING
    assert status(FIRES) is AlertStatus.FIRING
    assert status(FIRES, seen) is AlertStatus.FIRING
    assert status(FIRES, seen, delivery(3)) is AlertStatus.ACKNOWLEDGED
    assert status(FIRES, hushed, delivery(3)) is AlertStatus.SILENCED
    assert status(FIRES, seen, delivery(3), gone) is AlertStatus.RESOLVED
    assert status(FIRES, seen, delivery(3), gone, FIRES) is AlertStatus.FIRING
    assert status(FIRES, transition(r.Lifecycle.FAILED)) is AlertStatus.ENDED
    assert fold_attempt(WORKING, FIRES, gone).details.history[CYCLE] == [FIRES, gone]


def test_progress_is_of_the_plan_step_in_hand_and_full_once_completed() -> None:
    said = (WORKING, reflecting(1, progress=60, confidence=80))
    assert fold_attempt(WORKING).progress is None
    assert (fold_attempt(*said).progress, fold_attempt(*said).confidence) == (60, 80)
    assert fold_attempt(*said, r.Change(plan_step=2)).progress is None
    assert fold_attempt(*said, r.Change(plan_step=2), ended()).progress == 100


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ((WORKING,), None),
        ((plan("Fix it"),), None),
        ((plan("a", "b", done=1),), (2, 2)),
        ((plan("a", "b", done=2),), (2, 2)),
        ((r.Change(plan_step=3, plan_steps=2),), (2, 2)),
        ((plan("a", "b", done=1), plan("a", "b", "c", done=2)), (3, 3)),
    ],
)
def test_the_plan_step_is_never_beyond_the_plan_and_the_task_alone_is_no_plan(
    records: tuple[r.Record, ...], found: tuple[int, int] | None
) -> None:
    state = fold_attempt(*records)
    assert planned(state.plan_step, state.plan_steps) == found


@pytest.mark.parametrize(
    ("state", "lost"), [(r.DeliveryState.REJECTED, True), (r.DeliveryState.DELIVERED, False)]
)
def test_what_became_of_an_intervention_is_final(state: r.DeliveryState, *, lost: bool) -> None:
    late = delivery(1, r.DeliveryState.EXPIRED)
    (found,) = fold_attempt(intervention(), delivery(1, state), late).interventions
    assert (found.status.value, found.lost) == (state.value, lost)


@pytest.mark.parametrize("order", [1, -1])
def test_a_persons_verdict_stands_against_any_other(order: int) -> None:
    person = feedback(accepted=False, comment="no")
    checks = feedback(origin=r.Origin.AUTOMATIC)
    assert fold_attempt(ended(), *[person, checks][::order]).verdict == person


STORY: tuple[tuple[int, r.Record], ...] = (
    (1, WORKING),
    (1, plan("read", "write")),
    (1, reflecting(1, progress=20, confidence=60)),
    (1, FIRES),
    (1, escalation(1)),
    (1, decision(r.Action.PAUSE)),
    (1, PAUSE),
    (1, delivery(7)),
    (1, WAITING),
    (1, RESUME),
    (1, delivery(10)),
    (1, WORKING),
    (1, replace(intervention(r.Action.SPLIT), needs_approval=True)),
    (1, delivery(13, r.DeliveryState.REJECTED, author="ada", comment="too small")),
    (1, intervention(r.Action.RESTART, answers=(CYCLE,), escalation=1)),
    (1, delivery(15)),
    (1, ended(r.Ending.RESTARTED, lifecycle=r.Lifecycle.FAILED)),
    (2, WORKING),
    (2, replace(intervention(r.Action.GRANT_BUDGET), needs_approval=True)),
    (2, delivery(19, r.DeliveryState.APPROVED)),
    (2, delivery(19)),
    (2, outcome(15)),
    (2, reflecting(1, progress=90, confidence=80)),
    (2, ended(r.Ending.DONE, lifecycle=r.Lifecycle.COMPLETED)),
    (0, task_transition(r.Lifecycle.COMPLETED)),
)


def test_the_state_is_the_same_live_and_rebuilt_and_all_readers_agree_after_every_entry() -> None:
    written = [
        entry(id, record, attempt=of or None) for id, (of, record) in enumerate(STORY, start=1)
    ]
    live, whole = TaskState(task=task()), RunState()
    whole.meet_task(task())
    rows = {
        id: Row(
            run=1,
            task=1,
            name="fix",
            state=AttemptState(attempt=attempt(id, number=id), detailed=False),
        )
        for id in (1, 2)
    }
    for count, each in enumerate(written, start=1):
        for reader in (live, whole.tasks[1]):
            if each.attempt is not None and reader.lacks(each):
                reader.meet(attempt(each.attempt, number=each.attempt))
        live.fold(each)
        whole.fold(each)
        if each.attempt is not None:
            rows[each.attempt].state.fold(each)
        again = TaskState(task=task())
        for of in sorted({at.attempt for at in written[:count] if at.attempt is not None}):
            again.meet(attempt(of, number=of))
        for old in written[:count]:
            again.fold(deepcopy(old))
        assert again == live
        for id, state in live.attempts.items():
            row, other = rows[id], whole.tasks[1].attempts[id]
            assert (other.status, other.health) == (state.status, state.health)
            assert row.lifecycle is state.lifecycle
            assert (row.state.status, row.health) == (state.status, state.health)
            assert row.state.firing == state.firing
            assert row.state.interventions.held == state.interventions.held
        latest, line = live.latest, status_line(live, {})
        assert latest is not None
        assert (line.stands, line.health) == (live.status, latest.health)
        assert line.progress_percent == live.progress
    first = live.attempts[1]
    assert first.status is AttemptStatus.RESTARTED
    assert [each.status.value for each in first.interventions] == [
        *("delivered", "delivered", "rejected", "delivered")
    ]
    restart = first.interventions.get(15)
    assert restart is not None
    assert (restart.outcome, restart.rejection) == (outcome(15).outcome, None)
    assert live.progress == 100
