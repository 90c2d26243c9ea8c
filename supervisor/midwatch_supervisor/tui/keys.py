"""All keys of the console: what they do, and their names in a key map. Pure.

`midwatch run` and `midwatch config check` validate keys and themes before anything is drawn, so
this module does not import Textual.
"""

import logging
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from midwatch_monitor.config.settings import ConsoleSettings
from midwatch_monitor.errors import ConfigError, FilePosition

if TYPE_CHECKING:
    from textual.binding import Binding

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Key:
    """An action of the console with its default keys. Positional, so that tables read as tables."""

    id: str
    """The name in the configuration's `console.keys`."""
    keys: str
    """Default keys, separated by commas."""
    action: str
    """Textual's action."""
    does: str
    """What it does, for the help and the footer."""
    short: str = ""
    """One or two words for the footer; if empty, it is not there."""

    @property
    def binding(self) -> "Binding":
        """Return Textual's binding for the key; its id lets a key map change it."""
        from textual.binding import Binding

        return Binding(
            self.keys,
            self.action,
            self.short or self.does,
            show=bool(self.short),
            id=self.id,
            tooltip=self.does,
        )


EVERYWHERE = (
    Key("fleet", "1", "pane('fleet-pane')", "Show the fleet"),
    Key("checkpoints", "2", "pane('checkpoints-pane')", "Show the checkpoints of all attempts"),
    Key("attention", "3", "pane('attention-pane')", "Show what needs you"),
    Key("overview", "4", "pane('overview-pane')", "Show totals and rates"),
    Key("learned", "5", "pane('learned-pane')", "Show lessons, facts and guidelines"),
    Key("nodes", "6", "pane('nodes-pane')", "Show the nodes of a fleet"),
    Key("next", "n", "next_attention", "Open the next attempt that needs you", "Next"),
    Key("filter", "slash", "filter", "Filter the list", "Filter"),
    Key("jump", "colon", "jump", "Go to a pane, task, attempt or step by name"),
    Key("preview", "space", "preview", "Show or hide the preview of the selected line"),
    Key("group", "v", "group", "Group the fleet by need, task, state, worker, project or node"),
    Key("sort", "o", "sort", "Sort the fleet by need, name, age, confidence or budget"),
    Key("fold", "z", "fold", "Fold or unfold the group of the selected line"),
    Key("back", "escape", "back", "Close the filter, or go back"),
    Key("help", "question_mark,f1", "help", "Show all keys"),
    Key("theme", "T", "next_theme", "Change the theme"),
    Key("palette", "ctrl+p", "command_palette", "Find a command by name"),
    # ctrl+q is Textual's own, with the same effect.
    Key("quit", "q", "leave", "Quit the console", "Quit"),
)
"""Keys that work on every screen."""

LIST = (
    Key("list.down", "j,down", "move(1)", "Go to the next line"),
    Key("list.up", "k,up", "move(-1)", "Go to the previous line"),
    Key("list.first", "g,home", "first", "Go to the first line"),
    Key("list.last", "G,end", "last", "Go to the last line"),
    Key("list.pagedown", "pagedown,ctrl+d", "page(1)", "Go down a page"),
    Key("list.pageup", "pageup,ctrl+u", "page(-1)", "Go up a page"),
    Key("list.open", "enter", "open", "Open the line", "Open"),
)
"""Keys of every list."""

ACTS = (
    Key("guide", "i", "act('guide')", "Send guidance to the worker"),
    Key("pause", "p", "pause", "Pause or resume the attempt"),
    Key("stop", "x", "act('stop')", "Stop the attempt"),
    Key(
        "restart", "b", "act('restart')", "Restart it, or begin a finished task again, with a note"
    ),
    Key("grant", "B", "act('grant')", "Grant the attempt more budget"),
    Key("switch", "M", "act('switch')", "Continue the attempt with another model"),
    Key("approve", "a", "act('approve')", "Approve a decision or a worker's request"),
    Key("modify", "m", "act('modify')", "Approve the decision in your own words"),
    Key("reject", "r", "act('reject')", "Reject a decision or a worker's request"),
    Key("accept", "A", "act('accept')", "Accept the result of an attempt that is over"),
    Key("refuse", "R", "act('refuse')", "Reject the result of an attempt that is over"),
    Key("acknowledge", "c", "act('acknowledge')", "Acknowledge the firing alerts"),
    Key("silence", "s", "act('silence')", "Silence the firing alerts for the rest of the attempt"),
)
"""Keys that act on the selected attempt. If the action is impossible, the key says why. The footer
shows the possible ones, with the names from `operator_command.offers`.
"""

