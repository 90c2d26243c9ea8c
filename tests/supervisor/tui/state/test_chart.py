"""What the chart of an attempt shows, and how a diff is read."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from midwatch_monitor.records import Alert, AlertState, Record, Severity
from midwatch_stage.factories import (
    alert,
    attempt,
    delivery,
    entries,
    intervention,
    message,
    reflecting,
    task,
)
from midwatch_supervisor.present.text_line import Tone
from midwatch_supervisor.tui.screens.attempt_tabs import diff_lines, diff_tone, flat
from midwatch_supervisor.tui.screens.chart import series, ticks
from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline


def told(*records: Record) -> AttemptTimeline:
    story = AttemptTimeline(task(), attempt())
    for each in entries(*records):
        story.fold(each)
    return story


def firing(severity: Severity, step: int) -> Alert:
    return alert(severity=severity, step=step)


def test_without_a_checkpoint_there_is_nothing_to_draw() -> None:
    assert series(told(message())) == ()


def test_the_chart_shows_what_was_stated_and_marks_alerts_and_what_was_delivered() -> None:
    reports = reflecting(1, 10, 70), reflecting(2, 20, 40)
    fired = firing(Severity.CRITICAL, 2)
    over = replace(fired, state=AlertState.RESOLVED, step=1)
    story = told(*reports, fired, over, intervention(), delivery(5, step=2))
    assert [(each.name, each.steps, each.values) for each in series(story)] == [
        ("confidence", (1, 2), (70, 40)),
        ("progress", (1, 2), (10, 20)),
        ("critical", (2,), (3,)),
        ("delivered", (2,), (97,)),
    ]


def test_no_two_series_have_the_same_sign() -> None:
    story = told(reflecting(1), firing(Severity.WARNING, 1), firing(Severity.CRITICAL, 1))
    signs = [each.sign for each in series(story)]
    assert signs == ["⠒", "▪", "▲", "■"]


def test_nothing_is_marked_outside_the_steps() -> None:
    assert [each.name for each in series(told(firing(Severity.WARNING, 9), reflecting(1)))] == [
        "confidence",
        "progress",
    ]


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


def test_a_diff_ends_lines_at_line_feeds_only() -> None:
    assert diff_lines("+a\x0cb\n-c\n") == ["+a\x0cb", "-c"]
    assert diff_lines("") == ()


def test_a_line_of_code_keeps_its_indentation_and_loses_its_escapes() -> None:
    assert flat("+    if \x1b[31mx\x1b[0m:") == "+    if x:"
