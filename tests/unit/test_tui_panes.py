"""What the checkpoints, the attention queue and the overview say, without a screen."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    Budget,
    Checkpoint,
    Intervention,
    Lifecycle,
    Meter,
    Outcome,
    Severity,
)
from midwatch_supervisor.tui.screens.checkpoints import since
from midwatch_supervisor.tui.screens.checkpoints import text as told_in
from midwatch_supervisor.tui.screens.overview import Bars, Sums, axis, bars, drawn, rate, summed
from midwatch_supervisor.tui.state.attention import Waiting, next_of, waiting
from midwatch_supervisor.tui.state.attention import text as said_of
from midwatch_supervisor.tui.state.board import Report, Totals
from midwatch_supervisor.tui.state.row import Need, Row
from midwatch_supervisor.tui.widgets.filtered import holds

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
HELD = Intervention(action=Action.STOP, by=Actor.POLICY, message="It is\x1b[31m lost.")


def row(lifecycle: Lifecycle = Lifecycle.WORKING, *, attempt: int = 1, reason: str = "") -> Row:
    return Row(
        run=1,
        task=attempt,
        name="fix",
        attempt=attempt,
        number=1,
        lifecycle=lifecycle,
        reason=reason,
        needed_since=AT if lifecycle is Lifecycle.INPUT_REQUIRED else None,
        last_at=AT + timedelta(minutes=5),
    )


def stuck(*, at: datetime | None = AT) -> Row:
    found = row()
    key = AlertKey(rule="cycle")
    found.firing[key] = Alert(
        key=key,
        severity=Severity.CRITICAL,
        state=AlertState.FIRING,
        value=3,
        summary="the same three acts",
        since_step=1,
        step=4,
        at=at,
    )
    return found


def report(name: str = "fix", notes: str = "") -> Report:
    said = Checkpoint(progress_percent=40, confidence=60, blockers=("no key",), notes=notes)
    about = Row(run=1, task=1, name=name, worker="coder")
    return Report(row=about, at=AT, step=3, checkpoint=said, change=None)


@pytest.mark.parametrize(
    ("wanted", "found"), [("", True), ("RED fox", True), ("fox red", True), ("fox blue", False)]
)
def test_a_filter_wants_every_word_in_any_case_and_order(wanted: str, found: bool) -> None:
    assert holds("a Red fox", wanted) is found


def test_who_waits_for_an_answer_is_shown_with_the_question_since_it_was_asked() -> None:
    asks = row(Lifecycle.INPUT_REQUIRED, reason="Which\nport?")
    assert waiting(asks) == Waiting(row=asks, need=Need.ANSWER, since=AT, what="Which port?")


def test_who_was_paused_without_a_word_waits_to_be_let_go_on() -> None:
    paused = waiting(row(Lifecycle.INPUT_REQUIRED))
    assert paused.what == "it is paused, and waits to be let go on"


def test_a_held_decision_is_shown_with_who_wants_what_and_no_escapes() -> None:
    held = row()
    held.held = {7: HELD}
    assert waiting(held).what == "policy wants to stop: It is lost."
    held.held[8] = HELD
    assert waiting(held).what == "policy wants to stop (and 1 more): It is lost."


def test_what_is_stuck_is_shown_with_its_critical_alert_since_that_fired() -> None:
    line = waiting(stuck())
    assert (line.need, line.since, line.what) == (Need.STUCK, AT, "the same three acts")


def test_an_alert_without_a_time_counts_from_the_last_entry() -> None:
    assert waiting(stuck(at=None)).since == AT + timedelta(minutes=5)


def test_a_filter_of_the_queue_looks_at_the_task_the_need_the_text_and_the_rules() -> None:
    assert holds(said_of(waiting(stuck())), "fix stuck acts cycle")


@pytest.mark.parametrize(("after", "follows"), [(None, 1), (9, 1), (1, 2), (2, 3), (3, 1)])
def test_the_next_of_the_queue_follows_the_last_visited_and_begins_anew(
    after: int | None, follows: int
) -> None:
    found = next_of([row(attempt=id) for id in (1, 2, 3)], after)
    assert found is not None
    assert found.attempt == follows


def test_an_empty_queue_has_no_next() -> None:
    assert next_of([], 1) is None


def test_only_what_came_after_the_last_checkpoint_is_new() -> None:
    first, second, third = report("a"), report("b"), report("c")
    assert since([first, second, third], first) == [second, third]
    assert since([first, second], second) == []
    assert since([second, third], first) == [second, third]


def test_a_filter_of_the_stream_looks_at_blockers_and_notes_too() -> None:
    assert holds(told_in(report(notes="Trying half a cent.")), "coder continue KEY cent")


def test_the_overview_sums_what_all_attempts_used() -> None:
    used = Budget(requests=Meter(used=3), tokens=Meter(used=400), cost_usd=Meter(used=0.25))
    one, other = row(), row(Lifecycle.COMPLETED)
    one.budget = other.budget = used
    needs = Counter({Need.WORKING: 1, Need.OVER: 1})
    assert summed([one, other]) == Sums(needs=needs, requests=6, tokens=800, cost_usd=0.5)


def times(*seconds: int) -> dict[datetime, Counter[str]]:
    return {AT + timedelta(seconds=each): Counter({"alerts": 1}) for each in seconds}


def test_bars_hold_empty_spans_too() -> None:
    assert bars(times(0, 30), "alerts", most=10) == Bars(first=AT, values=(1, 0, 0, 1))
    assert bars(times(0, 30), "interventions", most=10).values == (0, 0, 0, 0)


def test_bars_stand_for_longer_spans_where_there_is_no_room() -> None:
    found = bars(times(0, 10, 130, 290), "alerts", most=5)
    assert found == Bars(seconds=60, first=AT, values=(2, 0, 1, 0, 1))


def test_bars_show_the_latest_where_even_hours_do_not_fit() -> None:
    found = bars(times(0, 3 * 3600), "alerts", most=2)
    assert found == Bars(seconds=3600, first=AT + timedelta(hours=2), values=(0, 1))


def test_no_times_are_no_bars() -> None:
    assert bars({}, "alerts", most=10) == Bars()


@pytest.mark.parametrize(
    ("seconds", "length"), [(10, "10 seconds"), (60, "minute"), (300, "5 minutes"), (3600, "hour")]
)
def test_the_span_of_a_bar_is_told_in_words(seconds: int, length: str) -> None:
    assert Bars(seconds=seconds).length == length


def test_the_largest_bar_fills_the_height_and_the_smallest_is_seen() -> None:
    assert drawn([16, 8, 1, 0], height=2) == ["█   ", "██▁ "]
    assert drawn([1, 0], height=1, width=3) == ["███   "]
    assert drawn([0, 0]) == []


def test_an_axis_names_its_ends_beneath_them_or_side_by_side() -> None:
    found = bars(times(0, 50), "alerts", most=60)
    assert axis(found, UTC) == "20:00:00 to 20:00:50"
    assert axis(found, UTC, width=4) == "20:00:00        20:00:50"


def test_the_recovery_rate_comes_with_its_counts() -> None:
    totals = Totals(outcomes=Counter({Outcome.RECOVERED: 3, Outcome.NO_EFFECT: 1}))
    assert rate(totals) == "75%: 3 of 4 recovered (1 no effect, 0 made worse)"


def test_nothing_judged_is_no_rate_of_zero() -> None:
    assert rate(Totals()) == "no intervention has been judged yet"
