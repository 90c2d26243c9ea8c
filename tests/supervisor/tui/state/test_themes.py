import pytest
from textual.color import Color
from textual.theme import Theme

from midwatch_supervisor.tui.keys import THEME_NAMES
from midwatch_supervisor.tui.widgets.palette import SAFE, THEMES, Palette, palette

OKABE_ITO = {"#0072B2", "#56B4E9", "#009E73", "#F0E442", "#E69F00", "#D55E00", "#CC79A7"}
MEANINGS = ("text", "strong", "heading", "accent", "good", "warn", "bad")


def ground(theme: Theme) -> Color:
    return Color.parse(theme.background or "")


def ink(theme: Theme, meaning: str) -> Color:
    colours: Palette = palette(theme.to_color_system().generate())
    return Color.from_rich_color(getattr(colours, meaning).color)


def luminance(colour: Color) -> float:
    """Relative luminance as WCAG 2.1 defines it."""
    parts = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: Color, other: Color) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_themes_are_those_that_a_configuration_may_name() -> None:
    assert tuple(theme.name for theme in THEMES) == THEME_NAMES


@pytest.mark.parametrize("meaning", MEANINGS)
@pytest.mark.parametrize("theme", THEMES, ids=THEME_NAMES)
def test_every_word_can_be_read_on_its_ground(theme: Theme, meaning: str) -> None:
    assert contrast(ink(theme, meaning), ground(theme)) >= 4.5


def test_the_safe_theme_takes_its_meanings_from_the_published_palette() -> None:
    meanings = (SAFE.primary, SAFE.secondary, SAFE.accent, SAFE.success, SAFE.warning, SAFE.error)
    assert OKABE_ITO.issuperset(filter(None, meanings))


def test_good_warning_and_bad_differ_in_brightness_too() -> None:
    grades = [luminance(ink(SAFE, meaning)) for meaning in ("bad", "warn", "accent")]
    assert grades[0] * 1.3 < grades[1]
    assert grades[1] * 1.3 < grades[2]
