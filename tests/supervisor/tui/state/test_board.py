from datetime import timedelta

import pytest

from midwatch_monitor.records import (
    Actor,
    AlertState,
    AttemptTransition,
    Budget,
    Change,
    DeliveryState,
    Ending,
    Lifecycle,
    Meter,
    Severity,
)
from midwatch_stage.factories import (
    AT,
    alert,
    delivery,
    ended,
    entry,
    feedback,
    intervention,
    lesson,
    outcome,
    run,
    task_transition,
    transition,
)
from midwatch_stage.rows import Fleet
from midwatch_supervisor.tui.screens.overview import fleet_lines
from midwatch_supervisor.tui.screens.title import title_cells
from midwatch_supervisor.tui.state.row import Need

WORKING = transition()
ASKS = transition(Lifecycle.INPUT_REQUIRED)
DONE = transition(Lifecycle.COMPLETED)
STUCK = alert(severity=Severity.CRITICAL)
FINE = alert(state=AlertState.RESOLVED)


def test_what_nobody_checked_is_not_counted_as_completed() -> None:
    fleet = Fleet("abc")
    for name, ending in (("a", Ending.UNCHECKED), ("b", Ending.DONE)):
        fleet.say(name, task_transition(Lifecycle.COMPLETED))
        fleet.say(name, ended(ending))
    fleet.say("a", feedback())
    said = "".join(text for text, _ in title_cells(fleet.board, 0, AT))
    assert "✓ 1/3  ○ 1 ended  " in said
    counts = {word: count for word, count, _ in fleet_lines(fleet.board)}
    assert (counts["completed"], counts["ended"]) == ("1", "1")


def test_what_all_attempts_used_is_summed_and_before_a_restart_only_once() -> None:
    fleet = Fleet("ab")
    for name, requests in (("a", 3), ("b", 4), ("a", 5)):
        used = Budget(requests=Meter(used=requests), cost_usd=Meter(used=requests / 4))
        fleet.say(name, Change(budget=used))
    fleet.again("a")
    shown = Change(budget=Budget(requests=Meter(used=8), cost_usd=Meter(used=2)))
    fleet.board.fold(entry(99, shown, task=1, attempt=1_001))
    used = fleet.board.totals.used
    assert (used.requests, used.cost_usd) == (12, 3)


def test_what_a_person_says_makes_no_attempt_look_alive() -> None:
    fleet = Fleet("ab")
    fleet.say("a", WORKING, at=AT)
    fleet.say("b", WORKING, at=AT - timedelta(hours=13))  # a session of the past
    later = AT + timedelta(minutes=5)
    row = fleet.board.rows[1]
    for record in (intervention(by=Actor.OPERATOR), delivery(3, state=DeliveryState.APPROVED)):
        fleet.say("a", record, at=later)
        assert (fleet.board.last_at, row.state.last_at) == (AT, AT)
    fleet.say("a", intervention(needs_approval=True), at=later)
    assert (fleet.board.last_at, row.state.last_at) == (later, later)


def test_a_run_lasts_until_its_last_task_ends_whatever_is_learned_from_it_later() -> None:
    fleet = Fleet("ab")
    fleet.board.meet_run(run())
    ends = AT + timedelta(seconds=10)
    for name in "ab":
        fleet.say(name, ended(), at=ends)
        fleet.say(name, task_transition(Lifecycle.COMPLETED), at=ends)
    for record in (feedback(accepted=False, comment="x"), lesson()):
        fleet.say("a", record, at=ends + timedelta(seconds=35))
    now = ends + timedelta(minutes=5)
    assert ("run 1, 10s  ", "dim") in title_cells(fleet.board, 0, now)


def test_a_queued_task_that_failed_is_over() -> None:
    fleet = Fleet("b", queued="a")
    fleet.say("a", task_transition(Lifecycle.FAILED, reason="b failed"))
    assert fleet.lines == [*"ba"]
    assert fleet.board.queued[2].state.transition.reason == "b failed"


def test_the_longest_waiting_comes_first_and_the_stuck_after_all_that_wait() -> None:
    fleet = Fleet("abcd")
    for name, record in (("d", WORKING), ("d", STUCK), ("c", ASKS), ("b", ASKS), ("a", WORKING)):
        fleet.say(name, record)
    assert [row.name for row in fleet.board.attention()] == [*"cbd"]
    for name, record in (("c", WORKING), ("b", DONE), ("d", FINE)):
        fleet.say(name, record)
    assert fleet.board.attention() == []


@pytest.mark.parametrize(
    ("said", "waits"),
    [((WORKING, ASKS), False), ((ASKS, ASKS), True), ((DONE, ASKS), True), ((DONE, DONE), False)],
)
def test_a_run_only_waits_when_nothing_works_and_somebody_is_asked(
    said: tuple[AttemptTransition, AttemptTransition], waits: bool
) -> None:
    fleet = Fleet("ab", queued="c")
    for name, record in zip("ab", said, strict=True):
        fleet.say(name, record)
    assert fleet.board.only_waits is waits


def test_alerts_interventions_and_outcomes_are_counted_once() -> None:
    fleet = Fleet("a")
    for record in (WORKING, STUCK, STUCK, intervention(), delivery(4), outcome(4)):
        fleet.say("a", record)
    totals = fleet.board.totals
    assert (totals.alerts, totals.interventions, totals.recovery_rate) == (1, 1, 1.0)


def test_a_task_that_is_begun_again_waits_beside_its_ended_attempt_until_the_next_begins() -> None:
    fleet = Fleet("a")
    fleet.say("a", DONE)
    fleet.say("a", task_transition(Lifecycle.COMPLETED))
    fleet.say("a", task_transition(Lifecycle.SUBMITTED, reason="begun again by ada"))
    (waits,) = fleet.board.queued.values()
    assert (waits.status, waits.need, fleet.board.reopened) == ("queued", Need.QUEUED, {1})
    assert fleet.board.rows[1].need is Need.OVER
    fleet.again("a")
    assert (fleet.board.queued, fleet.board.reopened) == ({}, set())
