"""Styles of hand-drawn lines, from the theme. No information relies on them alone."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal, cast

from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.color import Color
from textual.theme import Theme
from textual.widget import Widget

from midwatch_monitor.records import Health
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_supervisor.present.text_line import Tone

Ink = Literal["text", "dim", "strong", "heading", "accent", "good", "warn", "bad"]
"""The meaning of a piece of text, for which a theme's palette has a style."""
Cell = tuple[str, Ink]
"""A piece of a line; the text must not contain control characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """One style for each meaning."""

    text: Style
    dim: Style
    strong: Style
    heading: Style
    accent: Style
    good: Style
    warn: Style
    bad: Style
    cursor: Style
    """Replaces the colours of the line that the keys act on."""

    def __getitem__(self, ink: Ink) -> Style:
        style: Style = getattr(self, ink)
        return style

    def assemble(self, cells: Iterable[Cell]) -> Text:
        """Return cells as one line of text."""
        return Text.assemble(*((text, self[ink]) for text, ink in cells), no_wrap=True)


def palette(variables: Mapping[str, str]) -> Palette:
    """Return a theme's palette, from its CSS variables. Every colour is legible on the background.

    A theme with the terminal's own colours keeps them; its cursor is the reversed line.
    """
    ink, paper = (
        _variable_colour(variables, "foreground"),
        _variable_colour(variables, "background"),
    )
    if ink is None or paper is None:
        return _terminal_palette(variables)

    def legible(name: str) -> str:
        colour = _variable_colour(variables, name) or ink
        steps = (colour.blend(ink, share) for share in (0.0, 0.2, 0.4, 0.6, 0.8))
        return next((step for step in steps if _contrast(step, paper) >= _LEGIBLE), ink).hex

    under = _variable_colour(variables, "primary") or ink
    return Palette(
        text=Style(color=ink.hex),
        # Terminals' own dim is unreliable, and costs a filter over every line.
        dim=Style(color=paper.blend(ink, 0.65).hex),
        strong=Style(color=ink.hex, bold=True),
        heading=Style(color=legible("primary"), bold=True),
        accent=Style(color=legible("accent")),
        good=Style(color=legible("success")),
        warn=Style(color=legible("warning"), bold=True),
        bad=Style(color=legible("error"), bold=True),
        cursor=Style(bgcolor=under.hex, color=_ink_over(under).hex, bold=True, dim=False),
    )


def palette_of(widget: Widget) -> Palette:
    """Return the palette of the theme in which a widget is shown."""
    variables = app_of(widget).theme_variables
    return _known_palette(*(variables.get(name, "") for name in _VARIABLES))


_VARIABLES = "foreground", "background", "primary", "accent", "success", "warning", "error"


@lru_cache
def _known_palette(*colours: str) -> Palette:
    return palette(dict(zip(_VARIABLES, colours, strict=True)))


def on_theme_change(widget: Widget, recolour: Callable[[], object]) -> None:
    """Call `recolour` whenever the theme changes, as long as the widget is mounted."""

    def changed(theme: Theme) -> None:
        del theme
        recolour()

    app_of(widget).theme_changed_signal.subscribe(widget, changed)


def app_of(widget: Widget) -> App[object]:
    """Return a widget's app, whose type Textual does not declare."""
    return cast("App[object]", widget.app)  # pyright: ignore[reportUnknownMemberType]


def palette_on(colours: Palette, under: Style) -> Palette:
    """Return the palette on a background, combined once instead of for each cell."""
    return Palette(**{each.name: under + getattr(colours, each.name) for each in fields(colours)})


_LEGIBLE = 2.5
"""Minimum contrast with the background, from 1 to 21 by WCAG. It is below 3, which WCAG requires
for large text, because themes are designed around it and signs carry the information too.
"""


