"""What the board sums up, and how the fleet's lines are grouped, folded and sorted."""

from collections import Counter
from datetime import datetime, timedelta

import pytest

from midwatch_monitor.records import (
    Action,
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
from midwatch_supervisor.tui.screens.overview import fleet_lines
from midwatch_supervisor.tui.screens.title import title_cells
from midwatch_supervisor.tui.state.row import Need
from midwatch_supervisor.tui.state.row_order import (
    FEW_DONE,
    GROUPINGS,
    SORTS,
    Grouping,
    Order,
    Sort,
    folds_done,
    may_resort,
)
from midwatch_tests.factories import (
    AT,
    after,
    alert,
    delivery,
    ended,
    entry,
    feedback,
    intervention,
    lesson,
    outcome,
    reflecting,
    run,
    task_transition,
    transition,
)
from midwatch_tests.rows import Fleet

WORKING = transition()
DONE = transition(Lifecycle.COMPLETED)
FAILED = transition(Lifecycle.FAILED)
ASKS = transition(Lifecycle.INPUT_REQUIRED)
STUCK = alert(severity=Severity.CRITICAL)
STOP = intervention(needs_approval=True)

by = {grouping.name: grouping for grouping in GROUPINGS}
sorts = {sort.name: sort for sort in SORTS}


def mixed_fleet() -> Fleet:
    fleet = Fleet()
    fleet.add("ask", ASKS, node="north", worker="coder", project="shop")
    fleet.add("hold", WORKING, STOP, node="north", worker="coder")
    fleet.add("loop", WORKING, STUCK, node="south", worker="tester")
    fleet.add("well", WORKING, node="north", worker="coder", project="shop")
    fleet.add("over", DONE, node="south", worker="coder")
    fleet.add("lost", FAILED, node="south", worker="coder")
    fleet.queue("next")
    return fleet


LINES = {
    "need": "ask|hold|loop|well|next|lost|over",
    "task": "ask|hold|loop|lost|next|over|well",
    "state": "▾ waits for you (1)|ask|▾ waits for approval (1)|hold|▾ stuck (1)|loop"
    "|▾ working (1)|well|▾ queued (1)|next|▾ failed (1)|lost|▾ done (1)|over",
    "worker": "▾ coder (5) 1 waits for you 1 waits for approval 1 working 1 failed 1 done"
    "|ask|hold|well|lost|over|▾ tester (1) 1 stuck|loop|▾ no worker yet (1) 1 queued|next",
    "project": "▾ shop (2) 1 waits for you 1 working|ask|well"
    "|▾ no project (5) 1 waits for approval 1 stuck 1 queued 1 failed 1 done"
    "|hold|loop|next|lost|over",
    "node": "▾ north (3) 1 waits for you 1 waits for approval 1 working|ask|hold|well"
    "|▾ south (3) 1 stuck 1 failed 1 done|loop|lost|over|▾ no node yet (1) 1 queued|next",
}


@pytest.mark.parametrize("name", LINES)
def test_a_heading_counts_the_most_urgent_first(name: str) -> None:
    fleet = mixed_fleet()
    fleet.order.arrange(grouping=by[name])
    assert "|".join(fleet.lines) == LINES[name]


def test_a_heading_counts_several_that_wait_in_the_plural_and_an_idle_session_as_idle() -> None:
    fleet = Fleet()
    for name in ("one", "two"):
        fleet.add(name, ASKS, node="north")
    fleet.add("chat", Change(acts=(Action.OBSERVE,)), ASKS, node="north")
    fleet.order.arrange(grouping=by["node"])
    assert fleet.lines[0] == "▾ north (3) 2 wait for you 1 idle"


def test_a_task_has_a_heading_only_with_several_attempts() -> None:
    fleet = mixed_fleet()
    fleet.again("loop")
    fleet.order.arrange(grouping=by["task"])
    assert fleet.lines[2:6] == ["▾ loop (2) 1 stuck 1 queued", "loop", "loop", "lost"]


def test_the_newest_attempt_of_a_task_stands_above_the_older_ones() -> None:
    fleet = Fleet("a")
    fleet.again("a")
    assert fleet.lines == [*"aa"]
    assert [row.number for row in fleet.order.rows] == [2, 1]


def test_a_group_folds_and_unfolds_from_its_heading_or_from_a_row() -> None:
    fleet = mixed_fleet()
    fleet.order.arrange(grouping=by["node"])
    assert fleet.lines
    heading, row = fleet.order.lines[0], fleet.order.lines[1]
    assert fleet.order.fold(row) is not None
    assert fleet.lines[0].startswith("▸ north (3)")
    assert fleet.lines[1].startswith("▾ south (3)")
    assert fleet.order.fold(heading) is not None
    assert fleet.lines[1] == "ask"


def test_what_stands_in_no_group_does_not_fold_but_what_is_over_does_however_little_it_is() -> None:
    fleet = mixed_fleet()
    for grouping in ("need", "task"):
        fleet.order.arrange(grouping=by[grouping])
        assert fleet.lines[0] == "ask"
        assert fleet.order.fold(fleet.order.lines[0]) is None
    fleet.order.arrange(grouping=by["need"])
    assert fleet.lines[-1] == "over"
    fleet.order.fold(fleet.order.lines[-1])
    assert fleet.lines[-1] == "▸ done (2) 1 failed 1 done"


@pytest.mark.parametrize(
    ("rows", "open_rows", "done_rows", "room", "folds"),
    [
        (40, 20, FEW_DONE + 1, 39, True),
        (40, 20, FEW_DONE, 39, False),  # few
        (40, 20, FEW_DONE + 1, 40, False),  # all of it fits
        (300, 0, 300, 20, False),  # there is nothing else to be seen
    ],
)
def test_what_is_over_is_folded_away_where_it_is_in_the_way(
    rows: int, open_rows: int, done_rows: int, room: int, *, folds: bool
) -> None:
    found = folds_done(rows=rows, open_rows=open_rows, done_rows=done_rows, room=room)
    assert found is folds


def test_any_group_that_is_over_is_folded_away_where_it_is_in_the_way() -> None:
    fleet = many_done()
    assert fleet.lines
    fleet.order.arrange(grouping=by["state"])
    assert fleet.lines == [*("▾ working (1)", "well", "▾ failed (1)", "old05"), "▸ done (11)"]


def many_done() -> Fleet:
    fleet = Fleet()
    fleet.add("well", WORKING)
    for n in range(12):
        fleet.add(f"old{n:02}", FAILED if n == 5 else DONE)
    fleet.order.fit(10)
    return fleet


def test_by_need_what_is_over_is_one_line_at_the_end_until_it_is_unfolded() -> None:
    fleet = many_done()
    assert fleet.lines == ["well", "▸ done (12) 1 failed 11 done"]
    fleet.order.fold(fleet.order.lines[1])
    assert fleet.lines[1:4] == ["▾ done (12) 1 failed 11 done", "old05", "old00"]
    fleet.order.fold(fleet.order.lines[2])
    assert len(fleet.lines) == 2
    fleet.order.fit(100)
    assert len(fleet.lines) == 2


def test_a_filter_shows_what_is_folded_away_too() -> None:
    fleet = many_done()
    assert len(fleet.lines) == 2
    fleet.order.filter("failed")
    assert fleet.lines == ["old05"]
    fleet.order.arrange(grouping=by["worker"])
    fleet.order.fold(fleet.order.lines[0])
    assert fleet.lines == ["▾ coder (1) 1 failed", "old05"]
    fleet.order.filter("")
    assert fleet.lines[0] == "▾ coder (13) 1 working 1 failed 11 done"


def test_a_row_that_somebody_reads_is_not_folded_away_by_itself() -> None:
    fleet = many_done()
    assert fleet.lines[0] == "well"
    well = fleet.order.rows[0]
    fleet.add("more", WORKING)
    fleet.order.hold(well)
    fleet.say("well", DONE)
    assert fleet.lines == ["more", "▸ done (13) 1 failed 12 done", "well"]
    fleet.order.hold(None)
    assert fleet.lines == ["more", "▸ done (13) 1 failed 12 done"]


def spent_requests(requests: int) -> Change:
    return Change(budget=Budget(requests=Meter(used=requests, limit=100)))


def test_lines_are_sorted_and_what_is_over_comes_last() -> None:
    fleet = Fleet()
    for name, confidence, requests, at in (("a", 20, 10, 3), ("b", 50, 20, 1), ("c", 80, 90, 2)):
        fleet.add(name, WORKING, spent_requests(requests))
        fleet.say(name, reflecting(1, 10, confidence), at=after(at))
    fleet.say("c", STUCK, at=after(2))
    fleet.add("o", reflecting(1, 10, 1), spent_requests(99), DONE)
    fleet.queue("q")
    assert fleet.lines
    found: dict[str, str] = {}
    for sort in SORTS:
        fleet.order.arrange(sort=sort)
        found[sort.name] = "".join(fleet.lines)
    moving = {"need": "cabqo", "age": "bcaqo", "budget": "cbaqo"}
    assert found == {"name": "abcqo", "confidence": "abcqo", **moving}


def test_sorted_by_confidence_lines_move_only_when_they_are_sorted_again() -> None:
    fleet = Fleet()
    for name, confidence in (("a", 20), ("b", 50)):
        fleet.add(name, WORKING, reflecting(1, 10, confidence))
    fleet.order.arrange(sort=sorts["confidence"])
    assert fleet.lines == ["a", "b"]
    fleet.say("a", reflecting(2, 10, 90))
    fleet.say("a", STUCK)
    before = fleet.lines
    fleet.order.resort()
    assert (before, fleet.lines) == (["a", "b"], ["b", "a"])
    fleet.say("b", DONE)
    assert fleet.lines == ["a", "b"]


def test_a_group_is_sorted_within_itself() -> None:
    fleet = Fleet()
    for name, confidence, node in (("a", 90, "n"), ("b", 10, "n"), ("c", 5, "o")):
        fleet.add(name, WORKING, reflecting(1, 10, confidence), node=node)
    assert fleet.lines
    fleet.order.arrange(grouping=by["node"], sort=sorts["confidence"])
    assert [line for line in fleet.lines if len(line) == 1] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("since_sorted", "since_moved", "may"),
    [(3, 1, True), (2.9, 60, False), (60, 0.9, False), (60, 60, True)],
)
def test_lines_keep_their_order_for_seconds_and_while_somebody_goes_through_them(
    since_sorted: float, since_moved: float, *, may: bool
) -> None:
    def ago(seconds: float) -> datetime:
        return AT - timedelta(seconds=seconds)

    assert may_resort(AT, sorted_at=ago(since_sorted), moved_at=ago(since_moved)) is may


