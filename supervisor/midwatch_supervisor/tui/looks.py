"""What a configuration may say of the console's looks and keys. Pure, and without Textual."""

from difflib import get_close_matches
from pathlib import Path

from midwatch_monitor.config.settings import ConsoleSettings
from midwatch_monitor.errors import ConfigError, Place
from midwatch_supervisor.tui.keymap import check_keys
from midwatch_supervisor.tui.keys import all_keys

THEME_NAMES = ("midwatch", "midwatch-light", "midwatch-safe")
"""Ours, in the order of the key that changes them; themes.py paints them."""

IN_FORCE = Place(file=Path("configuration"))
"""Where a problem is that is found in the settings in force, whichever file they come from."""


def following(name: str) -> str:
    """The theme after this one; the first after one that is not ours."""
    if name not in THEME_NAMES:
        return THEME_NAMES[0]
    return THEME_NAMES[(THEME_NAMES.index(name) + 1) % len(THEME_NAMES)]


def check_looks(settings: ConsoleSettings, place: Place = IN_FORCE) -> None:
    """Raise ConfigError if there is no such theme, act or key, or if keys clash."""
    if settings.theme not in THEME_NAMES:
        _check_theme(settings.theme, place)
    check_keys(settings.keys, all_keys(), place)


def _check_theme(name: str, place: Place) -> None:
    from textual.theme import BUILTIN_THEMES  # only for one who asks for a theme of Textual's

    if name not in BUILTIN_THEMES:
        known = [*THEME_NAMES, *BUILTIN_THEMES]
        nearest = next(iter(get_close_matches(name, known, n=1)), "")
        problem = f"there is no theme {name!r}; ours are {', '.join(THEME_NAMES)}"
        raise ConfigError(place, "console.theme", problem, nearest=nearest)
