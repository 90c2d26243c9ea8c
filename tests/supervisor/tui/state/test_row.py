"""What a row of the fleet is in need of, and what its worker reported last."""

from datetime import timedelta

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    AlertState,
    Budget,
    Change,
    Checkpoint,
    DeliveryState,
    Ending,
    Lifecycle,
    Meter,
    Record,
    Severity,
)
from midwatch_stage.factories import (
    AT,
    alert,
    attempt,
    away,
    delivery,
    ended,
    entry,
    feedback,
    intervention,
    run,
    task,
    transition,
)
from midwatch_stage.rows import row
from midwatch_supervisor.tui.screens.fleet import columns
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import KEPT, CheckpointHistory, Need, Row, Trend, trend

HELD = intervention(Action.RESTART, needs_approval=True)
WORKING = transition()
ASKS = transition(Lifecycle.INPUT_REQUIRED, reason="Which port?")
ASK = intervention(Action.ASK_OPERATOR)
DONE = transition(Lifecycle.COMPLETED)
NOTICE, WARNING, CRITICAL = (alert(severity=each) for each in Severity)
RESOLVED = alert(state=AlertState.RESOLVED)
WATCHED = Change(acts=(Action.OBSERVE, Action.ASK_OPERATOR))
ASK_BESIDE = intervention(Action.ASK_OPERATOR, answers=(CRITICAL.key,))
PAUSE = intervention(Action.PAUSE)
ANSWER = intervention(Action.NUDGE, Actor.OPERATOR)
PARKED = transition(Lifecycle.INPUT_REQUIRED)
ACKNOWLEDGED = intervention(Action.ACKNOWLEDGE, answers=(CRITICAL.key,))


@pytest.mark.parametrize(
    ("records", "need"),
    [
        ((), Need.QUEUED),
        ((WORKING,), Need.WORKING),
        ((WORKING, NOTICE), Need.WORKING),
        ((WORKING, WARNING), Need.SUSPECT),
        ((WORKING, CRITICAL), Need.STUCK),
        ((WORKING, ASK, delivery(2), PARKED, ANSWER), Need.WORKING),
        ((WORKING, away()), Need.SUSPECT),
        ((WORKING, CRITICAL, HELD), Need.APPROVAL),
        ((WORKING, HELD, ASKS), Need.APPROVAL),
        ((WORKING, ASK, delivery(2), HELD, ASKS), Need.ANSWER),
        ((WORKING, HELD, DONE), Need.OVER),
        ((WORKING, WATCHED, CRITICAL, ASK_BESIDE), Need.ANSWER),
        ((WORKING, WATCHED, CRITICAL, ASK_BESIDE, delivery(4)), Need.ANSWER),
        ((WORKING, WATCHED, CRITICAL, ASK_BESIDE, delivery(4), RESOLVED), Need.WORKING),
    ],
)
def test_a_row_needs_a_person_for_what_is_most_urgent(
    records: tuple[Record, ...], need: Need
) -> None:
    assert row(*records).need is need


@pytest.mark.parametrize("state", DeliveryState)
def test_a_decision_that_was_dealt_with_waits_no_more(state: DeliveryState) -> None:
    assert row(WORKING, HELD, delivery(2, state)).need is Need.WORKING


def test_an_alert_that_fires_again_calls_again() -> None:
    acknowledged = row(WORKING, CRITICAL, ACKNOWLEDGED, delivery(3))
    assert (acknowledged.need, acknowledged.called) == (Need.STUCK, False)
    again = row(WORKING, CRITICAL, ACKNOWLEDGED, delivery(3), RESOLVED, CRITICAL)
    assert again.called


def test_used_is_the_share_of_what_is_nearest_to_its_limit() -> None:
    budget = Budget(requests=Meter(used=6, limit=60), tokens=Meter(used=900, limit=1000))
    assert row(Change(budget=budget)).used == 0.9
    assert row(Change(budget=Budget(tokens=Meter(used=900)))).used is None


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ((), "submitted"),
        ((WORKING,), "working"),
        ((WORKING, PAUSE, delivery(2), PARKED), "paused"),
        ((WORKING, ASKS), "waits for you"),
        ((WORKING, DONE), "completed"),
        ((WORKING, DONE, feedback(accepted=False)), "not accepted"),
        ((WORKING, DONE, feedback(accepted=True)), "completed"),
        ((WORKING, ended(Ending.STUCK)), "failed"),
        ((WORKING, ended(Ending.RESTARTED)), "restarted"),
        ((WORKING, ended(Ending.SPLIT)), "split"),
    ],
)
def test_where_it_stands_is_one_word(records: tuple[Record, ...], status: str) -> None:
    assert row(*records).status == status


def cells(about: Row) -> tuple[str, str]:
    """What the fleet shows of where a row stands: its sign and its state."""
    shown = {each.title: each.draw(about)[0] for each in columns(lambda: AT, FleetBoard())}
    return shown["!"], shown["state"]


def test_a_sign_says_what_was_accepted_and_what_nobody_judges() -> None:
    assert cells(row(WORKING, DONE)) == (" ✓", "completed")
    assert cells(row(WORKING, DONE, feedback(accepted=False))) == (" ✗", "not accepted")
    board = FleetBoard()
    board.meet_run(run(settings='{"mode": "off"}'))
    board.meet_task(task())
    board.meet_attempt(attempt())
    board.fold(entry(1, WORKING))
    assert cells(board.rows[1]) == (" ○", "not judged")


def history(*said: Checkpoint) -> CheckpointHistory:
    """One checkpoint a minute."""
    made = CheckpointHistory()
    for number, checkpoint in enumerate(said, start=1):
        made.add(checkpoint, AT + timedelta(minutes=number))
    return made


def said(confidence: int, notes: str = "") -> Checkpoint:
    return Checkpoint(progress_percent=10, confidence=confidence, notes=notes)


def test_equal_checkpoints_are_one_with_a_count_and_how_long_it_lasted() -> None:
    newest = history(said(50), *[said(24, "No way out.")] * 8).newest
    assert newest is not None
    assert (newest.count, newest.seconds, newest.change) == (8, 7 * 60, -26)


def test_what_differs_in_one_word_is_told_on_its_own_and_only_the_newest_are_kept() -> None:
    groups = [*history(said(50, "a"), said(50, "b"), said(50, "a")).newest_first]
    assert [each.checkpoint.notes for each in groups] == ["a", "b", "a"]
    assert [each.change for each in groups] == [0, 0, None]
    groups = [*history(*(said(n) for n in range(KEPT + 5))).newest_first]
    assert (len(groups), groups[0].checkpoint.confidence) == (KEPT, KEPT + 4)


@pytest.mark.parametrize(
    ("confidences", "found"),
    [
        ((), Trend.UNKNOWN),
        ((60,), Trend.UNKNOWN),
        ((60, 62), Trend.UNKNOWN),
        ((60, 40), Trend.DOWN),
        ((40, 60), Trend.UP),
        ((90, 24, 24, 24, 24), Trend.LEVEL),
        ((24, 25, 24, 26), Trend.LEVEL),
        ((80, 78, 76, 74), Trend.DOWN),
    ],
)
def test_a_trend_is_that_of_the_last_few_reports(
    confidences: tuple[int, ...], found: Trend
) -> None:
    assert trend(confidences) is found
