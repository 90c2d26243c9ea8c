"""The styles of lines that are drawn by hand, from the theme. Nothing is told by them alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.style import Style

from midwatch_monitor.words import Health, Lifecycle, Severity


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
    """Laid over the line that the keys act on."""


def palette(variables: Mapping[str, str]) -> Palette:
    """The palette of a theme, from its CSS variables."""

    def colour(name: str, otherwise: str) -> str:
        # Some variables are rules of Textual's, such as `auto 87%`, and no colours.
        found = variables.get(name, "")
        return found if found.startswith("#") else otherwise

    ink = colour("foreground", "#e0e0e0")
    return Palette(
        text=Style(color=ink),
        dim=Style(color=ink, dim=True),
        strong=Style(color=ink, bold=True),
        heading=Style(color=colour("primary", ink), bold=True),
        accent=Style(color=colour("accent", ink)),
        good=Style(color=colour("success", ink)),
        warn=Style(color=colour("warning", ink), bold=True),
        bad=Style(color=colour("error", ink), bold=True),
        cursor=Style(bgcolor=colour("primary", "#444444"), color="#ffffff", bold=True),
    )


HEALTH_SIGNS: Mapping[Health, str] = {
    Health.OK: "●",
    Health.SUSPECT: "▲",
    Health.STUCK: "■",
    Health.UNKNOWN: "?",
}
"""A shape for each health, so that no colour is needed."""

SEVERITY_SIGNS: Mapping[Severity, str] = {
    Severity.NOTICE: "·",
    Severity.WARNING: "▲",
    Severity.CRITICAL: "■",
}

LIFECYCLE_SIGNS: Mapping[Lifecycle, str] = {
    Lifecycle.SUBMITTED: "…",
    Lifecycle.WORKING: "▶",
    Lifecycle.INPUT_REQUIRED: "?",
    Lifecycle.COMPLETED: "✓",
    Lifecycle.FAILED: "✗",
    Lifecycle.CANCELED: "⊘",
    Lifecycle.REJECTED: "⊘",
}


def health_style(health: Health, colours: Palette) -> Style:
    """The style of a health."""
    return {Health.STUCK: colours.bad, Health.SUSPECT: colours.warn, Health.OK: colours.good}.get(
        health, colours.dim
    )


def severity_style(severity: Severity, colours: Palette) -> Style:
    """The style of a severity."""
    return {Severity.CRITICAL: colours.bad, Severity.WARNING: colours.warn}.get(
        severity, colours.dim
    )
