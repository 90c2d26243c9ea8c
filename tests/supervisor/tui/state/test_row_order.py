"""How the fleet's lines are grouped, folded and sorted."""

from datetime import datetime, timedelta

import pytest

from midwatch_monitor.records import Action, Budget, Change, Lifecycle, Meter, Severity
from midwatch_stage.factories import AT, after, alert, intervention, reflecting, transition
from midwatch_stage.rows import Fleet
from midwatch_supervisor.tui.state.row_order import (
    FEW_DONE,
    GROUPINGS,
    SORTS,
    folds_done,
    may_resort,
)

WORKING = transition()
DONE_NOW = transition(Lifecycle.COMPLETED)
FAILED = transition(Lifecycle.FAILED)
ASKS = transition(Lifecycle.INPUT_REQUIRED)
STUCK = alert(severity=Severity.CRITICAL)
STOP = intervention(needs_approval=True)

by = {grouping.name: grouping for grouping in GROUPINGS}
sorts = {sort.name: sort for sort in SORTS}


def mixed() -> Fleet:
    fleet = Fleet()
    fleet.add("ask", ASKS, node="north", worker="coder", project="shop")
    fleet.add("hold", WORKING, STOP, node="north", worker="coder")
    fleet.add("loop", WORKING, STUCK, node="south", worker="tester")
    fleet.add("well", WORKING, node="north", worker="coder", project="shop")
    fleet.add("over", DONE_NOW, node="south", worker="coder")
    fleet.add("lost", FAILED, node="south", worker="coder")
    fleet.queue("next")
    return fleet


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("need", ["ask", "hold", "loop", "well", "next", "lost", "over"]),
        ("task", ["ask", "hold", "loop", "lost", "next", "over", "well"]),
        (
            "state",
            [
                *("▾ waits for you (1)", "ask", "▾ waits for approval (1)", "hold"),
                *("▾ stuck (1)", "loop", "▾ working (1)", "well", "▾ queued (1)", "next"),
                *("▾ failed (1)", "lost", "▾ done (1)", "over"),
            ],
        ),
        (
            "worker",
            [
                "▾ coder (5) 1 waits for you 1 waits for approval 1 working 1 failed 1 done",
                *("ask", "hold", "well", "lost", "over"),
                *("▾ tester (1) 1 stuck", "loop", "▾ no worker yet (1) 1 queued", "next"),
            ],
        ),
        (
            "project",
            [
                "▾ shop (2) 1 waits for you 1 working",
                *("ask", "well"),
                "▾ no project (5) 1 waits for approval 1 stuck 1 queued 1 failed 1 done",
                *("hold", "loop", "next", "lost", "over"),
            ],
        ),
        (
            "node",
            [
                "▾ north (3) 1 waits for you 1 waits for approval 1 working",
                *("ask", "hold", "well"),
                "▾ south (3) 1 stuck 1 failed 1 done",
                *("loop", "lost", "over"),
                *("▾ no node yet (1) 1 queued", "next"),
            ],
        ),
    ],
)
def test_each_group_has_a_heading_that_counts_the_most_urgent_first(
    name: str, lines: list[str]
) -> None:
    fleet = mixed()
    fleet.order.arrange(grouping=by[name])
    assert fleet.lines == lines


def test_a_heading_counts_several_that_wait_in_the_plural_and_an_idle_session_as_idle() -> None:
    fleet = Fleet()
    for name in ("one", "two"):
        fleet.add(name, ASKS, node="north")
    fleet.add("chat", Change(acts=(Action.OBSERVE,)), ASKS, node="north")
    fleet.order.arrange(grouping=by["node"])
    assert fleet.lines[0] == "▾ north (3) 2 wait for you 1 idle"


def test_a_task_has_a_heading_only_with_several_attempts() -> None:
    fleet = mixed()
    fleet.again("loop")
    fleet.order.arrange(grouping=by["task"])
    assert fleet.lines[2:6] == ["▾ loop (2) 1 stuck 1 queued", "loop", "loop", "lost"]