ATTEMPT = (
    Key("attempt.next", "l,right", "turn(1)", "Show the next tab", "Tabs"),
    Key("attempt.previous", "h,left", "turn(-1)", "Show the previous tab"),
    Key("attempt.detail", "space", "detail", "Show or hide the details of the line", "Details"),
    Key(
        "attempt.search",
        "slash",
        "filter",
        "Search the lines; `is:failed`, `is:edit`, `is:checkpoint`, `is:alert` show only those",
        "Search",
    ),
    Key("attempt.match", "n", "match(1)", "Go to the next match of the search", "Match"),
    Key("attempt.match_before", "N", "match(-1)", "Go to the previous match of the search"),
    Key("attempt.evidence", "e", "evidence", "Go to the next evidence step of the opened alert"),
    Key("attempt.timeline", "f2", "tab('timeline')", "Show the timeline"),
    Key("attempt.alerts", "f3", "tab('alerts')", "Show the alerts"),
    Key("attempt.chart", "f4", "tab('chart')", "Show confidence and progress as a chart"),
    Key("attempt.plan", "f5", "tab('plan')", "Show the plan"),
    Key("attempt.diff", "f6", "tab('diff')", "Show the changes in the workspace"),
    Key(
        "attempt.messages",
        "f7",
        "tab('messages')",
        "Show messages and other interventions, with outcomes",
    ),
    Key("attempt.checks", "f8", "tab('checks')", "Show the acceptance checks"),
)
"""Keys in an attempt's view."""

LEARNED = (
    Key("learned.next", "l,right", "turn(1)", "Show the next tab"),
    Key("learned.previous", "h,left", "turn(-1)", "Show the previous tab"),
    Key("learned.detail", "space", "detail", "Show or hide the details of the line"),
    Key(
        "learned.approve",
        "a",
        "mark('approve')",
        "Approve guidelines, a lesson or a fact",
        "Approve",
    ),
    Key("learned.reject", "r", "mark('reject')", "Reject the proposed guidelines", "Reject"),
    Key(
        "learned.rollback",
        "b",
        "mark('roll back')",
        "Roll back to the previous guidelines",
        "Roll back",
    ),
    Key("learned.rate", "s", "mark('rate')", "Rate the lesson, from 1 to 5", "Rate"),
    Key("learned.retire", "x", "mark('retire')", "Retire the lesson or fact", "Retire"),
    Key("learned.restore", "u", "mark('restore')", "Restore a retired lesson or fact", "Restore"),
    Key("learned.source", "o", "source", "Show the attempt that it came from"),
    Key("learned.lessons", "f2", "tab('lessons')", "Show the lessons"),
    Key("learned.facts", "f3", "tab('facts')", "Show the facts"),
    Key("learned.guidelines", "f4", "tab('guidelines')", "Show the guidelines"),
    Key("learned.statistics", "f5", "tab('statistics')", "Show statistics of learning"),
)
"""Keys in the Learned tab, for the selected line."""
MARKS = frozenset(key.id for key in LEARNED if key.action.startswith("mark("))
"""Those that change something, by id; the footer shows possible ones, as for `ACTS`."""


def key_groups(*, acts: bool = True) -> tuple[tuple[str, tuple[Key, ...]], ...]:
    """Return all tables of keys with their headings in the help. Add new tables here.

    Without `acts`, keys that change something are left out: the journal is read-only.
    """
    learned = LEARNED if acts else tuple(key for key in LEARNED if key.id not in MARKS)
    return (
        ("On every screen", EVERYWHERE),
        ("On the selected attempt", ACTS if acts else ()),
        ("In an attempt's view", ATTEMPT),
        ("In the Learned tab", learned),
        ("In a list", LIST),
    )


def all_keys() -> tuple[Key, ...]:
    return tuple(key for _, keys in key_groups() for key in keys)


OLD_IDS: Mapping[str, str] = {key.id.replace("list.", "roll."): key.id for key in LIST}
"""Names of actions in key maps of earlier versions, with the current names."""

THEME_NAMES = ("midwatch", "midwatch-light", "midwatch-safe")
"""Our themes, in the order of the key that changes them; widgets/palette.py defines them."""

IN_FORCE = FilePosition(file=Path("configuration"))
"""Stands for the file of a problem in the settings in force, which may come from several."""

_SECTION = "console.keys"
_MODIFIERS = re.compile(r"(?:(?:ctrl|alt|shift|super|meta|hyper)\+)*")
_NAMED = frozenset(
    (
        *("up", "down", "left", "right", "home", "end", "pageup", "pagedown"),
        *("enter", "escape", "tab", "space", "backspace", "delete", "insert"),
        *(f"f{number}" for number in range(1, 25)),
    )
)
# Textual's names for these differ from Unicode's.
_RENAMED = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
_UNICODE = {name: original for original, name in _RENAMED.items()}


def next_theme(name: str) -> str:
    """Return the next theme; the first one after a theme that is not ours."""
    place = THEME_NAMES.index(name) + 1 if name in THEME_NAMES else 0
    return THEME_NAMES[place % len(THEME_NAMES)]


