"""How lines are divided into columns, the colours of every theme, charts and diffs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest
from rich.cells import cell_len
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from midwatch_monitor.records import AlertState, Checkpoint, Health, Outcome, Record, Severity
from midwatch_supervisor.present.text_line import Tone
from midwatch_supervisor.tui.keys import THEME_NAMES
from midwatch_supervisor.tui.screens.attempt_tabs import diff_lines, diff_tone, flat
from midwatch_supervisor.tui.screens.chart import series, ticks
from midwatch_supervisor.tui.screens.lists import report_text
from midwatch_supervisor.tui.screens.overview import Bars, axis, bars, draw_bars, rate
from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline
from midwatch_supervisor.tui.state.board import Report, Totals
from midwatch_supervisor.tui.widgets.palette import (
    SAFE,
    THEMES,
    Palette,
    health_ink,
    palette,
    palette_on,
    tone_ink,
)
from midwatch_supervisor.tui.widgets.table import Column, draw, fit_columns, fit_text, holds
from midwatch_tests.factories import (
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
from midwatch_tests.rows import row

COLOURS = palette({"foreground": "#ffffff", "background": "#000000", "primary": "#0000aa"})


COLUMNS: list[Column[str]] = [
    Column(title="!", width=1, rank=0, draw=lambda text: (text[:1], "bad")),
    Column(title="task", width=6, rank=0, grow=1, draw=lambda text: (text, "text")),
    Column(title="idle", width=4, rank=1, draw=lambda text: (text, "text")),
    Column(title="model", width=5, rank=2, grow=3, draw=lambda text: (text, "text")),
]


@pytest.mark.parametrize(
    ("width", "kept"),
    [
        (80, [("!", 1), ("task", 21), ("idle", 4), ("model", 50)]),
        (19, [("!", 1), ("task", 6), ("idle", 4), ("model", 5)]),
        (18, [("!", 1), ("task", 11), ("idle", 4)]),
        (12, [("!", 1), ("task", 10)]),
        (3, [("!", 1), ("task", 6)]),
    ],
)
def test_the_least_important_column_goes_first(width: int, kept: list[tuple[str, int]]) -> None:
    assert [(column.title, cells) for column, cells in fit_columns(COLUMNS, width)] == kept


def test_a_column_that_needs_more_displaces_less_important_ones() -> None:
    def longest(items: Sequence[str]) -> int:
        return max(map(len, items))

    columns = [replace(COLUMNS[1], needed=longest), *COLUMNS[2:]]
    widths = (80, 24, 19, 10, 3)
    kept = [[cells for _, cells in fit_columns(columns, width, ["a" * 14])] for width in widths]
    assert kept == [[27, 4, 46], [19, 4], [14, 4], [10], [6]]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abc", 5, "abc  "),
        ("abcdef", 4, "abc…"),
        ("日本", 4, "日本"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日 …"),
        ("abc", 0, ""),
        ("", 2, "  "),
    ],
)
def test_a_text_takes_exactly_its_cells(text: str, width: int, shown: str) -> None:
    assert fit_text(text, width) == shown
    assert cell_len(shown) == width


def test_characters_without_width_cannot_pile_up_in_a_cell() -> None:
    assert len(fit_text("e" + "\u0301" * 10_000, 10)) < 50


def test_neighbours_of_one_style_are_one_piece() -> None:
    assert draw("abc", fit_columns(COLUMNS, 18)) == [("a ", "bad"), ("abc         abc  ", "text")]


OKABE_ITO = {"#0072B2", "#56B4E9", "#009E73", "#F0E442", "#E69F00", "#D55E00", "#CC79A7"}


def luminance(colour: Color) -> float:
    """Relative luminance as WCAG 2.1 defines it."""
    parts = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return (high + 0.05) / (low + 0.05)


def colours_of(theme: Theme) -> tuple[Palette, Color]:
    """The styles of a theme, and the ground that they stand on."""
    colours = theme.to_color_system().generate()
    return palette(colours), Color.parse(theme.background or colours["background"])


def ink(style: Style) -> Color:
    assert style.color is not None
    return Color.from_rich_color(style.color)


@pytest.mark.parametrize("theme", [*BUILTIN_THEMES.values(), *THEMES], ids=lambda each: each.name)
def test_every_meaning_can_be_read_in_every_theme(theme: Theme) -> None:
    colours, ground = colours_of(theme)
    if theme.name.startswith("ansi"):
        assert colours.cursor.reverse
        return
    for style in (colours.text, colours.dim, colours.good, colours.warn, colours.bad):
        assert abs(ink(style).brightness - ground.brightness) > 0.15
    assert colours.cursor.bgcolor is not None
    under = Color.from_rich_color(colours.cursor.bgcolor).brightness
    assert abs(ink(colours.cursor).brightness - under) > 0.3


@pytest.mark.parametrize("theme", THEMES, ids=THEME_NAMES)
def test_every_word_of_our_themes_is_read_on_its_ground(theme: Theme) -> None:
    colours, ground = colours_of(theme)
    for name in ("text", "strong", "heading", "accent", "good", "warn", "bad"):
        assert contrast(luminance(ink(getattr(colours, name))), luminance(ground)) >= 4.5, name


def test_the_safe_theme_is_of_the_published_palette_in_grades_of_brightness() -> None:
    meanings = (SAFE.primary, SAFE.secondary, SAFE.accent, SAFE.success, SAFE.warning, SAFE.error)
    assert OKABE_ITO.issuperset(filter(None, meanings))
    colours, _ = colours_of(SAFE)
    grades = [luminance(ink(style)) for style in (colours.bad, colours.warn, colours.accent)]
    assert grades[0] * 1.3 < grades[1]
    assert grades[1] * 1.3 < grades[2]


def test_every_health_and_tone_has_a_style_and_a_configuration_names_every_theme() -> None:
    assert tuple(theme.name for theme in THEMES) == THEME_NAMES
    assert all(map(health_ink, Health))
    assert all(map(tone_ink, Tone))
    under = Style(bgcolor="#101010")
    assert palette_on(COLOURS, under).warn == under + COLOURS.warn


def make_timeline(*records: Record) -> AttemptTimeline:
    story = AttemptTimeline(task(), attempt())
    for each in entries(*records):
        story.fold(each)
    return story


def test_the_chart_shows_what_was_stated_and_marks_alerts_and_what_was_delivered() -> None:
    warned, fired = alert(step=1), alert("late", Severity.CRITICAL, step=2)
    over = replace(fired, state=AlertState.RESOLVED, step=1)
    story = make_timeline(
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
    assert series(make_timeline(message())) == ()


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(1, 3, (1, 2, 3)), (1, 16, (1, 3, 5, 7, 9, 11, 13, 15)), (4, 4, (4,))],
)
def test_steps_of_a_chart_are_whole(first: int, last: int, expected: Sequence[int]) -> None:
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
        ((0, 3 * 3600), 2, Bars(seconds=3600, first=after(7200), values=(0, 1)), "hour"),
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