def _variable_colour(variables: Mapping[str, str], name: str) -> Color | None:
    # Some variables are Textual's rules, such as `auto 87%`, or terminal colours.
    found = variables.get(name, "")
    return Color.parse(found) if found.startswith("#") else None


def _ink_over(under: Color) -> Color:
    inks = (Color.parse("#ffffff"), Color.parse("#000000"))
    return max(inks, key=lambda each: _contrast(each, under))


def _contrast(one: Color, other: Color) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Color) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _terminal_palette(variables: Mapping[str, str]) -> Palette:
    def colour(name: str) -> str:
        found = variables.get(name, "")
        return found.removeprefix("ansi_") if found.startswith("ansi_") else "default"

    return Palette(
        text=Style(color="default"),
        dim=Style(color="default", dim=True),
        strong=Style(color="default", bold=True),
        heading=Style(color=colour("primary"), bold=True),
        accent=Style(color=colour("accent")),
        good=Style(color=colour("success")),
        warn=Style(color=colour("warning"), bold=True),
        bad=Style(color=colour("error"), bold=True),
        cursor=Style(color="default", bgcolor="default", reverse=True, bold=True, dim=False),
    )


_HEALTHS: Mapping[Health, Ink] = {
    Health.STUCK: "bad",
    Health.SUSPECT: "warn",
    Health.OK: "good",
    Health.NOTICE: "text",
    Health.UNKNOWN: "dim",
    Health.NOT_JUDGED: "dim",
}
_STATUSES: Mapping[AttemptStatus, Ink] = {
    AttemptStatus.PAUSED: "warn",
    AttemptStatus.WAITING: "warn",
    AttemptStatus.COMPLETED: "good",
    AttemptStatus.FAILED: "bad",
}


_TONES: Mapping[Tone, Ink] = {
    Tone.PLAIN: "text",
    Tone.DIM: "dim",
    Tone.ACCENT: "accent",
    Tone.GOOD: "good",
    Tone.WARN: "warn",
    Tone.BAD: "bad",
}


def health_ink(health: Health) -> Ink:
    return _HEALTHS[health]


def status_ink(state: AttemptState) -> Ink:
    return "warn" if state.rejected else _STATUSES.get(state.status, "text")


def tone_ink(tone: Tone) -> Ink:
    return _TONES[tone]


# Dark, light, and one with colours that most colour-blind people can distinguish, by Masataka
# Okabe and Kei Ito, "Color Universal Design" (2002, revised 2008): blue #0072B2, sky blue #56B4E9,
# yellow #F0E442, orange #E69F00, vermilion #D55E00.
DARK = Theme(
    name="midwatch",
    primary="#7AA2D6",
    secondary="#5C7A99",
    accent="#8FD3C8",
    success="#7FC77A",
    warning="#E6B450",
    error="#F07A78",
    foreground="#DCE3EA",
    background="#10151B",
    surface="#161D25",
    panel="#1E2731",
    variables={"block-cursor-foreground": "#10151B", "footer-key-foreground": "#E6B450"},
)
LIGHT = Theme(
    name="midwatch-light",
    primary="#1F5F9E",
    secondary="#4A6378",
    accent="#0B6B63",
    success="#23691F",
    warning="#8A5A00",
    error="#B3261E",
    foreground="#1B222A",
    background="#FAFAF7",
    surface="#F1F1EC",
    panel="#E4E5DF",
    dark=False,
    variables={"block-cursor-foreground": "#FFFFFF", "footer-key-foreground": "#8A5A00"},
)
SAFE = Theme(
    name="midwatch-safe",
    primary="#56B4E9",
    secondary="#0072B2",
    accent="#F0E442",
    success="#56B4E9",
    warning="#E69F00",
    error="#D55E00",
    foreground="#F2F2F2",
    background="#000000",
    surface="#0C0C0C",
    panel="#1C1C1C",
    variables={"block-cursor-foreground": "#000000", "footer-key-foreground": "#F0E442"},
)
THEMES = (DARK, LIGHT, SAFE)