def check_console(settings: ConsoleSettings) -> None:
    """Raise ConfigError for an unknown theme, action or key, or if keys clash.

    Old names of actions are accepted with a warning.
    """
    for old in OLD_IDS.keys() & settings.keys.keys():
        log.warning("%s: `%s.%s` is now `%s`", IN_FORCE, _SECTION, old, OLD_IDS[old])
    problems = key_problems(with_new_ids(settings.keys), all_keys())
    if settings.theme not in THEME_NAMES:
        problems = [*_wrong_theme(settings.theme), *problems]
    if problems:
        raise ConfigError.of(problems)


def _wrong_theme(name: str) -> list[ConfigError]:
    from textual.theme import BUILTIN_THEMES  # only needed for a theme that is not ours

    if name in BUILTIN_THEMES:
        return []
    known = [*THEME_NAMES, *BUILTIN_THEMES]
    problem = f"there is no theme {name!r}; ours are {', '.join(THEME_NAMES)}"
    return [ConfigError(IN_FORCE, "console.theme", problem, nearest=_nearest_name(name, known))]


def with_new_ids(wanted: Mapping[str, str]) -> dict[str, str]:
    """Return a key map with the current names of actions."""
    return {OLD_IDS.get(id, id): keys for id, keys in wanted.items()}


def key_problems(wanted: Mapping[str, str], keys: Sequence[Key]) -> list[ConfigError]:
    """Return all problems in a key map: wrong ids and keys or, if there are none, clashes."""
    problems = [*_unknown_actions(wanted, keys), *_invalid_keys(wanted)]
    return problems or _key_clashes(wanted, keys)


def in_force(key: Key, wanted: Mapping[str, str]) -> tuple[str, ...]:
    """Return an action's keys by Textual's names."""
    return tuple(textual_key(each) for each in _split_keys(wanted.get(key.id, key.keys)))


def textual_key(key: str) -> str:
    """Return Textual's name of a key: `/` is `slash`."""
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace("-", "_").replace(" ", "_")
    return _RENAMED.get(name, name)


def key_text(key: str) -> str:
    """Return a key as people write it: `slash` is `/`, `escape` is `esc`."""
    modifiers, name = _split_modifiers(key)
    short = {"escape": "esc", "pageup": "page up", "pagedown": "page down"}.get(name)
    return f"{modifiers}{short or _key_character(name) or name}"


def _split_keys(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",")]


def _split_modifiers(key: str) -> tuple[str, str]:
    found = _MODIFIERS.match(key)
    end = found.end() if found else 0
    return key[:end], key[end:]


def _key_character(name: str) -> str:
    """Return the character that a key's name stands for; empty if none."""
    if name in _NAMED:
        return ""
    if len(name) == 1:
        return name
    # Some Unicode names have a hyphen where Textual has an underscore.
    for joint in (" ", "-"):
        with suppress(KeyError):
            return unicodedata.lookup(_UNICODE.get(name, name).replace("_", joint))
    return ""


def _nearest_name(name: str, known: Iterable[str]) -> str:
    return next(iter(get_close_matches(name, list(known), n=1)), "")


def _unknown_actions(wanted: Mapping[str, str], keys: Sequence[Key]) -> list[ConfigError]:
    ids = [key.id for key in keys]
    problem = "there is no such action; the console's help (`?`) lists them"
    return [
        ConfigError(IN_FORCE, f"{_SECTION}.{id}", problem, nearest=_nearest_name(id, ids))
        for id in wanted
        if id not in ids
    ]


def _invalid_keys(wanted: Mapping[str, str]) -> list[ConfigError]:
    return [
        ConfigError(IN_FORCE, f"{_SECTION}.{id}", f"`{key}` is not a key")
        for id, keys in wanted.items()
        for key in _split_keys(keys)
        if not _is_key(key)
    ]


def _is_key(key: str) -> bool:
    _, name = _split_modifiers(textual_key(key))
    return name in _NAMED or bool(_key_character(name))


def _key_clashes(wanted: Mapping[str, str], keys: Sequence[Key]) -> list[ConfigError]:
    """Return keys with two meanings. Defaults that share a key are on different screens."""
    problems: list[ConfigError] = []
    for one, other in combinations(keys, 2):
        both = set(in_force(one, wanted)) & set(in_force(other, wanted))
        both -= set(in_force(one, {})) & set(in_force(other, {}))
        for key in sorted(both):
            id, taken = (one, other) if one.id in wanted else (other, one)
            problem = f"`{key_text(key)}` is already the key of `{taken.id}` ({taken.does})"
            problems.append(ConfigError(IN_FORCE, f"{_SECTION}.{id.id}", problem))
    return problems