def test_the_newest_attempt_of_a_task_stands_above_the_older_ones() -> None:
    fleet = Fleet("a")
    fleet.again("a")
    assert fleet.lines == [*"aa"]
    assert [row.number for row in fleet.order.rows] == [2, 1]


def test_a_group_folds_and_unfolds_from_its_heading_or_from_a_row() -> None:
    fleet = mixed()
    fleet.order.arrange(grouping=by["node"])
    assert fleet.lines
    heading, row = fleet.order.lines[0], fleet.order.lines[1]
    assert fleet.order.fold(row) is not None
    assert fleet.lines[0].startswith("▸ north (3)")
    assert fleet.lines[1].startswith("▾ south (3)")
    assert fleet.order.fold(heading) is not None
    assert fleet.lines[1] == "ask"


def test_what_stands_in_no_group_does_not_fold_but_what_is_over_does_however_little_it_is() -> None:
    fleet = mixed()
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
        fleet.add(f"old{n:02}", FAILED if n == 5 else DONE_NOW)
    fleet.shown["room"] = 10
    return fleet


def test_by_need_what_is_over_is_one_line_at_the_end_until_it_is_unfolded() -> None:
    fleet = many_done()
    assert fleet.lines == ["well", "▸ done (12) 1 failed 11 done"]
    fleet.order.fold(fleet.order.lines[1])
    assert fleet.lines[1:4] == ["▾ done (12) 1 failed 11 done", "old05", "old00"]
    fleet.order.fold(fleet.order.lines[2])
    assert len(fleet.lines) == 2
    fleet.shown["room"] = 100
    assert len(fleet.lines) == 2


def test_a_filter_shows_what_is_folded_away_too() -> None:
    fleet = many_done()
    assert len(fleet.lines) == 2
    fleet.shown["wanted"] = "failed"
    assert fleet.lines == ["old05"]
    fleet.order.arrange(grouping=by["worker"])
    fleet.order.fold(fleet.order.lines[0])
    assert fleet.lines == ["▾ coder (1) 1 failed", "old05"]
    fleet.shown["wanted"] = ""
    assert fleet.lines[0] == "▾ coder (13) 1 working 1 failed 11 done"


def test_a_row_that_somebody_reads_is_not_folded_away_by_itself() -> None:
    fleet = many_done()
    assert fleet.lines[0] == "well"
    well = fleet.order.rows[0]
    fleet.add("more", WORKING)
    fleet.shown["held"] = well
    fleet.say("well", DONE_NOW)
    assert fleet.lines == ["more", "▸ done (13) 1 failed 12 done", "well"]
    fleet.shown["held"] = None
    assert fleet.lines == ["more", "▸ done (13) 1 failed 12 done"]


def spent(requests: int) -> Change:
    return Change(budget=Budget(requests=Meter(used=requests, limit=100)))


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("need", "cabqo"),
        ("name", "abcqo"),
        ("age", "bcaqo"),
        ("confidence", "abcqo"),
        ("budget", "cbaqo"),
    ],
)
def test_lines_are_sorted_by_what_is_wanted_and_what_is_over_comes_last(
    name: str, lines: str
) -> None:
    fleet = Fleet()
    for name_, confidence, requests, at in (("a", 20, 10, 3), ("b", 50, 20, 1), ("c", 80, 90, 2)):
        fleet.add(name_, WORKING, spent(requests))
        fleet.say(name_, reflecting(1, 10, confidence), at=after(at))
    fleet.say("c", STUCK, at=after(2))
    fleet.add("o", reflecting(1, 10, 1), spent(99), DONE_NOW)
    fleet.queue("q")
    assert fleet.lines
    fleet.order.arrange(sort=sorts[name])
    assert "".join(fleet.lines) == lines


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
    fleet.say("b", DONE_NOW)
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