FINE = alert(state=AlertState.RESOLVED)


@pytest.mark.parametrize("grouping", GROUPINGS, ids=lambda each: each.name)
@pytest.mark.parametrize("sort", SORTS, ids=lambda each: each.name)
def test_changed_one_by_one_or_anew_the_lines_are_the_same(grouping: Grouping, sort: Sort) -> None:
    fleet = Fleet()
    fleet.order.arrange(grouping=grouping, sort=sort)
    for n in range(40):
        fleet.add(f"t{n:02}", node=f"n{n % 3}", worker=f"w{n % 2}")
        fleet.say(f"t{n:02}", WORKING, at=AT)
    for tick in range(60):
        # All at one time: by age, lines move only when they are sorted again.
        fleet.say(f"t{tick * 7 % 40:02}", (STUCK, ASKS, DONE, FAILED)[tick % 4], at=AT)
        shown = fleet.lines
        anew = Order()
        anew.arrange(grouping=fleet.order.grouping, sort=fleet.order.sort)
        anew.move(fleet.board.all_rows())
        assert [*anew.lines] == [*fleet.order.lines]
        assert shown
    needs = fleet.board.totals.needs
    assert +needs == Counter(row.need for row in fleet.board.all_rows())


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
    seen = intervention(Action.ACKNOWLEDGE, Actor.OPERATOR, answers=(STUCK.key,))
    for record in (
        WORKING,
        STUCK,
        STUCK,
        intervention(),
        delivery(4),
        outcome(4),
        seen,
        delivery(7),
    ):
        fleet.say("a", record)
    assert fleet.board.attention() == []
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
