"""The keys in force: the defaults under what the configuration says. Pure."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import combinations

from midwatch_monitor.errors import ConfigError, Place
from midwatch_supervisor.tui.keys import Key

_SECTION = "console.keys"
_MODIFIERS = re.compile(r"(?:(?:ctrl|alt|shift|super|meta|hyper)\+)+")
_NAMED = frozenset(
    (
        *("up", "down", "left", "right", "home", "end", "pageup", "pagedown"),
        *("enter", "escape", "tab", "space", "backspace", "delete", "insert"),
        *(f"f{number}" for number in range(1, 25)),
    )
)
# Textual calls these otherwise than Unicode does.
_RENAMED = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
_UNICODE = {name: original for original, name in _RENAMED.items()}


def check_keys(wanted: Mapping[str, str], known: Iterable[Key], place: Place) -> None:
    """Raise ConfigError with everything that is wrong in a key map: ids, keys, clashes."""
    keys = list({key.id: key for key in known}.values())
    problems = [*_unknown(wanted, keys, place), *_unreadable(wanted, place)]
    if not problems:
        problems = _clashes(wanted, keys, place)
    if problems:
        first, *others = problems
        raise ConfigError(
            first.place, first.key, first.problem, nearest=first.nearest, others=tuple(others)
        )


def in_force(key: Key, wanted: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of an act, by Textual's names."""
    return tuple(named(each) for each in _split(wanted.get(key.id, key.keys)))


def named(key: str) -> str:
    """A key by Textual's name: `/` is `slash`."""
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace("-", "_").replace(" ", "_")
    return _RENAMED.get(name, name)


def spoken(key: str) -> str:
    """A key as a person reads it: `slash` is `/`, `escape` is `esc`."""
    modifiers, name = _parted(key)
    short = {"escape": "esc", "pageup": "page up", "pagedown": "page down"}.get(name)
    return f"{modifiers}{short or _character(name) or name}"


def _split(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",")]


def _parted(key: str) -> tuple[str, str]:
    found = _MODIFIERS.match(key)
    end = found.end() if found else 0
    return key[:end], key[end:]


def _character(name: str) -> str:
    """The character that a key's name stands for; empty if it stands for none."""
    if name in _NAMED:
        return ""
    if len(name) == 1:
        return name
    try:
        return unicodedata.lookup(_UNICODE.get(name, name).replace("_", " "))
    except KeyError:
        return _hyphened(name)


def _hyphened(name: str) -> str:
    """Some names of characters have a hyphen where Textual has an underscore."""
    try:
        return unicodedata.lookup(_UNICODE.get(name, name).replace("_", "-"))
    except KeyError:
        return ""


def _unknown(wanted: Mapping[str, str], keys: Sequence[Key], place: Place) -> list[ConfigError]:
    ids = [key.id for key in keys]
    return [
        ConfigError(
            place,
            f"{_SECTION}.{id}",
            "there is no such act; the help (`?`) of the console lists them",
            nearest=next(iter(get_close_matches(id, ids, n=1)), ""),
        )
        for id in wanted
        if id not in ids
    ]


def _unreadable(wanted: Mapping[str, str], place: Place) -> list[ConfigError]:
    return [
        ConfigError(place, f"{_SECTION}.{id}", f"`{key}` is no key")
        for id, keys in wanted.items()
        for key in _split(keys)
        if not _is_key(key)
    ]


def _is_key(key: str) -> bool:
    _, name = _parted(named(key))
    return name in _NAMED or bool(_character(name))


def _clashes(wanted: Mapping[str, str], keys: Sequence[Key], place: Place) -> list[ConfigError]:
    """Keys that mean two things; where a default is used twice, the screens differ."""
    problems: list[ConfigError] = []
    for one, other in combinations(keys, 2):
        both = set(in_force(one, wanted)) & set(in_force(other, wanted))
        both -= set(in_force(one, {})) & set(in_force(other, {}))
        for key in sorted(both):
            id, taken = (one, other) if one.id in wanted else (other, one)
            problems.append(
                ConfigError(
                    place,
                    f"{_SECTION}.{id.id}",
                    f"`{spoken(key)}` is the key of `{taken.id}` already ({taken.does})",
                )
            )
    return problems
