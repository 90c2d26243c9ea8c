"""What the checkpoints, the attention queue and the overview say, without a screen."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.records import (
    Checkpoint,
    Outcome,
)
from midwatch_stage.rows import row
from midwatch_supervisor.tui.screens.lists import report_text
from midwatch_supervisor.tui.screens.overview import (
    Bars,
    axis,
    bars,
    draw_bars,
    rate,
)
from midwatch_supervisor.tui.state.board import Report, Totals
from midwatch_supervisor.tui.widgets.table import holds

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


def test_a_filter_of_the_stream_looks_at_blockers_and_notes_too() -> None:
    said = Checkpoint(
        progress_percent=40, confidence=60, blockers=("no key",), notes="Trying half a Cent."
    )
    found = report_text(Report(row=row(), at=AT, checkpoint=said, change=None))
    assert holds(found, ("coder", "continue", "key", "cent"))


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
    assert draw_bars([16, 8, 1, 0], height=2) == ["█   ", "██▁ "]
    assert draw_bars([1, 0], height=1, width=3) == ["███   "]
    assert draw_bars([0, 0]) == []


def test_an_axis_names_its_ends_beneath_them_or_side_by_side() -> None:
    found = bars(times(0, 50), "alerts", most=60)
    assert axis(found, AT) == "20:00:00 to 20:00:50"
    assert axis(found, AT, width=4) == "20:00:00        20:00:50"


def test_the_recovery_rate_comes_with_its_counts() -> None:
    totals = Totals(outcomes=Counter({Outcome.RECOVERED: 3, Outcome.NO_EFFECT: 1}))
    assert rate(totals) == "75%: 3 of 4 recovered (1 no effect, 0 made worse)"


def test_nothing_judged_is_no_rate_of_zero() -> None:
    assert rate(Totals()) == "no intervention has been judged yet"
