"""What the charts, the stream of checkpoints and a diff show, without a screen."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from midwatch_monitor.records import AlertState, Checkpoint, Outcome, Record, Severity
from midwatch_stage.factories import (
    AT,
    after,
    alert,
    attempt,
    delivery,
    entries,
    intervention,
    message,
    reflecting,
    task,
)
from midwatch_stage.rows import row
from midwatch_supervisor.present.text_line import Tone
from midwatch_supervisor.tui.screens.attempt_tabs import diff_lines, diff_tone, flat
from midwatch_supervisor.tui.screens.chart import series, ticks
from midwatch_supervisor.tui.screens.lists import report_text
from midwatch_supervisor.tui.screens.overview import Bars, axis, bars, draw_bars, rate
from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline
from midwatch_supervisor.tui.state.board import Report, Totals
from midwatch_supervisor.tui.widgets.table import holds


def told(*records: Record) -> AttemptTimeline:
    story = AttemptTimeline(task(), attempt())
    for each in entries(*records):
        story.fold(each)
    return story


def test_the_chart_shows_what_was_stated_and_marks_alerts_and_what_was_delivered() -> None:
    warned, fired = alert(step=1), alert("late", Severity.CRITICAL, step=2)
    over = replace(fired, state=AlertState.RESOLVED, step=1)
    story = told(
        *(reflecting(1, 10, 70), reflecting(2, 20, 40), warned, fired, over, alert("x", step=9)),
        *(intervention(), delivery(7, step=2)),
    )
    assert [(each.name, each.sign, each.steps, each.values) for each in series(story)] == [
        ("confidence", "⠒", (1, 2), (70, 40)),
        ("progress", "▪", (1, 2), (10, 20)),
        ("warning", "▲", (1,), (3,)),
        ("critical", "■", (2,), (3,)),
        ("delivered", "»", (2,), (97,)),
    ]
    assert series(told(message())) == ()


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(1, 3, (1, 2, 3)), (1, 16, (1, 3, 5, 7, 9, 11, 13, 15)), (4, 4, (4,))],
)
def test_steps_below_the_chart_are_whole_and_few(
    first: int, last: int, expected: Sequence[int]
) -> None:
    assert ticks(first, last) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("+new", Tone.GOOD),
        ("-gone", Tone.BAD),
        (" same", Tone.PLAIN),
        ("@@ -1 +1 @@", Tone.ACCENT),
        ("+++ b/a.py", Tone.DIM),
        ("", Tone.PLAIN),
    ],
)
def test_the_sign_of_a_line_says_how_it_is_meant(line: str, expected: Tone) -> None:
    assert diff_tone(line) is expected


def test_a_diff_ends_lines_at_line_feeds_only_and_keeps_indentations_but_no_escapes() -> None:
    assert diff_lines("+a\x0cb\n-c\n") == ["+a\x0cb", "-c"]
    assert diff_lines("") == ()
    assert flat("+    if \x1b[31mx\x1b[0m:") == "+    if x:"


def test_a_filter_of_the_stream_looks_at_blockers_and_notes_too() -> None:
    said = Checkpoint(
        progress_percent=40, confidence=60, blockers=("no key",), notes="Trying half a Cent."
    )
    found = report_text(Report(row=row(), at=AT, checkpoint=said, change=None))
    assert holds(found, ("coder", "continue", "key", "cent"))


def times(*seconds: int) -> dict[datetime, Counter[str]]:
    return {after(each): Counter({"alerts": 1}) for each in seconds}


@pytest.mark.parametrize(
    ("seconds", "most", "found", "length"),
    [
        ((), 10, Bars(), "10 seconds"),
        ((0, 30), 10, Bars(first=AT, values=(1, 0, 0, 1)), "10 seconds"),
        ((0, 10, 130, 290), 5, Bars(seconds=60, first=AT, values=(2, 0, 1, 0, 1)), "minute"),
        ((0, 1200), 5, Bars(seconds=300, first=AT, values=(1, 0, 0, 0, 1)), "5 minutes"),
        (*((0, 3 * 3600), 2), *(Bars(seconds=3600, first=after(2 * 3600), values=(0, 1)), "hour")),
    ],
    ids=["none", "empty spans", "no room", "less room", "the latest"],
)
def test_bars_stand_for_longer_spans_where_there_is_no_room(
    seconds: tuple[int, ...], most: int, found: Bars, length: str
) -> None:
    made = bars(times(*seconds), "alerts", most=most)
    assert (made, made.length) == (found, length)


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
    assert rate(Totals()) == "no intervention has been judged yet"
